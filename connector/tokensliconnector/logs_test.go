package tokensliconnector

import (
	"context"
	"fmt"
	"strconv"
	"strings"
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
	"github.com/tokenpulse/tokenpulse/internal/budgetstore/budgetstoretest"
	"github.com/tokenpulse/tokenpulse/internal/series/keeper"
	"github.com/tokenpulse/tokenpulse/internal/series/keeper/keepertest"
)

// logDestination takes logs, or refuses them.
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

// logHarness is a connector into logs whose clock stands still, and that makes its
// rounds when told.
type logHarness struct {
	*tracesToLogs
	to        *logDestination
	telemetry *componenttest.Telemetry
	clock     time.Time
}

func newLogHarness(t *testing.T, change func(*Config)) *logHarness {
	t.Helper()
	config := createDefaultConfig().(*Config)
	config.Shared.Series.Dimensions = []string{"service.name", "gen_ai.request.model"}
	config.Shared.Objectives = []keeper.Objective{{SLO: "tpot", Objective: 0.99, Window: 720 * time.Hour}}
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

// events returns what was sent since the last call.
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

// round makes a round some time later, and returns the events in short.
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

// judged takes in requests of a model, most of them good.
func (h *logHarness) judged(t *testing.T, model string, good, bad int) {
	t.Helper()
	for verdict, n := range map[string]int{"met": good, "breached": bad} {
		for range n {
			require.NoError(t, h.ConsumeTraces(t.Context(), batchOf(request(map[string]any{
				"gen_ai.request.model": model, "tokenpulse.slo." + verdict: []any{"tpot"},
			}))))
		}
	}
	h.to.Reset()
}

func TestEventOfABreachedRequest(t *testing.T) {
	h := newLogHarness(t, func(c *Config) { c.Shared.Objectives = nil })
	breached := request(map[string]any{
		"gen_ai.request.model": "m", "tokenpulse.vantage": "server", "gen_ai.input.messages": "secret",
		"tokenpulse.slo.breached":           []any{"tpot", "ttft", "stalls"},
		"tokenpulse.slo.breached.indicator": []any{"time_per_output_token", "time_to_first_token", "stall.count"},
		"tokenpulse.slo.breached.threshold": []any{0.05, 1.0, 3.0},
		"tokenpulse.time_per_output_token":  0.0625, "tokenpulse.stall.count": 4,
		"tokenpulse.slo.met": []any{"other"},
	})
	traces := batchOf(request(map[string]any{"tokenpulse.slo.met": []any{"tpot"}}), breached)
	span := traces.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(1)
	span.SetEndTimestamp(12345)
	span.SetFlags(0x301)
	require.NoError(t, h.ConsumeTraces(t.Context(), traces))
	require.Len(t, h.to.AllLogs(), 1)
	resource := h.to.AllLogs()[0].ResourceLogs()
	require.Equal(t, 1, resource.Len())
	require.Equal(t, map[string]any{"service.name": "chat"}, resource.At(0).Resource().Attributes().AsRaw())
	require.Equal(t, "github.com/tokenpulse/tokenpulse/connector/tokensliconnector", resource.At(0).ScopeLogs().At(0).Scope().Name())

	events := h.events()
	require.Len(t, events, 1)
	event := events[0]
	require.Equal(t, "tokenpulse.slo.breach", event.EventName())
	require.Equal(t, pcommon.TraceID{15: 2}, event.TraceID())
	require.Equal(t, pcommon.SpanID{7: 2}, event.SpanID())
	require.True(t, event.Flags().IsSampled())
	require.EqualValues(t, 1, event.Flags())
	require.EqualValues(t, 12345, event.Timestamp())
	require.Equal(t, pcommon.NewTimestampFromTime(h.clock), event.ObservedTimestamp())
	require.Equal(t, plog.SeverityNumberWarn, event.SeverityNumber())
	require.Equal(t, "Warn", event.SeverityText())
	require.Equal(t, "tpot breached: time_per_output_token is 0.0625, over 0.05; ttft breached: no time_to_first_token; stalls breached: stall.count is 4, over 3", event.Body().Str())
	require.Equal(t, map[string]any{
		"gen_ai.request.model": "m", "tokenpulse.vantage": "server", "tokenpulse.outcome": "success",
		"tokenpulse.slo.breached": []any{"tpot", "ttft", "stalls"},
		"tokenpulse.slo.breaches": []any{
			map[string]any{"slo": "tpot", "indicator": "time_per_output_token", "threshold": 0.05, "value": 0.0625},
			map[string]any{"slo": "ttft", "indicator": "time_to_first_token", "threshold": 1.0},
			map[string]any{"slo": "stalls", "indicator": "stall.count", "threshold": 3.0, "value": 4.0},
		},
	}, event.Attributes().AsRaw())
}

// What an older release, or somebody else, wrote.
func TestEventOfARequestThatTellsLess(t *testing.T) {
	tests := map[string]struct {
		attributes map[string]any
		want       []any // nil: no event
	}{
		"names only": {map[string]any{"tokenpulse.slo.breached": []any{"tpot"}}, []any{map[string]any{"slo": "tpot"}}},
		"lists that are too short": {
			map[string]any{
				"tokenpulse.slo.breached":           []any{"a", "b"},
				"tokenpulse.slo.breached.indicator": []any{"time_to_first_token", "time_to_first_token"},
				"tokenpulse.slo.breached.threshold": []any{2.0},
			},
			[]any{map[string]any{"slo": "a", "indicator": "time_to_first_token", "threshold": 2.0}, map[string]any{"slo": "b"}},
		},
		"lists that are none": {
			map[string]any{
				"tokenpulse.slo.breached":           []any{"a"},
				"tokenpulse.slo.breached.indicator": "time_to_first_token",
				"tokenpulse.slo.breached.threshold": 2.0,
			},
			[]any{map[string]any{"slo": "a"}},
		},
		"breached is no list":     {map[string]any{"tokenpulse.slo.breached": "a"}, nil},
		"breached is empty":       {map[string]any{"tokenpulse.slo.breached": []any{}}, nil},
		"nothing of ours at all":  {map[string]any{"http.route": "/"}, nil},
		"more than anybody means": {map[string]any{"tokenpulse.slo.breached": repeated("a", 1000)}, repeated(map[string]any{"slo": "a"}, 64)},
		"no names":                {map[string]any{"tokenpulse.slo.breached": []any{7, "", "a"}}, []any{map[string]any{"slo": "a"}}},
		"a name that is a book":   {map[string]any{"tokenpulse.slo.breached": []any{strings.Repeat("x", 1000)}}, []any{map[string]any{"slo": strings.Repeat("x", 256)}}},
		"an indicator that is none": {
			map[string]any{
				"tokenpulse.slo.breached":           []any{"a", "b"},
				"tokenpulse.slo.breached.indicator": []any{"prompt", strings.Repeat("x", 257)},
				"tokenpulse.slo.breached.threshold": []any{2.0, 2.0},
				"tokenpulse.prompt":                 "secret",
			},
			[]any{map[string]any{"slo": "a", "indicator": "prompt", "threshold": 2.0}, map[string]any{"slo": "b"}},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			h := newLogHarness(t, nil)
			require.NoError(t, h.ConsumeTraces(t.Context(), batchOf(test.attributes)))
			events := h.events()
			if test.want == nil {
				require.Empty(t, events)
				return
			}
			require.Len(t, events, 1)
			breaches, _ := events[0].Attributes().Get("tokenpulse.slo.breaches")
			require.Equal(t, test.want, breaches.Slice().AsRaw())
		})
	}
}

