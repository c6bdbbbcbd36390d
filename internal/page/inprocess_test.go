// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/inprocess"
	"github.com/tokenpulse/tokenpulse/internal/slo"
)

// inJSON returns what the API answers for a value.
func inJSON(t *testing.T, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	require.NoError(t, err)
	return string(text)
}

func TestThreshold_IsTheConfiguredOneOrElseThatOfABreach(t *testing.T) {
	p := &Page{Options: Options{Thresholds: new(Thresholds), SLOs: new(inprocess.Registry[[]slo.Definition])}}
	for _, name := range []string{"own", "two-pipelines", "ambiguous", "elsewhere"} {
		p.Thresholds.Set(name, "request.duration", 9) // as breaches say
	}
	p.Thresholds.Set("elsewhere-outcome", "outcome", math.NaN())
	same := slo.Definition{Name: "two-pipelines", Indicator: "time_to_first_token", Threshold: 2}
	long := strings.Repeat("x", 300)
	p.SLOs.Set(new(int), []slo.Definition{
		{Name: "own", Indicator: "time_to_first_token", Threshold: 1},
		same,
		{Name: "ambiguous", Indicator: "time_to_first_token", Threshold: 3},
		{Name: "outcome", Indicator: "outcome"},
		{Name: long, Indicator: "stall.count", Threshold: 5},
	})
	p.SLOs.Set(new(int), []slo.Definition{same, {Name: "ambiguous", Indicator: "time_to_first_token", Threshold: 4}})
	for name, want := range map[string]string{
		"own":               `["time_to_first_token",1]`,
		"two-pipelines":     `["time_to_first_token",2]`,
		"ambiguous":         `["request.duration",9]`,
		"elsewhere":         `["request.duration",9]`,
		"elsewhere-outcome": `["outcome",null]`,
		"outcome":           `["outcome",null]`,
		"unknown":           `[null,null]`,
		long[:256]:          `["stall.count",5]`, // as labels are cut
	} {
		indicator, threshold := p.threshold(p.definitions(), name)
		require.Equal(t, want, inJSON(t, []any{indicator, threshold}), name)
	}
}
