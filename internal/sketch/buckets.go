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

// bucketTable maps the mantissa of a float64 to its bucket within one octave. A
// logarithm would cost ten times as much.
type bucketTable struct {
	// first is the bucket of the value 1.
	first int
	// lasts[i] is the mantissa of the largest value in bucket first+i that is below 2.
	// perOctave+1 entries are used: an octave that begins inside a bucket also ends
	// inside one. The array has 256 entries so that a byte indexes it without a bounds
	// check.
	lasts [1 << 8]uint64
	// candidates maps the top bits of a mantissa to the lowest possible bucket. Buckets
	// are wider than the step between entries, so the value is in that bucket or the
	// next, and one comparison decides.
	candidates [1 << candidateBits]uint8
}

const (
	candidateBits = 7 // steps of 1/128; the narrowest bucket is 1/92 wide
	mantissaBits  = 52
	mantissaMask  = 1<<mantissaBits - 1
	exponentBias  = 1023
)

// newBucketTable builds a table from a function that returns the bucket of a value.
// The bucket of twice the value must be perOctave higher.
func newBucketTable(bucketOf func(float64) int) bucketTable {
	t := bucketTable{first: bucketOf(1)}
	for i := range perOctave + 1 {
		t.lasts[i] = lastMantissa(func(v float64) bool { return bucketOf(v) <= t.first+i })
	}
	bucket := uint8(0)
	for i := range t.candidates {
		lowest := uint64(i) << (mantissaBits - candidateBits)
		for lowest > t.lasts[bucket] {
			bucket++
		}
		t.candidates[i] = bucket
	}
	return t
}

// lastMantissa returns the mantissa of the largest value in [1, 2) for which holds
// is true. holds must be true for 1, and must not become true again once it is false.
func lastMantissa(holds func(v float64) bool) uint64 {
	var last uint64
	for bit := uint64(1) << (mantissaBits - 1); bit > 0; bit >>= 1 {
		if holds(math.Float64frombits(exponentBias<<mantissaBits | last | bit)) {
			last |= bit
		}
	}
	return last
}

// offset returns the bucket of v relative to base.
func (t *bucketTable) offset(v float64) int {
	bits := math.Float64bits(v)
	mantissa := bits & mantissaMask
	candidate := t.candidates[mantissa>>(mantissaBits-candidateBits)]
	// The sign bit of the difference replaces a branch that the CPU could not predict.
	next := (t.lasts[candidate] - mantissa) >> 63
	return int(bits>>mantissaBits)<<Scale + int(candidate) + int(next)
}

// base returns the bucket of the smallest exponent and mantissa 0.
func (t *bucketTable) base() int { return t.first - exponentBias<<Scale }

var (
	// secondsTable maps values as they are. A boundary belongs to the bucket below it.
	secondsTable = newBucketTable(func(v float64) int {
		bucket, _ := slices.BinarySearch(bounds[:], v)
		return bucket - 1
	})
	// microsecondsTable maps microseconds to the bucket of the same time in seconds,
	// rounding of the quotient included. It saves the division, a third of the time.
	microsecondsTable = newBucketTable(func(v float64) int { return Index(v / 1e6) })
)

// lastIndex is the highest bucket.
const lastIndex = lowestIndex + indexCount - 1

// Index returns the index of the bucket of v, which must exceed ZeroThreshold. Values over
// MaxValue belong to the last bucket.
func Index(v float64) int {
	if v > MaxValue {
		return lastIndex
	}
	return secondsTable.offset(v) + secondsTable.base()
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
