// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package names

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLookup_FindsEachName_AndNoOther(t *testing.T) {
	all := map[string]int{"": -1, "a_b": -2, "c_b": -3} // the last two differ in no byte that is hashed
	for i := range 600 {                                // more than there are hashes
		all["gen_ai."+strconv.Itoa(i)] = i
	}
	lookup := NewLookup(all)
	for name, value := range all {
		require.Equal(t, &value, lookup.Get(name), name)
	}
	for _, name := range []string{"b_b", "_b", "gen_ai.", "gen_ai.600", "Gen_ai.1"} {
		require.Nil(t, lookup.Get(name), name)
	}
	require.Nil(t, new(Lookup[int]).Get(""))
}
