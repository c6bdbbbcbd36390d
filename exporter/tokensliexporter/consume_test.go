// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokensliexporter

import (
	"context"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/internal/keeper/keepertest"
	"github.com/tokenpulse/tokenpulse/internal/series"
)

func TestConsume_ManyModelsGoToTheOverflowSeries(t *testing.T) {
	const models, limit = 10_000, 50
	h := start(t, func(c *Config) {
		c.Shared.Series.MaxSeries = limit
		c.Shared.Series.Dimensions = series.DimensionsOf("gen_ai.request.model", "service.name")
	})
	for first := 0; first < models; first += 1000 {
		var spans []map[string]any
		for i := range 1000 {
			spans = append(spans, map[string]any{
				"tokenpulse.outcome": "success", "tokenpulse.time_to_first_token": 0.25,
				"gen_ai.request.model": fmt.Sprint("model-", first+i), "gen_ai.usage.output_tokens": 3,
			})
		}
		h.send(t, spans...)
	}
	families := h.families(t, protobuf)
	sum := func(name string) (n float64) {
		require.Len(t, families[name].Metric, limit+1)
		for _, m := range families[name].Metric {
			n += value(m) + float64(m.GetHistogram().GetSampleCount())
		}
		return n
	}
	require.EqualValues(t, models, sum("tokenpulse_requests_total"))
	require.EqualValues(t, models, sum(ttft))
	require.EqualValues(t, 3*models, sum("tokenpulse_tokens_total"))
	overflow := theMetric(t, families["tokenpulse_requests_total"], "otel_metric_overflow=true")
	require.Equal(t, []string{"otel_metric_overflow=true", "outcome=success"}, labelsOf(overflow))
	require.EqualValues(t, models-limit, value(overflow))

	require.EqualValues(t, models, keepertest.Value(t, h.telemetry, "token_sli_requests"))
	require.EqualValues(t, models-limit, keepertest.Value(t, h.telemetry, "token_sli_requests_overflow"))
	require.EqualValues(t, limit, keepertest.Value(t, h.telemetry, "token_sli_series"))
	require.EqualValues(t, limit, keepertest.Value(t, h.telemetry, "token_sli_series_limit"))
}

func TestConsume_MalformedAttributesKeepTheRest(t *testing.T) {
	h := start(t, nil)
	h.send(t, with(map[string]any{
		"tokenpulse.time_to_first_token":        math.NaN(),
		"tokenpulse.time_to_first_output_token": math.Inf(1),
		"tokenpulse.time_per_output_token":      -0.02,
		"tokenpulse.request.duration":           1e12,
		"tokenpulse.queue.duration":             "0.1s",
		"gen_ai.usage.reasoning.output_tokens":  "16", // valid: a number in a string
		"tokenpulse.inter_token_latency.sketch": []byte{1, 2, 3},
		"tokenpulse.inter_chunk_latency.sketch": nil,
		"gen_ai.usage.input_tokens":             -1,
		"gen_ai.usage.output_tokens":            1.5,
		"tokenpulse.token_count":                -1,
		"gen_ai.usage.cache_read.input_tokens":  int64(1e15),
		"gen_ai.usage.cache_write.input_tokens": math.NaN(),
		"tokenpulse.outcome":                    "splendid",
	}))
	reasons := map[string]int64{"not_finite": 3, "negative": 3, "out_of_range": 2, "wrong_type": 2, "malformed_sketch": 1, "unknown_outcome": 1}
	require.Equal(t, reasons, keepertest.Values(t, h.telemetry, "token_sli_values_rejected", "reason"))
	families := h.families(t, protobuf)
	require.NotContains(t, families, ttft)
	require.NotContains(t, families, itl)
	require.Len(t, families["tokenpulse_tokens_total"].Metric, 1, "only reasoning tokens are valid")
	require.EqualValues(t, 16, value(theMetric(t, families["tokenpulse_tokens_total"], "type=reasoning")))
	require.Len(t, families["tokenpulse_phase_duration_seconds"].Metric, 4)
	require.EqualValues(t, 1, value(theMetric(t, families["tokenpulse_requests_total"], "outcome=success")))
}

func TestConsume_CountsUnmeasuredByIndicatorAndReason(t *testing.T) {
	h := start(t, nil)
	held := with(map[string]any{"tokenpulse.time_per_output_token": nil, "tokenpulse.unmeasured": []any{"time_per_output_token=buffered"}})
	forged := with(map[string]any{"tokenpulse.unmeasured": []any{"time_per_output_token=" + strings.Repeat("x", 100)}})
	h.send(t, held, held, forged)
	family := h.families(t, protobuf)["tokenpulse_requests_unmeasured_total"]
	require.Len(t, family.Metric, 1)
	require.EqualValues(t, 2, value(theMetric(t, family, "indicator=time_per_output_token", "reason=buffered")))
	require.Equal(t, map[string]int64{"malformed_unmeasured": 1}, keepertest.Values(t, h.telemetry, "token_sli_values_rejected", "reason"))
}

func TestConsume_IgnoresOtherSpans(t *testing.T) {
	h := start(t, nil)
	h.send(t,
		map[string]any{"http.request.method": "GET"},
		map[string]any{"gen_ai.request.model": "llama", "gen_ai.usage.input_tokens": "many"},
		map[string]any{"tokenpulse.outcome": "cancelled"},
	)
	require.EqualValues(t, 2, keepertest.Value(t, h.telemetry, "token_sli_spans_ignored"))
	families := h.families(t, text)
	require.Len(t, families, 1)
	require.EqualValues(t, 1, value(theMetric(t, families["tokenpulse_requests_total"], "outcome=cancelled")))
}

