// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokensliexporter

import (
	"bytes"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/engines"
	"github.com/tokenpulse/tokenpulse/internal/inprocess"
	"github.com/tokenpulse/tokenpulse/internal/keeper"
	"github.com/tokenpulse/tokenpulse/internal/series"
	"github.com/tokenpulse/tokenpulse/internal/testenv"
)

// Users depend on names and labels: these are all of them, in text and protobuf.
func TestScrape_HasEveryMetricAndLabel(t *testing.T) {
	h := start(t, everyMetric)
	h.send(t, everything())
	labels := []string{"gen_ai_operation_name=chat", "gen_ai_provider_name=vllm", "gen_ai_request_model=llama", "service_name=chat", "vantage=server"}
	histograms := map[string]float64{ // by name: the sum
		"tokenpulse_time_to_first_token_seconds":        0.5,
		"tokenpulse_time_to_first_output_token_seconds": 0.75,
		"tokenpulse_time_per_output_token_seconds":      0.02,
		"tokenpulse_inter_token_latency_seconds":        0.74,
		"tokenpulse_inter_chunk_latency_seconds":        0.79,
		"tokenpulse_request_duration_seconds":           2,
		"tokenpulse_output_token_rate_per_second":       50,
		"tokenpulse_request_token_rate_per_second":      38,
		"tokenpulse_prefill_token_rate_per_second":      90,
		"tokenpulse_trace_time_to_answer_seconds":       3,
		"tokenpulse_tokens_per_chunk":                   75,
		"tokenpulse_time_to_first_audio_seconds":        0.35,
		"tokenpulse_audio_real_time_factor":             1.5,
		"tokenpulse_inter_audio_chunk_latency_seconds":  0.31,
	}
	counters := map[string]float64{
		"tokenpulse_requests_total outcome=success":     1,
		"tokenpulse_tokens_total type=input":            100,
		"tokenpulse_tokens_total type=output":           76,
		"tokenpulse_tokens_total type=reasoning":        16,
		"tokenpulse_tokens_total type=cached_input":     64,
		"tokenpulse_tokens_total type=cache_write":      32,
		"tokenpulse_stalls_total ":                      1,
		"tokenpulse_stall_duration_seconds_total ":      0.75,
		"tokenpulse_speculative_accepted_tokens_total ": 9,
		"tokenpulse_speculative_draft_tokens_total ":    12,
	}
	for slo, verdict := range map[string]string{"chat-tpot": "good", "chat-ttft": "bad", "answer-gap": "not_eligible", "all": "bad"} {
		for _, v := range []string{"good", "bad", "not_eligible"} {
			n := 0.0
			if v == verdict {
				n = 1
			}
			counters["tokenpulse_slo_requests_total slo="+slo+" verdict="+v] = n
		}
	}
	parts := map[string]float64{
		"tokenpulse_phase_duration phase=queue": 0.1, "tokenpulse_phase_duration phase=prefill": 0.4,
		"tokenpulse_phase_duration phase=decode": 1.5, "tokenpulse_phase_duration phase=network": 0.05,
		"tokenpulse_phase_duration phase=transfer": 0.15,
		"tokenpulse_time_per_token position=0-10":  0.125, "tokenpulse_time_per_token position=10-100": 0.25,
		"tokenpulse_time_per_token position=100-1000": 0.375, "tokenpulse_time_per_token position=1000+": 0.5,
	}
	names := []string{
		"tokenpulse_phase_duration_seconds", "tokenpulse_phase_duration_percentile_seconds",
		"tokenpulse_time_per_token_seconds", "tokenpulse_time_per_token_percentile_seconds",
	}
	for name := range histograms {
		names = append(names, name, percentileOf(name))
	}
	for name := range counters {
		names = append(names, strings.Fields(name)[0])
	}
	for _, accept := range []string{text, protobuf} {
		families := h.families(t, accept)
		var got []string
		for name := range families {
			got = append(got, name)
		}
		require.ElementsMatch(t, slices.Compact(slices.Sorted(slices.Values(names))), got)
		for name, sum := range histograms {
			require.Len(t, families[name].Metric, 1)
			require.ElementsMatch(t, append([]string{"outcome=success"}, labels...), labelsOf(families[name].Metric[0]))
			require.InDelta(t, sum, families[name].Metric[0].Histogram.GetSampleSum(), 1e-9, name)
			require.Len(t, families[percentileOf(name)].Metric, 15, "five percentiles over three windows")
		}
		for name, want := range counters {
			fields := strings.Fields(name)
			m := theMetric(t, families[fields[0]], fields[1:]...)
			require.ElementsMatch(t, append(fields[1:], labels...), labelsOf(m))
			require.InDelta(t, want, value(m), 1e-9, name)
		}
		for part, sum := range parts {
			name, label, _ := strings.Cut(part, " ")
			m := theMetric(t, families[name+"_seconds"], label)
			require.ElementsMatch(t, append([]string{"outcome=success", label}, labels...), labelsOf(m))
			require.InDelta(t, sum, m.Histogram.GetSampleSum(), 1e-9)
			require.Equal(t, sum, value(theMetric(t, families[name+"_percentile_seconds"], label, "percentile=99.9", "window=1h")))
		}
		require.Equal(t, 0.5, value(theMetric(t, families["tokenpulse_time_to_first_token_percentile_seconds"], "percentile=50", "window=1m")))
		require.InEpsilon(t, 0.02, value(theMetric(t, families["tokenpulse_inter_token_latency_percentile_seconds"], "percentile=50", "window=5m")), 0.0055)
		require.Equal(t, 0.7, value(theMetric(t, families["tokenpulse_inter_token_latency_percentile_seconds"], "percentile=90", "window=5m")))
	}
}

