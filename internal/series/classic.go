// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package series

import (
	"sort"

	"github.com/tokenpulse/tokenpulse/internal/sketch"
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
