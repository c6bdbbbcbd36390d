// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.uber.org/zap"

	"github.com/tokenpulse/tokenpulse/internal/keeper"
	"github.com/tokenpulse/tokenpulse/internal/keeper/keepertest"
	"github.com/tokenpulse/tokenpulse/internal/testenv"
)

// half and two are requests whose time to first token is the upper bound of bucket -65 and
// of bucket 63: 2^((i+1)/64).
var (
	half = keepertest.Request(map[string]any{"tokenpulse.time_to_first_token": 0.5})
	two  = keepertest.Request(map[string]any{"tokenpulse.time_to_first_token": 2.0})
)

// chat holds the attributes of their data points.
const chat = "outcome=success,service.name=chat"

func TestFlush_CumulativePointsCoverTheTimeSinceTheSeriesStarted(t *testing.T) {
	h := newHarness(t, nil)
	h.consume(t, 103, half)
	require.Equal(t, []string{
		"tokenpulse.requests{" + chat + "} 102.999..102.999 0",
		"tokenpulse.requests{" + chat + "} 102.999..115 1",
		"tokenpulse.time_to_first_token{" + chat + "} 102.999..102.999 n=0 sum=0",
		"tokenpulse.time_to_first_token{" + chat + "} 102.999..115 n=1 sum=0.5 0.5..0.5 -65:1 exemplar=0.5@103",
	}, h.flushed(t, 115))

	h.consume(t, 118, two)
	require.Equal(t, []string{
		"tokenpulse.requests{" + chat + "} 102.999..130 2",
		"tokenpulse.time_to_first_token{" + chat + "} 102.999..130 n=2 sum=2.5 0.5..2 -65:1 63:1 exemplar=2@118",
	}, h.flushed(t, 130))

	require.Equal(t, []string{
		"tokenpulse.requests{" + chat + "} 102.999..145 2",
		"tokenpulse.time_to_first_token{" + chat + "} 102.999..145 n=2 sum=2.5 0.5..2 -65:1 63:1",
	}, h.flushed(t, 145), "an idle series is still sent")
}

// The zero point of a later stream is not older than the last flush: backends may reject
// older points.
func TestFlush_LaterStreamStartsAtTheLastFlush(t *testing.T) {
	h := newHarness(t, nil)
	h.consume(t, 103, keepertest.Request(nil))
	h.flushed(t, 115)
	h.consume(t, 116, half)
	require.Equal(t, []string{
		"tokenpulse.requests{" + chat + "} 102.999..130 2",
		"tokenpulse.time_to_first_token{" + chat + "} 115..115 n=0 sum=0",
		"tokenpulse.time_to_first_token{" + chat + "} 115..130 n=1 sum=0.5 0.5..0.5 -65:1 exemplar=0.5@116",
	}, h.flushed(t, 130))
}

func TestFlush_DeltaPointsCoverTheTimeSinceTheLastFlush(t *testing.T) {
	h := newHarness(t, delta)
	h.consume(t, 103, half)
	require.Equal(t, []string{
		"tokenpulse.requests{" + chat + "} 100..115 1",
		"tokenpulse.time_to_first_token{" + chat + "} 100..115 n=1 sum=0.5 -65:1 exemplar=0.5@103",
	}, h.flushed(t, 115))

	h.consume(t, 118, two, half, two)
	require.Equal(t, []string{
		"tokenpulse.requests{" + chat + "} 115..130 3",
		"tokenpulse.time_to_first_token{" + chat + "} 115..130 n=3 sum=4.5 -65:1 63:2 exemplar=2@118 exemplar=0.5@118",
	}, h.flushed(t, 130))

	require.Empty(t, h.flushed(t, 145), "no new requests")
	h.consume(t, 146, two)
	require.Equal(t, []string{
		"tokenpulse.requests{" + chat + "} 145..160 1",
		"tokenpulse.time_to_first_token{" + chat + "} 145..160 n=1 sum=2 63:1 exemplar=2@146",
	}, h.flushed(t, 160), "empty buckets at both ends are left out")
}

