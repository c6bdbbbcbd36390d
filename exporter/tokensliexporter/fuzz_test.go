// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokensliexporter

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"

	"github.com/tokenpulse/tokenpulse/internal/keeper"
	"github.com/tokenpulse/tokenpulse/internal/names"
)

// FuzzAttributes sets every attribute that the exporter reads to values of every type. All
// published numbers must be finite, and not negative except for error budgets.
func FuzzAttributes(f *testing.F) {
	keys := make([]string, 0, len(everything()))
	for key := range everything() {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	f.Add(uint8(0), 0.5, int64(3), "success", encoded(0.02, 0.5))
	f.Add(uint8(1), math.NaN(), int64(-1), "\xff\x00\n", []byte{1})
	f.Add(uint8(2), math.Inf(-1), int64(math.MaxInt64), "error", []byte{})
	f.Add(uint8(3), 5e-324, int64(math.MinInt64), "", encoded(0))
	f.Add(uint8(4), math.MaxFloat64, int64(0), "incomplete", encoded(1e-12, 1<<30))
	f.Fuzz(func(t *testing.T, turn uint8, double float64, integer int64, text string, raw []byte) {
		config := createDefaultConfig().(*Config)
		config.Shared.Objectives = []keeper.Objective{{SLO: names.SLOAll, Objective: 0.9, Window: time.Hour}}
		e, err := newTokenSLI(newSettings(componenttest.NewTelemetry()), config)
		require.NoError(t, err)
		kinds := []any{double, integer, text, raw, double > 1, []any{text}, map[string]any{text: integer}}
		attributes := map[string]any{}
		for i, key := range keys {
			attributes[key] = kinds[(i+int(turn))%len(kinds)]
		}
		require.NoError(t, e.consume(t.Context(), batch(attributes, with(attributes))))
		shown := e.families(t)
		for _, family := range shown {
			for _, m := range family.Metric {
				requireWhole(t, m.Histogram)
				for _, v := range []float64{m.GetCounter().GetValue(), m.GetGauge().GetValue(), m.GetHistogram().GetSampleSum()} {
					overdrawn := v < 0 && family.GetName() == "tokenpulse_slo_error_budget_remaining"
					require.True(t, (v >= 0 || overdrawn) && !math.IsInf(v, 0), "%s is %v", family.GetName(), v)
				}
			}
		}
	})
}
