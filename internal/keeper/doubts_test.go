// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package keeper

import (
	"maps"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/internal/conventions"
	"github.com/tokenpulse/tokenpulse/internal/diagnostics"
	"github.com/tokenpulse/tokenpulse/internal/inprocess"
	"github.com/tokenpulse/tokenpulse/internal/series"
	"github.com/tokenpulse/tokenpulse/internal/sketch"
	"github.com/tokenpulse/tokenpulse/internal/slo"
)

// abouts returns what the current doubts of a mistake are about.
func (h *harness) abouts(mistake diagnostics.Mistake) (all []string) {
	for _, d := range h.doubts.Current() {
		if d.Message == mistake.Message() {
			all = append(all, d.About)
		}
	}
	return all
}

func TestDoubts_NameDimensionsThatNoRequestHas(t *testing.T) {
	h := newHarness(t, func(s *Settings) {
		s.Config.Series.Dimensions = series.DimensionsOf("gen_ai.provider.name", "model", "replcia", "error.type")
		s.Engine = series.NewEngine(s.Config.EngineOptions())
	})
	h.Record(t.Context(), spans(t, 99, met))
	h.Round(t.Context())
	require.Empty(t, h.doubts.Current(), "too few requests")
	h.Record(t.Context(), spans(t, 1, met))
	h.Round(t.Context())
	h.Round(t.Context())
	require.Equal(t, []string{"replcia"}, h.abouts(diagnostics.DimensionUnused), "failures and defaults may be absent")
	require.Equal(t, 1, h.logs.Len())
	require.Equal(t, map[string]any{"dimension": "replcia", "see": "docs/operations.md#dimension_unused"}, h.logs.All()[0].ContextMap())

	h.clock = h.clock.Add(6 * time.Minute)
	require.Empty(t, h.doubts.Current())
	h.Round(t.Context())
	require.Equal(t, []string{"replcia"}, h.abouts(diagnostics.DimensionUnused), "its cause lasts")
	require.Equal(t, 1, h.logs.Len())
}

func TestDoubts_NameObjectivesThatThisProcessDoesNotDefine(t *testing.T) {
	h := newHarness(t, func(s *Settings) {
		s.Config.Objectives = []Objective{{SLO: "tpto", Objective: 0.9, Window: time.Hour}, {SLO: "ttft", Objective: 0.9, Window: time.Hour}, {SLO: "all", Objective: 0.9, Window: time.Hour}}
	})
	h.Record(t.Context(), spans(t, 20, met))
	h.Round(t.Context())
	require.Empty(t, h.doubts.Current(), "another Collector may define them")
	owner := new(int)
	inprocess.SLOs.Set(owner, []slo.Definition{{Name: "tpot"}, {Name: "ttft"}})
	defer inprocess.SLOs.Remove(owner)
	h.Round(t.Context())
	require.Equal(t, []string{"tpto"}, h.abouts(diagnostics.ObjectiveUndefined))
}

// No component defines `all`: it has a verdict as soon as any SLO has.
func TestDoubts_DoNotNameTheObjectiveOfAll(t *testing.T) {
	h := newHarness(t, func(s *Settings) { s.Config.Objectives = []Objective{{SLO: "all", Objective: 0.9, Window: time.Hour}} })
	owner := new(int)
	inprocess.SLOs.Set(owner, []slo.Definition{{Name: "tpot"}})
	defer inprocess.SLOs.Remove(owner)
	h.Record(t.Context(), spans(t, 20, map[string]any{"tokenpulse.outcome": "success"}))
	h.Round(t.Context())
	require.Empty(t, h.doubts.Current())
}

func TestDoubts_ExplainTheOverflowSeries(t *testing.T) {
	h := newHarness(t, func(s *Settings) {
		s.Config.Series.MaxSeries = 2
		s.Engine = series.NewEngine(s.Config.EngineOptions())
	})
	for i := range 3 {
		require.Empty(t, h.abouts(diagnostics.SeriesOverflow))
		h.Record(t.Context(), spans(t, 1, map[string]any{"model": strconv.Itoa(i), "tokenpulse.outcome": "success"}))
	}
	require.Equal(t, []string{""}, h.abouts(diagnostics.SeriesOverflow))
}

