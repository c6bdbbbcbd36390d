// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokensliconnector

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	storageapi "go.opentelemetry.io/collector/extension/xextension/storage"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"

	"github.com/tokenpulse/tokenpulse/connector/tokensliconnector/internal/metadatatest"
	"github.com/tokenpulse/tokenpulse/internal/keeper"
	"github.com/tokenpulse/tokenpulse/internal/keeper/keepertest"
	"github.com/tokenpulse/tokenpulse/internal/series"
	"github.com/tokenpulse/tokenpulse/internal/storagetest"
)

var errRefused = errors.New("refused")

// logDestination accepts logs, or refuses them if refuses is set.
type logDestination struct {
	consumertest.LogsSink
	refuses bool
}

func (d *logDestination) ConsumeLogs(ctx context.Context, l plog.Logs) error {
	if d.refuses {
		return errRefused
	}
	return d.LogsSink.ConsumeLogs(ctx, l)
}

// logHarness is a connector into logs. The test sets its clock and runs its rounds.
type logHarness struct {
	*tracesToLogs
	to        *logDestination
	telemetry *componenttest.Telemetry
	clock     time.Time
}

// newLogHarness returns a connector with an objective of 0.99. It is not started.
func newLogHarness(t *testing.T, change func(*Config)) *logHarness {
	t.Helper()
	config := createDefaultConfig().(*Config)
	config.Publish.Shared.Series.Dimensions = series.DimensionsOf("service.name", "gen_ai.request.model")
	config.Publish.Shared.Objectives = []keeper.Objective{{SLO: "tpot", Objective: 0.99, Window: 720 * time.Hour}}
	if change != nil {
		change(config)
	}
	h := &logHarness{to: &logDestination{}, telemetry: componenttest.NewTelemetry(), clock: time.Now()}
	var err error
	h.tracesToLogs, err = newTracesToLogs(metadatatest.NewSettings(h.telemetry), config, h.to)
	require.NoError(t, err)
	h.now = func() time.Time { return h.clock }
	t.Cleanup(func() {
		require.NoError(t, h.Shutdown(context.Background()))
		require.NoError(t, h.telemetry.Shutdown(context.Background()))
	})
	return h
}

// events returns the events since the last call.
func (h *logHarness) events() (all []plog.LogRecord) {
	for _, logs := range h.to.AllLogs() {
		for _, resource := range logs.ResourceLogs().All() {
			for _, scope := range resource.ScopeLogs().All() {
				for _, event := range scope.LogRecords().All() {
					all = append(all, event)
				}
			}
		}
	}
	h.to.Reset()
	return all
}

// later runs a round after a time and returns a summary of its events.
func (h *logHarness) later(t *testing.T, d time.Duration) (all []string) {
	t.Helper()
	h.clock = h.clock.Add(d)
	h.keeper.Round(t.Context())
	for _, event := range h.events() {
		attributes := event.Attributes().AsRaw()
		all = append(all, fmt.Sprintf("%s %s of %v of %v", event.EventName()[len("tokenpulse.slo.burn."):],
			attributes["tokenpulse.slo.alert.name"], attributes["tokenpulse.slo.name"], attributes["gen_ai.request.model"]))
	}
	return all
}

// judged records good and bad requests of a model, and discards their breach events.
func (h *logHarness) judged(t *testing.T, model string, good, bad int) {
	t.Helper()
	for verdict, n := range map[string]int{"met": good, "breached": bad} {
		for range n {
			require.NoError(t, h.ConsumeTraces(t.Context(), keepertest.Batch(keepertest.Request(map[string]any{
				"gen_ai.request.model": model, "tokenpulse.slo." + verdict: []any{"tpot"},
			}))))
		}
	}
	h.to.Reset()
}

// Returning the error would make the sender send all of the traces again.
func TestConsumeTraces_CountsRefusedBreachEvents(t *testing.T) {
	h := newLogHarness(t, nil)
	h.to.refuses = true
	breached := map[string]any{"tokenpulse.slo.breached": []any{"tpot"}}
	require.NoError(t, h.ConsumeTraces(t.Context(), keepertest.Batch(breached, breached)))
	h.to.refuses = false
	metadatatest.AssertEqualConnectorTokenSliEventsLost(t, h.telemetry, []metricdata.DataPoint[int64]{{Value: 2}}, metricdatatest.IgnoreTimestamp())
	require.EqualValues(t, 2, keepertest.Value(t, h.telemetry, "token_sli_requests"))
}

