// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package keeper

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/internal/keeper/keepertest"
	"github.com/tokenpulse/tokenpulse/internal/series"
	"github.com/tokenpulse/tokenpulse/internal/slo"
)

// identified returns n model calls with IDs of their own.
func identified(t *testing.T, n int, attributes map[string]any) ptrace.Traces {
	t.Helper()
	traces := spans(t, n, attributes)
	for i, span := range traces.ResourceSpans().At(0).ScopeSpans().At(0).Spans().All() {
		trace, id := [16]byte{1}, [8]byte{1}
		binary.BigEndian.PutUint64(trace[8:], uint64(i))
		binary.BigEndian.PutUint64(id[:], uint64(i)+1)
		span.SetTraceID(trace)
		span.SetSpanID(id)
	}
	return traces
}

// requests returns the requests of all series by outcome.
func (h *harness) requests() map[string]uint64 {
	all := map[string]uint64{}
	h.Engine.Collect(h.clock, func(s *series.Snapshot) {
		for i := range s.Outcomes {
			if n := s.Outcomes[i].Requests; n > 0 {
				all[series.OutcomeNames[i]] += n
			}
		}
	})
	return all
}

func (h *harness) counted(t *testing.T, name string) int64 {
	t.Helper()
	return keepertest.Value(t, h.telemetry, name)
}

// A backend beside token_sli refuses a batch. The receiver delivers it again every 333 ms
// for 30 s, to token_sli, too.
func TestRecord_RedeliveredRequestsCountOnce(t *testing.T) {
	h := newHarness(t, nil)
	open := map[string]any{
		"model": "m", "tokenpulse.outcome": "incomplete", "tokenpulse.slo.breached": []any{"tpot"},
		"tokenpulse.time_to_first_token": "x", "gen_ai.usage.output_tokens": 7,
	}
	for range 90 {
		h.Record(t.Context(), identified(t, 100, open))
		h.clock = h.clock.Add(333 * time.Millisecond)
	}
	require.Equal(t, map[string]uint64{"incomplete": 100}, h.requests())
	require.Equal(t, map[string]slo.Counts{"m": {Bad: 100}}, h.budgets())
	require.EqualValues(t, 100, h.counted(t, "token_sli_requests"))
	require.EqualValues(t, 8900, h.counted(t, "token_sli_requests_duplicate"))
	require.EqualValues(t, 100, h.counted(t, "token_sli_values_rejected"))
	require.Zero(t, h.counted(t, "token_sli_deduplication_evicted"))

	open["tokenpulse.outcome"] = "success" // a histogram cannot be corrected
	h.Record(t.Context(), identified(t, 100, open))
	require.Equal(t, map[string]uint64{"incomplete": 100}, h.requests())
}

func TestRecord_ClientAndServerOfARequestCount(t *testing.T) {
	h := newHarness(t, nil)
	for range 2 {
		for _, vantage := range []string{"client", "server", ""} {
			h.Record(t.Context(), identified(t, 1, map[string]any{"model": "m", "tokenpulse.outcome": "success", "tokenpulse.vantage": vantage}))
		}
	}
	require.Equal(t, map[string]uint64{"success": 3}, h.requests())
}

func TestRecord_SpansWithoutIDsAlwaysCount(t *testing.T) {
	h := newHarness(t, nil)
	for range 3 {
		h.Record(t.Context(), spans(t, 2, met))
	}
	require.Equal(t, map[string]uint64{"success": 6}, h.requests())
}

func TestRecord_HorizonOfZeroCountsEverything(t *testing.T) {
	h := newHarness(t, func(s *Settings) { s.Config.Deduplication.Horizon = 0 })
	for range 3 {
		h.Record(t.Context(), identified(t, 2, met))
	}
	require.Equal(t, map[string]uint64{"success": 6}, h.requests())
	require.Zero(t, h.counted(t, "token_sli_deduplication_evicted"))
}

func TestRound_ForgetsRequestsAfterTheHorizon(t *testing.T) {
	h := newHarness(t, nil)
	began := h.clock
	h.Record(t.Context(), identified(t, 2, met))
	h.clock = began.Add(time.Hour)
	h.Round(t.Context())
	h.clock = began // at which only the round, not the next requests, can have forgotten them
	h.Record(t.Context(), identified(t, 2, met))
	require.EqualValues(t, 4, h.counted(t, "token_sli_requests"))
}

func TestRecord_ReportsRequestsForgottenEarly(t *testing.T) {
	h := newHarness(t, func(s *Settings) { s.Config.Deduplication.MaxSpans = 10 })
	for range 2 {
		h.Record(t.Context(), identified(t, 100, met))
	}
	require.Equal(t, map[string]uint64{"success": 200}, h.requests())
	require.EqualValues(t, 190, h.counted(t, "token_sli_deduplication_evicted"))
}

// 64 invented names take no place from an objective, in a span or in a series.
func TestRecord_ObjectivesKeepTheirPlaces(t *testing.T) {
	h := newHarness(t, nil)
	var invented []any
	for i := range 1000 {
		invented = append(invented, string(rune(0x4e00+i)))
	}
	h.Record(t.Context(), spans(t, 1, map[string]any{"model": "m", "tokenpulse.slo.met": invented}))
	h.Record(t.Context(), spans(t, 500, map[string]any{"model": "m", "tokenpulse.slo.breached": []any{"tpot"}}))
	h.Record(t.Context(), spans(t, 1, map[string]any{"model": "m", "tokenpulse.slo.met": append(invented, "tpot")}))
	h.Record(t.Context(), spans(t, 1, map[string]any{"model": "m", "tokenpulse.slo.met": invented, "tokenpulse.slo.breached": []any{"tpot"}}))
	counters := map[string][3]uint64{}
	h.Engine.Collect(h.clock, func(s *series.Snapshot) {
		for _, o := range s.SLOs {
			counters[o.Name] = o.Requests
		}
	})
	require.Equal(t, [3]uint64{0, 1, 501}, counters["tpot"])
	require.Equal(t, [3]uint64{0, 2, 501}, counters["all"])
	require.Len(t, counters, slo.MaxSLOs+2)
	require.Equal(t, map[string]slo.Counts{"m": {Good: 1, Bad: 501}}, h.budgets())
	require.EqualValues(t, 3*(1000-64), h.counted(t, "token_sli_slo_verdicts_dropped"))
}
