// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package series

import (
	"sort"

	"github.com/tokenpulse/tokenpulse/internal/sketch"
)

// Classic bucket bounds for tokens, in seconds unless noted. Each bound is a sample of
// every series, so each histogram has bounds for its own range, close where objectives
// are usual. Native buckets need none.
var (
	// gapBounds are for the time between tokens: a decode step takes 5 to 100 ms, and
	// objectives are 15 to 200 ms.
	gapBounds = []float64{.001, .005, .01, .015, .02, .03, .04, .05, .075, .1, .2, .5, 1, 5}
	// firstTokenBounds are for the wait for a token: objectives are 0.1 to 6 s, an
	// overloaded queue takes minutes.
	firstTokenBounds = []float64{.001, .05, .1, .2, .3, .5, .75, 1, 2, 3, 5, 10, 30, 120}
	// durationBounds are for whole requests, from cached answers to agents' long ones.
	durationBounds = []float64{.001, .1, .25, .5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600}
	// answerBounds are for agents, whose answers take several requests.
	answerBounds = []float64{.001, .5, 1, 2, 5, 10, 30, 60, 120, 600}
	// phaseBounds are few, because each series has them once per phase. They show which
	// phase a request spent its time in.
	phaseBounds = []float64{.001, .01, .05, .1, .5, 1, 2, 5, 20, 120}
	// rateBounds are in tokens per second.
	rateBounds = []float64{1, 5, 10, 20, 30, 40, 50, 75, 100, 150, 200, 500, 1000, 5000}
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
