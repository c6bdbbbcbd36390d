// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package sketch

import (
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// partsOf returns the parts of a sketch, as a data point has them.
func partsOf(s *Sketch) *Parts {
	found := buckets(s)
	indices := slices.Sorted(maps.Keys(found))
	p := &Parts{Zeros: s.Zeros(), Sum: s.Sum(), Min: s.Min(), Max: s.Max(), Counts: slices.All([]uint64{})}
	if len(indices) > 0 {
		counts := make([]uint64, indices[len(indices)-1]-indices[0]+3) // with an empty bucket at each end
		for index, n := range found {
			counts[index-indices[0]+1] = n
		}
		p.Offset, p.Counts = int32(indices[0]-1), slices.All(counts)
	}
	return p
}

func TestLoad_RestoresASketch(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var s, loaded Sketch
		for range 1 + random.IntN(20) {
			s.Add(math.Exp(random.NormFloat64()*5-2), uint64(1+random.IntN(3)))
		}
		s.Add(0, uint64(random.IntN(2)))
		require.NoError(t, loaded.Load(partsOf(&s)))
		requireSame(t, &s, &loaded)

		p := partsOf(&s)
		p.Min, p.Max = math.NaN(), math.NaN()
		require.NoError(t, loaded.Load(p))
		require.LessOrEqual(t, loaded.Min(), s.Min())
		require.GreaterOrEqual(t, loaded.Max(), s.Max())
		require.InEpsilon(t, 1e-9+s.Max(), 1e-9+loaded.Max(), 0.0110)
		require.NoError(t, new(Sketch).MergeBinary(loaded.AppendBinary(nil)))
	}
}

// What is left has the bounds of its own values: exact where an extreme is among them.
func TestSubtract_LeavesTheOtherValues(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 500 {
		var before, after, added Sketch
		for i := range random.IntN(30) {
			v := float64(random.IntN(1<<14)) / (1 << 10)
			after.Add(v, 1)
			if i < 10 {
				before.Add(v, 1)
			} else {
				added.Add(v, 1)
			}
		}
		all := after
		all.counts = slices.Clone(after.counts)
		require.NoError(t, after.Subtract(&before))
		require.Equal(t, added.Count(), after.Count())
		require.Equal(t, added.Zeros(), after.Zeros())
		require.Equal(t, buckets(&added), buckets(&after))
		require.InDelta(t, added.Sum(), after.Sum(), 0, "sums of these values are exact")
		if added.Count() == 0 {
			continue
		}
		require.LessOrEqual(t, after.Min(), added.Min())
		require.GreaterOrEqual(t, after.Max(), added.Max())
		if before.Count() == 0 || added.Min() < before.Min() {
			require.InDelta(t, added.Min(), after.Min(), 0)
		}
		if added.Max() > before.Max() {
			require.InDelta(t, added.Max(), after.Max(), 0)
		}
		require.NoError(t, new(Sketch).MergeBinary(after.AppendBinary(nil)), "it is consistent")
		before.Merge(&after)
		requireSame(t, &all, &before)
	}
}

// The difference of two large sums is a rounded number. A sketch with it would not merge.
func TestSubtract_RoundedSumStaysWithinTheValues(t *testing.T) {
	var before, after Sketch
	before.Add(1<<30, 1<<40)
	after.Merge(&before)
	after.Add(1e-6, 1)
	require.NoError(t, after.Subtract(&before))
	require.NoError(t, new(Sketch).MergeBinary(after.AppendBinary(nil)))
	require.InEpsilon(t, 1e-6, after.Sum(), 0.011)
}

func TestSubtract_NoSubsetChangesNothing(t *testing.T) {
	var s, unchanged, zero, more, elsewhere Sketch
	for _, into := range []*Sketch{&s, &unchanged} {
		into.Add(1, 2)
		into.Add(3, 1)
	}
	zero.Add(0, 1)
	more.Add(1, 3)
	elsewhere.Add(1000, 1)
	for _, other := range []*Sketch{&zero, &more, &elsewhere} {
		require.ErrorIs(t, s.Subtract(other), errNoSubset)
		requireSame(t, &unchanged, &s)
	}
}

func TestLoad_RejectsWhatNoSketchHolds(t *testing.T) {
	valid := func() *Parts {
		return &Parts{Counts: slices.All([]uint64{1, 0, 2}), Sum: 1.01 + 2*1.03, Min: 1.01, Max: 1.03}
	}
	require.NoError(t, new(Sketch).Load(valid()))
	for name, change := range map[string]func(*Parts){
		"an index below":    func(p *Parts) { p.Offset = lowestIndex - 1 },
		"an index above":    func(p *Parts) { p.Offset = lastIndex - 1 },
		"too many":          func(p *Parts) { p.Counts = slices.All([]uint64{maxBucketCount + 1}) },
		"too many together": func(p *Parts) { p.Counts = slices.All(slices.Repeat([]uint64{maxBucketCount}, 10)) },
		"a minimum above":   func(p *Parts) { p.Min = 1.02 },
		"a negative one":    func(p *Parts) { p.Zeros, p.Min = 1, -1 },
		"a maximum below":   func(p *Parts) { p.Max = 1.01 },
		"no finite sum":     func(p *Parts) { p.Sum = math.Inf(1) },
		"no sum":            func(p *Parts) { p.Sum = math.NaN() },
		"a sum of nothing":  func(p *Parts) { p.Counts = slices.All([]uint64{}) },
	} {
		t.Run(name, func(t *testing.T) {
			p := valid()
			change(p)
			var s Sketch
			require.Error(t, s.Load(p))
			require.Zero(t, s.Count())
		})
	}
}
