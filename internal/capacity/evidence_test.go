// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// slots returns independent slots that are all good or all bad, the most variable ones with a share.
func slots(r *rand.Rand, n int, bad float64) (e Evidence) {
	for range n {
		one := Evidence{Slots: 1}
		if r.Float64() < bad {
			one.Bad = 1
		}
		e.Add(one)
	}
	return e
}

func TestEvidence_IsRarelyWrongAtTheObjective(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	const runs, alpha = 4000, 0.025
	for _, objective := range []float64{0.5, 0.9, 0.95, 0.999} {
		for _, n := range []int{10, 100, 3000} {
			meets, misses := 0, 0
			for range runs {
				e := slots(r, n, 1-objective)
				if e.Meets(objective, alpha) {
					meets++
				}
				if e.Misses(objective, alpha) {
					misses++
				}
			}
			require.LessOrEqual(t, meets, int(alpha*runs), "objective %v, %d slots", objective, n)
			require.LessOrEqual(t, misses, int(alpha*runs), "objective %v, %d slots", objective, n)
		}
	}
}

// The exact binomial bounds of 0 bad of 200 are 98.17% and 100%, of 40 bad of 200 73.8% and 85.3% (Clopper and Pearson, 95%).
func TestEvidence_IntervalHoldsThatOfABinomialTest(t *testing.T) {
	for _, c := range []struct{ bad, low, high float64 }{{0, 0.9817, 1}, {40, 0.738, 0.853}} {
		low, high := (&Evidence{Slots: 200, Bad: c.bad}).Interval(0.025)
		require.LessOrEqual(t, low, c.low)
		require.InDelta(t, c.low, low, 0.04)
		require.GreaterOrEqual(t, high, c.high-1e-6)
		require.InDelta(t, c.high, high, 0.04)
	}
	low, high := (&Evidence{}).Interval(0.025)
	require.InDelta(t, 0, low, 1e-6)
	require.InDelta(t, 1, high, 1e-6)
	low, high = (&Evidence{Slots: 1e6, Bad: 1e5}).Interval(0.025)
	require.False(t, math.IsNaN(low) || math.IsNaN(high))
	require.InDelta(t, 0.9, low, 0.02)
	require.InDelta(t, 0.9, high, 0.02)
}
