// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package keeper

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/tokenpulse/tokenpulse/internal/keeper/internal/metadatatest"
	"github.com/tokenpulse/tokenpulse/internal/keeper/keepertest"
	"github.com/tokenpulse/tokenpulse/internal/series"
	"github.com/tokenpulse/tokenpulse/internal/slo"
	"github.com/tokenpulse/tokenpulse/internal/storagetest"
)

// harness is a keeper with a clock that the test sets.
type harness struct {
	*Keeper
	telemetry *componenttest.Telemetry
	logs      *observer.ObservedLogs
	clock     time.Time
}

func newHarness(t *testing.T, change func(*Settings)) *harness {
	t.Helper()
	core, logs := observer.New(zapcore.InfoLevel)
	h := &harness{telemetry: componenttest.NewTelemetry(), logs: logs, clock: time.Now()}
	config := NewDefaultConfig()
	config.Series.Dimensions = series.DimensionsOf("model")
	config.Objectives = []Objective{{SLO: "tpot", Objective: 0.9, Window: 720 * time.Hour}}
	set := Settings{
		Config: &config, Telemetry: h.telemetry.NewTelemetrySettings(),
		Component: component.MustNewIDWithName("token_sli", "x"), Kind: component.KindConnector, Output: "metrics",
		Engine:   series.NewEngine(config.EngineOptions()),
		Interval: time.Hour,
		Now:      func() time.Time { return h.clock },
	}
	set.Telemetry.Logger = zap.New(core)
	if change != nil {
		change(&set)
	}
	var err error
	h.Keeper, err = New(set)
	require.NoError(t, err)
	t.Cleanup(func() {
		h.Shutdown(context.Background())
		require.NoError(t, h.telemetry.Shutdown(context.Background()))
	})
	return h
}

// spans returns n model calls with these attributes.
func spans(t *testing.T, n int, attributes map[string]any) ptrace.Traces {
	t.Helper()
	traces := ptrace.NewTraces()
	scope := traces.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty()
	for range n {
		require.NoError(t, scope.Spans().AppendEmpty().Attributes().FromRaw(attributes))
	}
	return traces
}

// met are the attributes of a model call that is good for the SLO tpot.
var met = map[string]any{"model": "m", "tokenpulse.slo.met": []any{"tpot"}}

// budgets returns the counts in the budget of each model.
func (h *harness) budgets() map[string]slo.Counts {
	all := map[string]slo.Counts{}
	h.Tracker.Visit(h.clock, func(b *slo.Budgets) {
		all[series.LabelsOf(b.Key).Dimensions[0]] = b.Each[0].Recent.Budget
	})
	return all
}

func TestSelfMetrics_NameTheComponent(t *testing.T) {
	h := newHarness(t, func(s *Settings) {
		s.Config.Series.MaxSeries = 1
		s.Engine = series.NewEngine(series.Options{Config: s.Config.Series})
	})
	h.Record(t.Context(), spans(t, 2, met))
	h.Record(t.Context(), spans(t, 1, map[string]any{"model": "n", "tokenpulse.time_to_first_token": "x"}))
	h.Record(t.Context(), spans(t, 3, map[string]any{"http.route": "/"}))

	point := func(n int64, more ...attribute.KeyValue) []metricdata.DataPoint[int64] {
		more = append(more, attribute.String("component", "connector/token_sli/x"), attribute.String("output", "metrics"))
		return []metricdata.DataPoint[int64]{{Value: n, Attributes: attribute.NewSet(more...)}}
	}
	options := []metricdatatest.Option{metricdatatest.IgnoreTimestamp(), metricdatatest.IgnoreExemplars()}
	metadatatest.AssertEqualTokenSliRequests(t, h.telemetry, point(3), options...)
	metadatatest.AssertEqualTokenSliRequestsOverflow(t, h.telemetry, point(1), options...)
	metadatatest.AssertEqualTokenSliSpansIgnored(t, h.telemetry, point(3), options...)
	metadatatest.AssertEqualTokenSliSeries(t, h.telemetry, point(1), options...)
	metadatatest.AssertEqualTokenSliSeriesLimit(t, h.telemetry, point(1), options...)
	metadatatest.AssertEqualTokenSliValuesRejected(t, h.telemetry, point(1, attribute.String("reason", "wrong_type")), options...)
	metadatatest.AssertEqualTokenSliBudgetsEvicted(t, h.telemetry, point(0), options...)

	h.clock = h.clock.Add(2 * time.Hour)
	h.Round(t.Context())
	metadatatest.AssertEqualTokenSliSeriesExpired(t, h.telemetry, point(2), options...)
}

func TestRound_SeriesExpireOnlyAfterAFlush(t *testing.T) {
	refused := errors.New("refused")
	var answer error
	h := newHarness(t, func(s *Settings) { s.Flush = func(context.Context) error { return answer } })
	h.Record(t.Context(), spans(t, 1, met))
	h.clock = h.clock.Add(2 * time.Hour)
	answer = refused
	h.Round(t.Context())
	require.Equal(t, 1, h.Engine.Held())
	answer = nil
	h.Round(t.Context())
	require.Zero(t, h.Engine.Held())
	require.Equal(t, map[string]slo.Counts{"m": {Good: 1}}, h.budgets(), "the budget outlives the series")
}

