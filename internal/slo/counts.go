// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package slo

// Counts are eligible requests by verdict.
type Counts struct{ Good, Bad uint64 }

// CountsOf returns the counts of n requests with the same verdict.
func CountsOf(v Verdict, n uint64) (c Counts) {
	switch v {
	case Good:
		c.Good = n
	case Bad:
		c.Bad = n
	}
	return c
}

// BurnRate returns how fast bad requests spend the error budget: 1 spends exactly
// the budget over its window. objective is the share of good requests, between 0
// and 1, both excluded. ok is false without requests.
func (c Counts) BurnRate(objective float64) (rate float64, ok bool) {
	eligible := c.Good + c.Bad
	if eligible == 0 {
		return 0, false
	}
	return float64(c.Bad) / (float64(eligible) * (1 - objective)), true
}

// BudgetRemaining returns the share of the error budget that is left: 1 without a
// bad request, negative when more were bad than the objective allows. ok is false
// without requests.
func (c Counts) BudgetRemaining(objective float64) (share float64, ok bool) {
	burned, ok := c.BurnRate(objective)
	if !ok {
		return 0, false
	}
	return 1 - burned, true
}
