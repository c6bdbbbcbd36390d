// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Package capacity learns from slots of 15 seconds the largest load at which a replica met the objective of an
// SLO. It is a lower bound of the true limit: the constant load at which the share of good requests is the objective. The package knows no
// clock: each slot and question carries its time.
//
// # Load
//
// Load is what was offered: the requests that began in a slot, with those that were refused or failed, since what completes
// saturates. The load of a slot is mostly noise, and an engine stands for a slot what it does not stand for long. So a slot
// counts at its sustained load: the smaller of the averages over about 1 and 10 minutes, and of requests, output tokens and prompt tokens
// the one that is least, each relative to the mean request. After an idle time or a jump, it lags, so that slots count at
// too low a load. That makes the bound lower, not higher. Slots count as soon as their replica was seen for 10 minutes: after a restart of the
// Collector, the load before is unknown.
//
// # Bound
//
// Slots are counted in bins of 4.4% of load, over a range of 64 times. The bound is the lower edge of the highest bin for which a test rejects
// "at this load and any above it, the objective is missed". The test is sequential. It goes through the slots from that load upwards, and stops
// where it is sure: with independent slots, and a share of bad requests that never falls with load, it is wrong with probability alpha (5%) at
// most. No curve is fitted, and no model of the engine is needed. At an objective of 0.99, the test needs at least 396 slots without a
// bad request, which are 1.7 hours at or above a load.
//
// A bound counts as a limit only if a knee was seen: at it or above, 20 slots missed the objective, and so did their requests in total.
//
// # Changes
//
//   - Mix: if the mean answer, the mean prompt or their ratio becomes more than 2 times as large or small, the limit is
//     absent until the new mix is learned. Two mixes are remembered.
//   - Engine: a bin remembers about 6/(1-objective) slots. A limit that has become
//     too high falls after about 70 missed slots in the median of simulated engines that get 1.4 times slower, and 530 in a tenth.
//   - Time: without a missed slot at the limit or above it, the limit is stale after a day, and all is forgotten after the time that New gets.
//
// # When it is wrong
//
// The stated error is for one question at any one time, and for independent slots. Slots of a queue are not independent, so that it was
// simulated. If a constant load is one over minutes, the true limit was at or above the bound in 51 of 51 worlds (-even). If it consists of bursts of
// minutes, as the recorded requests of a code service do, the mean load of hours that meets the objective is less than that of
// ten minutes, and the bound is over it in 1 of 10 worlds whose limit is below half of the engine's throughput; in none of the others. It then says
// what the engine can take for minutes.
//
// The bound is about 0.7 of the true limit if the load goes there slowly, as by day and night. If it comes in spikes of minutes, the bound is about
// 0.4 of it, since no load near the limit was sustained. A limit that many replicas share is that of the worse ones. A replica that is slow
// or whose requests fail for another reason than load has a limit that is too low. make simulate-capacity prints tables.
//
// # Sources
//
//   - S. R. Howard, A. Ramdas, J. McAuliffe, J. Sekhon: Time-uniform Chernoff bounds via nonnegative
//     supermartingales, https://arxiv.org/abs/1808.03204
//   - I. Waudby-Smith, A. Ramdas: Estimating means of bounded random variables by betting, https://arxiv.org/abs/2010.09686
package capacity
