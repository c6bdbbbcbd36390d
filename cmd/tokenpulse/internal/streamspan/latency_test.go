// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package streamspan_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor/processortest"

	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/recording"
	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/streamspan"
	"github.com/tokenpulse/tokenpulse/internal/testenv"
	"github.com/tokenpulse/tokenpulse/processor/tokenlatencyprocessor"
)

// derived returns the attributes that token_latency writes into the spans of a recording, without `tokenpulse.`, in the
// order of the file.
func derived(t *testing.T, recorded []byte) []map[string]any {
	t.Helper()
	factory, sink := tokenlatencyprocessor.NewFactory(), new(consumertest.TracesSink)
	cfg := factory.CreateDefaultConfig().(*tokenlatencyprocessor.Config)
	cfg.Detail = "full"
	p, err := factory.CreateTraces(t.Context(), processortest.NewNopSettings(factory.Type()), cfg, sink)
	require.NoError(t, err)
	k, ok := recording.Detect(recorded)
	require.True(t, ok)
	batches := streamspan.Batches{Service: k.Client(), Yield: func(traces ptrace.Traces) error { return p.ConsumeTraces(t.Context(), traces) }}
	require.NoError(t, recording.Scanner{}.Scan(t.Context(), bytes.NewReader(recorded), k, batches.Add))
	require.NoError(t, batches.Flush())
	var requests []map[string]any
	for _, traces := range sink.AllTraces() {
		for _, span := range traces.ResourceSpans().At(0).ScopeSpans().At(0).Spans().All() {
			own := map[string]any{"span": span.Name()}
			for key, v := range span.Attributes().All() {
				own[strings.TrimPrefix(key, "tokenpulse.")] = v.AsRaw()
			}
			requests = append(requests, own)
		}
	}
	return requests
}

// statistics are as AIPerf and others compute them: linear percentiles and the deviation of a population.
func statistics(values []float64) map[string]float64 {
	slices.Sort(values)
	sum, squares := 0.0, 0.0
	for _, v := range values {
		sum += v
	}
	mean := sum / float64(len(values))
	for _, v := range values {
		squares += (v - mean) * (v - mean)
	}
	all := map[string]float64{
		"avg": mean, "min": values[0], "max": values[len(values)-1], "std": math.Sqrt(squares / float64(len(values))), "count": float64(len(values)),
	}
	for name, p := range map[string]float64{"p1": 1, "p5": 5, "p25": 25, "p50": 50, "p75": 75, "p90": 90, "p95": 95, "p99": 99} {
		at := p / 100 * float64(len(values)-1)
		low := int(at)
		all[name] = values[low] + (at-float64(low))*(values[min(low+1, len(values)-1)]-values[low])
	}
	return all
}

// The statistics of AIPerf's run are those that AIPerf computed, where the definitions agree: its inter_token_latency is
// our time per output token. They differ for
//   - output_token_count, which leaves out reasoning,
//   - ttst, the time from the first token to the second, which we do not have.
func TestAIPerf_StatisticsOfAIPerf(t *testing.T) {
	requests := derived(t, testenv.Unzip(t, "../recording/testdata/aiperf_profile_export.jsonl.gz"))
	require.Len(t, requests, 100)
	var cases []struct {
		ID       string
		Expected json.RawMessage
	}
	testenv.ReadJSON(t, "oracle/cases.json", &cases)
	var computed map[string]map[string]float64
	for _, c := range cases {
		if c.ID == "aiperf-run1" {
			require.NoError(t, json.Unmarshal(c.Expected, &computed))
		}
	}
	for theirs, ours := range map[string]struct {
		attribute string
		scale     float64 // of our number to theirs
	}{
		"ttft":                             {"time_to_first_token", 1e3},
		"request_latency":                  {"request.duration", 1e3},
		"inter_token_latency":              {"time_per_output_token", 1e3},
		"output_token_throughput_per_user": {"output_token_rate", 1},
		"output_sequence_length":           {"gen_ai.usage.output_tokens", 1},
		"input_sequence_length":            {"gen_ai.usage.input_tokens", 1},
		"reasoning_token_count":            {"gen_ai.usage.reasoning.output_tokens", 1},
	} {
		t.Run(theirs, func(t *testing.T) {
			var values []float64
			for _, request := range requests {
				switch v := request[ours.attribute].(type) {
				case float64:
					if request["outcome"] == "success" {
						values = append(values, v*ours.scale)
					}
				case int64:
					values = append(values, float64(v)*ours.scale)
				}
			}
			actual := statistics(values)
			for _, name := range slices.Sorted(maps.Keys(computed[theirs])) {
				// The last token's time is rounded down to a microsecond: up to 4 ns per token here.
				require.InEpsilon(t, 1+computed[theirs][name], 1+actual[name], 2e-7, name)
			}
		})
	}
	sum, highest, gaps := 0.0, 0.0, 0.0
	for _, request := range requests {
		if mean, ok := request["inter_chunk_latency.mean"].(float64); ok {
			n := float64(request["chunk.count"].(int64) - 1)
			sum, gaps = sum+mean*n, gaps+n
			highest = max(highest, request["inter_chunk_latency.max"].(float64))
		}
	}
	require.InDelta(t, computed["inter_chunk_latency"]["count"], gaps, 0)
	require.InEpsilon(t, computed["inter_chunk_latency"]["avg"], sum/gaps*1e3, 1e-6)
	require.InDelta(t, computed["inter_chunk_latency"]["max"], highest*1e3, 0.001)
	outcomes := map[any]int{}
	for _, request := range requests {
		outcomes[request["outcome"]]++
	}
	require.Equal(t, map[any]int{"success": 89, "cancelled": 11}, outcomes)
}