func TestFlush_SendsRefusedDataAgain(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*Config)
		want   []string
	}{
		"delta": {delta, []string{
			"tokenpulse.requests{" + chat + "} 115..145 2",
			"tokenpulse.time_to_first_token{" + chat + "} 115..145 n=2 sum=2.5 -65:1 63:1 exemplar=0.5@118 exemplar=2@131",
		}},
		// The zero point of the new stream was refused, too.
		"cumulative": {nil, []string{
			"tokenpulse.requests{" + chat + "} 102.999..145 3",
			"tokenpulse.time_to_first_token{" + chat + "} 115..115 n=0 sum=0",
			"tokenpulse.time_to_first_token{" + chat + "} 115..145 n=2 sum=2.5 0.5..2 -65:1 63:1 exemplar=0.5@118 exemplar=2@131",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, test.change)
			h.consume(t, 103, keepertest.Request(nil))
			h.flushed(t, 115)
			h.consume(t, 118, half)
			h.to.refuses = true
			h.seconds = 130
			require.ErrorIs(t, h.flush(t.Context()), errRefused)
			h.to.refuses = false
			h.consume(t, 131, two)
			require.Equal(t, test.want, h.flushed(t, 145))
			require.EqualValues(t, 1, keepertest.Value(t, h.telemetry, "refused"))
		})
	}
}

func TestFlush_SendsUnmeasuredByIndicatorAndReason(t *testing.T) {
	h := newHarness(t, delta)
	h.consume(t, 103, keepertest.Request(map[string]any{
		"tokenpulse.outcome":    "success",
		"tokenpulse.unmeasured": []any{"time_to_first_token=not_streamed", "time_per_output_token=not_streamed"},
	}))
	require.Equal(t, []string{
		"tokenpulse.requests.unmeasured{indicator=time_per_output_token,reason=not_streamed,service.name=chat} 100..115 1",
		"tokenpulse.requests.unmeasured{indicator=time_to_first_token,reason=not_streamed,service.name=chat} 100..115 1",
		"tokenpulse.requests{outcome=success,service.name=chat} 100..115 1",
	}, h.flushed(t, 115))
}

func TestFlush_SendsFailedByCause(t *testing.T) {
	h := newHarness(t, delta)
	for _, status := range []any{401, 429, "529", nil} {
		h.consume(t, 103, keepertest.Request(map[string]any{"tokenpulse.outcome": "error", "http.response.status_code": status}))
	}
	require.Equal(t, []string{
		"tokenpulse.requests.failed{cause=client,service.name=chat} 100..115 1",
		"tokenpulse.requests.failed{cause=other,service.name=chat} 100..115 1",
		"tokenpulse.requests.failed{cause=rate_limit,service.name=chat} 100..115 1",
		"tokenpulse.requests.failed{cause=server,service.name=chat} 100..115 1",
		"tokenpulse.requests{outcome=error,service.name=chat} 100..115 4",
	}, h.flushed(t, 115))
}

// everyNumber is a request with each number that a span can have.
func everyNumber() map[string]any {
	return keepertest.Request(map[string]any{
		"tokenpulse.vantage":                    "server",
		"gen_ai.request.model":                  "llama",
		"tokenpulse.time_to_first_token":        0.5,
		"tokenpulse.time_to_first_output_token": 1.0,
		"tokenpulse.time_per_output_token":      0.25,
		"tokenpulse.request.duration":           4.0,
		"tokenpulse.queue.duration":             0.0,
		"tokenpulse.prefill.duration":           0.5,
		"tokenpulse.decode.duration":            2.0,
		"tokenpulse.network.duration":           0.25,
		"tokenpulse.transfer.duration":          0.125,
		"tokenpulse.trace.time_to_answer":       4.0,
		"tokenpulse.output_token_rate":          4.0,
		"tokenpulse.prefill_token_rate":         64.0,
		"tokenpulse.time_per_token.from_10":     0.25,
		"tokenpulse.time_per_token.from_1000":   0.5,
		"tokenpulse.inter_token_latency.max":    2.0,
		"tokenpulse.inter_token_latency.sketch": encoded(0.5, 0.5, 2),
		"tokenpulse.inter_chunk_latency.max":    2.0,
		"tokenpulse.inter_chunk_latency.sketch": encoded(1, 2),
		"tokenpulse.tokens_per_chunk.sketch":    encoded(1, 2, 2),
		"tokenpulse.stall.count":                2,
		"tokenpulse.stall.duration":             2.5,
		"gen_ai.usage.input_tokens":             100,
		"gen_ai.usage.output_tokens":            9,
		"gen_ai.usage.reasoning.output_tokens":  3,
		"gen_ai.usage.cache_read.input_tokens":  64,
		"gen_ai.usage.cache_write.input_tokens": 32,
		"tokenpulse.slo.met":                    []any{"fast"},
	})
}

