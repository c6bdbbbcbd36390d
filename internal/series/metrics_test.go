// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package series

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/numbers"
)

// Stored histories have a count at its place. A count that moves would be read as another one.
func TestCounts_KeepTheirPlaceInStoredHistories(t *testing.T) {
	for place, c := range map[int]Count{
		0: CountOf(numbers.InputTokens), 5: CountOf(numbers.StallDuration), 8: CountOf(numbers.SpeculativeDraftTokens),
		9: Unmeasured(0, 0), 17: Unmeasured(0, 8), 18: Unmeasured(1, 0), 26: Unmeasured(1, 8), 27: Failed(0), 30: Failed(3),
	} {
		require.EqualValues(t, place, c)
	}
	for place, c := range Counters {
		require.EqualValues(t, place, c.Count)
		require.NotEmpty(t, c.Name)
	}
}
