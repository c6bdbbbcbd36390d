package sketch

import "math"

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

// lastMantissas[i] is the mantissa of the largest float64 in bucket i of an
// octave, when bounds belong to the bucket above.
var lastMantissas = func() (last [perOctave]uint64) {
	for i := range last {
		last[i] = (math.Float64bits(bounds[i+1]) - 1) & mantissaMask
	}
	return last
}()

// candidates maps the top bits of a mantissa to the lowest bucket of the octave
// that a value with these bits can be in. Buckets are wider than the step
// between entries, so the value is in that bucket or the next: one comparison
// decides, where a logarithm would cost ten times as much.
var candidates = func() (c [1 << candidateBits]uint8) {
	bucket := 0
	for i := range c {
		lowest := uint64(i) << (mantissaBits - candidateBits)
		for lowest > lastMantissas[bucket] {
			bucket++
		}
		c[i] = uint8(bucket)
	}
	return c
}()

const (
	candidateBits = 7 // steps of 1/128; the narrowest bucket is 1/92 wide
	mantissaBits  = 52
	mantissaMask  = 1<<mantissaBits - 1
	exponentBias  = 1023
)

// Index returns the bucket of v, which is over ZeroThreshold. Values over
// MaxValue belong to the last bucket.
func Index(v float64) int {
	if v > MaxValue {
		return lowestIndex + indexCount - 1
	}
	// A bound belongs to the bucket below it. The float64 just below v is in the
	// bucket of v also when bounds belong to the bucket above, which is what the
	// tables say.
	bits := math.Float64bits(v) - 1
	mantissa := bits & mantissaMask
	bucket := uint64(candidates[mantissa>>(mantissaBits-candidateBits)])
	// The sign of the difference instead of a comparison: which of the two buckets
	// it is nobody can predict, least of all the processor.
	bucket += (lastMantissas[bucket%perOctave] - mantissa) >> 63
	return int(bits>>mantissaBits)<<Scale + int(bucket) - exponentBias<<Scale
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
