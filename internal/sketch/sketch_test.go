// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package sketch

import (
	"encoding/binary"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// exactQuantile returns the nearest-rank quantile of sorted values.
func exactQuantile(sorted []float64, q float64) float64 {
	for i, v := range sorted {
		if float64(i+1) >= q*float64(len(sorted)) {
			return v
		}
	}
	return math.NaN()
}

func TestQuantile_IsWithin055PercentOfExact(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	distributions := map[string]func() float64{
		"token gaps around 20 ms":   func() float64 { return 0.020 + 0.003*random.NormFloat64() },
		"heavy tail, lognormal 1.5": func() float64 { return 0.02 * math.Exp(1.5*random.NormFloat64()) },
		"uniform over nine decades": func() float64 { return math.Pow(10, -8+9*random.Float64()) },
		"a few distinct values":     func() float64 { return []float64{0.003, 0.0031, 0.5, 30}[random.IntN(4)] },
		"tokens per second":         func() float64 { return 30 + 500*random.Float64() },
		"powers of two":             func() float64 { return math.Ldexp(1, random.IntN(20)-10) },
		"one third zeros":           func() float64 { return math.Max(0, random.Float64()-1.0/3) },
	}
	for name, draw := range distributions {
		t.Run(name, func(t *testing.T) {
			var s Sketch
			var values []float64
			for range 20_000 {
				v := math.Abs(draw())
				values = append(values, v)
				s.Add(v, 1)
			}
			slices.Sort(values)
			for _, q := range []float64{0, 0.001, 0.25, 0.5, 0.9, 0.95, 0.99, 0.999, 1} {
				exact := exactQuantile(values, q)
				require.InDelta(t, exact, s.Quantile(q), 0.0055*exact+ZeroThreshold, "quantile %v", q)
			}
			require.Equal(t, values[0], s.Min())
			require.Equal(t, values[len(values)-1], s.Max())
		})
	}
}

// OpenTelemetry maps a value by its logarithm, with inclusive upper bounds.
func TestIndex_MatchesLogarithm(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 1_000_000 {
		v := math.Exp2(-29.9 + 59.8*random.Float64())
		exact := math.Log2(v) * perOctave
		if math.Abs(exact-math.Round(exact)) < 1e-9 {
			continue // too close to a boundary for the precision of math.Log2
		}
		require.Equal(t, int(math.Ceil(exact))-1, Index(v), "value %v", v)
	}
	for exponent := -29; exponent < 30; exponent++ {
		power := math.Ldexp(1, exponent)
		require.Equal(t, exponent*perOctave-1, Index(power))
		require.Equal(t, exponent*perOctave, Index(math.Nextafter(power, math.Inf(1))))
	}
	for index := lowestIndex; index < lowestIndex+indexCount; index++ {
		require.Equal(t, index, Index(UpperBound(index)))
		require.InEpsilon(t, math.Exp2(float64(index+1)/perOctave), UpperBound(index), 1e-15)
	}
}

func TestMerge_EqualsAddingAllValuesToOneSketch(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	var whole, merged, decoded Sketch
	for range 50 {
		var part Sketch
		for range random.IntN(100) {
			v, n := math.Exp(4*random.NormFloat64())*0.01, 1+random.Uint64N(4)
			if random.IntN(10) == 0 {
				v = 0
			}
			part.Add(v, n)
			whole.Add(v, n)
		}
		merged.Merge(&part)
		require.NoError(t, decoded.MergeBinary(part.AppendBinary(nil)))
	}
	requireSame(t, &whole, &merged)
	requireSame(t, &whole, &decoded)
}

func requireSame(t *testing.T, want, got *Sketch) {
	t.Helper()
	require.Equal(t, want.Count(), got.Count())
	require.Equal(t, want.Zeros(), got.Zeros())
	require.InEpsilon(t, want.Sum(), got.Sum(), 1e-12)
	require.Equal(t, want.Min(), got.Min())
	require.Equal(t, want.Max(), got.Max())
	require.Equal(t, buckets(want), buckets(got))
}

func buckets(s *Sketch) map[int]uint64 {
	return maps.Collect(s.Buckets())
}

func TestAdd_ExtremeAndInvalidValues(t *testing.T) {
	var s Sketch
	require.True(t, math.IsNaN(s.Quantile(0.5)))
	s.Add(-1, 1)
	s.Add(math.NaN(), 1)
	s.Add(1, 0)
	require.Zero(t, s.Count())
	s.Add(math.Inf(1), 1)
	s.Add(1e300, 1)
	s.Add(5e-324, 1)
	require.EqualValues(t, 3, s.Count())
	require.EqualValues(t, 1, s.Zeros())
	require.Equal(t, map[int]uint64{lowestIndex + indexCount - 1: 2}, buckets(&s))
	s.Reset()
	s.Add(0.25, 7)
	require.EqualValues(t, 7, s.Count())
	require.Equal(t, 0.25, s.Quantile(0.99), "clamped to the exact value")
	require.InDelta(t, 1.75, s.Sum(), 1e-12)
}

// Subtract leaves empty buckets, which a merge of the zeros must skip.
func TestMerge_OfZerosThatASubtractionLeft(t *testing.T) {
	var positive, s, into Sketch
	positive.Add(1, 1)
	s.Add(0, 2)
	s.Merge(&positive)
	require.NoError(t, s.Subtract(&positive))
	into.Merge(&s)
	require.EqualValues(t, 2, into.Count())
	require.EqualValues(t, 2, into.Zeros())
	require.Empty(t, buckets(&into))
}

func TestMergeBinary_MalformedInputChangesNothing(t *testing.T) {
	var s Sketch
	s.Add(0.02, 5)
	s.Add(0.5, 1)
	good := s.AppendBinary(nil)
	bad := map[string][]byte{
		"empty input":           {},
		"unknown version":       append([]byte{7}, good[1:]...),
		"truncated header":      good[:headerSize/2],
		"truncated bucket":      good[:len(good)-1],
		"bucket index too high": append(slices.Clone(good), 0xff, 0xff, 0x7f, 1),
		"bucket with count 0":   append(slices.Clone(good), 0, 0),
		"one between others":    slices.Concat(good[:len(good)-3], []byte{10, 0}, binary.AppendUvarint(nil, uint64(Index(0.5)-Index(0.02)-12)), good[len(good)-1:]),
		"negative sum":          slices.Concat(good[:8], []byte{0xc0}, good[9:]),
		"sum too large":         slices.Concat(good[:1], float(1e9), good[9:]),
		"min too small":         slices.Concat(good[:9], float(0.001), good[17:]),
		"max too large":         slices.Concat(good[:17], float(700), good[25:]),
		"counts that overflow":  append(slices.Clone(good), binary.AppendUvarint([]byte{0}, math.MaxUint64-3)...),
	}
	for name, encoded := range bad {
		t.Run(name, func(t *testing.T) {
			var target Sketch
			target.Add(1, 1)
			require.Error(t, target.MergeBinary(encoded))
			require.EqualValues(t, 1, target.Count())
		})
	}
}

// 0.55 * 1800 is slightly above 990 in float64: the rank must still be 990.
func TestQuantile_FloatErrorDoesNotShiftRank(t *testing.T) {
	var s Sketch
	for i := range 1800 {
		s.Add(float64(i/990), 1) // 990 zeros
	}
	require.Zero(t, s.Quantile(0.55))
	require.NotZero(t, s.Quantile(0.5506))
}

func float(v float64) []byte {
	return binary.LittleEndian.AppendUint64(nil, math.Float64bits(v))
}

func TestMergeBinary_RejectsMaxAboveMaxValue(t *testing.T) {
	var s, target Sketch
	s.Add(1e300, 1)
	require.ErrorIs(t, target.MergeBinary(s.AppendBinary(nil)), errInconsistent)
}

func TestAddMicroseconds_EqualsAdd(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	for range 300 {
		var one, each Sketch
		for range random.IntN(4) {
			values := make([]int64, random.IntN(200))
			longest := int64(1) << random.IntN(50) // up to 35 years
			for i := range values {
				values[i] = random.Int64N(longest + 1)
				one.Add(float64(values[i])/1e6, 1)
			}
			each.AddMicroseconds(values)
		}
		require.InDelta(t, one.Sum(), each.Sum(), 1e-12*one.Sum())
		one.sum, each.sum = 0, 0
		require.Equal(t, one, each)
	}
}

// Microseconds on both sides of every boundary are in the bucket of the same time in
// seconds.
func TestAddMicroseconds_EqualsAddAtBucketBoundaries(t *testing.T) {
	for index := Index(1e-6); index < lastIndex; index++ {
		bound := int64(UpperBound(index) * 1e6)
		for v := max(1, bound-2); v <= bound+2; v++ {
			var one, each Sketch
			one.Add(float64(v)/1e6, 1)
			each.AddMicroseconds([]int64{v})
			require.Equal(t, one, each, "%d us at the upper bound of bucket %d", v, index)
		}
	}
	for _, over := range []int64{MaxValue * 1e6, MaxValue*1e6 + 1, MaxValue * 4e6, math.MaxInt64} {
		var one, each Sketch
		one.Add(float64(over)/1e6, 1)
		each.AddMicroseconds([]int64{over})
		require.Equal(t, one, each, "%d us", over)
	}
}

func TestReset_KeepsAllocationAndClearsRange(t *testing.T) {
	var s Sketch
	fill := func() {
		s.Reset()
		for exponent := -4; exponent <= 4; exponent++ { // from the middle alternately down and up
			s.Add(math.Ldexp(1.5, -exponent*exponent/4*(exponent&1*2-1)), 1)
		}
	}
	fill()
	want := buckets(&s)
	require.Zero(t, testing.AllocsPerRun(10, fill))
	require.Equal(t, want, buckets(&s))
	s.Reset()
	s.Add(1, 1)
	require.Len(t, s.counts, perOctave)
}

func FuzzMergeBinary(f *testing.F) {
	var s Sketch
	s.Add(0, 2)
	s.Add(0.02, 5)
	f.Add(s.AppendBinary(nil))
	f.Fuzz(func(t *testing.T, encoded []byte) {
		var s Sketch
		if s.MergeBinary(encoded) != nil {
			require.Zero(t, s.Count())
			return
		}
		require.LessOrEqual(t, len(s.counts), indexCount)
		var again Sketch
		require.NoError(t, again.MergeBinary(s.AppendBinary(nil)))
		require.Equal(t, s.Count(), again.Count())
		require.Equal(t, buckets(&s), buckets(&again))

		require.NoError(t, again.MergeBinary(encoded))
		require.Equal(t, 2*s.Count(), again.Count(), "merged twice")
		require.Equal(t, [2]float64{s.Min(), s.Max()}, [2]float64{again.Min(), again.Max()})
		if s.Count() > 0 {
			last := s.Min()
			for _, q := range []float64{0, 0.5, 0.99, 1} {
				v := s.Quantile(q)
				require.True(t, last <= v && v <= s.Max(), "quantile %v is %v of %v to %v", q, v, last, s.Max())
				last = v
			}
		}
	})
}

func BenchmarkAdd(b *testing.B) {
	var s Sketch
	random := rand.New(rand.NewPCG(1, 2))
	values := make([]float64, 1024)
	for i := range values {
		values[i] = 0.02 * math.Exp(0.3*random.NormFloat64())
	}
	b.ReportAllocs()
	for i := range b.N {
		s.Add(values[i%len(values)], 1)
	}
}

func BenchmarkAddMicroseconds(b *testing.B) {
	var s Sketch
	random := rand.New(rand.NewPCG(1, 2))
	values := make([]int64, 128)
	for i := range values {
		values[i] = int64(20_000 * math.Exp(0.3*random.NormFloat64()))
	}
	b.ReportAllocs()
	for i := 0; i < b.N; i += len(values) {
		s.AddMicroseconds(values)
	}
}

func BenchmarkMergeBinary(b *testing.B) {
	var request, total Sketch
	random := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		request.Add(0.02*math.Exp(0.3*random.NormFloat64()), 1)
	}
	encoded := request.AppendBinary(nil)
	b.ReportMetric(float64(len(encoded)), "B/request")
	b.ReportAllocs()
	for range b.N {
		if err := total.MergeBinary(encoded); err != nil {
			b.Fatal(err)
		}
	}
}
