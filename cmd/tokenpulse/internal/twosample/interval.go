// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package twosample

import (
	"math"

	"gonum.org/v1/gonum/mathext"
)

// Interval is an estimate with bounds. A bound is infinite, or 0, if the requests do not show one.
type Interval struct{ Estimate, Lower, Upper float64 }

// side is one arm in the comparison of a number.
type side struct {
	estimate float64 // on the scale on which arms are subtracted, such as the logarithm of a percentile
	// effective requests with freedom degrees of it for their number.
	effective, freedom float64
	// borrowed is set if the other arm's variance is a part of its own: both are wrong together.
	borrowed bool
	// limits returns the one-sided lower and upper limit of the estimate from a number of independent requests, each of which
	// is wrong with a probability of alpha.
	limits func(effective, alpha float64) (lower, upper float64)
}

// difference returns by how much the candidate's estimate is above the baseline's, with one-sided limits, each of which is wrong
// with a probability of alpha. The distances of the limits add up as those of standard deviations do (the method of variance
// estimates recovery), so they may be asymmetric.
func difference(baseline, candidate *side, alpha float64) (lower, upper float64) {
	f := freedom(baseline, candidate)
	shrink := normalQuantile(alpha) / studentQuantile(alpha, f)
	shrink *= shrink
	bl, bu := baseline.limits(baseline.effective*shrink, alpha)
	cl, cu := candidate.limits(candidate.effective*shrink, alpha)
	d := candidate.estimate - baseline.estimate
	return d - math.Hypot(candidate.estimate-cl, bu-baseline.estimate), d + math.Hypot(cu-candidate.estimate, baseline.estimate-bl)
}

// freedom returns the degrees of freedom of a difference (Welch and Satterthwaite).
func freedom(baseline, candidate *side) float64 {
	b, c := baseline.variance(), candidate.variance()
	if math.IsInf(b+c, 1) || b+c == 0 {
		return min(baseline.freedom, candidate.freedom)
	}
	f := (b + c) * (b + c) / (b*b/baseline.freedom + c*c/candidate.freedom)
	for _, s := range [...]*side{baseline, candidate} {
		if s.borrowed {
			f = min(f, s.freedom)
		}
	}
	return f
}

// variance returns about that of the estimate.
func (s *side) variance() float64 {
	const oneDeviation = 0.1586552539314571 // of a normal distribution is more than one standard deviation above the mean
	lower, upper := s.limits(s.effective, oneDeviation)
	return (upper - lower) * (upper - lower) / 4
}

// normalQuantile returns the value that a normal variable exceeds with a probability.
func normalQuantile(alpha float64) float64 { return -mathext.NormalQuantile(alpha) }

// studentQuantile returns the value that a variable of Student's t distribution exceeds with a probability below 0.5.
func studentQuantile(alpha, freedom float64) float64 {
	x := mathext.InvRegIncBeta(freedom/2, 0.5, 2*alpha)
	return math.Sqrt(freedom * (1 - x) / x)
}

// rankLimits returns shares of the sorted requests between which a percentile lies: those of Wilks's order statistics, whose number of
// smaller requests has a binomial distribution. Each limit is wrong with a probability of alpha. They are 0 and 1 if there are
// too few requests.
func rankLimits(percentile, n, alpha float64) (lower, upper float64) {
	return lowerRank(percentile, n, alpha), 1 - lowerRank(1-percentile, n, alpha)
}

func lowerRank(percentile, n, alpha float64) float64 {
	// The probability that fewer than rank of n requests are below the percentile.
	below := func(rank float64) float64 { return mathext.RegIncBeta(n-rank+1, rank, 1-percentile) }
	low, high := 1.0, percentile*n
	if !(high > 1) || below(low) > alpha {
		return 0
	}
	for range 32 {
		if middle := (low + high) / 2; below(middle) > alpha {
			high = middle
		} else {
			low = middle
		}
	}
	return low / n
}

// shareLimits returns the limits of Clopper and Pearson for a share of n requests. Each is wrong with a probability of at most alpha.
func shareLimits(share, n, alpha float64) (lower, upper float64) {
	bad := share * n
	upper = 1
	if bad > 0 {
		lower = mathext.InvRegIncBeta(bad, n-bad+1, alpha)
	}
	if bad < n {
		upper = mathext.InvRegIncBeta(bad+1, n-bad, 1-alpha)
	}
	return lower, upper
}