func TestConsume_ReadsAttributes(t *testing.T) {
	tests := map[string]struct {
		changes map[string]any
		check   func(*testing.T, map[string]*dto.MetricFamily)
	}{
		"doubles sent as integers and the reverse": {
			map[string]any{"tokenpulse.time_to_first_token": 2, "gen_ai.usage.input_tokens": 7.0},
			func(t *testing.T, families map[string]*dto.MetricFamily) {
				require.EqualValues(t, 2, families[ttft].Metric[0].Histogram.GetSampleSum())
				require.EqualValues(t, 7, value(theMetric(t, families["tokenpulse_tokens_total"], "type=input")))
			},
		},
		"chunk gaps fall back to token gaps": {
			map[string]any{"tokenpulse.inter_chunk_latency.sketch": nil, "tokenpulse.inter_chunk_latency.max": 0.7},
			func(t *testing.T, families map[string]*dto.MetricFamily) {
				icl := families["tokenpulse_inter_chunk_latency_seconds"].Metric[0].Histogram
				require.EqualValues(t, 3, icl.GetSampleCount())
				require.InDelta(t, 0.74, icl.GetSampleSum(), 1e-9)
				require.Equal(t, 0.7, icl.Exemplars[0].GetValue())
			},
		},
		"chunk gaps of a span of standard detail are missing": {
			map[string]any{"tokenpulse.inter_chunk_latency.sketch": nil, "tokenpulse.inter_chunk_latency.max": nil},
			func(t *testing.T, families map[string]*dto.MetricFamily) {
				require.NotContains(t, families, "tokenpulse_inter_chunk_latency_seconds")
				require.Contains(t, families, itl)
			},
		},
		"chunk gaps of the wrong type do not fall back": {
			map[string]any{"tokenpulse.inter_chunk_latency.sketch": "?"},
			func(t *testing.T, families map[string]*dto.MetricFamily) {
				require.NotContains(t, families, "tokenpulse_inter_chunk_latency_seconds")
				require.Contains(t, families, itl)
			},
		},
		"output tokens fall back to the counted tokens": {
			map[string]any{"gen_ai.usage.output_tokens": nil},
			func(t *testing.T, families map[string]*dto.MetricFamily) {
				require.EqualValues(t, 75, value(theMetric(t, families["tokenpulse_tokens_total"], "type=output")))
			},
		},
		"no reported and no counted tokens": {
			map[string]any{"gen_ai.usage.output_tokens": nil, "tokenpulse.token_count": nil},
			func(t *testing.T, families map[string]*dto.MetricFamily) {
				require.Len(t, families["tokenpulse_tokens_total"].Metric, 4)
			},
		},
		"sketch too large": {
			map[string]any{"tokenpulse.inter_token_latency.sketch": make([]byte, 1<<20)},
			func(t *testing.T, families map[string]*dto.MetricFamily) {
				require.NotContains(t, families, itl)
				require.Contains(t, families, ttft)
			},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			h := start(t, everyMetric)
			h.send(t, with(test.changes))
			test.check(t, h.families(t, protobuf))
		})
	}
}

func TestConsume_OutcomeFallsBackToTheStatus(t *testing.T) {
	h := start(t, nil)
	traces := batch(with(map[string]any{"tokenpulse.outcome": nil}), with(map[string]any{"tokenpulse.outcome": nil}))
	traces.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0).Status().SetCode(ptrace.StatusCodeError)
	require.NoError(t, h.exporter.ConsumeTraces(t.Context(), traces))
	family := h.families(t, text)["tokenpulse_requests_total"]
	require.EqualValues(t, 1, value(theMetric(t, family, "outcome=error")))
	require.EqualValues(t, 1, value(theMetric(t, family, "outcome=success")))
}

// Scrapes and writers run at once. At the end every request is counted.
func TestConsume_WhileScrapedLosesNothing(t *testing.T) {
	const writers, each = 4, 300
	h := start(t, nil)
	var writing, scraping sync.WaitGroup
	ctx, done := context.WithCancel(t.Context())
	scraping.Go(func() {
		for ctx.Err() == nil {
			for _, family := range h.families(t, protobuf) {
				for _, m := range family.Metric {
					requireWhole(t, m.GetHistogram())
				}
			}
		}
	})
	for range writers {
		writing.Go(func() {
			for range each {
				traces := batch(everything(), with(map[string]any{"gen_ai.request.model": "other", "tokenpulse.outcome": "error"}))
				if err := h.exporter.ConsumeTraces(t.Context(), traces); err != nil {
					t.Error(err)
				}
			}
		})
	}
	writing.Wait()
	done()
	scraping.Wait()
	for _, outcome := range []string{"success", "error"} {
		families := h.families(t, protobuf)
		require.EqualValues(t, writers*each, value(theMetric(t, families["tokenpulse_requests_total"], "outcome="+outcome)))
		require.EqualValues(t, 3*writers*each, theMetric(t, families[itl], "outcome="+outcome).Histogram.GetSampleCount())
	}
}

func TestConsume_ResourcesDoNotLeakIntoEachOther(t *testing.T) {
	h := start(t, nil)
	traces := batch(everything())
	nameless := traces.ResourceSpans().AppendEmpty()
	require.NoError(t, nameless.ScopeSpans().AppendEmpty().Spans().AppendEmpty().Attributes().FromRaw(everything()))
	require.NoError(t, h.exporter.ConsumeTraces(t.Context(), traces))
	family := h.families(t, text)["tokenpulse_requests_total"]
	require.Len(t, family.Metric, 2)
	require.EqualValues(t, 1, value(theMetric(t, family, "service_name=chat")))
}
