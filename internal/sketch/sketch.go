// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Package sketch implements a base-2 exponential histogram with one fixed scale.
// Any two sketches merge exactly, and each quantile is within 0.55% of the exact
// value.
package sketch

import (
	"iter"
	"math"
	"slices"
)

// Sketch is a distribution of non-negative values: seconds, or tokens per
// second. The zero value is empty and ready to use. A Sketch is not safe for
// concurrent use.
type Sketch struct {
	count    uint64
	sum      float64
	min, max float64
	zeros    uint64

	// counts holds the buckets from index lowest on. It grows by whole octaves, so
	// that few values make it grow.
	lowest int
	counts []uint64
}

// Add counts the value v n times. Negative values and NaN are ignored: callers
// reject them where they can report the reason.
func (s *Sketch) Add(v float64, n uint64) {
	if !(v >= 0) || n == 0 {
		return
	}
	s.summarize(n, v*float64(n), v, v)
	if v <= ZeroThreshold {
		s.zeros += n
		return
	}
	index := Index(v)
	if slot := index - s.lowest; uint(slot) < uint(len(s.counts)) {
		s.counts[slot] += n
		return
	}
	s.add(index, n)
}

// AddMicroseconds counts each value once, like Add(v/1e6, 1) at half the cost.
// Values must not be negative. It returns their exact sum in microseconds.
func (s *Sketch) AddMicroseconds(values []int64) (sum int64) {
	if len(values) == 0 {
		return 0
	}
	const perSecond = 1e6
	lowest, highest := values[0], values[0]
	first, counts := s.lowest-microsecondsTable.base(), s.counts // local copies stay in registers
	for _, v := range values {
		sum += v
		lowest, highest = min(lowest, v), max(highest, v)
		slot := microsecondsTable.offset(float64(v)) - first // negative if v is 0
		if uint(slot) < uint(len(counts)) {
			counts[slot]++
			continue
		}
		if v == 0 {
			s.zeros++
			continue
		}
		s.add(min(slot+s.lowest, lastIndex), 1)
		first, counts = s.lowest-microsecondsTable.base(), s.counts
	}
	s.summarize(uint64(len(values)), float64(sum)/perSecond, float64(lowest)/perSecond, float64(highest)/perSecond)
	return sum
}

// summarize adds n values to everything but zeros and buckets.
func (s *Sketch) summarize(n uint64, sum, lowest, highest float64) {
	if s.count == 0 {
		s.min, s.max = lowest, highest
	} else {
		s.min, s.max = min(s.min, lowest), max(s.max, highest)
	}
	s.count += n
	s.sum += sum
}

func (s *Sketch) add(index int, n uint64) {
	s.cover(index)
	s.counts[index-s.lowest] += n
}

// cover extends counts to include a bucket. It reuses capacity from before a Reset.
func (s *Sketch) cover(index int) {
	octave := index &^ (perOctave - 1)
	if len(s.counts) == 0 {
		s.lowest = octave
	}
	if below := s.lowest - octave; below > 0 {
		s.extend(below)
		copy(s.counts[below:], s.counts)
		clear(s.counts[:below])
		s.lowest = octave
	}
	if above := octave + perOctave - s.lowest - len(s.counts); above > 0 {
		s.extend(above)
	}
}

// extend appends n empty buckets.
func (s *Sketch) extend(n int) {
	used := len(s.counts)
	s.counts = slices.Grow(s.counts, n)[:used+n]
	clear(s.counts[used:])
}

// Merge adds all values of other.
func (s *Sketch) Merge(other *Sketch) {
	if other.count == 0 {
		return
	}
	s.summarize(other.count, other.sum, other.min, other.max)
	s.zeros += other.zeros
	if other.max <= ZeroThreshold {
		return
	}
	// Buckets below that of the smallest value and above that of the largest one are empty.
	first, last := max(other.lowest, bucketOf(other.min)), bucketOf(other.max)
	s.cover(first)
	s.cover(last)
	counts := other.counts[first-other.lowest : last-other.lowest+1]
	into := s.counts[first-s.lowest:][:len(counts)] // without bounds checks
	for slot, n := range counts {
		into[slot] += n
	}
}

// Reset empties the sketch and keeps its allocation. The covered range starts over,
// so that walking the buckets costs no more than the new values need.
func (s *Sketch) Reset() {
	*s = Sketch{counts: s.counts[:0]}
}

// Count returns how many values were added.
func (s *Sketch) Count() uint64 { return s.count }

// Sum returns the sum of all values.
func (s *Sketch) Sum() float64 { return s.sum }

// Min returns the exact smallest value, or 0 for an empty sketch.
func (s *Sketch) Min() float64 { return s.min }

// Max returns the exact largest value, or 0 for an empty sketch.
func (s *Sketch) Max() float64 { return s.max }

// Zeros returns how many values were at or under ZeroThreshold.
func (s *Sketch) Zeros() uint64 { return s.zeros }

// Buckets yields the index and count of each non-empty bucket, in ascending order.
func (s *Sketch) Buckets() iter.Seq2[int, uint64] {
	return func(yield func(int, uint64) bool) {
		for slot, n := range s.counts {
			if n != 0 && !yield(s.lowest+slot, n) {
				return
			}
		}
	}
}

// Quantile returns the smallest value whose cumulative count reaches q times the
// count (nearest rank). The result is the midpoint of its bucket in log space,
// clamped to [Min, Max], and NaN for an empty sketch.
func (s *Sketch) Quantile(q float64) float64 {
	v := [...]float64{q}
	s.Quantiles(v[:])
	return v[0]
}

// rankOf returns q times the count, rounded up, and at least 1. The tolerance
// absorbs float errors: 0.55 * 1800 is 990.0000000000001, whose rank is 990.
func rankOf(q float64, count uint64) uint64 {
	const tolerance = 1e-12
	return max(1, uint64(math.Ceil(q*float64(count)*(1-tolerance))))
}

// Quantiles replaces each of qs by its Quantile in one pass over the buckets. qs must
// be in ascending order.
func (s *Sketch) Quantiles(qs []float64) {
	seen, slot := s.zeros, -1 // seen counts the values up to slot, inclusive
	value := func(q float64) float64 {
		rank := rankOf(q, s.count)
		for seen < rank && slot < len(s.counts)-1 {
			slot++
			seen += s.counts[slot]
		}
		switch {
		case s.count == 0:
			return math.NaN()
		case seen < rank:
			return s.max
		case slot < 0: // the rank is among the zeros
			return s.min
		default:
			return min(max(midpoint(s.lowest+slot), s.min), s.max)
		}
	}
	for i, q := range qs {
		qs[i] = value(q)
	}
}
