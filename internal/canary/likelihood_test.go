// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package canary

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// exactLikelihood is the log likelihood of an odds ratio less that of 1, by sums of exact integers
// and floats of 200 bits over all terms.
func exactLikelihood(baseline, candidate trials, psi float64) float64 {
	bad := baseline.bad + candidate.bad
	probability := func(psi float64) *big.Float {
		sum, own := new(big.Float).SetPrec(200), new(big.Float)
		power := big.NewFloat(1).SetPrec(200)
		for y := range bad + 1 {
			ways := new(big.Int).Binomial(int64(candidate.n), int64(y))
			ways.Mul(ways, new(big.Int).Binomial(int64(baseline.n), int64(bad-y)))
			term := new(big.Float).SetPrec(200).SetInt(ways)
			term.Mul(term, power)
			sum.Add(sum, term)
			if y == candidate.bad {
				own.Set(term)
			}
			power.Mul(power, big.NewFloat(psi))
		}
		return own.Quo(own, sum)
	}
	ratio, _ := new(big.Float).Quo(probability(psi), probability(1)).Float64()
	return math.Log(ratio)
}

func TestLikelihood_AgreesWithExactSums(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	some := func(n uint64) trials { return trials{n, random.Uint64N(n + 1)} }
	for _, sizes := range [][2]uint64{{1, 1}, {3, 2}, {10, 1}, {1, 10}, {40, 12}, {160, 40}, {40, 160}, {300, 300}} {
		for range 4 {
			baseline, candidate := some(sizes[0]), some(sizes[1])
			var l likelihood
			l.add(baseline, candidate, 1)
			for i := 0; i < gridSize; i += 25 {
				exact := exactLikelihood(baseline, candidate, odds[i])
				require.InDelta(t, exact, l[i], 1e-10, "%v %v at %v", baseline, candidate, odds[i])
			}
		}
	}
}

// Published values of Fisher's noncentral hypergeometric distribution.
func TestLikelihood_PublishedValues(t *testing.T) {
	for _, c := range []struct {
		name                string
		baseline, candidate uint64
		bad                 uint64
		first               uint64
		probabilities       []float64
	}{
		// Wolfram: PDF[FisherHypergeometricDistribution[10, 8, 16, 5/2], k]
		{"Wolfram", 8, 8, 10, 2, []float64{
			64. / 433249, 2560. / 433249, 28000. / 433249, 112000. / 433249, 175000. / 433249, 100000. / 433249, 15625. / 433249,
		}},
		// R: BiasedUrn::dFNCHypergeo(4, 10, 15, 8, 2.5)
		{"BiasedUrn", 15, 10, 8, 4, []float64{0.30973837935631643}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for i, expected := range c.probabilities {
				bad := c.first + uint64(i)
				u := newUrn(trials{n: c.baseline}, trials{n: c.candidate, bad: c.bad})
				weight := u.logWeight(float64(bad)) + float64(bad)*math.Log(2.5)
				require.InEpsilon(t, expected, math.Exp(weight-u.logNorm(2.5, math.Log(2.5))), 1e-12)
			}
		})
	}
}

func TestLikelihood_UselessWindowsAddNothing(t *testing.T) {
	for name, arms := range map[string][2]trials{
		"no request":             {},
		"no bad request":         {{10, 0}, {10, 0}},
		"no good request":        {{10, 10}, {7, 7}},
		"an arm without request": {{10, 3}, {0, 0}},
		"the other one":          {{0, 0}, {10, 3}},
	} {
		t.Run(name, func(t *testing.T) {
			var l likelihood
			l.add(arms[0], arms[1], 1)
			require.Equal(t, likelihood{}, l)
			_, ok := l.best()
			require.False(t, ok)
		})
	}
}

// A window of any size takes bounded time, and the likelihood has its maximum at the observed odds.
func TestLikelihood_LargeWindows(t *testing.T) {
	for _, n := range []uint64{1 << 20, 1 << 40, math.MaxUint64 >> 2} {
		var l likelihood
		l.add(trials{n, n / 20}, trials{n / 4, n / 40}, 1)
		best, ok := l.best()
		require.True(t, ok)
		expected := (1. / 9) / (1. / 19) // 10% bad over 5% bad
		require.InEpsilon(t, expected, odds[best], 0.011)
	}
}

// The dispersion divides what a window adds.
func TestLikelihood_Dispersion(t *testing.T) {
	var once, thrice likelihood
	once.add(trials{100, 5}, trials{50, 4}, 1)
	thrice.add(trials{100, 5}, trials{50, 4}, 3)
	for i := range once {
		require.InDelta(t, once[i]/3, thrice[i], 1e-12)
	}
}

// The e-values are those of a loop over the far side.
func TestEvidence_IsTheMeanOfLikelihoodRatios(t *testing.T) {
	var l likelihood
	for range 30 {
		l.add(trials{160, 8}, trials{40, 4}, 1.3)
	}
	e := l.evidence()
	mean := func(at, from, to int) (sum float64) {
		for i := from; i < to; i++ {
			sum += math.Exp(l[i] - l[at])
		}
		return math.Log(sum / float64(to-from))
	}
	for _, at := range []int{1, 100, gridEnd, gridEnd + 20, gridSize - 2} {
		if expected := mean(at, at+1, gridSize); expected > -600 {
			require.InDelta(t, expected, e.above[at], 1e-9)
		}
		if expected := mean(at, 0, at); expected > -600 {
			require.InDelta(t, expected, e.below[at], 1e-9)
		}
	}
	require.True(t, math.IsInf(e.above[gridSize-1], -1))
	require.True(t, math.IsInf(e.below[0], -1))
}

func TestRoundedDown(t *testing.T) {
	for psi, expected := range map[float64]float64{1.5: math.Pow(1.02, 20), 1.02: 1.02, 1.019: 1, 0.5: 1, 1e9: odds[gridSize-1]} {
		require.InEpsilon(t, expected, odds[roundedDown(psi)], 1e-12)
	}
	require.Equal(t, gridEnd, roundedDown(0))
	require.Equal(t, gridEnd, roundedDown(math.NaN()))
}

func TestRoundedUp(t *testing.T) {
	for psi, expected := range map[float64]float64{1.5: math.Pow(1.02, 21), 1.02: 1.02, 1.021: 1.02 * 1.02, 0.5: 1, 1e9: odds[gridSize-1]} {
		require.InEpsilon(t, expected, odds[roundedUp(psi)], 1e-12)
	}
	require.Equal(t, gridSize-1, roundedUp(math.NaN()))
}

func BenchmarkLikelihood_Add(b *testing.B) {
	for _, n := range []uint64{200, 2000, 20_000, 1_000_000} {
		b.Run(big.NewInt(int64(n)).String(), func(b *testing.B) {
			var l likelihood
			for b.Loop() {
				l.add(trials{n * 4 / 5, n / 25}, trials{n / 5, n / 100}, 1)
			}
		})
	}
}