func TestFlush_SendsEveryMetric(t *testing.T) {
	h := newHarness(t, func(c *Config) { delta(c); c.Shared.Metrics = everyMetric() })
	h.consume(t, 103, everyNumber())
	got := strings.Join(h.flushed(t, 115), "\n")
	const series = "gen_ai.request.model=llama,"
	const rest = "service.name=chat,vantage=server} 100..115 "
	const exemplar = " exemplar="
	const histograms = series + "outcome=success," + rest
	require.Equal(t, strings.Join([]string{
		"tokenpulse.inter_chunk_latency{" + histograms + "n=2 sum=3 -1:1 63:1" + exemplar + "2@103",
		"tokenpulse.inter_token_latency{" + histograms + "n=3 sum=3 -65:2 63:1" + exemplar + "2@103",
		"tokenpulse.output_token_rate{" + histograms + "n=1 sum=4 127:1" + exemplar + "4@103",
		"tokenpulse.phase.duration{" + series + "outcome=success,phase=decode," + rest + "n=1 sum=2 63:1" + exemplar + "2@103",
		"tokenpulse.phase.duration{" + series + "outcome=success,phase=network," + rest + "n=1 sum=0.25 -129:1" + exemplar + "0.25@103",
		"tokenpulse.phase.duration{" + series + "outcome=success,phase=prefill," + rest + "n=1 sum=0.5 -65:1" + exemplar + "0.5@103",
		"tokenpulse.phase.duration{" + series + "outcome=success,phase=queue," + rest + "n=1 sum=0 zeros=1" + exemplar + "0@103",
		"tokenpulse.phase.duration{" + series + "outcome=success,phase=transfer," + rest + "n=1 sum=0.125 -193:1" + exemplar + "0.125@103",
		"tokenpulse.prefill_token_rate{" + histograms + "n=1 sum=64 383:1" + exemplar + "64@103",
		"tokenpulse.request.duration{" + histograms + "n=1 sum=4 127:1" + exemplar + "4@103",
		"tokenpulse.request_token_rate{" + histograms + "n=1 sum=2.25 74:1" + exemplar + "2.25@103", // 9 tokens in 4 s
		"tokenpulse.requests{" + histograms + "1",
		"tokenpulse.slo.requests{" + series + "service.name=chat,slo=all,vantage=server,verdict=good} 100..115 1",
		"tokenpulse.slo.requests{" + series + "service.name=chat,slo=fast,vantage=server,verdict=good} 100..115 1",
		"tokenpulse.stall.duration{" + series + rest + "2.5s",
		"tokenpulse.stalls{" + series + rest + "2",
		"tokenpulse.time_per_output_token{" + histograms + "n=1 sum=0.25 -129:1" + exemplar + "0.25@103",
		"tokenpulse.time_per_token{" + series + "outcome=success,position=10-100," + rest + "n=1 sum=0.25 -129:1" + exemplar + "0.25@103",
		"tokenpulse.time_per_token{" + series + "outcome=success,position=1000+," + rest + "n=1 sum=0.5 -65:1" + exemplar + "0.5@103",
		"tokenpulse.time_to_first_output_token{" + histograms + "n=1 sum=1 -1:1" + exemplar + "1@103",
		"tokenpulse.time_to_first_token{" + histograms + "n=1 sum=0.5 -65:1" + exemplar + "0.5@103",
		"tokenpulse.tokens_per_chunk{" + histograms + "n=3 sum=5 -1:1 63:2" + exemplar + "2@103",
		"tokenpulse.tokens{" + series + "service.name=chat,type=cache_write,vantage=server} 100..115 32",
		"tokenpulse.tokens{" + series + "service.name=chat,type=cached_input,vantage=server} 100..115 64",
		"tokenpulse.tokens{" + series + "service.name=chat,type=input,vantage=server} 100..115 100",
		"tokenpulse.tokens{" + series + "service.name=chat,type=output,vantage=server} 100..115 9",
		"tokenpulse.tokens{" + series + "service.name=chat,type=reasoning,vantage=server} 100..115 3",
		"tokenpulse.trace.time_to_answer{" + histograms + "n=1 sum=4 127:1" + exemplar + "4@103",
	}, "\n"), got)

	units := map[string]string{}
	each(h.to.AllMetrics()[0], func(m pmetric.Metric, _ point) {
		units[m.Name()] = m.Unit()
		require.NotEmpty(t, m.Description(), m.Name())
		switch m.Type() {
		case pmetric.MetricTypeSum:
			require.True(t, m.Sum().IsMonotonic())
			require.Equal(t, pmetric.AggregationTemporalityDelta, m.Sum().AggregationTemporality())
		default:
			require.Equal(t, pmetric.AggregationTemporalityDelta, m.ExponentialHistogram().AggregationTemporality())
			for _, p := range m.ExponentialHistogram().DataPoints().All() {
				require.EqualValues(t, 6, p.Scale())
				require.InDelta(t, 0x1p-30, p.ZeroThreshold(), 0)
			}
		}
	})
	require.Len(t, units, 18)
	page, err := os.ReadFile(filepath.Join(testenv.Root(t), "docs", "metrics.md"))
	require.NoError(t, err)
	for name := range units {
		require.Contains(t, string(page), "\n| `"+name+"` |")
	}
	require.Equal(t, "s", units["tokenpulse.stall.duration"])
	require.Equal(t, "{token}", units["tokenpulse.tokens"])
	require.Equal(t, "{request}", units["tokenpulse.requests"])
	require.Equal(t, "{token}/s", units["tokenpulse.output_token_rate"])

	resource := h.to.AllMetrics()[0].ResourceMetrics()
	require.Equal(t, 1, resource.Len())
	require.Zero(t, resource.At(0).Resource().Attributes().Len())
	require.Equal(t, "scope", resource.At(0).ScopeMetrics().At(0).Scope().Name())
}