var calls byte

// streamed returns another streaming call of a trace, of which a vantage saw the gaps between tokens.
func streamed(t *testing.T, trace byte, vantage string, more map[string]any) ptrace.Traces {
	t.Helper()
	var gaps sketch.Sketch
	gaps.Add(0.02, 5)
	attributes := map[string]any{
		"tokenpulse.vantage": vantage, "tokenpulse.outcome": "success", "tokenpulse.request.duration": 1.0,
		"tokenpulse.inter_token_latency.sketch": gaps.AppendBinary(nil),
	}
	maps.Copy(attributes, more)
	traces := spans(t, 1, attributes)
	span := traces.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0)
	span.SetTraceID([16]byte{8: trace, 15: 1})
	calls++
	span.SetSpanID([8]byte{7: calls})
	span.SetEndTimestamp(1e9)
	return traces
}

func TestDoubts_OfConventions(t *testing.T) {
	chunks := map[string]any{"tokenpulse.inter_chunk_latency.max": 0.02}
	type call struct {
		trace   byte
		vantage string
	}
	for name, test := range map[string]struct {
		vantages []string
		calls    []call
		more     map[string]any
		doubled  bool
		chunks   bool
	}{
		"one vantage":                        {calls: []call{{1, "client"}, {2, "client"}, {1, "client"}}, more: chunks},
		"client and engine of a trace":       {calls: []call{{1, "client"}, {1, "engine"}}, more: chunks},
		"client and gateway of a trace":      {calls: []call{{1, "client"}, {2, "client"}, {1, "gateway"}}, more: chunks, doubled: true},
		"engine and server of a trace":       {calls: []call{{1, "engine"}, {1, "client"}, {1, "server"}}, more: chunks, doubled: true},
		"client and gateway of other traces": {calls: []call{{1, "client"}, {2, "gateway"}}, more: chunks},
		"one of them is left out":            {vantages: []string{"gateway"}, calls: []call{{1, "client"}, {1, "gateway"}}, more: chunks},
		"no gaps between chunks":             {calls: []call{{1, "gateway"}}, chunks: true},
		"the server has no need of them":     {calls: []call{{1, "engine"}}},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, func(s *Settings) {
				s.Config.Conventions = conventions.Config{GenAI: []string{"latest"}, Vantages: test.vantages}
				s.Engine = series.NewEngine(s.Config.EngineOptions())
			})
			for _, c := range test.calls {
				h.Record(t.Context(), streamed(t, c.trace, c.vantage, test.more))
			}
			require.Len(t, h.abouts(diagnostics.ConventionsDoubled), toInt(test.doubled))
			require.Len(t, h.abouts(diagnostics.ConventionsWithoutChunks), toInt(test.chunks))
			require.Empty(t, h.abouts(diagnostics.ConventionsOverflow))
		})
	}
}

func toInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

func TestDoubts_ExplainTheOverflowOfConventions(t *testing.T) {
	h := newHarness(t, func(s *Settings) {
		s.Config.Series.MaxSeries = 2
		s.Config.Conventions.GenAI = []string{"latest"}
		s.Engine = series.NewEngine(s.Config.EngineOptions())
	})
	for i := range 3 {
		require.Empty(t, h.abouts(diagnostics.ConventionsOverflow))
		h.Record(t.Context(), streamed(t, byte(i), "engine", map[string]any{"gen_ai.request.model": strconv.Itoa(i)}))
	}
	require.Equal(t, []string{""}, h.abouts(diagnostics.ConventionsOverflow))
	require.Empty(t, h.abouts(diagnostics.SeriesOverflow), "they have one dimension")
}
