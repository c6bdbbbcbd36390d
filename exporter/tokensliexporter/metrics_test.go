// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokensliexporter

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/otel/metric/noop"

	"github.com/tokenpulse/tokenpulse/internal/keeper"
	"github.com/tokenpulse/tokenpulse/internal/keeper/keepertest"
	"github.com/tokenpulse/tokenpulse/internal/publish"
)

// producer publishes what it records, as the connector does.
type producer struct {
	*publish.Publisher
	sink consumertest.MetricsSink
}

func newProducer(t testing.TB, change func(*publish.Config)) *producer {
	t.Helper()
	config := publish.NewDefaultConfig()
	config.Shared.Metrics = map[string]keeper.Metric{}
	for _, off := range []string{
		"tokenpulse.time_to_first_output_token", "tokenpulse.inter_audio_chunk_latency", "tokenpulse.audio.real_time_factor", "tokenpulse.inter_chunk_latency", "tokenpulse.output_token_rate", "tokenpulse.request_token_rate",
		"tokenpulse.prefill_token_rate", "tokenpulse.tokens_per_chunk", "tokenpulse.time_per_token",
		"tokenpulse.speculative.accepted_tokens", "tokenpulse.speculative.draft_tokens",
	} {
		config.Shared.Metrics[off] = keeper.Metric{Enabled: true}
	}
	if change != nil {
		change(&config)
	}
	p := &producer{}
	var err error
	p.Publisher, err = publish.New(publish.Settings{
		Config: &config, Telemetry: componenttest.NewNopTelemetrySettings(), Component: component.MustNewID("token_sli"),
		Kind: component.KindConnector, Next: &p.sink, Refused: noop.Int64Counter{}, Now: time.Now,
	})
	require.NoError(t, err)
	return p
}

// published records batches, flushing after each, and returns the metrics.
func (p *producer) published(t testing.TB, batches ...ptrace.Traces) []pmetric.Metrics {
	t.Helper()
	p.sink.Reset()
	for _, traces := range batches {
		p.Keeper.Record(t.Context(), traces)
		p.Keeper.Round(t.Context())
	}
	return p.sink.AllMetrics()
}

// published returns what an exporter publishes: every number by name and labels, of histograms the
// native buckets. Percentiles are apart.
func published(t testing.TB, e *tokenSLI) (exact map[string]any, percentiles map[string]float64) {
	t.Helper()
	shown := e.families(t)
	exact, percentiles = map[string]any{}, map[string]float64{}
	for _, family := range shown {
		for _, m := range family.Metric {
			id := family.GetName() + "{" + strings.Join(labelsOf(m), ",") + "}"
			switch h := m.Histogram; {
			case strings.Contains(family.GetName(), "_percentile"):
				percentiles[id] = value(m)
			case h == nil:
				exact[id] = value(m)
			default:
				exact[id] = fmt.Sprint(h.GetSampleCount(), h.GetZeroCount(), h.PositiveSpan, h.PositiveDelta, h.GetSampleSum())
				if strings.Contains(family.GetName(), "_latency_") {
					exact[id+" classic"] = classicOf(h)
				}
			}
		}
	}
	return exact, percentiles
}

func classicOf(h *dto.Histogram) (all []uint64) {
	for _, b := range h.Bucket {
		all = append(all, b.GetCumulativeCount())
	}
	return all
}

// manySpans returns requests whose numbers are multiples of 2^-10, so that sums are exact.
func manySpans(random *rand.Rand, n int) ptrace.Traces {
	v := func() float64 { return float64(1+random.IntN(1<<12)) / (1 << 10) }
	var spans []map[string]any
	for range n {
		gaps := encoded(v(), v(), 0, v())
		spans = append(spans, with(map[string]any{
			"tokenpulse.outcome":                    []string{"success", "error", "cancelled", "incomplete"}[random.IntN(4)],
			"gen_ai.request.model":                  fmt.Sprint("model-", random.IntN(3)),
			"tokenpulse.time_to_first_token":        v(),
			"tokenpulse.time_per_output_token":      v(),
			"tokenpulse.output_token_rate":          v(),
			"tokenpulse.request.duration":           v(),
			"tokenpulse.queue.duration":             float64(random.IntN(2)),
			"tokenpulse.inter_token_latency.sketch": gaps,
			"tokenpulse.inter_token_latency.max":    4.0,
			"tokenpulse.inter_chunk_latency.sketch": gaps,
			"tokenpulse.inter_chunk_latency.max":    4.0,
			"tokenpulse.prefill.duration":           v(),
			"tokenpulse.time_to_first_audio":        v(),
			"tokenpulse.audio.real_time_factor":     v(),

			"tokenpulse.inter_audio_chunk_latency.sketch": gaps,
			"tokenpulse.inter_audio_chunk_latency.max":    4.0,
			"tokenpulse.time_per_token.from_10":           v(),
			"tokenpulse.network.duration":                 v(),
			"tokenpulse.transfer.duration":                v(),
			"tokenpulse.stall.duration":                   v(),
			"gen_ai.usage.output_tokens":                  random.IntN(100),
			"tokenpulse.slo.met":                          []any{"a"},
			"tokenpulse.slo.breached":                     []any{fmt.Sprint("b-", random.IntN(2))},
		}))
	}
	return batch(spans...)
}

