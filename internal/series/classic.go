// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package series

import (
	"sort"

	"github.com/tokenpulse/tokenpulse/internal/sketch"
)

// Classic bucket bounds for tokens. A decode step takes 5 to 100 ms, which falls into
// the first few buckets of the usual libraries' defaults.
var (
	// gapBounds are for the time between tokens, in seconds.
	gapBounds = []float64{
		.001, .002, .003, .005, .0075, .01, .015, .02, .025, .03, .04, .05, .075,
		.1, .15, .2, .3, .5, .75, 1, 2, 5, 10,
	}
	// durationBounds are for requests and their phases, in seconds.
	durationBounds = []float64{
		.001, .005, .01, .025, .05, .1, .15, .2, .3, .5, .75, 1, 1.5, 2, 3, 5, 7.5,
		10, 15, 20, 30, 60, 120, 300, 600,
	}
	// rateBounds are in tokens per second.
	rateBounds = []float64{
		1, 2, 5, 10, 15, 20, 25, 30, 40, 50, 60, 80, 100, 125, 150, 200, 300, 500,
		750, 1000, 2000, 5000,
	}
)

// classicIndex returns the classic bucket of v. Bounds are inclusive; values above the
// last bound go to the bucket after it.
func classicIndex(bounds []float64, v float64) int { return sort.SearchFloat64s(bounds, v) }

// countClassic counts a sketch into classic buckets. A sketch bucket that contains a
// bound counts as below it: a value equal to the bound must be below, and a value up
// to 1.1% above it then is, too.
func countClassic(into []uint64, bounds []float64, s *sketch.Sketch) {
	into[0] += s.Zeros()
	bucket := 0
	for index, n := range s.Buckets() {
		lowest := sketch.UpperBound(index - 1)
		for bucket < len(bounds) && lowest >= bounds[bucket] {
			bucket++
		}
		into[bucket] += n
	}
}