func percentileOf(histogram string) string {
	for _, unit := range []string{"_per_second", "_seconds"} {
		if name, found := strings.CutSuffix(histogram, unit); found {
			return name + "_percentile" + unit
		}
	}
	if strings.HasSuffix(histogram, "_factor") {
		return histogram + "_percentile_ratio" // a gauge with the unit 1
	}
	return histogram + "_percentile"
}

func TestScrape_NegotiatesTheFormat(t *testing.T) {
	h := start(t, nil)
	h.send(t, everything())
	for accept, want := range map[string]string{
		text:                         "text/plain",
		"*/*":                        "text/plain",
		openMetrics:                  "application/openmetrics-text",
		protobuf:                     "application/vnd.google.protobuf",
		protobuf + "," + openMetrics: "application/vnd.google.protobuf",
	} {
		_, contentType := h.scrape(t, accept)
		require.True(t, strings.HasPrefix(contentType, want), "%s got %s", accept, contentType)
	}
}

func TestScrape_LabelsOfASeries(t *testing.T) {
	tests := map[string]struct {
		changes map[string]any
		want    []string // of the requests counter, sorted
	}{
		"the span wins over the resource": {
			map[string]any{"service.name": "span"},
			[]string{"gen_ai_operation_name=chat", "gen_ai_provider_name=vllm", "gen_ai_request_model=llama", "outcome=success", "service_name=span", "vantage=server"},
		},
		"missing and empty values have no label": {
			map[string]any{"gen_ai.provider.name": "", "gen_ai.operation.name": nil, "tokenpulse.vantage": nil, "service.name": ""},
			[]string{"gen_ai_request_model=llama", "outcome=success", "service_name=chat"},
		},
		"numbers and booleans become labels, lists do not": {
			map[string]any{"gen_ai.request.model": 7, "gen_ai.provider.name": true, "gen_ai.operation.name": []any{"a"}},
			[]string{"gen_ai_provider_name=true", "gen_ai_request_model=7", "outcome=success", "service_name=chat", "vantage=server"},
		},
		"newlines, quotes and backslashes": {
			map[string]any{"gen_ai.request.model": "a\n\"b\"\\c"},
			[]string{"gen_ai_operation_name=chat", "gen_ai_provider_name=vllm", "gen_ai_request_model=a\n\"b\"\\c", "outcome=success", "service_name=chat", "vantage=server"},
		},
		"invalid UTF-8": {
			map[string]any{"gen_ai.request.model": "a\xffb"},
			[]string{"gen_ai_operation_name=chat", "gen_ai_provider_name=vllm", "gen_ai_request_model=a?b", "outcome=success", "service_name=chat", "vantage=server"},
		},
		"too long": {
			map[string]any{"gen_ai.request.model": strings.Repeat("x", 300)},
			[]string{"gen_ai_operation_name=chat", "gen_ai_provider_name=vllm", "gen_ai_request_model=" + strings.Repeat("x", 256), "outcome=success", "service_name=chat", "vantage=server"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			h := start(t, nil)
			h.send(t, with(test.changes))
			for _, accept := range []string{text, protobuf} {
				family := h.families(t, accept)["tokenpulse_requests_total"]
				require.Len(t, family.Metric, 1)
				require.Equal(t, test.want, labelsOf(family.Metric[0]))
			}
		})
	}
}