func repeated(v any, n int) (all []any) {
	for range n {
		all = append(all, v)
	}
	return all
}

// An error would have the traces sent again, to all who take them.
func TestRefusedEventsAreCounted(t *testing.T) {
	h := newLogHarness(t, nil)
	h.to.refuses = true
	breached := map[string]any{"tokenpulse.slo.breached": []any{"tpot"}}
	require.NoError(t, h.ConsumeTraces(t.Context(), batchOf(breached, breached)))
	h.to.refuses = false
	metadatatest.AssertEqualConnectorTokenSliEventsLost(t, h.telemetry, []metricdata.DataPoint[int64]{{Value: 2}}, metricdatatest.IgnoreTimestamp())
	require.EqualValues(t, 2, keepertest.Value(t, h.telemetry, "token_sli_requests"))
}

func TestEventsOfBurnRateAlerts(t *testing.T) {
	h := newLogHarness(t, nil)
	h.judged(t, "m", 100, 0)
	h.judged(t, "n", 100, 0)
	require.Empty(t, h.later(t, time.Second))

	h.judged(t, "m", 0, 20) // a share of 0.167 burns at 16.7
	require.ElementsMatch(t, []string{"start fast_burn of tpot of m", "start slow_burn of tpot of m", "start steady_burn of tpot of m"}, h.later(t, time.Second))
	require.Empty(t, h.later(t, time.Second), "each is told once")
	require.Empty(t, h.later(t, 4*time.Minute))
	require.Equal(t, []string{"end fast_burn of tpot of m"}, h.later(t, time.Minute), "the short window has moved on")
	require.Equal(t, []string{"end slow_burn of tpot of m"}, h.later(t, 25*time.Minute))
	h.judged(t, "m", 0, 1)
	require.Equal(t, []string{"start fast_burn of tpot of m", "start slow_burn of tpot of m"}, h.later(t, time.Second), "it comes back: of 21 in an hour all were bad but 100")
}