// An event is about one request, so it has the number itself. A burn event is about a series.
func TestEvents_BreachesHaveNumbersAndBurnsHaveBands(t *testing.T) {
	h := newLogHarness(t, func(c *Config) {
		c.Publish.Shared.Series.Dimensions = series.Dimensions{{Attribute: "gen_ai.usage.input_tokens", Bands: []float64{1000}, Label: "prompt_tokens"}}
	})
	for range 100 {
		require.NoError(t, h.ConsumeTraces(t.Context(), keepertest.Batch(keepertest.Request(map[string]any{
			"gen_ai.usage.input_tokens": 1234, "tokenpulse.slo.breached": []any{"tpot"},
		}))))
	}
	breach := h.events()[0].Attributes().AsRaw()
	require.Equal(t, "1234", breach["gen_ai.usage.input_tokens"])
	require.NotContains(t, breach, "prompt_tokens")
	h.clock = h.clock.Add(time.Minute)
	h.keeper.Round(t.Context())
	require.Equal(t, "1000+", h.events()[0].Attributes().AsRaw()["prompt_tokens"])
}

func TestRound_SendsStartAndEndOfAlerts(t *testing.T) {
	h := newLogHarness(t, nil)
	h.judged(t, "m", 100, 0)
	h.judged(t, "n", 100, 0)
	require.Empty(t, h.later(t, time.Second))

	h.judged(t, "m", 0, 20) // 20 of 120 are bad: a burn rate of 16.7
	require.ElementsMatch(t, []string{"start fast_burn of tpot of m", "start slow_burn of tpot of m", "start steady_burn of tpot of m"}, h.later(t, time.Second))
	require.Empty(t, h.later(t, time.Second), "each alert is sent once")
	require.Empty(t, h.later(t, 4*time.Minute))
	require.Equal(t, []string{"end fast_burn of tpot of m"}, h.later(t, time.Minute), "the bad requests left the short window")
	require.Equal(t, []string{"end slow_burn of tpot of m"}, h.later(t, 25*time.Minute))
	h.judged(t, "m", 0, 1)
	require.Equal(t, []string{"start fast_burn of tpot of m", "start slow_burn of tpot of m"}, h.later(t, time.Second), "21 of 121 requests in the last hour are bad")
}

// The model breaks totally, then recovers. A near total breach holds the fast burn back, also while its burn rate
// goes down.
func TestRound_NearTotalBreachHoldsFastBurnBack(t *testing.T) {
	h := newLogHarness(t, nil)
	h.judged(t, "m", 0, 19)
	require.Equal(t, []string{"start fast_burn of tpot of m", "start slow_burn of tpot of m", "start steady_burn of tpot of m"}, h.later(t, time.Second), "too few requests")
	h.judged(t, "m", 0, 1)
	require.Equal(t, []string{"start near_total_breach of tpot of m"}, h.later(t, time.Second), "the fast burn goes on")
	h.judged(t, "n", 400, 0)
	require.Empty(t, h.later(t, 4*time.Minute))
	h.judged(t, "n", 0, 500)
	require.Equal(t, []string{"start near_total_breach of tpot of n", "start slow_burn of tpot of n", "start steady_burn of tpot of n"}, h.later(t, time.Second))
	h.judged(t, "n", 500, 0)
	require.Equal(t, []string{"end fast_burn of tpot of m"}, h.later(t, 2*time.Minute), "36% of n are bad: over the limit of the fast burn")
	require.Empty(t, h.later(t, 2*time.Minute+50*time.Second))
	require.ElementsMatch(t, []string{"end near_total_breach of tpot of m", "end near_total_breach of tpot of n"}, h.later(t, 20*time.Second))
}

func TestNearTotalBreach_SaysThatRequestsFail(t *testing.T) {
	for name, test := range map[string]struct {
		failed, status int
		want           any
		body           string
	}{
		"most of the bad failed":              {11, 503, "errors", "SLO tpot: near_total_breach, 20 of 24 requests of 5m are bad, because requests fail"},
		"half of the bad failed":              {10, 503, nil, "SLO tpot: near_total_breach, 20 of 24 requests of 5m are bad"},
		"client mistakes that the SLO counts": {11, 401, nil, "SLO tpot: near_total_breach, 20 of 24 requests of 5m are bad"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newLogHarness(t, nil)
			h.judged(t, "m", 4, 20-test.failed)
			for range test.failed {
				require.NoError(t, h.ConsumeTraces(t.Context(), keepertest.Batch(keepertest.Request(map[string]any{
					"gen_ai.request.model": "m", "tokenpulse.slo.breached": []any{"tpot"}, "tokenpulse.outcome": "error", "http.response.status_code": test.status,
				}))))
			}
			h.to.Reset()
			h.keeper.Round(t.Context())
			event := h.events()[0]
			attributes := event.Attributes().AsRaw()
			require.Equal(t, "near_total_breach", attributes["tokenpulse.slo.alert.name"])
			require.Equal(t, test.want, attributes["tokenpulse.slo.alert.cause"])
			require.NotContains(t, attributes, "tokenpulse.slo.alert.factor")
			require.Equal(t, "page", attributes["tokenpulse.slo.alert.severity"])
			require.Equal(t, test.body, event.Body().Str())
		})
	}
}

