// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Package twosample decides whether the requests of a candidate are worse than those of a baseline that ran at another time.
// docs/offline.md says what the verdicts mean, and how often they are wrong.
//
// # Use
//
// An [Arm] takes the requests of one side, in any order, and keeps sums of bounded size. It is encoded as JSON, so that a report can be
// a baseline. [Compare] takes two arms and a [Question], and returns a [Result]: the verdict, and a [Row] for each number.
// A row without Decides is for information. [Verdict.ExitCode] is that of the command.
//
// # Everything is a share of bad requests
//
// Of an SLO, these are the bad ones, and arms are compared by the odds. Of a percentile, they are the requests over a threshold: that of
// the arm's own percentile, at the edge of a bucket of its histogram. So histograms are enough, and all that has to be estimated is how
// well a share is known. The tolerance is that of package canary: of the odds, or of a percentile.
//
// # How well a share is known
//
// Requests in one queue, at one time or of one run are bad together. So the variance of a share is estimated among groups of requests:
//
//   - Blocks of time: an arm has up to 64 blocks of a microsecond times a power of two. If there are over 40, neighbours are joined.
//     The variance among the blocks of a run is multiplied by (1 + r) / (1 - r), where r is the correlation of a block with the one before,
//     corrected for its bias, from 0 to 0.9.
//   - Replicas, if that gives a larger variance: what a replica keeps for a whole run shows in no block.
//   - Runs, likewise. An arm of one run takes the variance between runs from the other arm. Both are then wrong together, so that
//     their difference has no more degrees of freedom than that arm.
//
// It is at least the variance of independent requests. Its degrees of freedom are those of a sum of variances (Satterthwaite), of as many
// groups as would decide the share if all had the same part of the bad requests, or of the good ones: a percentile that two bursts
// decide is known no better than by two groups.
//
// # Intervals
//
// The variance says as how many independent requests an arm counts. Its number is multiplied by (z/t)^2, of the normal and Student's t
// distribution (Korn and Graubard). Limits of a share are those of Clopper and Pearson, those of a percentile the order statistics, whose
// rank is binomial. The limits of both arms are combined by the method of variance estimates recovery (Zou and Donner), which keeps
// their asymmetry, with the degrees of freedom of Welch's test.
//
// # Verdicts
//
// Alpha limits the probability of a wrong verdict. Half of it is that of [Worse] and [Better], divided by the number of rows that decide,
// of which one is enough. The other half is that of [Equivalent], not divided, since all rows must have their upper bound within
// the tolerance.
//
// Requests that failed or are unmeasured have no latency. Percentiles are compared without them, and once more with them as the slowest,
// at the share of all requests that the baseline's percentile has. A verdict needs both.
//
// # Prompts of other lengths
//
// If the arms differ in the lengths of their prompts (chi-square, 5%), the shares of bad requests are those within bands of lengths, in the
// baseline's mix. The baseline's percentiles stay the same, and the candidate's are those that it would have had.
//
// Unsuccessful requests without a reported length are no part of the mix. With a changed mix, outcomes are then compared in all lengths: in a
// band of their own, all would be bad in both arms, however many they are.
//
// # Sources
//
//   - E. L. Korn, B. I. Graubard: Confidence Intervals for Proportions with Small Expected Number of Positive Counts Estimated from Survey
//     Data, Survey Methodology 24 (1998)
//   - R. S. Woodruff: Confidence Intervals for Medians and Other Position Measures, JASA 47 (1952)
//   - G. Y. Zou, A. Donner: Construction of Confidence Limits about Effect Measures, Statistics in Medicine 27 (2008)
package twosample