func TestWhatABurnEventTells(t *testing.T) {
	h := newLogHarness(t, nil)
	h.judged(t, "m", 60, 20) // all windows burn at 25
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

func TestRefusedBurnEventsGoWithTheNextRound(t *testing.T) {
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

// A series that expires has a budget all the same: what its windows say holds until
// they have moved on.
func TestAlertsOutliveTheirSeries(t *testing.T) {
	h := newLogHarness(t, func(c *Config) { c.Shared.Series.SeriesExpiration = time.Minute })
	h.judged(t, "m", 60, 20)
	require.Len(t, h.later(t, time.Second), 3)
	require.Empty(t, h.later(t, 2*time.Minute), "it expires after this round")
	require.Empty(t, h.later(t, time.Second))
	require.Equal(t, []string{"end fast_burn of tpot of m"}, h.later(t, 5*time.Minute))
	require.Equal(t, []string{"end slow_burn of tpot of m"}, h.later(t, 30*time.Minute))
	require.Equal(t, []string{"end steady_burn of tpot of m"}, h.later(t, 6*time.Hour))
	require.Empty(t, h.alerts.active)
}

// What was refused before the Collector was killed is told after the restart, and so
// is what another objective makes of the same requests.
func TestUntoldAlertsAreToldAfterARestart(t *testing.T) {
	host, id := budgetstoretest.NewHost(t, 0), budgetstoretest.FileStorage
	start := func(objective float64, refuses bool) *logHarness {
		h := newLogHarness(t, func(c *Config) {
			c.Shared.StorageID, c.FlushInterval = &id, 24*time.Hour
			c.Shared.Objectives[0].Objective = objective
		})
		h.to.refuses = refuses
		require.NoError(t, h.Start(t.Context(), host))
		return h
	}
	end := func(h *logHarness) {
		h.to.refuses = true
		require.ErrorIs(t, h.Shutdown(t.Context()), errRefused) // as if killed: it tells nothing
	}
	first := start(0.8, true)
	first.judged(t, "m", 60, 20) // burns at 1.25
	require.Empty(t, first.later(t, time.Second))
	end(first)
	second := start(0.8, false)
	require.Equal(t, []string{"start steady_burn of tpot of m"}, second.later(t, 0))
	require.NoError(t, second.Shutdown(t.Context()))
	third := start(0.99, false)
	require.ElementsMatch(t, []string{"start fast_burn of tpot of m", "start slow_burn of tpot of m"}, third.later(t, 0))
	require.NoError(t, third.Shutdown(t.Context()))
}

// A storage that fails is told of, every round.
func TestSavesThatFailAreCounted(t *testing.T) {
	host, id := budgetstoretest.NewHost(t, 32<<10), budgetstoretest.FileStorage
	h := newLogHarness(t, func(c *Config) { c.Shared.StorageID = &id; c.FlushInterval = time.Hour })
	require.NoError(t, h.Start(t.Context(), host))
	for i := range 300 { // more than fits
		h.judged(t, strconv.Itoa(i), 1, 0)
	}
	h.keeper.Round(t.Context())
	h.keeper.Round(t.Context())
	require.EqualValues(t, 2, keepertest.Value(t, h.telemetry, "token_sli_saves_failed"))
	require.ErrorIs(t, h.Shutdown(t.Context()), storageapi.ErrStorageFull)
}

// A restarted connector goes on, and tells nothing twice: neither what held before
// and holds still, nor what had ended. What ended meanwhile it tells.
func TestBurnEventsAfterARestart(t *testing.T) {
	host, id := budgetstoretest.NewHost(t, 0), budgetstoretest.FileStorage
	withStorage := func(c *Config) {
		c.Shared.StorageID = &id
		c.FlushInterval = 24 * time.Hour
		c.Shared.Series.SeriesExpiration = 0
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
	require.NoError(t, second.Shutdown(t.Context()))
}
