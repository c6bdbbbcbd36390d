// Package slo holds the arithmetic of service level objectives over sliding
// windows: how fast an error budget burns, and what is left of it.
package slo

// Counts are requests by verdict. Requests that are not eligible for the
// objective are not among them.
type Counts struct{ Good, Bad uint64 }

// BurnRate returns how many times as fast as allowed bad requests came: 1 uses up
// the error budget exactly. Objective is the share of requests that are to be
// good, over 0 and under 1. Without requests there is no burn rate.
func (c Counts) BurnRate(objective float64) (rate float64, known bool) {
	eligible := c.Good + c.Bad
	if eligible == 0 {
		return 0, false
	}
	return float64(c.Bad) / (float64(eligible) * (1 - objective)), true
}

// BudgetRemaining returns the share of the error budget that is left: 1 when no
// request was bad, negative when more were than the objective allows. Without
// requests there is no budget.
func (c Counts) BudgetRemaining(objective float64) (share float64, known bool) {
	burnt, known := c.BurnRate(objective)
	if !known {
		return 0, false
	}
	return 1 - burnt, true
}
