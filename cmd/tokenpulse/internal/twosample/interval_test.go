// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package twosample

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// Tables of textbooks have these.
func TestStudentQuantile(t *testing.T) {
	for _, c := range []struct{ alpha, freedom, value float64 }{
		{0.025, 1, 12.706}, {0.025, 10, 2.228}, {0.01, 5, 3.365}, {0.005, 30, 2.750}, {0.05, 2, 2.920}, {0.025, 1e6, 1.960},
	} {
		require.InDelta(t, c.value, studentQuantile(c.alpha, c.freedom), 6e-4, "%+v", c)
	}
	require.InDelta(t, 1.959964, normalQuantile(0.025), 1e-6)
}

// The example of binom.test in R: 682 of 925 plants, 0.7076683 to 0.7654066. The other ones are of tables of Clopper and Pearson.
func TestShareLimits(t *testing.T) {
	for _, c := range []struct{ bad, n, lower, upper float64 }{
		{682, 925, 0.7076683, 0.7654066}, {10, 100, 0.0490047, 0.1762226}, {0, 10, 0, 0.3084971}, {10, 10, 0.6915029, 1},
	} {
		lower, upper := shareLimits(c.bad/c.n, c.n, 0.025)
		require.InDelta(t, c.lower, lower, 1e-6)
		require.InDelta(t, c.upper, upper, 1e-6)
	}
}

// binomial is the probability of at most k of n, by its sum.
func binomial(k, n int, p float64) (sum float64) {
	for i := range k + 1 {
		a, _ := math.Lgamma(float64(n + 1))
		b, _ := math.Lgamma(float64(i + 1))
		c, _ := math.Lgamma(float64(n - i + 1))
		sum += math.Exp(a - b - c + float64(i)*math.Log(p) + float64(n-i)*math.Log1p(-p))
	}
	return sum
}

// The 95% interval of the median of 20 values is from the 6th to the 15th, that of 100 from the 40th to the 61st.
func TestRankLimits_Textbook(t *testing.T) {
	for _, c := range []struct{ n, first, last float64 }{{20, 6, 15}, {100, 40, 61}} {
		lower, upper := rankLimits(0.5, c.n, 0.025)
		require.Equal(t, c.first, math.Floor(c.n*lower))
		require.Equal(t, c.last, math.Ceil(c.n*upper+1))
	}
}

// The largest rank below which a percentile lies too seldom, counted by sums of the binomial distribution.
func TestRankLimits_AreBinomial(t *testing.T) {
	for _, n := range []int{10, 57, 200, 1000} {
		for _, q := range []float64{0.05, 0.5, 0.95} {
			for _, alpha := range []float64{0.0028, 0.025} {
				t.Run(fmt.Sprint(n, q, alpha), func(t *testing.T) {
					rank := 0
					for binomial(rank, n, q) <= alpha {
						rank++
					}
					lower, _ := rankLimits(q, float64(n), alpha)
					require.InDelta(t, rank, math.Floor(float64(n)*lower), 0)
					_, upper := rankLimits(1-q, float64(n), alpha)
					require.InDelta(t, 1-lower, upper, 1e-12)
				})
			}
		}
	}
	lower, upper := rankLimits(0.95, 20, 0.025)
	require.Greater(t, lower, 0.5)
	require.Equal(t, 1.0, upper, "20 values have none that is above the p95 with 97.5%")
}

// Newcombe (1998), method 10: 56 of 70 and 48 of 80 differ by 0.2, with an interval of 0.0524 to 0.3339 from the limits of Wilson.
func TestDifference_OfNewcombe(t *testing.T) {
	of := func(bad, n float64) *side {
		return &side{estimate: bad / n, effective: n, freedom: 1e9, limits: func(n, alpha float64) (lower, upper float64) {
			p, z := bad/n, normalQuantile(alpha)
			middle, half := p+z*z/(2*n), z*math.Sqrt(p*(1-p)/n+z*z/(4*n*n))
			return (middle - half) / (1 + z*z/n), (middle + half) / (1 + z*z/n)
		}}
	}
	lower, upper := difference(of(48, 80), of(56, 70), 0.025)
	require.InDelta(t, 0.0524, lower, 5e-5)
	require.InDelta(t, 0.3339, upper, 5e-5)
}

// normal is the mean of n values of a normal distribution.
func normal(mean, variance, n float64) *side {
	return &side{estimate: mean, effective: n, freedom: n - 1, limits: func(n, alpha float64) (lower, upper float64) {
		half := normalQuantile(alpha) * math.Sqrt(variance/n)
		return mean - half, mean + half
	}}
}

// Welch's test has 25 degrees of freedom for variances of 7.93 and 3.80 of 15 values each, and a t of 2.46.
func TestDifference_OfMeansIsWelchs(t *testing.T) {
	a, b := normal(20.82, 7.93, 15), normal(22.98, 3.80, 15)
	require.InDelta(t, 25.0, freedom(a, b), 0.15)
	lower, upper := difference(a, b, 0.025)
	require.InDelta(t, 2.16, (lower+upper)/2, 1e-9)
	require.InDelta(t, 2.16/2.46*2.06, (upper-lower)/2, 0.02)
}

// Two means whose variances are the same estimate have its degrees of freedom, not those of two estimates.
func TestFreedom_OfAVarianceThatBothArmsShare(t *testing.T) {
	eight, one := normal(0, 1, 8), normal(0, 8, 8)
	require.InDelta(t, 8.7, freedom(eight, one), 0.1)
	one.borrowed = true
	require.Equal(t, 7.0, freedom(eight, one))
	require.Equal(t, 7.0, freedom(one, eight))
}

func TestDifference_IsOpenWithoutALimit(t *testing.T) {
	open := normal(1, 1, 100)
	open.limits = func(float64, float64) (lower, upper float64) { return 0.5, math.Inf(1) }
	lower, upper := difference(normal(1, 1, 100), open, 0.025)
	require.Less(t, lower, 0.0)
	require.Equal(t, math.Inf(1), upper)
}
