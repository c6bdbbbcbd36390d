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

// bucketTable maps a float64 to its bucket. A logarithm would cost ten times as much.
//
// The bits of a float64 above linearBits number 64 steps per octave, all of the same width. The
// table moves the bits of a value, so that they number its bucket.
type bucketTable struct {
	// first is the bucket of the value 1.
	first int
	// moves holds what to add to the bits of a value, by the top bits of its mantissa. The values of
	// an entry are in at most two buckets, because the step between entries is narrower than any
	// bucket. A value in the higher one carries into the bits above linearBits.
	moves [1 << entryBits]uint64
}

const (
	mantissaBits = 52
	linearBits   = mantissaBits - Scale
	entryBits    = 7 // steps of 1/128; the narrowest bucket is 1/92 wide
	belowEntry   = mantissaBits - entryBits
	exponentBias = 1023
)

// newBucketTable builds a table from a function that returns the bucket of a value.
// The bucket of twice the value must be perOctave higher.
func newBucketTable(bucketOf func(float64) int) bucketTable {
	t := bucketTable{first: bucketOf(1)}
	for i := range uint64(len(t.moves)) {
		lowest, highest := i<<belowEntry, (i+1)<<belowEntry-1
		bucket := bucketOf(withMantissa(lowest))
		last := lastMantissa(func(v float64) bool { return bucketOf(v) <= bucket })
		t.moves[i] = uint64(bucket-t.first+1)<<linearBits - min(last, highest) - 1
	}
	return t
}

// withMantissa returns the value in [1, 2) with a mantissa.
func withMantissa(mantissa uint64) float64 {
	return math.Float64frombits(exponentBias<<mantissaBits | mantissa)
}

// lastMantissa returns the mantissa of the largest value in [1, 2) for which holds
// is true. holds must be true for 1, and must not become true again once it is false.
func lastMantissa(holds func(v float64) bool) uint64 {
	var last uint64
	for bit := uint64(1) << (mantissaBits - 1); bit > 0; bit >>= 1 {
		if holds(withMantissa(last | bit)) {
			last |= bit
		}
	}
	return last
}

// offset returns the bucket of v relative to base.
func (t *bucketTable) offset(v float64) int {
	bits := math.Float64bits(v)
	return int((bits + t.moves[bits>>belowEntry%(1<<entryBits)]) >> linearBits)
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
