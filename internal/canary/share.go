// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package canary

import "math"

// logShareEvidence returns the log of the e-value against a share of requests that is expected of
// the candidate: the two-sided beta-binomial mixture of Howard and Ramdas.
func logShareEvidence(candidate, baseline, share float64) float64 {
	const mostPowerful = 1000 // requests
	return logBetaMixture(candidate, baseline, share, mostPowerful)
}

// logBetaMixture returns the log of the mean likelihood of numbers of requests over shares that
// have a beta distribution around the expected one, relative to that of the expected one.
// The distribution is that with the most power after a number of requests, at alpha 0.05.
func logBetaMixture(candidate, baseline, share, mostPowerful float64) float64 {
	logInverse := math.Log(1 / 0.05)
	variance := share * (1 - share)
	r := mostPowerful*variance/(2*logInverse+math.Log(1+2*logInverse)) - variance
	r = max(r, 1e-3*variance)
	a, b := r/(1-share), r/share
	return logBeta(a+candidate, b+baseline) - logBeta(a, b) - candidate*math.Log(share) - baseline*math.Log(1-share)
}

func logBeta(a, b float64) float64 {
	x, _ := math.Lgamma(a)
	y, _ := math.Lgamma(b)
	sum, _ := math.Lgamma(a + b)
	return x + y - sum
}