// What a tool does not record is unmeasured, or an estimate.
func TestKinds_NumbersThatAToolDoesNotKnow(t *testing.T) {
	for name, test := range map[string]struct {
		text string
		// expected are attributes of the first request; nil stands for a missing one.
		expected map[string]any
	}{
		"vLLM counts frames": {
			`{"backend":"openai-chat","model_id":"m","num_prompts":1,"input_lens":[9],"output_lens":[3],"ttfts":[0.5],"itls":[[0.01,0.03]],"start_times":[7],"errors":[""]}`,
			map[string]any{
				"span": "chat m", "outcome": "success", "time_to_first_token": 0.5, "time_per_output_token": 0.02, "request.duration": 0.54, "time_to_first_output_token": nil,
				"estimated": []any{
					"time_to_first_token", "time_per_output_token", "output_token_rate", "prefill.duration", "decode.duration", "decode.share", "inter_token_latency", "inter_chunk_latency",
				},
				"unmeasured": []any{"tokens_per_chunk=not_reported"},
			},
		},
		"vLLM's failed request has no duration": {
			`{"backend":"openai","model_id":"m","num_prompts":1,"output_lens":[0],"ttfts":[0],"itls":[[]],"start_times":[7],"errors":["Service Unavailable"]}`,
			map[string]any{
				"outcome": "error", "http.response.status_code": int64(503), "request.duration": nil, "time_to_first_token": nil,
				"unmeasured": []any{"time_to_first_token=no_token", "time_per_output_token=no_token"},
			},
		},
		"SGLang's tokens are known": {
			`{"backend":"sglang","dataset_name":"d","input_lens":[9],"output_lens":[5],"ttfts":[0.5],"itls":[[0.01,0.01,0.02]],"errors":[""]}`,
			map[string]any{
				"outcome": "success", "time_to_first_token": 0.5, "time_per_output_token": 0.01, "inter_token_latency.max": 0.02, "inter_chunk_latency.max": 0.02,
				"chunk.count": int64(3), "unmeasured": nil, "token_count.mismatch": nil,
			},
		},
		"SGLang without streams": {
			`{"backend":"sglang","dataset_name":"d","output_lens":[5],"ttfts":[0.5],"itls":[[]],"errors":[""]}`,
			map[string]any{
				"outcome": "success", "time_to_first_token": nil, "request.duration": 0.5,
				"unmeasured": []any{"time_to_first_token=not_streamed", "time_per_output_token=not_streamed"},
			},
		},
		"SGLang's chunks of unknown size": {
			`{"backend":"sglang-oai","dataset_name":"d","output_lens":[5],"ttfts":[0.5],"itls":[[0.01,0.03]],"errors":[""]}`,
			map[string]any{
				"time_per_output_token": 0.01, "inter_token_latency.max": 0.03, "estimated": []any{"prefill.duration", "decode.share"}, "unmeasured": []any{"tokens_per_chunk=not_reported"},
			},
		},
		"guidellm knows the ends": {
			`{"benchmarks":[{"requests":{"successful":[{"request_id":"r","info":{"timings":{"request_start":1700000000.5,"request_end":1700000002,"first_token_iteration":1700000001,"last_token_iteration":1700000001.9,"token_iterations":10}},"output_metrics":{"total_tokens":10}}]}}]}`,
			map[string]any{
				"outcome": "success", "time_to_first_token": 0.5, "time_per_output_token": 0.1, "decode.duration": 0.9, "request.duration": 1.5, "inter_token_latency.mean": nil, "stall.count": nil,
				"estimated": []any{"prefill.duration", "decode.share"}, "unmeasured": nil,
			},
		},
		"guidellm's token within a millisecond of the end": {
			`{"benchmarks":[{"requests":{"successful":[{"request_id":"r","info":{"timings":{"request_start":1700000000.5,"request_end":1700000001.0002,"first_token_iteration":1700000001,"last_token_iteration":1700000001,"token_iterations":1}},"output_metrics":{"total_tokens":1}}]}}]}`,
			map[string]any{"time_to_first_token": 0.5, "unmeasured": []any{"time_per_output_token=one_token"}},
		},
		"guidellm's incomplete request": {
			`{"benchmarks":[{"requests":{"incomplete":[{"request_id":"r","info":{"timings":{"request_start":1700000000.5,"request_end":1700000002,"first_token_iteration":1700000001,"last_token_iteration":1700000001.9,"token_iterations":10}}}]}}]}`,
			map[string]any{"outcome": "cancelled", "time_to_first_token": 0.5},
		},
		"inference-perf's tokens are known": {
			`[{"start_time":1,"end_time":3,"info":{"output_tokens":4,"output_token_times":[1.5,1.6,1.6,1.7]},"error":null}]`,
			map[string]any{"outcome": "success", "time_to_first_token": 0.5, "inter_token_latency.max": 0.1, "chunk.count": int64(3), "unmeasured": nil},
		},
		"inference-perf's failed request": {
			`[{"start_time":1,"end_time":3,"error":{"error_type":"HTTP Error 404","error_msg":"x"}}]`,
			map[string]any{"outcome": "error", "http.response.status_code": int64(404), "error.type": "404", "unmeasured": []any{"time_to_first_token=no_token", "time_per_output_token=no_token"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			requests := derived(t, []byte(test.text))
			require.Len(t, requests, 1)
			for key, expected := range test.expected {
				actual := requests[0][key]
				if f, ok := expected.(float64); ok {
					require.InDelta(t, f, actual, 1e-9, key)
					continue
				}
				if list, ok := expected.([]any); ok {
					require.ElementsMatch(t, list, actual, key)
					continue
				}
				require.Equal(t, expected, actual, key)
			}
		})
	}
}
