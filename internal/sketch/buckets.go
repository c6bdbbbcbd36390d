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

// candidates maps the top bits of a mantissa to the lowest bucket of the octave
// that a value with these bits can be in. Buckets are wider than the step
// between entries, so the value is in that bucket or the next: one comparison
// decides, where a logarithm would cost ten times as much.
var candidates = func() (c [1 << candidateBits]uint8) {
	bucket := 0
	for i := range c {
		lowest := 1 + float64(i)/(1<<candidateBits)
		for lowest > bounds[bucket+1] {
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
	bits := math.Float64bits(v)
	mantissa := bits & mantissaMask
	octave := int(bits>>mantissaBits) - exponentBias
	significand := math.Float64frombits(mantissa | exponentBias<<mantissaBits)
	bucket := int(candidates[mantissa>>(mantissaBits-candidateBits)])
	if significand > bounds[bucket+1] {
		bucket++
	}
	if mantissa == 0 { // a power of two is the upper bound of the bucket below
		bucket = -1
	}
	return octave*perOctave + bucket
}

// UpperBound returns the largest value of a bucket.
func UpperBound(index int) float64 {
	index++
	return math.Ldexp(bounds[index&(perOctave-1)], index>>Scale)
}

// Midpoint returns the middle of a bucket in log space: no value in the bucket
// is further from it than 0.55%.
func Midpoint(index int) float64 {
	return math.Exp2((float64(index) + 0.5) / perOctave)
}
