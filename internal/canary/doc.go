// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Package canary decides whether a candidate may go on, from requests that it served beside a
// baseline. docs/canary.md says what the verdicts mean, and how often they are wrong.
//
// # Verdicts
//
// Verdicts rest on e-values: if the candidate is not worse, the probability that one ever exceeds
// 1/alpha is at most alpha. So a verdict holds however often it is asked, and no number of requests
// has to be planned. The present e-values decide, not their maximum: a verdict can return to
// undecided. This is proven for requests that are independent given the load that both arms share,
// and simulated for queues.
//
// # Windows
//
// A request belongs to the window in which it started. A window closes, and counts, 2 minutes after
// its end. Requests that end later count as unmeasured, in the oldest open window. Windows without a
// bad request, without a good one, or with one arm add nothing. A request that starts in the future
// counts now. If the clock steps back by more than 2 minutes, all windows close.
//
// # An SLO
//
// Given the sizes of the arms and the bad requests in a window, the candidate's number of bad
// requests has Fisher's noncentral hypergeometric distribution, which depends on the odds ratio
// only: load that multiplies the odds of both arms cancels out. L(psi) is the log likelihood of the
// odds ratio psi, summed over windows, for psi = 1.02^k between 1/32 and 32.
//
//   - Fail needs that the mean of exp(L(psi) - L(1 + tolerance)) over the grid points above reaches
//     4/alpha; 1 + tolerance is rounded up to the grid.
//   - Pass needs that the same mean over the grid points below reaches 2/alpha, rounded down, also
//     with unmeasured requests and client mistakes as bad ones.
//   - A difference without a verdict needs that the same mean against an odds ratio of 1 reaches
//     4/alpha.
//   - A mix of outcomes and coverage are the same test against an odds ratio of 1, in both
//     directions, at 8/alpha, with unsuccessful or unmeasured requests as bad ones.
//   - The traffic ratio is a beta-binomial mixture against the expected share, at 1/alpha.
//
// The ratio is the most likely odds ratio. Its bounds are the outermost grid points that neither test
// rejects; a missing bound is open.
//
// # A percentile
//
// The threshold is the baseline's percentile over the 10 minutes before each window, at the edge of
// a bucket of the histogram. The test of an SLO compares the candidate's odds of a value over
// (1 + tolerance) times the threshold with the baseline's odds of a value over it. The product is
// rounded up to an edge for fail, and down for pass, but at least to the next edge, 1.1% higher. The
// bounds of a percentile use the test of the traffic share at 2/alpha for each arm, with the number
// of values divided by the dispersion; those of the ratio of percentiles are the outermost quotients.
//
// # Dependence
//
// Requests in one queue are bad together. Chi-square measures how unevenly the baseline's replicas
// share its bad requests in blocks of 10 s, 1 minute and 5 minutes. The dispersion is the largest of
// the three over its degrees of freedom, at least 1. It divides what later windows add to L; above
// maxDispersion, there is no verdict. This is an approximation.
//
// # Sources
//
//   - S. R. Howard, A. Ramdas: Sequential estimation of quantiles with applications to A/B testing
//     and best-arm identification, https://arxiv.org/abs/1906.09712
//   - M. Lindon, A. Malek: Anytime-Valid Inference for Multinomial Count Data,
//     https://arxiv.org/abs/2011.03567
//   - M. Lindon, C. Sanden, V. Shirikian: Rapid Regression Detection in Software Deployments through
//     Sequential Testing, https://arxiv.org/abs/2205.14762
package canary
