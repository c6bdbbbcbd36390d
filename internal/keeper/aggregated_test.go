// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package keeper

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/keeper/keepertest"
	"github.com/tokenpulse/tokenpulse/internal/series"
	"github.com/tokenpulse/tokenpulse/internal/slo"
)

// aggregated is a span of a receiver that published the request as metrics.
func aggregated(value any) map[string]any {
	return map[string]any{
		"tokenpulse.outcome": "error", "tokenpulse.time_to_first_token": 0.5, "gen_ai.usage.output_tokens": 7,
		"tokenpulse.slo.breached": []any{"tpot"}, "tokenpulse.aggregated": value,
	}
}

func TestRecord_AggregatedRequestsCountNowhere(t *testing.T) {
	h := newHarness(t, nil)
	for range 2 { // a redelivery is no duplicate: nothing was recorded
		h.Record(t.Context(), spans(t, 3, aggregated(true)))
	}
	h.Engine.Collect(h.clock, func(*series.Snapshot) { t.Error("a series of a request that is published elsewhere") })
	h.Tracker.Visit(h.clock, func(*slo.Budgets) { t.Error("a budget of a request that is published elsewhere") })
	require.EqualValues(t, 6, keepertest.Value(t, h.telemetry, "token_sli_requests_aggregated"))
	for _, name := range []string{"token_sli_requests", "token_sli_requests_duplicate", "token_sli_spans_ignored", "token_sli_slo_verdicts_dropped"} {
		require.Zero(t, keepertest.Value(t, h.telemetry, name), name)
	}
}

func TestRecord_OnlyTrueMeansAggregated(t *testing.T) {
	h := newHarness(t, nil)
	for _, value := range []any{false, "true", 1} {
		h.Record(t.Context(), spans(t, 1, aggregated(value)))
	}
	require.EqualValues(t, 3, keepertest.Value(t, h.telemetry, "token_sli_requests"))
}

// A receiver that publishes series may send a share of the spans: no request is missing.
func TestWiring_IsSilentAboutSampledSpansThatAreAggregated(t *testing.T) {
	h := newHarness(t, nil)
	batch := spans(t, 1, aggregated(true))
	batch.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0).TraceState().FromRaw("ot=th:fd70a3d70a3d70")
	h.Record(t.Context(), batch)
	require.Zero(t, h.logs.Len())
}
