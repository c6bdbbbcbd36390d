// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package spanreader

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFieldOf_FindsFieldsByExactName(t *testing.T) {
	for i := range fields {
		name := fields[i].name
		require.Same(t, &fields[i], fieldOf(name), name)
		changed := []byte(name) // its search starts at the same entry
		changed[0]++
		require.Nil(t, fieldOf(string(changed)), name)
	}
	for _, name := range []string{"", "t", "tokenpulse.inter_token_latency.p50", "gen_ai.request.model"} {
		require.Nil(t, fieldOf(name), name)
	}
}
