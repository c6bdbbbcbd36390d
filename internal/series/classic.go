package series

import (
	"github.com/tokenpulse/tokenpulse/internal/sketch"
)

// Classic bucket bounds made for tokens. The defaults of the usual libraries
// begin where a token stream is already broken: a decode step takes 5 to 100 ms.
var (
	// gapBounds are for what happens between tokens. In seconds.
	gapBounds = []float64{
		.001, .002, .003, .005, .0075, .01, .015, .02, .025, .03, .04, .05, .075,
		.1, .15, .2, .3, .5, .75, 1, 2, 5, 10,
	}
	// durationBounds are for what a whole request goes through. In seconds.
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

// classicIndex returns the classic bucket of v: bounds are inclusive, and values
// over the last one are in the bucket after it. It is slices.BinarySearch for what
// is a number, without the care that takes of what is none.
func classicIndex(bounds []float64, v float64) int {
	low, high := 0, len(bounds)
	for low < high {
		middle := int(uint(low+high) / 2)
		if bounds[middle] < v {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return low
}

// countClassic counts a sketch into classic buckets. A bucket of the sketch that
// a bound runs through counts as under it: so a value that is exactly the bound
// is, as it must be, and so is one up to 1.1% over it.
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