func TestRound_WarnsOnceAboutObjectivesWithoutVerdicts(t *testing.T) {
	h := newHarness(t, func(s *Settings) { s.Config.Objectives[0].SLO = "tpto" })
	h.Record(t.Context(), spans(t, 100, met))
	h.clock = h.clock.Add(15*time.Minute - 1)
	h.Round(t.Context())
	require.Zero(t, h.logs.Len())
	_, err := h.telemetry.GetMetric("otelcol_token_sli_objectives_unseen")
	require.Error(t, err, "not reported before 15 minutes")

	h.clock = h.clock.Add(1)
	h.Round(t.Context())
	h.Round(t.Context())
	warnings := h.logs.TakeAll()
	require.Len(t, warnings, 1)
	require.Equal(t, zapcore.WarnLevel, warnings[0].Level)
	require.Equal(t, map[string]any{"objectives": []any{"tpto"}, "slos_seen": []any{"tpot"}, "see": "docs/operations.md#objective_unseen"}, warnings[0].ContextMap())
	metadatatest.AssertEqualTokenSliObjectivesUnseen(t, h.telemetry, []metricdata.DataPoint[int64]{{Value: 1, Attributes: attribute.NewSet(
		attribute.String("component", "connector/token_sli/x"), attribute.String("output", "metrics"), attribute.String("slo", "tpto"))}},
		metricdatatest.IgnoreTimestamp())
}

func TestRecord_WithoutEngineTracksBudgetsOnly(t *testing.T) {
	h := newHarness(t, func(s *Settings) { s.Engine = nil })
	h.Record(t.Context(), spans(t, 3, met))
	require.Equal(t, map[string]slo.Counts{"m": {Good: 3}}, h.budgets())
	h.Round(t.Context())
}

func TestRecord_OverflowSeriesHasABudget(t *testing.T) {
	h := newHarness(t, func(s *Settings) {
		s.Config.Series.MaxSeries = 1
		s.Engine = series.NewEngine(series.Options{Config: s.Config.Series})
	})
	h.Record(t.Context(), spans(t, 1, met))
	h.Record(t.Context(), spans(t, 2, map[string]any{"model": "n", "tokenpulse.slo.met": []any{"tpot"}}))
	var keys []string
	h.Tracker.Visit(h.clock, func(b *slo.Budgets) { keys = append(keys, b.Key) })
	require.Equal(t, []string{slo.OverflowKey, "\x01m\x00"}, keys)
}

// One value of the first dimension must not push others out of their budgets, with or
// without series.
func TestRecord_OneValueOfTheFirstDimensionHasHalfOfTheBudgets(t *testing.T) {
	for name, change := range map[string]func(*Settings){
		"with series":  func(s *Settings) { s.Engine = series.NewEngine(series.Options{Config: s.Config.Series}) },
		"budgets only": func(s *Settings) { s.Engine = nil },
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, func(s *Settings) {
				s.Config.Series.Dimensions = series.DimensionsOf("service.name", "model")
				s.Config.Series.MaxSeries = 4
				change(s)
			})
			record := func(service, model string) {
				h.Record(t.Context(), spans(t, 1, map[string]any{"service.name": service, "model": model, "tokenpulse.slo.met": []any{"tpot"}}))
			}
			services := func() map[string]int {
				held := map[string]int{}
				h.Tracker.Visit(h.clock, func(b *slo.Budgets) {
					if of := series.LabelsOf(b.Key); of.Overflow {
						held["overflow"]++
					} else if !b.Idle {
						held[of.Dimensions[0]]++
					}
				})
				return held
			}
			for i := range 20 {
				record("forger", strconv.Itoa(i))
			}
			record("chat", "m")
			record("search", "m")
			require.Equal(t, map[string]int{"forger": 2, "chat": 1, "search": 1, "overflow": 1}, services())
			require.EqualValues(t, 18, keepertest.Value(t, h.telemetry, "token_sli_requests_overflow"))

			h.clock = h.clock.Add(2 * time.Hour)
			h.Round(t.Context())
			record("forger", "new")
			require.Equal(t, map[string]int{"forger": 1, "overflow": 1}, services(), "idle series make room")
		})
	}
}

func TestStart_RestoresRecentSeries(t *testing.T) {
	host, id := storagetest.NewHost(t), storagetest.FileStorage
	withStorage := func(s *Settings) { s.Config.StorageID = &id }
	first := newHarness(t, withStorage)
	first.clock = first.clock.Add(-2 * time.Hour)
	_, err := first.Start(t.Context(), host)
	require.NoError(t, err)
	first.Record(t.Context(), spans(t, 1, map[string]any{"model": "idle", "tokenpulse.slo.met": []any{"tpot"}}))
	first.clock = first.clock.Add(2 * time.Hour)
	first.Record(t.Context(), spans(t, 1, met))
	first.Shutdown(t.Context())

	second := newHarness(t, withStorage)
	_, err = second.Start(t.Context(), host)
	require.NoError(t, err)
	require.Equal(t, map[string]slo.Counts{"m": {Good: 1}, "idle": {Good: 1}}, second.budgets())
	require.Equal(t, 1, second.Engine.Held(), "the idle series has a budget only")
	second.Engine.Collect(second.clock, func(s *series.Snapshot) {
		require.Equal(t, []series.SLOSnapshot{{Name: "tpot", Start: second.clock}}, s.SLOs)
	})
	second.Shutdown(t.Context())
}

func TestRecord_MatchesObjectiveNamesAfterCleaning(t *testing.T) {
	h := newHarness(t, func(s *Settings) { s.Config.Objectives[0].SLO = "tpot\xff" })
	h.Record(t.Context(), spans(t, 1, map[string]any{"model": "m", "tokenpulse.slo.met": []any{"tpot\xff"}}))
	require.Equal(t, map[string]slo.Counts{"m": {Good: 1}}, h.budgets())
}
