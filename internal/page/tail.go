// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"math"

	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/series"
	"github.com/tokenpulse/tokenpulse/internal/slowest"
)

// tailOf returns the seconds from the last token of a request or, if it is known that none came, from its start to its end.
// A success waits for nothing after its last token: it has no tail. NaN stands for none, and for an unknown one.
func tailOf(r *slowest.Entry) float64 {
	duration := r.Value(numbers.RequestDuration)
	switch {
	case r.Outcome == series.Success:
		return math.NaN()
	case r.NoToken:
		return duration
	default:
		return duration - r.Value(numbers.TimeToFirstToken) - r.Value(numbers.DecodeDuration)
	}
}

// minTail is the shortest tail of a request that may have hung: the default of stall_threshold, in seconds.
const minTail = 0.5

// openTailOf returns the tail of a request that may have hung: one that is longer than the gaps between its tokens.
func openTailOf(r *slowest.Entry) float64 {
	if tail := tailOf(r); tail > minTail && !(tail <= r.LargestGap) { // which may be NaN
		return tail
	}
	return math.NaN()
}