func TestBurnEvent_DescribesTheAlert(t *testing.T) {
	h := newLogHarness(t, nil)
	h.judged(t, "m", 60, 20) // a burn rate of 25 in all windows
	h.keeper.Round(t.Context())
	events := h.events()
	require.Len(t, events, 3)
	at := pcommon.NewTimestampFromTime(h.clock)
	for i, want := range []struct {
		name, severity, long, short string
		factor                      float64
		number                      plog.SeverityNumber
	}{
		{"fast_burn", "page", "1h", "5m", 14.4, plog.SeverityNumberError},
		{"slow_burn", "page", "6h", "30m", 6, plog.SeverityNumberError},
		{"steady_burn", "ticket", "3d", "6h", 1, plog.SeverityNumberWarn},
	} {
		event := events[i]
		require.Equal(t, "tokenpulse.slo.burn.start", event.EventName())
		require.Equal(t, want.number, event.SeverityNumber())
		require.Equal(t, [2]pcommon.Timestamp{at, at}, [2]pcommon.Timestamp{event.Timestamp(), event.ObservedTimestamp()})
		attributes := event.Attributes().AsRaw()
		for _, name := range []string{"tokenpulse.slo.alert.long_window.burn_rate", "tokenpulse.slo.alert.short_window.burn_rate"} {
			require.InDelta(t, 25, attributes[name], 1e-9)
			delete(attributes, name)
		}
		require.InDelta(t, -24, attributes["tokenpulse.slo.error_budget.remaining"], 1e-9)
		delete(attributes, "tokenpulse.slo.error_budget.remaining")
		require.Equal(t, map[string]any{
			"service.name": "chat", "gen_ai.request.model": "m",
			"tokenpulse.slo.name": "tpot", "tokenpulse.slo.objective": 0.99,
			"tokenpulse.slo.alert.name": want.name, "tokenpulse.slo.alert.severity": want.severity, "tokenpulse.slo.alert.factor": want.factor,
			"tokenpulse.slo.alert.long_window": want.long, "tokenpulse.slo.alert.short_window": want.short,
		}, attributes)
	}
	require.Equal(t, "SLO tpot: fast_burn, the error budget burns 25 times too fast over 1h and 25 times over 5m", events[0].Body().Str())

	h.clock = h.clock.Add(10 * time.Minute)
	h.keeper.Round(t.Context())
	end := h.events()[0]
	require.Equal(t, "tokenpulse.slo.burn.end", end.EventName())
	require.Equal(t, plog.SeverityNumberInfo, end.SeverityNumber())
	require.Equal(t, "m", end.Attributes().AsRaw()["gen_ai.request.model"])
	require.Equal(t, "SLO tpot: fast_burn ended", end.Body().Str())
}

func TestRound_SendsRefusedAlertEventsAgain(t *testing.T) {
	h := newLogHarness(t, nil)
	h.judged(t, "m", 60, 20)
	h.to.refuses = true
	require.Empty(t, h.later(t, time.Second))
	metadatatest.AssertEqualConnectorTokenSliFlushesRefused(t, h.telemetry, []metricdata.DataPoint[int64]{{Value: 1}}, metricdatatest.IgnoreTimestamp())
	h.to.refuses = false
	require.Len(t, h.later(t, time.Second), 3)
	h.to.refuses = true
	require.Empty(t, h.later(t, 10*time.Minute))
	h.to.refuses = false
	require.Equal(t, []string{"end fast_burn of tpot of m"}, h.later(t, time.Second))
}

