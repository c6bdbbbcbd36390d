// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package twosample

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// blocksOf returns the counts of one run with one band.
func blocksOf(all ...count) (c clusters) {
	c.blocks = [][]counts{nil}
	for _, n := range all {
		c.blocks[0] = append(c.blocks[0], counts{n})
		c.total.add(&counts{n})
	}
	c.runs = []counts{c.total}
	return c
}

// Eight blocks of 100 requests, of which these are bad. The variance of a mean of groups of the same size is that of the groups over
// their number; a correlation from block to block, here -0.25, does not make it smaller.
func TestShare_OfBlocks(t *testing.T) {
	bad := []float64{10, 30, 10, 30, 20, 20, 30, 10}
	var all []count
	var squares float64
	for _, b := range bad {
		all = append(all, count{100, b})
		squares += (b - 20) * (b - 20)
	}
	c := blocksOf(all...)
	s := c.share(&weights{1})
	require.InDelta(t, 0.2, s.value, 1e-12)
	require.InDelta(t, squares/7/8/100/100, s.variance.value, 1e-12)
	require.InDelta(t, 0.2*0.8/s.variance.value, s.effective, 1e-9)
	require.Equal(t, 8, s.blocks)
}

// Blocks that vary less than independent requests do not make the share better known.
func TestShare_IsKnownNoBetterThanByIndependentRequests(t *testing.T) {
	c := blocksOf(count{100, 20}, count{100, 20}, count{100, 20}, count{100, 21}, count{100, 19}, count{100, 20}, count{100, 20}, count{100, 20})
	require.InDelta(t, 800, c.share(&weights{1}).effective, 1e-9)
}

// The standard error of a share, in simulated runs whose load is an autoregressive process, over its mean estimate.
func TestShare_OfBlocksThatDependOnEachOther(t *testing.T) {
	const runs, blocks = 400, 32
	for _, correlation := range []float64{0, 0.5, 0.8} {
		r := rand.New(rand.NewPCG(1, 1))
		var shares, estimated []float64
		for range runs {
			load, all := r.NormFloat64(), []count(nil)
			for range blocks {
				load = correlation*load + math.Sqrt(1-correlation*correlation)*r.NormFloat64()
				n := count{n: 200}
				for range 200 {
					if r.Float64() < 0.2+0.04*load {
						n.bad++
					}
				}
				all = append(all, n)
			}
			c := blocksOf(all...)
			s := c.share(&weights{1})
			shares, estimated = append(shares, s.value), append(estimated, s.variance.value)
		}
		mean := func(x []float64) (m float64) {
			for _, v := range x {
				m += v / float64(len(x))
			}
			return m
		}
		var variance float64
		for _, v := range shares {
			variance += (v - mean(shares)) * (v - mean(shares)) / (runs - 1)
		}
		ratio := math.Sqrt(mean(estimated) / variance)
		require.Greater(t, ratio, 0.8, "correlation %v", correlation) // without correlations: 0.33 of 0.8
		require.Less(t, ratio, 1.5, "correlation %v", correlation)
	}
}

// Two bands of 400 requests each, in a mix in which the second one has three quarters.
func TestShare_OfAStandardisedMix(t *testing.T) {
	c := clusters{blocks: [][]counts{nil}}
	for i := range 8 {
		n := counts{{50, float64(i)}, {50, float64(20 + i%2)}}
		c.blocks[0] = append(c.blocks[0], n)
		c.total.add(&n)
	}
	c.runs = []counts{c.total}
	s := c.share(&weights{0.25, 0.75})
	require.InDelta(t, 0.25*28/400+0.75*164/400, s.value, 1e-12)
	p, q := 28.0/400, 164.0/400
	require.GreaterOrEqual(t, s.variance.value, 0.25*0.25*p*(1-p)/400+0.75*0.75*q*(1-q)/400)
}

// Of four replicas, one has twice the share of bad requests, at all times.
func TestShare_OfReplicasThatDiffer(t *testing.T) {
	var all []count
	for range 16 {
		all = append(all, count{400, 50})
	}
	c := blocksOf(all...)
	alike := c.share(&weights{1})
	for _, bad := range []float64{160, 160, 160, 320} {
		c.replicas = append(c.replicas, counts{{1600, bad}})
	}
	s := c.share(&weights{1})
	require.InDelta(t, alike.value, s.value, 1e-12)
	// Deviations of -40, -40, -40 and 120 requests.
	require.InDelta(t, (3*40*40+120*120)*4.0/3/6400/6400, s.variance.value, 1e-12)
	require.Less(t, s.freedom, 3.0)
}

func TestShare_BorrowsHowMuchRunsDiffer(t *testing.T) {
	c := clusters{blocks: make([][]counts, 4)}
	for run, bad := range []float64{8, 12, 8, 12} {
		for range 8 {
			n := counts{{100, bad}}
			c.blocks[run] = append(c.blocks[run], n)
			c.total.add(&n)
		}
		n := counts{{800, 8 * bad}}
		c.runs = append(c.runs, n)
	}
	several := c.share(&weights{1})
	single := blocksOf(count{100, 10}, count{100, 10}, count{100, 10}, count{100, 10}, count{100, 10}, count{100, 10}, count{100, 10}, count{100, 10})
	one := single.share(&weights{1})
	alone := one.variance.value
	one.borrow(&several)
	// Shares of 0.08 and 0.12 have a variance of 0.02 squared times 4/3.
	require.InDelta(t, 0.02*0.02*4/3, one.variance.value, 0.25*alone)
	require.Greater(t, one.variance.value, 3*alone)
	require.InDelta(t, 3, one.freedom, 1.5)
	require.True(t, one.borrowed)
	before := several
	several.borrow(&one)
	require.Equal(t, before, several, "it has runs of its own")
}

// Bad requests in two of 32 blocks say little of how they vary.
func TestShare_BadRequestsOfFewBlocks(t *testing.T) {
	all := make([]count, 32)
	for i := range all {
		all[i].n = 100
	}
	all[3].bad, all[20].bad = 30, 30
	c := blocksOf(all...)
	require.LessOrEqual(t, c.share(&weights{1}).freedom, 1.0)
}