// Two of 20 requests are bad, one is allowed: the burn rate is 2.
func TestFlush_SendsBurnRatesAndBudgets(t *testing.T) {
	h := newHarness(t, func(c *Config) {
		c.Shared.Objectives = []keeper.Objective{{SLO: "chat-tpot", Objective: 0.95, Window: 720 * time.Hour}}
	})
	var spans []map[string]any
	for i := range 20 {
		verdict := "tokenpulse.slo.met"
		if i < 2 {
			verdict = "tokenpulse.slo.breached"
		}
		spans = append(spans, keepertest.Request(map[string]any{verdict: []any{"chat-tpot"}}))
	}
	h.now = time.Now // the tracker was created with the real clock
	h.Keeper.Record(t.Context(), keepertest.Batch(spans...))
	require.NoError(t, h.flush(t.Context()))
	values := map[string]float64{}
	each(h.to.AllMetrics()[0], func(m pmetric.Metric, _ point) {
		if m.Type() == pmetric.MetricTypeGauge {
			for _, g := range m.Gauge().DataPoints().All() {
				values[m.Name()+"{"+show(g.Attributes())+"}"] = g.DoubleValue()
			}
		}
	})
	require.Len(t, values, 7)
	require.InDelta(t, 0.95, values["tokenpulse.slo.objective{service.name=chat,slo=chat-tpot}"], 1e-9)
	require.InDelta(t, -1, values["tokenpulse.slo.error_budget.remaining{service.name=chat,slo=chat-tpot}"], 1e-9)
	require.InDelta(t, 2, values["tokenpulse.slo.burn_rate{service.name=chat,slo=chat-tpot,window=5m}"], 1e-9)
}

func TestFlush_SendsTheOverflowSeries(t *testing.T) {
	h := newHarness(t, func(c *Config) { delta(c); c.Shared.Series.MaxSeries = 1 })
	h.consume(t, 103,
		keepertest.Request(map[string]any{"gen_ai.request.model": "a"}),
		keepertest.Request(map[string]any{"gen_ai.request.model": "b"}),
		keepertest.Request(map[string]any{"gen_ai.request.model": "c"}))
	require.Equal(t, []string{
		"tokenpulse.requests{gen_ai.request.model=a,outcome=success,service.name=chat} 100..115 1",
		"tokenpulse.requests{otel.metric.overflow=true,outcome=success} 100..115 2",
	}, h.flushed(t, 115))
	require.Len(t, h.sent, 2, "one entry for each series and one for the overflow series")
	require.EqualValues(t, 3, keepertest.Value(t, h.telemetry, "token_sli_requests"))
	require.EqualValues(t, 2, keepertest.Value(t, h.telemetry, "token_sli_requests_overflow"))
	require.EqualValues(t, 1, keepertest.Value(t, h.telemetry, "token_sli_series"))
	require.EqualValues(t, 1, keepertest.Value(t, h.telemetry, "token_sli_series_limit"))
}