// An exporter of metrics publishes what one of the spans does: bit for bit, but for
// percentiles, which agree within the error of a bucket.
func TestConsumeMetrics_EqualsTheSpans(t *testing.T) {
	for _, temporality := range []publish.Temporality{publish.Cumulative, publish.Delta} {
		t.Run(string(temporality), func(t *testing.T) {
			random := rand.New(rand.NewPCG(7, 8))
			change := func(c *Config) {
				everyMetric(c)
				c.Windows = []time.Duration{time.Hour}
				c.Shared.Objectives = []keeper.Objective{{SLO: "b-1", Objective: 0.9, Window: time.Hour}, {SLO: "all", Objective: 0.5, Window: time.Hour}}
			}
			ofMetrics, telemetry := unstarted(t, change)
			ofSpans, _ := unstarted(t, change)
			p := newProducer(t, func(c *publish.Config) { c.Temporality = temporality })
			var batches []ptrace.Traces
			for range 20 {
				batches = append(batches, manySpans(random, 15))
			}
			for _, metrics := range p.published(t, batches...) {
				require.NoError(t, ofMetrics.consumeMetrics(t.Context(), metrics))
			}
			for _, traces := range batches {
				require.NoError(t, ofSpans.consume(t.Context(), traces))
			}
			want, wantPercentiles := published(t, ofSpans)
			got, gotPercentiles := published(t, ofMetrics)
			if temporality == publish.Delta { // does not send counters that stay at 0
				for id, v := range want {
					if v == 0.0 && got[id] == nil {
						delete(want, id)
					}
				}
			}
			require.Greater(t, len(want), 200)
			require.Equal(t, want, got)
			require.Greater(t, len(wantPercentiles), 100)
			require.Len(t, gotPercentiles, len(wantPercentiles))
			for id, v := range wantPercentiles {
				require.InEpsilon(t, 1+v, 1+gotPercentiles[id], 0.011, id) // 1+: zeros
			}
			require.Positive(t, keepertest.Value(t, telemetry, "token_sli_points"))
			require.Positive(t, keepertest.Value(t, telemetry, "token_sli_point_streams"))
			require.EqualValues(t, 200_000, keepertest.Value(t, telemetry, "token_sli_point_streams_limit"))
		})
	}
}

func TestConsumeMetrics_ExemplarsLinkToTheTracesOfTheProducer(t *testing.T) {
	e, _ := unstarted(t, nil)
	p := newProducer(t, nil)
	traces := batch(everything())
	id := traces.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0).TraceID().String()
	for _, metrics := range p.published(t, traces) {
		require.NoError(t, e.consumeMetrics(t.Context(), metrics))
	}
	shown := e.families(t)
	linked := map[string]bool{}
	for _, family := range shown {
		for _, m := range family.Metric {
			exemplars := append(m.GetHistogram().GetExemplars(), m.GetCounter().GetExemplar())
			for _, e := range slices.DeleteFunc(exemplars, func(e *dto.Exemplar) bool { return e == nil }) {
				require.Contains(t, fmt.Sprint(e.Label), id)
				linked[family.GetName()] = true
			}
		}
	}
	require.True(t, linked[ttft])
	require.True(t, linked[itl])
	require.True(t, linked["tokenpulse_slo_requests_total"])
}

