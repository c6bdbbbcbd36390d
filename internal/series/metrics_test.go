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
		0: CountOf(numbers.InputTokens), 5: CountOf(numbers.StallDuration), 6: Unmeasured(0, 0), 19: Unmeasured(1, 8), 20: Failed(0), 23: Failed(3),
		24: CountOf(numbers.CacheWriteInputTokens), 26: CountOf(numbers.SpeculativeDraftTokens),
		27: Unmeasured(0, 2), 28: Unmeasured(0, 4), 30: Unmeasured(1, 4),
	} {
		require.EqualValues(t, place, c)
	}
	for place, c := range Counters {
		require.EqualValues(t, place, c.Count)
		require.NotEmpty(t, c.Name)
	}
}