func TestRound_RemovesExpiredSeriesAndASuccessorStartsAgain(t *testing.T) {
	for name, test := range map[string]func(*Config){"cumulative": func(*Config) {}, "delta": delta} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, func(c *Config) {
				test(c)
				c.FlushInterval = 900 * time.Millisecond // this test flushes itself
				c.Shared.Series.SeriesExpiration = time.Second
			})
			h.consume(t, 103, half, half)
			h.seconds = 105
			h.Keeper.Round(t.Context())
			require.Len(t, h.to.AllMetrics(), 1, "a series is sent before it expires")
			require.Zero(t, h.Keeper.Engine.Held())
			require.Empty(t, h.flushed(t, 106))
			require.Empty(t, h.sent)

			h.consume(t, 107, half)
			got := h.flushed(t, 108)
			require.True(t, strings.HasSuffix(got[len(got)/2-1], " 1"), "requests of the successor: %v", got)
			require.Contains(t, got[len(got)-1], "n=1 sum=0.5")
			require.EqualValues(t, 1, keepertest.Value(t, h.telemetry, "token_sli_series_expired"))
		})
	}
}

func TestRound_SeriesDoesNotExpireBeforeItIsSent(t *testing.T) {
	h := newHarness(t, func(c *Config) { delta(c); c.Shared.Series.SeriesExpiration = time.Minute })
	h.consume(t, 103, half)
	h.to.refuses = true
	h.seconds = 1000
	h.Keeper.Round(t.Context())
	require.Equal(t, 1, h.Keeper.Engine.Held())
	require.EqualValues(t, 1, keepertest.Value(t, h.telemetry, "refused"))

	h.to.refuses = false
	h.seconds = 1015
	h.Keeper.Round(t.Context())
	require.Equal(t, "tokenpulse.requests{"+chat+"} 100..1015 1", lines(h.to.AllMetrics()[0])[0])
	require.Zero(t, h.Keeper.Engine.Held())
}

// A series expired and came back between two flushes.
func TestFlush_DistinguishesASuccessorFromTheExpiredSeries(t *testing.T) {
	h := newHarness(t, delta)
	h.consume(t, 103, half, half)
	h.flushed(t, 115)
	successor := newHarness(t, delta)
	h.Keeper = successor.Keeper // as if all series had expired
	h.consume(t, 120, half)
	require.Equal(t, "tokenpulse.requests{"+chat+"} 115..130 1", h.flushed(t, 130)[0])
}

func TestRun_FlushesAtEveryIntervalAndAtShutdown(t *testing.T) {
	h := newHarness(t, func(c *Config) { delta(c); c.FlushInterval = minFlushInterval })
	h.now = time.Now
	require.NoError(t, h.Start(t.Context(), componenttest.NewNopHost()))
	h.Keeper.Record(t.Context(), keepertest.Batch(half))
	require.Eventually(t, func() bool { return len(h.to.AllMetrics()) == 1 }, 10*time.Second, time.Millisecond)

	last := newHarness(t, delta) // flushes every 15 s
	last.now = time.Now
	require.NoError(t, last.Start(t.Context(), componenttest.NewNopHost()))
	last.Keeper.Record(t.Context(), keepertest.Batch(half))
	last.Keeper.Shutdown(t.Context())
	require.Len(t, last.to.AllMetrics(), 1)
	last.Keeper.Shutdown(t.Context())
	require.Len(t, last.to.AllMetrics(), 1, "a second shutdown does nothing")
}

