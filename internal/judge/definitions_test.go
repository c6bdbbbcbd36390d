// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package judge_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/judge"
	"github.com/tokenpulse/tokenpulse/internal/slo"
)

func TestDefinitions_AreTheConfiguredSLOs(t *testing.T) {
	rules, err := judge.NewRules(judging(t,
		map[string]any{"name": "ttft", "indicator": "time_to_first_token", "threshold": "1500ms", "match": map[string]any{"m": "x"}},
		map[string]any{"name": "tpot", "indicator": "time_per_output_token", "threshold": "50ms", "threshold_attribute": "tenant.tpot"},
		map[string]any{"name": "stalls", "indicator": "stall.count", "threshold": 2},
		map[string]any{"name": "ok", "indicator": "outcome"},
	).SLOs, false)
	require.NoError(t, err)
	require.Equal(t, []slo.Definition{
		{Name: "ttft", Indicator: "time_to_first_token", Threshold: 1.5},
		{Name: "tpot", Indicator: "time_per_output_token", Threshold: 0.05},
		{Name: "stalls", Indicator: "stall.count", Threshold: 2},
		{Name: "ok", Indicator: "outcome"},
	}, rules.Definitions())
}