// An idle series keeps its budget: alerts end when the requests leave the windows.
func TestRound_AlertsOfIdleSeriesEndLater(t *testing.T) {
	h := newLogHarness(t, func(c *Config) { c.Publish.Shared.Series.SeriesExpiration = time.Minute })
	h.judged(t, "m", 60, 20)
	require.Len(t, h.later(t, time.Second), 3)
	require.Empty(t, h.later(t, 2*time.Minute), "the series is idle")
	require.Empty(t, h.later(t, time.Second))
	require.Equal(t, []string{"end fast_burn of tpot of m"}, h.later(t, 5*time.Minute))
	require.Equal(t, []string{"end slow_burn of tpot of m"}, h.later(t, 30*time.Minute))
	require.Equal(t, []string{"end steady_burn of tpot of m"}, h.later(t, 6*time.Hour))
	require.Empty(t, h.alerts.active)
}

// After a restart the connector sends start events that were refused before, and those of
// alerts that a stricter objective causes.
func TestStart_SendsEventsThatWereNotAcceptedBefore(t *testing.T) {
	host, id := storagetest.NewHost(t), storagetest.FileStorage
	start := func(objective float64, refuses bool) *logHarness {
		h := newLogHarness(t, func(c *Config) {
			c.Publish.Shared.StorageID, c.Publish.FlushInterval = &id, 24*time.Hour
			c.Publish.Shared.Objectives[0].Objective = objective
		})
		h.to.refuses = refuses
		require.NoError(t, h.Start(t.Context(), host))
		return h
	}
	end := func(h *logHarness) {
		h.to.refuses = true
		require.NoError(t, h.Shutdown(t.Context())) // sends nothing, as if killed
	}
	first := start(0.8, true)
	first.judged(t, "m", 60, 20) // a burn rate of 1.25
	require.Empty(t, first.later(t, time.Second))
	end(first)
	second := start(0.8, false)
	require.Equal(t, []string{"start steady_burn of tpot of m"}, second.later(t, 0))
	require.NoError(t, second.Shutdown(t.Context()))
	third := start(0.99, false)
	require.ElementsMatch(t, []string{"start fast_burn of tpot of m", "start slow_burn of tpot of m"}, third.later(t, 0))
	require.NoError(t, third.Shutdown(t.Context()))
}

func TestRound_CountsFailedSaves(t *testing.T) {
	full, id := storagetest.NewMemory(), storagetest.FileStorage
	full.FailWith(storageapi.ErrStorageFull)
	h := newLogHarness(t, func(c *Config) { c.Publish.Shared.StorageID = &id; c.Publish.FlushInterval = time.Hour })
	require.NoError(t, h.Start(t.Context(), storagetest.Host{id: full}))
	h.judged(t, "m", 1, 0)
	h.keeper.Round(t.Context())
	h.keeper.Round(t.Context())
	require.EqualValues(t, 2, keepertest.Value(t, h.telemetry, "token_sli_saves_failed"))
	require.NoError(t, h.Shutdown(t.Context()), "the Collector would exit with status 1")
}

// After a restart the connector repeats no event. It sends the end of alerts that ended
// in between.
func TestStart_RestoresActiveAlerts(t *testing.T) {
	host, id := storagetest.NewHost(t), storagetest.FileStorage
	withStorage := func(c *Config) {
		c.Publish.Shared.StorageID = &id
		c.Publish.FlushInterval = 24 * time.Hour
		c.Publish.Shared.Series.SeriesExpiration = 0
	}

	first := newLogHarness(t, withStorage)
	first.clock = time.Now().Add(-2 * time.Hour)
	require.NoError(t, first.Start(t.Context(), host))
	first.judged(t, "m", 60, 20)
	require.Len(t, first.later(t, time.Second), 3)
	require.Equal(t, []string{"end fast_burn of tpot of m"}, first.later(t, 10*time.Minute))
	require.NoError(t, first.Shutdown(t.Context()))

	second := newLogHarness(t, withStorage)
	require.NoError(t, second.Start(t.Context(), host))
	require.Equal(t, []string{"end slow_burn of tpot of m"}, second.later(t, 0))
	second.judged(t, "n", 0, 20)
	require.Contains(t, second.later(t, 0), "start near_total_breach of tpot of n")
	second.judged(t, "n", 30, 0)
	require.Empty(t, second.later(t, time.Minute))
	require.NoError(t, second.Shutdown(t.Context()))

	third := newLogHarness(t, withStorage)
	require.NoError(t, third.Start(t.Context(), host))
	require.Empty(t, third.later(t, 2*time.Minute), "a near total breach goes on")
	require.Equal(t, []string{"end near_total_breach of tpot of n"}, third.later(t, 3*time.Minute))
	require.NoError(t, third.Shutdown(t.Context()))
}