func TestScrape_PassesPromtool(t *testing.T) {
	tool := testenv.Program(t, "promtool")
	h := start(t, everyMetric)
	h.send(t, everything(), with(map[string]any{"gen_ai.request.model": "a\n\"b\"\\c\xff"}))
	body, _ := h.scrape(t, text)
	check := exec.CommandContext(t.Context(), tool, "check", "metrics")
	check.Stdin = bytes.NewReader(body)
	output, err := check.CombinedOutput()
	require.NoError(t, err, string(output))
}

func TestScrape_NoPercentileGaugesWithoutWindows(t *testing.T) {
	h := start(t, func(c *Config) { c.Windows = nil })
	h.send(t, everything())
	for name := range h.families(t, text) {
		require.NotContains(t, name, "percentile")
	}
}

func TestScrape_DefaultMetrics(t *testing.T) {
	h := start(t, nil)
	h.send(t, everything())
	families := h.families(t, protobuf)
	var got []string
	for name := range families {
		got = append(got, name)
	}
	require.ElementsMatch(t, []string{
		"tokenpulse_inter_token_latency_percentile_seconds", "tokenpulse_inter_token_latency_seconds",
		"tokenpulse_phase_duration_seconds",
		"tokenpulse_request_duration_percentile_seconds", "tokenpulse_request_duration_seconds",
		"tokenpulse_requests_total", "tokenpulse_slo_requests_total",
		"tokenpulse_stall_duration_seconds_total", "tokenpulse_stalls_total",
		"tokenpulse_time_per_output_token_percentile_seconds", "tokenpulse_time_per_output_token_seconds",
		"tokenpulse_time_to_first_audio_seconds",
		"tokenpulse_time_to_first_token_percentile_seconds", "tokenpulse_time_to_first_token_seconds",
		"tokenpulse_tokens_total", "tokenpulse_trace_time_to_answer_seconds",
	}, got)
	gauges := families["tokenpulse_time_to_first_token_percentile_seconds"]
	for _, percentile := range []string{"50", "95", "99"} {
		require.Equal(t, 0.5, value(theMetric(t, gauges, "percentile="+percentile, "window=5m")))
	}
	require.Len(t, gauges.Metric, 3)
}

func TestScrape_SwitchesEachMetric(t *testing.T) {
	openInProcess(t, inprocess.OpenStream{Dimensions: []string{"chat", "openai", "m", "chat"}})
	enginesInProcess(t, engines.Now())
	shown := func(name string, enabled bool) map[string]*dto.MetricFamily {
		h := start(t, func(c *Config) {
			everyMetric(c)
			c.Shared.Metrics[name] = keeper.Metric{Enabled: enabled}
			c.Shared.Objectives = []keeper.Objective{{SLO: "chat-tpot", Objective: 0.9, Window: time.Hour}}
		})
		buffered := with(map[string]any{"tokenpulse.time_per_output_token": nil, "tokenpulse.unmeasured": []any{"time_per_output_token=buffered"}})
		failed := with(map[string]any{"tokenpulse.outcome": "error"})
		h.send(t, everyNumber(), buffered, failed)
		return h.families(t, text)
	}
	all := shown("tokenpulse.requests", true)
	for _, name := range series.MetricNames() {
		without := shown(name, false)
		require.Len(t, without, len(all)-1, name)
		for family := range without {
			require.Contains(t, all, family)
		}
	}
}

// The root span of a trace has no model and no vantage, and is no request.
func TestScrape_TimeToAnswerOfTraceIsNoRequest(t *testing.T) {
	h := start(t, nil)
	h.send(t, map[string]any{
		"tokenpulse.trace.time_to_answer": 3.5,
		"tokenpulse.slo.breached":         []any{"answer"},
		"tokenpulse.slo.of_trace":         []any{"answer"},
	})
	families := h.families(t, text)
	answer := theMetric(t, families["tokenpulse_trace_time_to_answer_seconds"])
	require.Equal(t, []string{"outcome=success", "service_name=chat"}, labelsOf(answer))
	require.EqualValues(t, 1, answer.Histogram.GetSampleCount())
	require.InDelta(t, 3.5, answer.Histogram.GetSampleSum(), 0)
	require.NotContains(t, families, "tokenpulse_requests_total")
	require.Len(t, families["tokenpulse_slo_requests_total"].Metric, 3, "no verdict on all")
	require.InDelta(t, 1, value(theMetric(t, families["tokenpulse_slo_requests_total"], "slo=answer", "verdict=bad")), 0)
}
