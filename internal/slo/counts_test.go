// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package slo

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCounts_BurnRateAndBudgetRemaining(t *testing.T) {
	tests := map[string]struct {
		counts       Counts
		objective    float64
		rate, budget float64
	}{
		"no bad request":                  {Counts{Good: 7}, 0.95, 0, 1},
		"one in 20 bad: the whole budget": {Counts{Good: 19, Bad: 1}, 0.95, 1, 0},
		"one in 40 bad: half the budget":  {Counts{Good: 39, Bad: 1}, 0.95, 0.5, 0.5},
		"two in 20 bad: twice the budget": {Counts{Good: 18, Bad: 2}, 0.95, 2, -1},
		"all bad":                         {Counts{Bad: 3}, 0.95, 20, -19},
		"all bad, half allowed":           {Counts{Bad: 3}, 0.5, 2, -1},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			rate, ok := test.counts.BurnRate(test.objective)
			require.True(t, ok)
			require.InDelta(t, test.rate, rate, 1e-9)
			budget, ok := test.counts.BudgetRemaining(test.objective)
			require.True(t, ok)
			require.InDelta(t, test.budget, budget, 1e-9)
		})
	}
	_, ok := Counts{}.BurnRate(0.95)
	require.False(t, ok)
	_, ok = Counts{}.BudgetRemaining(0.95)
	require.False(t, ok)
}
