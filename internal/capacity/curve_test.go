// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

const plenty = 1e6 // slots that a bin remembers

// filled returns a curve with independent slots, each all good or all bad, that are bad with a probability by bin.
func filled(r *rand.Rand, bins, slots int, bad func(i int) float64) *curve {
	c := new(curve)
	for i := range bins {
		for range slots {
			s := &offer{Good: 10}
			if r.Float64() < bad(i) {
				s = &offer{Bad: 10}
			}
			c.at(edge(i)*1.01).add(s, s.Bad > 0, 1e9, plenty)
		}
	}
	return c
}

// Of loads that all miss the objective by nothing, one in 20 may be certified. The number is random, and needs no theory.
func TestCertified_RarelyWhereTheObjectiveIsMissed(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	const runs = 2000
	for _, objective := range []float64{0.9, 0.99} {
		wrong := 0
		for range runs {
			c := filled(r, 8, 150, func(int) float64 { return 1 - objective })
			if c.certified(-c.bottom, objective) {
				wrong++
			}
		}
		require.LessOrEqual(t, float64(wrong), alpha*runs, "objective %v", objective)
		require.Positive(t, wrong, "objective %v: the test has power", objective)
	}
}

// 299 slots, none bad, is the least for 95% confidence that at most 1% are bad: 0.99^299 < 0.05.
func TestCertified_NeedsAboutAsManyGoodSlotsAsABinomialTest(t *testing.T) {
	needed := 0
	for n := 1; needed == 0; n++ {
		c := filled(rand.New(rand.NewPCG(1, 1)), 1, n, func(int) float64 { return 0 })
		if c.certified(-c.bottom, 0.99) {
			needed = n
		}
	}
	require.GreaterOrEqual(t, needed, 299)
	require.Less(t, needed, 500)
}

func TestMet_IsTheHighestLoadBeforeTheKnee(t *testing.T) {
	c := filled(rand.New(rand.NewPCG(1, 1)), 30, 400, func(i int) float64 {
		if i < 20 {
			return 0.001
		}
		return 0.2
	})
	require.Equal(t, 29, c.knee(0.99)+c.bottom, "all bins from 20 on miss it")
	met := c.met(0.99, binCount-1) + c.bottom
	require.LessOrEqual(t, met, 19)
	require.GreaterOrEqual(t, met, 17)
}

func TestKnee_NeedsMissedSlotsAndAMissedObjective(t *testing.T) {
	add := func(c *curve, x float64, good, bad, slots int) {
		for range slots {
			s := &offer{Good: uint64(good), Bad: uint64(bad)}
			c.at(x).add(s, bad > 0, 1e9, plenty)
		}
	}
	c := new(curve)
	add(c, 10, 50, 0, 1000)
	add(c, 20, 0, 50, neededMissed-1)
	require.Negative(t, c.knee(0.99), "one slot is missing")
	add(c, 20, 0, 50, 1)
	require.Same(t, c.at(20), &c.bins[c.knee(0.99)])

	c = new(curve)
	add(c, 10, 50, 0, 1000)
	add(c, 10, 49, 1, 100)
	require.Negative(t, c.knee(0.99), "100 slots of 1,100 have one bad request in 50: 0.2%% of all are bad")
}

func TestCurve_KeepsTheHighestLoads(t *testing.T) {
	c := new(curve)
	for i := range 400 {
		c.at(edge(i)*1.01).add(&offer{Good: 1}, false, 1e9, plenty)
	}
	total := 0.0
	for _, b := range c.bins {
		total += b.Slots
	}
	require.Equal(t, 400.0, total)
	require.Equal(t, 1.0, c.bins[binCount-1].Slots)
	require.Equal(t, 400.0-binCount+1, c.bins[0].Slots, "the first bin has all lower ones")
}

func TestBin_ForgetsOldSlots(t *testing.T) {
	b := new(bin)
	for range 1000 {
		b.add(&offer{Good: 1}, false, 1e9, 100)
	}
	for range 200 {
		b.add(&offer{Bad: 1}, true, 1e9, 100)
	}
	require.InDelta(t, 100, b.Slots, 1e-9)
	require.Greater(t, b.bad(), 80.0, "1 - 0.99^200 is 0.87")
}
