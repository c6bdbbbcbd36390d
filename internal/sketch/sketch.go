// Package sketch counts values into the buckets of a base-2 exponential
// histogram of one fixed scale, so that any two sketches merge exactly, whoever
// made them, and every quantile is within 0.55% of the exact one.
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

	// counts holds the buckets from index lowest on, in whole octaves, so that
	// it grows a few times in its life and not with each new value.
	lowest int
	counts []uint64
}

// Add counts the value v n times. Values that are negative or not a number have
// no place in a sketch and are ignored: callers turn them away where they can
// say why.
func (s *Sketch) Add(v float64, n uint64) {
	if !(v >= 0) || n == 0 {
		return
	}
	s.observe(n, v*float64(n), v, v)
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

// AddMicroseconds counts each value once, as Add(v / 1e6, 1) does, at half the cost.
// The values are whole microseconds and not negative. It returns their sum, which the
// sketch has rounded once.
func (s *Sketch) AddMicroseconds(values []int64) (sum int64) {
	if len(values) == 0 {
		return 0
	}
	const perSecond = 1e6
	lowest, highest := values[0], values[0]
	first, counts := s.lowest-ofMicroseconds.lowest(), s.counts // what the loop needs, in registers
	for _, v := range values {
		sum += v
		lowest, highest = min(lowest, v), max(highest, v)
		if v == 0 {
			s.zeros++
			continue
		}
		distance := ofMicroseconds.distance(float64(v))
		if slot := distance - first; uint(slot) < uint(len(counts)) {
			counts[slot]++
			continue
		}
		s.add(min(distance+ofMicroseconds.lowest(), lastIndex), 1)
		first, counts = s.lowest-ofMicroseconds.lowest(), s.counts
	}
	s.observe(uint64(len(values)), float64(sum)/perSecond, float64(lowest)/perSecond, float64(highest)/perSecond)
	return sum
}

// observe updates all but the buckets.
func (s *Sketch) observe(n uint64, sum, lowest, highest float64) {
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

// cover makes room for a bucket. It allocates only where the sketch never had
// as much room before, also when a Reset lies between.
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

// extend adds n empty buckets at the upper end.
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
	s.observe(other.count, other.sum, other.min, other.max)
	s.zeros += other.zeros
	if len(other.counts) == 0 {
		return
	}
	s.cover(other.lowest)
	s.cover(other.lowest + len(other.counts) - 1)
	into := s.counts[other.lowest-s.lowest:]
	for slot, n := range other.counts {
		into[slot] += n
	}
}

// Reset empties the sketch and keeps its memory, but not the range it covered:
// a sketch that is used again costs what its new values cost.
func (s *Sketch) Reset() {
	*s = Sketch{counts: s.counts[:0]}
}

// Count returns how many values were added.
func (s *Sketch) Count() uint64 { return s.count }

// Sum returns the sum of all values.
func (s *Sketch) Sum() float64 { return s.sum }

// Min returns the smallest value, exactly. It is 0 in an empty sketch.
func (s *Sketch) Min() float64 { return s.min }

// Max returns the largest value, exactly. It is 0 in an empty sketch.
func (s *Sketch) Max() float64 { return s.max }

// Zeros returns how many values were at or under ZeroThreshold.
func (s *Sketch) Zeros() uint64 { return s.zeros }

// Buckets yields the index and count of each bucket that is not empty, in
// ascending order.
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
// count (nearest rank), as the middle of its bucket in log space, and never
// outside the exact smallest and largest value. It is NaN in an empty sketch.
func (s *Sketch) Quantile(q float64) float64 {
	v := [...]float64{q}
	s.Quantiles(v[:])
	return v[0]
}

// rankOf returns the smallest whole number that reaches q times the count. The
// product of two floats can come out a hair over a whole number that it is:
// 0.55 * 1800 is 990.0000000000001.
func rankOf(q float64, count uint64) uint64 {
	const hair = 1e-12
	return max(1, uint64(math.Ceil(q*float64(count)*(1-hair))))
}

// Quantiles replaces each of the qs, which are in ascending order, by its
// Quantile. It looks at each bucket once.
func (s *Sketch) Quantiles(qs []float64) {
	seen, slot := s.zeros, -1 // up to and with the bucket in this slot
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
		case slot < 0: // a zero
			return s.min
		default:
			return min(max(midpoint(s.lowest+slot), s.min), s.max)
		}
	}
	for i, q := range qs {
		qs[i] = value(q)
	}
}