func TestShutdown_LogsAndCountsARefusedLastFlush(t *testing.T) {
	h := newHarness(t, nil)
	h.now = time.Now
	require.NoError(t, h.Start(t.Context(), componenttest.NewNopHost()))
	h.Keeper.Record(t.Context(), keepertest.Batch(half))
	h.to.refuses = true
	h.Keeper.Shutdown(t.Context())
	require.Equal(t, 1, h.logs.FilterMessageSnippet("lost the data of the last flush").FilterField(zap.Error(errRefused)).Len())
}

// hanging is a consumer that blocks until its context is done.
type hanging struct {
	destination
	entered chan struct{}
}

func (h *hanging) ConsumeMetrics(ctx context.Context, _ pmetric.Metrics) error {
	h.entered <- struct{}{}
	<-ctx.Done()
	return ctx.Err()
}

func TestShutdown_InterruptsAFlushWhenItsContextIsDone(t *testing.T) {
	h := newHarness(t, func(c *Config) { c.FlushInterval = minFlushInterval })
	h.now = time.Now
	next := &hanging{entered: make(chan struct{}, 2)}
	h.settings.Next = next
	require.NoError(t, h.Start(t.Context(), componenttest.NewNopHost()))
	h.Keeper.Record(t.Context(), keepertest.Batch(half))
	<-next.entered
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	h.Keeper.Shutdown(ctx)
	lost := h.logs.FilterMessageSnippet("lost the data of the last flush").All()
	require.Len(t, lost, 1)
	require.Contains(t, lost[0].ContextMap()["error"], "context canceled")
}

// With delta temporality, a stream without new values has no data point.
func TestFlush_LeavesOutMetricsWithoutDataPoints(t *testing.T) {
	h := newHarness(t, delta)
	h.consume(t, 103, half, keepertest.Request(map[string]any{"tokenpulse.stall.count": 1, "tokenpulse.slo.met": []any{"a"}}))
	h.flushed(t, 115)
	h.consume(t, 120, keepertest.Request(nil))
	h.flushed(t, 130)
	metrics := h.to.AllMetrics()[0].ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics()
	require.Equal(t, 1, metrics.Len())
	require.Equal(t, "tokenpulse.requests", metrics.At(0).Name())
}

// The root span of a trace is no request, also where it comes before one of the same series.
func TestFlush_TimeToAnswerOfTraceIsNoRequest(t *testing.T) {
	h := newHarness(t, nil)
	h.consume(t, 103, map[string]any{"tokenpulse.trace.time_to_answer": 2.0})
	answer := "tokenpulse.trace.time_to_answer{" + chat + "} "
	require.Equal(t, []string{
		answer + "102.999..102.999 n=0 sum=0",
		answer + "102.999..115 n=1 sum=2 2..2 63:1 exemplar=2@103",
	}, h.flushed(t, 115))

	h.consume(t, 118, keepertest.Request(nil))
	require.Equal(t, []string{
		"tokenpulse.requests{" + chat + "} 115..115 0",
		"tokenpulse.requests{" + chat + "} 115..130 1",
		answer + "102.999..130 n=1 sum=2 2..2 63:1",
	}, h.flushed(t, 130))
}

// The data point of bad requests links to the latest of them since the last flush.
func TestFlush_BadVerdictsHaveAnExemplar(t *testing.T) {
	for name, change := range map[string]func(*Config){"delta": delta, "cumulative": nil} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, change)
			consume := func(id byte, at float64, verdict string) {
				traces := keepertest.Batch(keepertest.Request(map[string]any{verdict: []any{"a"}}))
				traces.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0).SetTraceID([16]byte{15: id})
				h.seconds = at
				h.Keeper.Record(t.Context(), traces)
			}
			linked := func(at float64) (all []string) {
				for _, line := range h.flushed(t, at) {
					if name, exemplar, found := strings.Cut(line, " exemplar="); found {
						require.Contains(t, name, "verdict=bad} ")
						all = append(all, exemplar)
					}
				}
				return all
			}
			consume(1, 103, "tokenpulse.slo.breached")
			consume(2, 104, "tokenpulse.slo.breached")
			consume(3, 105, "tokenpulse.slo.met")
			want := "1@104 00000000000000000000000000000002"
			require.Equal(t, []string{want, want}, linked(115), "of the SLO and of `all`")
			consume(4, 118, "tokenpulse.slo.met")
			require.Empty(t, linked(130), "the last flush sent it")
		})
	}
}
