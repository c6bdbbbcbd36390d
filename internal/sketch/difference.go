// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package sketch

import (
	"errors"
	"iter"
	"math"
)

// Parts are the fields of an OpenTelemetry exponential histogram of the same scale.
type Parts struct {
	Zeros uint64
	// Counts yields the counts of adjacent buckets, from the index Offset on.
	Offset int32
	Counts iter.Seq2[int, uint64]
	Sum    float64
	// Min and Max are NaN if unknown. They are then bounds.
	Min, Max float64
}

// Load replaces the contents of the sketch. On an error the sketch is empty. Values beyond
// the range of a sketch, and numbers that contradict each other, are errors.
func (s *Sketch) Load(p *Parts) error {
	s.Reset()
	err := s.load(p)
	if err != nil {
		s.Reset()
	}
	return err
}

func (s *Sketch) load(p *Parts) error {
	if p.Zeros > maxBucketCount {
		return errMalformed
	}
	s.zeros, s.count = p.Zeros, p.Zeros
	for i, n := range p.Counts {
		if n == 0 {
			continue
		}
		index := int64(p.Offset) + int64(i)
		if index < lowestIndex || index > lastIndex || n > maxBucketCount || s.count > maxBucketCount {
			return errMalformed
		}
		s.count += n
		s.add(int(index), n)
	}
	if s.count == 0 {
		if p.Sum != 0 {
			return errInconsistent
		}
		return nil
	}
	s.sum, s.min, s.max = p.Sum, p.Min, p.Max
	lowest, highest := s.extremes()
	if math.IsNaN(p.Min) {
		s.min = lowest
	}
	if math.IsNaN(p.Max) {
		s.max = highest
	}
	e := Encoded{summary: *s, first: bucketOf(lowest), last: bucketOf(highest)}
	if s.min < 0 || !e.consistent() {
		return errInconsistent
	}
	return nil
}

// extremes returns bounds of the smallest and the largest value, in the buckets of both.
func (s *Sketch) extremes() (lowest, highest float64) {
	first, last := zeroBucket, zeroBucket
	for index := range s.Buckets() {
		if first == zeroBucket {
			first = index
		}
		last = index
	}
	if s.zeros == 0 {
		lowest = math.Nextafter(UpperBound(first-1), math.Inf(1)) // upper bounds are inclusive
	}
	highest = ZeroThreshold
	if last != zeroBucket {
		highest = min(UpperBound(last), MaxValue)
	}
	return lowest, highest
}

var errNoSubset = errors.New("sketch does not contain the other: a bucket has fewer values")

// Subtract removes the values of another sketch, all of which the sketch must contain. It
// keeps the bounds of the smallest and the largest value left: they are exact where the
// extremes are among the values left. On an error it changes nothing.
func (s *Sketch) Subtract(other *Sketch) error {
	if s.zeros < other.zeros {
		return errNoSubset
	}
	for index, n := range other.Buckets() {
		if slot := index - s.lowest; slot < 0 || slot >= len(s.counts) || s.counts[slot] < n {
			return errNoSubset
		}
	}
	for index, n := range other.Buckets() {
		s.counts[index-s.lowest] -= n
	}
	s.zeros -= other.zeros
	s.count -= other.count
	if s.count == 0 {
		s.Reset()
		return nil
	}
	lowest, highest := s.extremes()
	s.min, s.max = min(max(s.min, lowest), highest), max(min(s.max, highest), lowest)
	// The difference of two sums is rounded at the size of these, not at its own.
	n := float64(s.count)
	s.sum = min(max(s.sum-other.sum, s.min*n), s.max*n)
	return nil
}