// The producer of these metrics has the objectives: its gauges are published as they are.
func TestConsumeMetrics_PublishesTheObjectivesOfTheProducer(t *testing.T) {
	objectives := []keeper.Objective{{SLO: "tpot", Objective: 0.75, Window: time.Hour}}
	p := newProducer(t, func(c *publish.Config) { c.Shared.Objectives = objectives })
	all := p.published(t, batch(map[string]any{"tokenpulse.slo.met": []any{"tpot"}}, map[string]any{"tokenpulse.slo.breached": []any{"tpot"}}))
	h := start(t, nil)
	sendMetrics(t, h, all)
	slos := h.sloMetrics(t, text)
	require.InDelta(t, 0.75, slos[`tokenpulse_slo_objective{slo="tpot"}`], 0)
	require.InDelta(t, 2, slos[`tokenpulse_slo_burn_rate{slo="tpot",window="3d"}`], 0)
	require.InDelta(t, -1, slos[`tokenpulse_slo_error_budget_remaining{slo="tpot"}`], 0)

	own, telemetry := unstarted(t, func(c *Config) {
		c.Shared.Objectives = []keeper.Objective{{SLO: "tpot", Objective: 0.5, Window: time.Hour}}
	})
	for _, metrics := range all {
		require.NoError(t, own.consumeMetrics(t.Context(), metrics))
	}
	exact, _ := published(t, own)
	require.InDelta(t, 0.5, exact["tokenpulse_slo_objective{service_name=chat,slo=tpot}"], 0)
	require.InDelta(t, 1, exact["tokenpulse_slo_burn_rate{service_name=chat,slo=tpot,window=5m}"], 1e-9, "half of the requests are bad")
	require.EqualValues(t, 7, keepertest.Values(t, telemetry, "token_sli_points_ignored", "reason")["own_objectives"])
}

// sendMetrics sends metrics to the exporter of a harness through a metrics pipeline.
func sendMetrics(t *testing.T, h *harness, all []pmetric.Metrics) {
	t.Helper()
	into, err := createMetrics(t.Context(), newSettings(h.telemetry), h.config)
	require.NoError(t, err)
	require.NoError(t, into.Start(t.Context(), componenttest.NewNopHost()))
	for _, metrics := range all {
		require.NoError(t, into.ConsumeMetrics(t.Context(), metrics))
	}
	require.NoError(t, into.Shutdown(t.Context()))
}

// Spans and metrics of different requests arrive at one exporter. Either pipeline may end
// first: a connector sends its last metrics after the traces pipeline has ended.
func TestPipelines_ShareOneExporter(t *testing.T) {
	h := start(t, nil)
	h.send(t, everything())
	sendMetrics(t, h, newProducer(t, nil).published(t, batch(everything(), everything())))
	requests := theMetric(t, h.families(t, text)["tokenpulse_requests_total"])
	require.InDelta(t, 3, value(requests), 0)
	require.NoError(t, h.exporter.ConsumeTraces(t.Context(), batch(everything())), "the end of the metrics pipeline does not stop it")
	require.InDelta(t, 4, value(theMetric(t, h.families(t, text)["tokenpulse_requests_total"])), 0)
}

// Run with the race detector: producers send while Prometheus scrapes.
func TestConsumeMetrics_WhileScraped(t *testing.T) {
	e, _ := unstarted(t, nil)
	var writing, reading sync.WaitGroup
	for i := range 4 {
		p := newProducer(t, nil)
		var batches []ptrace.Traces
		for range 20 {
			batches = append(batches, batch(everything()))
		}
		all := p.published(t, batches...)
		for _, metrics := range all {
			metrics.ResourceMetrics().At(0).Resource().Attributes().PutInt("producer", int64(i))
		}
		writing.Go(func() {
			for _, metrics := range all {
				_ = e.consumeMetrics(t.Context(), metrics)
			}
		})
	}
	done := make(chan struct{})
	reading.Go(func() {
		for {
			_, _ = e.rendered()
			e.keeper.Round(t.Context())
			select {
			case <-done:
				return
			default:
			}
		}
	})
	writing.Wait()
	close(done)
	reading.Wait()
	exact, _ := published(t, e)
	require.InDelta(t, 80, exact["tokenpulse_requests_total{gen_ai_operation_name=chat,gen_ai_provider_name=vllm,gen_ai_request_model=llama,outcome=success,service_name=chat,vantage=server}"], 0)
}
