// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package canary

import (
	"math"
	"sort"

	"github.com/tokenpulse/tokenpulse/internal/sketch"
)

// Interval is an estimate with bounds. NaN is an unknown estimate, or an open bound.
type Interval struct{ Estimate, Lower, Upper float64 }

// unknown has no estimate and no bounds.
func unknown() Interval { return Interval{math.NaN(), math.NaN(), math.NaN()} }

// percentileDivisor is the share of alpha that each of two percentiles has, so that both hold together.
const percentileDivisor = 2

// percentileOf returns a percentile of values. Its bounds hold however often they are asked for, if the values are of
// one distribution: the number of values up to its percentile is then that of a share of requests that is known.
// Dispersion divides the number of values, as it divides the evidence of a window.
func percentileOf(values *sketch.Sketch, percentile, dispersion, alpha float64) Interval {
	of := unknown()
	n := values.Count()
	if n == 0 {
		return of
	}
	plausible := func(under uint64) bool {
		e := logShareEvidence(float64(under)/dispersion, float64(n-under)/dispersion, percentile)
		return !rejects(e, percentileDivisor, alpha)
	}
	atRank := func(rank uint64) float64 { return values.Quantile((float64(rank) - 0.5) / float64(n)) }
	// The evidence is convex in the number of values, and least near its mean.
	mean := uint64(percentile * float64(n))
	first := uint64(sort.Search(int(mean), func(i int) bool { return plausible(uint64(i)) }))
	last := mean + uint64(sort.Search(int(n-mean), func(i int) bool { return !plausible(mean + uint64(i) + 1) }))
	of.Estimate = values.Quantile(percentile)
	if first > 0 {
		of.Lower = atRank(first)
	}
	if last < n {
		of.Upper = atRank(last + 1)
	}
	return of
}

// over returns the ratio of two estimates. Its bounds hold if those of both do.
func (i Interval) over(other Interval) Interval {
	quotient := func(of, by float64) float64 {
		if !(by > 0) {
			return math.NaN()
		}
		return of / by
	}
	return Interval{quotient(i.Estimate, other.Estimate), quotient(i.Lower, other.Upper), quotient(i.Upper, other.Lower)}
}
