// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package twosample

import (
	"cmp"
	"math"
	"slices"

	"github.com/tokenpulse/tokenpulse/internal/sketch"
)

// distribution is that of an indicator in the standardised mix of an arm.
type distribution struct {
	buckets  []bucket // ascending
	min, max float64
}

// bucket is one of a sketch with its share of the requests.
type bucket struct {
	index int
	share float64
}

// zeros is the index of the values that count as zero.
const zeros = math.MinInt

// newDistribution adds up the values of bands. Those of each band have a share of the requests; together, these may be less than 1.
func newDistribution(total *group, i Indicator, shares *weights) *distribution {
	d := &distribution{min: math.Inf(1)}
	for b, share := range shares {
		if share == 0 {
			continue
		}
		s := &total[b].values[i]
		each := share / float64(s.Count())
		d.min, d.max = min(d.min, s.Min()), max(d.max, s.Max())
		if n := s.Zeros(); n > 0 {
			d.buckets = append(d.buckets, bucket{zeros, each * float64(n)})
		}
		for index, n := range s.Buckets() {
			d.buckets = append(d.buckets, bucket{index, each * float64(n)})
		}
	}
	slices.SortStableFunc(d.buckets, func(a, b bucket) int { return cmp.Compare(a.index, b.index) })
	merged := d.buckets[:0]
	for _, b := range d.buckets {
		if last := len(merged) - 1; last >= 0 && merged[last].index == b.index {
			merged[last].share += b.share
		} else {
			merged = append(merged, b)
		}
	}
	d.buckets = merged
	return d
}

// quantile returns the value that a share of the requests does not exceed. Values are taken as spread evenly over their bucket, in
// log space. It is +Inf for a share that includes requests without a value.
func (d *distribution) quantile(q float64) float64 {
	const rounding = 1e-9
	var below float64
	for i, b := range d.buckets {
		if below+b.share < q && (i < len(d.buckets)-1 || below+b.share < q-rounding) {
			below += b.share
			continue
		}
		if b.index == zeros {
			return 0
		}
		low, high := max(sketch.UpperBound(b.index-1), d.min), min(sketch.UpperBound(b.index), d.max)
		return low * math.Pow(high/low, min(max(0, (q-below)/b.share), 1))
	}
	return math.Inf(1)
}

// threshold returns the bucket whose upper bound is the nearest one to a quantile. If there are several buckets, it is not the last
// one, above which there is no value.
func (d *distribution) threshold(q float64) (index int) {
	var below float64
	for i, b := range d.buckets {
		upTo := below + b.share
		last := i == len(d.buckets)-1
		if upTo < q && !last {
			below = upTo
			continue
		}
		if i > 0 && (last || q-below < upTo-q) {
			return d.buckets[i-1].index
		}
		return b.index
	}
	return zeros
}

// above returns how many values are above the bucket.
func above(s *sketch.Sketch, index int) (n uint64) {
	for i, k := range s.Buckets() {
		if i > index {
			n += k
		}
	}
	return n
}
