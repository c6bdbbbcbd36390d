// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package sketch

import (
	"math"
	"slices"
)

// Scale sets the bucket boundaries: bucket i holds the values v with
// 2^(i/64) < v <= 2^((i+1)/64), as in an OpenTelemetry exponential histogram of
// the same scale. (Prometheus numbers the same bucket i+1, in schema 6.) The scale
// is fixed, so that any two sketches merge bucket by bucket.
const Scale = 6

const (
	// ZeroThreshold is the largest value that counts as zero: just under a
	// nanosecond if values are in seconds.
	ZeroThreshold = 1.0 / (1 << 30)
	// MaxValue is the upper bound of the last bucket: 34 years in seconds. The last
	// bucket also counts all larger values.
	MaxValue = 1 << 30

	perOctave   = 1 << Scale
	lowestIndex = -30 * perOctave
	indexCount  = 60 * perOctave
)

// bounds[i] is 2^(i/64): the bucket boundaries within one octave.
var bounds = func() (b [perOctave + 1]float64) {
	for i := range b {
		b[i] = math.Exp2(float64(i) / perOctave)
	}
	return b
}()

// The bits of a float64 above linearBits number 64 steps per octave, all of the same width. moves
// holds what to add to the bits of a value, by the top bits of its mantissa, so that they number its
// bucket instead. The values of an entry are in at most two buckets, because the step between
// entries is narrower than any bucket. A value in the higher one carries into the bits above linearBits.
//
// A logarithm would take ten times as long, and make a stream of 500 tokens cost the Collector twice as much.
var moves = func() (m [1 << entryBits]uint64) {
	for i := range uint64(len(m)) {
		lowest, last := i<<belowEntry, (i+1)<<belowEntry-1
		next, _ := slices.BinarySearch(bounds[:], math.Float64frombits(exponentBias<<mantissaBits|lowest))
		if next < perOctave { // the bucket may end within the entry
			last = min(last, math.Float64bits(bounds[next])%(1<<mantissaBits))
		}
		m[i] = uint64(next+1)<<linearBits - last - 1
	}
	return m
}()

const (
	mantissaBits = 52
	linearBits   = mantissaBits - Scale
	entryBits    = 7 // steps of 1/128; the narrowest bucket is 1/92 wide
	belowEntry   = mantissaBits - entryBits
	exponentBias = 1023
)

// number returns the bucket of v relative to firstNumber.
func number(v float64) int {
	bits := math.Float64bits(v)
	return int((bits + moves[bits>>belowEntry%(1<<entryBits)]) >> linearBits)
}

// firstNumber is the bucket of the smallest exponent and mantissa 0. The value 1 is the last one of
// bucket -1.
const firstNumber = -1 - exponentBias<<Scale

// lastIndex is the highest bucket.
const lastIndex = lowestIndex + indexCount - 1

// Index returns the index of the bucket of v, which must exceed ZeroThreshold. Values over
// MaxValue belong to the last bucket.
func Index(v float64) int {
	if v > MaxValue {
		return lastIndex
	}
	return number(v) + firstNumber
}

// UpperBound returns the largest value of a bucket.
func UpperBound(index int) float64 {
	index++
	return math.Ldexp(bounds[index&(perOctave-1)], index>>Scale)
}

// midpoint returns the middle of a bucket in log space, at most 0.55% away from any
// value in the bucket.
func midpoint(index int) float64 {
	return math.Exp2((float64(index) + 0.5) / perOctave)
}
