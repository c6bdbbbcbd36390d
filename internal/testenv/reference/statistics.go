// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"math"
	"slices"
)

// Number is a number and the tolerance of the Collector's number. The Collector rounds the
// time of each chunk but the first down to a microsecond.
type Number struct{ Value, Within float64 }

const (
	microsecond = 1000 // in nanoseconds
	second      = 1_000_000_000
)

// SketchError is the largest relative error of a percentile.
const SketchError = 0.0055

// rounded is the tolerance of a quotient in seconds, which the Collector writes in whole
// nanoseconds. Other durations are differences of whole nanoseconds.
const rounded = 0.5e-9

// seconds rounds once, to the float64 nearest to the quotient.
func seconds(nanoseconds, share int64) float64 {
	return float64(nanoseconds) / float64(second*share)
}

// Values returns the sorted values.
func Values(samples []Number) []float64 {
	values := make([]float64, len(samples))
	for i, s := range samples {
		values[i] = s.Value
	}
	slices.Sort(values)
	return values
}

// NearestRank returns the smallest of the sorted values whose cumulative count reaches the
// quantile's share. The quantile is in whole thousandths, so that rounding cannot shift a rank.
func NearestRank(sorted []float64, q float64) float64 {
	perMille := int(math.Round(1000 * q))
	return sorted[max((perMille*len(sorted)+999)/1000, 1)-1]
}

// Linear returns a quantile as numpy does by default, by linear interpolation.
func Linear(sorted []float64, q float64) float64 {
	rank := q * float64(len(sorted)-1)
	low := int(rank)
	high := min(low+1, len(sorted)-1)
	return sorted[low] + (rank-float64(low))*(sorted[high]-sorted[low])
}

// Mean returns the mean of the values.
func Mean[T int64 | float64](values []T) float64 {
	var sum float64
	for _, v := range values {
		sum += float64(v)
	}
	return sum / float64(len(values))
}

// blurOf returns the tolerance of a gap, in seconds.
func blurOf(chunks []Chunk) float64 {
	for _, c := range chunks {
		if c.At%microsecond != 0 {
			return 1e-6
		}
	}
	return 0
}
