package sketch

import (
	"math"
	"slices"
)

// Scale fixes the bucket boundaries: bucket i holds the values v with
// 2^(i/64) < v <= 2^((i+1)/64), as in OpenTelemetry's exponential histogram of
// the same scale. (Prometheus calls the same bucket i+1, in schema 6.) With one
// scale for everybody, any two sketches merge bucket by bucket.
const Scale = 6

const (
	// ZeroThreshold is the largest value that counts as zero: just under a
	// nanosecond, when values are in seconds.
	ZeroThreshold = 1.0 / (1 << 30)
	// MaxValue is the largest value a sketch tells apart: 34 years in seconds.
	// Larger ones count into its last bucket.
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

// octave tells in which bucket a float64 is, from the bits of its mantissa. It has an
// entry more than an octave has buckets: where it begins within a bucket, it also ends
// within one.
type octave struct {
	// first is the bucket that 1 is in.
	first int
	// lasts[i] is the mantissa of the largest float64 in the bucket first+i, if it has
	// the exponent of 1. The array has an entry for each value of a byte, so that an index
	// in it needs no check.
	lasts [1 << 8]uint64
	// candidates maps the top bits of a mantissa to the lowest bucket that a value with
	// these bits can be in. Buckets are wider than the step between entries, so the value
	// is in that bucket or the next: one comparison decides, where a logarithm would
	// cost ten times as much.
	candidates [1 << candidateBits]uint8
}

const (
	candidateBits = 7 // steps of 1/128; the narrowest bucket is 1/92 wide
	mantissaBits  = 52
	mantissaMask  = 1<<mantissaBits - 1
	exponentBias  = 1023
)

// newOctave makes the tables from a function that gives the bucket of the values from 1
// up to 2, and twice as large values the bucket perOctave higher.
func newOctave(bucketOf func(float64) int) octave {
	o := octave{first: bucketOf(1)}
	for i := range perOctave + 1 {
		o.lasts[i] = lastMantissa(func(v float64) bool { return bucketOf(v) <= o.first+i })
	}
	bucket := uint8(0)
	for i := range o.candidates {
		lowest := uint64(i) << (mantissaBits - candidateBits)
		for lowest > o.lasts[bucket] {
			bucket++
		}
		o.candidates[i] = bucket
	}
	return o
}

// lastMantissa returns the largest mantissa of the values from 1 up to 2 that hold, as
// 1 and all values up to it do.
func lastMantissa(holds func(v float64) bool) uint64 {
	var last uint64
	for bit := uint64(1) << (mantissaBits - 1); bit > 0; bit >>= 1 {
		if holds(math.Float64frombits(exponentBias<<mantissaBits | last | bit)) {
			last |= bit
		}
	}
	return last
}

// distance returns how many buckets a value is above that of the smallest exponent and
// the mantissa 0, which is lowest.
func (o *octave) distance(v float64) int {
	bits := math.Float64bits(v)
	mantissa := bits & mantissaMask
	candidate := o.candidates[mantissa>>(mantissaBits-candidateBits)]
	// The sign of the difference instead of a comparison: which of the two buckets
	// it is nobody can predict, least of all the processor.
	next := (o.lasts[candidate] - mantissa) >> 63
	return int(bits>>mantissaBits)<<Scale + int(candidate) + int(next)
}

// lowest returns the bucket that distances count from.
func (o *octave) lowest() int { return o.first - exponentBias<<Scale }

var (
	// ofSeconds is for values as they are: a bound belongs to the bucket below it.
	ofSeconds = newOctave(func(v float64) int {
		bucket, _ := slices.BinarySearch(bounds[:], v)
		return bucket - 1
	})
	// ofMicroseconds is for a million times the value, and gives the bucket that the
	// quotient is in, as it is rounded. To divide would take half as long again.
	ofMicroseconds = newOctave(func(v float64) int { return Index(v / 1e6) })
)

// lastIndex is the highest bucket there is.
const lastIndex = lowestIndex + indexCount - 1

// Index returns the bucket of v, which is over ZeroThreshold. Values over
// MaxValue belong to the last bucket.
func Index(v float64) int {
	if v > MaxValue {
		return lastIndex
	}
	return ofSeconds.distance(v) + ofSeconds.lowest()
}

// UpperBound returns the largest value of a bucket.
func UpperBound(index int) float64 {
	index++
	return math.Ldexp(bounds[index&(perOctave-1)], index>>Scale)
}

// midpoint returns the middle of a bucket in log space: no value in the bucket
// is further from it than 0.55%.
func midpoint(index int) float64 {
	return math.Exp2((float64(index) + 0.5) / perOctave)
}
