// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/latency"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/optional"
)

// Each value is a first chunk after 250 ms, in the attribute's unit and in every type that it comes in.
func TestFirstChunk_UnitsAndTypes(t *testing.T) {
	chat := map[string]any{names.GenAIOperationName: "chat"}
	vercel := map[string]any{"ai.operationId": "ai.streamObject.doStream"}
	dynamo := call{name: "http-request"}
	tests := []struct {
		key    string
		values []any
		call   call
	}{
		{names.GenAITimeToFirstChunk, []any{0.25, "0.25", "2.5e-1"}, call{attributes: chat}},
		{"gen_ai.client.operation.time_to_first_chunk", []any{0.25}, call{attributes: chat}},
		{"gen_ai.client.inference.time_to_first_chunk", []any{0.25}, call{attributes: chat}},
		{"gen_ai.response.time_to_first_token", []any{0.25}, call{attributes: chat}},
		{"ttft_ms", []any{250.0, int64(250), "250.00", "250"}, call{attributes: chat}},
		{"ttft_ms", []any{"250.00"}, dynamo},
		{"ai.response.msToFirstChunk", []any{250.0, int64(250)}, call{attributes: vercel}},
		{"ai.stream.msToFirstChunk", []any{250.0}, call{attributes: vercel}},
		{engineTimeToFirstToken, []any{0.25, "0.25"}, call{name: "llm_request"}},
	}
	for _, test := range tests {
		for _, value := range test.values {
			c := test.call
			c.attributes = with(c.attributes, test.key, value)
			require.Equal(t, exactly(0.25), c.firstToken(t), "%s = %#v", test.key, value)
		}
	}
	openLIT := call{attributes: map[string]any{names.GenAIOperationName: "chat", "gen_ai.request.is_stream": true, "gen_ai.server.time_to_first_token": 0.25}}
	require.Equal(t, about(0.25), openLIT.firstToken(t))
}

func TestPhases_UnitsAndTypes(t *testing.T) {
	_, l := (&call{name: "llm_request", attributes: map[string]any{
		engineEndToEnd: 0.9, engineQueue: 0.05, enginePrefill: 0.15, engineDecode: 0.5,
	}}).latency(t)
	require.Equal(t, exactly(0.9), l.Measures[numbers.RequestDuration])
	require.Equal(t, exactly(0.05), l.Measures[numbers.QueueDuration])
	require.Equal(t, exactly(0.15), l.Measures[numbers.PrefillDuration])
	require.Equal(t, exactly(0.5), l.Measures[numbers.DecodeDuration])

	_, l = (&call{attributes: map[string]any{
		"llm_d.pd_proxy.total_duration_ms": int64(900), "llm_d.pd_proxy.true_ttft_ms": 210.0,
		"llm_d.pd_proxy.prefill.duration_ms": 150.0, "llm_d.pd_proxy.decode.duration_ms": "500",
	}}).latency(t)
	require.Equal(t, exactly(0.9), l.Measures[numbers.RequestDuration])
	require.Equal(t, about(0.15), l.Measures[numbers.PrefillDuration])
	require.Equal(t, about(0.5), l.Measures[numbers.DecodeDuration])
	require.False(t, l.Measures[numbers.TimeToFirstToken].Known, "true_ttft_ms is not a time to first token")
}

func TestGaps_UnitsAndTypes(t *testing.T) {
	dynamo := map[string]any{"avg_itl_ms": "12.34", "itl_p50_ms": "10.00", "itl_p99_ms": "30.50", "itl_max_ms": "31.00"}
	statistics := func(measure func(float64) latency.Measure) latency.Distribution {
		return latency.Distribution{
			latency.Mean: measure(0.01234), latency.P50: measure(0.010), latency.P99: measure(0.0305), latency.Max: measure(0.031),
		}
	}
	_, l := (&call{name: "http-request", attributes: dynamo}).latency(t)
	require.Equal(t, statistics(exactly), l.Gaps(numbers.InterTokenMean), "the frontend divides a gap by its chunk's tokens")
	_, l = (&call{name: "engine.generate", attributes: dynamo}).latency(t)
	require.Equal(t, statistics(about), l.Gaps(numbers.InterTokenMean), "the worker's gaps are between chunks")

	chat := map[string]any{names.GenAIOperationName: "chat"}
	for _, key := range []string{"gen_ai.client.operation.time_per_output_chunk", "gen_ai.client.inference.time_per_output_chunk"} {
		for _, scope := range []string{"", "gen_ai"} {
			_, l = (&call{scope: scope, attributes: with(chat, key, 0.02)}).latency(t)
			require.Equal(t, latency.Distribution{latency.Mean: exactly(0.02)}, l.Gaps(numbers.InterChunkMean))
		}
	}
	_, l = (&call{attributes: with(with(chat, "gen_ai.request.is_stream", true), "gen_ai.server.time_per_output_token", 0.02)}).latency(t)
	require.Equal(t, latency.Distribution{latency.Mean: about(0.02)}, l.Gaps(numbers.InterChunkMean), "of frames")
	require.Zero(t, l.Gaps(numbers.InterTokenMean))
}

// Reported gaps are rejected if they are outside the request by any amount.
func TestGaps_OutsideRequestAreRejected(t *testing.T) {
	_, l := (&call{name: "http-request", attributes: map[string]any{
		"avg_itl_ms": "-0.0000001", "itl_p50_ms": "NaN", "itl_p99_ms": "1000.0000001", "itl_max_ms": "1000",
	}}).latency(t)
	require.Equal(t, latency.Distribution{latency.Max: exactly(1)}, l.Gaps(numbers.InterTokenMean))
	require.EqualValues(t, 1, l.Rejected[latency.Negative])
	require.EqualValues(t, 1, l.Rejected[latency.LongerThanRequest])
}

func TestTimeText_Layouts(t *testing.T) {
	langfuse := map[string]any{"langfuse.observation.type": "generation"}
	for _, text := range []string{
		`"2026-11-21T03:54:52.25Z"`, `2026-11-21T03:54:52.250Z`, `"2026-11-21T04:54:52.250000+01:00"`, `"2026-11-21T03:54:52.250000000Z"`,
		"2026-11-21T03:54:52.250", "2026-11-21 03:54:52.25", "2026-11-21 03:54:52.250+00:00", // without a zone: UTC
	} {
		require.Equal(t, about(0.25), (&call{attributes: with(langfuse, "langfuse.observation.completion_start_time", text)}).firstToken(t), text)
	}
	mastra := map[string]any{"mastra.span.type": "model_inference", "mastra.completion_start_time": "2026-11-21T03:54:52.250Z"}
	require.Equal(t, exactly(0.25), (&call{attributes: mastra}).firstToken(t))

	for _, unusable := range []any{"yesterday", "", `"`, int64(began + 250_000_000), nil, "03:54:52"} {
		o, l := (&call{attributes: with(langfuse, "langfuse.observation.completion_start_time", unusable)}).latency(t)
		require.False(t, l.Measures[numbers.TimeToFirstToken].Known, unusable)
		require.EqualValues(t, 1, o.Unusable, unusable)
	}
}

func TestDurationText(t *testing.T) {
	tests := map[string]optional.Value[time.Duration]{
		"1.23ms":       optional.Of(1230 * time.Microsecond),
		"532µs":        optional.Of(532 * time.Microsecond),
		"2.5s":         optional.Of(2500 * ms),
		"900ns":        optional.Of(900 * time.Nanosecond),
		"1.234567891s": optional.Of(1_234_567_891 * time.Nanosecond),
		"0ns":          optional.Of(time.Duration(0)),
		"12":           {},
		"soon":         {},
		"":             {},
	}
	for text, expected := range tests {
		o, _ := (&call{name: "generate", duration: 3 * time.Second, attributes: map[string]any{"queue_time": text}}).latency(t)
		require.Equal(t, expected, o.Request.Queue, text)
		require.Equal(t, !expected.Known, o.Unusable == 1, text)
	}
	o, l := (&call{name: "generate", attributes: map[string]any{"total_time": "900ms", "time_per_token": "45ms", "inference_time": "890ms"}}).latency(t)
	require.Equal(t, 900*ms, o.Request.Duration)
	require.False(t, l.Measures[numbers.TimePerOutputToken].Known, "time_per_token includes the prefill")
}

// TensorRT-LLM writes -1 for a time that it did not measure: the value is missing, not unusable.
func TestTensorRTLLM_UnmeasuredTimesAreMissing(t *testing.T) {
	o, l := (&call{scope: "trt.llm", attributes: map[string]any{
		engineTimeToFirstToken: -1.0, engineEndToEnd: -1.0, engineQueue: -1.0,
	}}).latency(t)
	require.Zero(t, o.Unusable)
	require.Zero(t, l.Rejected)
	require.Equal(t, exactly(1), l.Measures[numbers.RequestDuration])
	require.False(t, l.Measures[numbers.QueueDuration].Known || l.Measures[numbers.TimeToFirstToken].Known)
}

// An engine's own duration counts if it lies within the span.
func TestEngineDuration(t *testing.T) {
	for seconds, expected := range map[float64]time.Duration{0.9: 900 * ms, 1: time.Second, 1.1: time.Second, 0: time.Second, -5: time.Second} {
		o, _ := (&call{name: "llm_request", attributes: map[string]any{engineEndToEnd: seconds}}).latency(t)
		require.Equal(t, expected, o.Request.Duration, seconds)
		require.Equal(t, seconds > 1 || seconds <= 0, o.Unusable == 1, seconds)
	}
}

// Langfuse passes on usage in the form of the API that was called.
func TestLangfuseUsage(t *testing.T) {
	type tokens struct{ input, output, reasoning, cached, written any }
	tests := map[string]struct {
		usage    string
		expected tokens
		unusable int64
	}{
		"its own":          {`{"input":17,"output":12,"total":29,"input_cached_tokens":8,"output_reasoning_tokens":4}`, tokens{17, 12, 4, 8, nil}, 0},
		"chat completions": {`{"prompt_tokens":17,"completion_tokens":12,"prompt_tokens_details":{"cached_tokens":8},"completion_tokens_details":{"reasoning_tokens":4}}`, tokens{17, 12, 4, 8, nil}, 0},
		"responses":        {`{"input_tokens":17,"output_tokens":12,"input_tokens_details":{"cached_tokens":8},"output_tokens_details":{"reasoning_tokens":4}}`, tokens{17, 12, 4, 8, nil}, 0},
		"cache of others":  {`{"input":17,"output":12,"cache_read_input_tokens":8,"cache_creation_input_tokens":5}`, tokens{17, 12, nil, 8, 5}, 0},
		"nulls":            {`{"input":17,"output":null,"completion_tokens_details":null,"prompt_tokens_details":{"cached_tokens":null}}`, tokens{17, nil, nil, nil, nil}, 0},
		"text":             {`{"input":"17","output":"many"}`, tokens{17, nil, nil, nil, nil}, 1},
		"negative":         {`{"input":-1,"output":0.5}`, tokens{}, 2},
		"a list":           {`[1,2]`, tokens{}, 1},
		"invalid JSON":     {`{"input":17`, tokens{}, 1},
		"not an object":    {`{"completion_tokens_details":7}`, tokens{}, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c := call{attributes: map[string]any{"langfuse.observation.type": "generation", "langfuse.observation.usage_details": test.usage}}
			o, _ := c.latency(t)
			reported := func(standard names.Standard) any {
				if value := o.Standard[standard]; value.Known {
					return int(value.Tokens)
				}
				return nil
			}
			require.Equal(t, test.expected, tokens{
				reported(names.InputTokens), reported(names.OutputTokens), reported(names.ReasoningTokens), reported(names.CacheReadInputTokens),
				reported(names.CacheWriteInputTokens),
			})
			require.Equal(t, test.unusable, o.Unusable)
			require.Equal(t, o.Standard[names.OutputTokens].Known, o.Request.OutputTokens.Known)
		})
	}
}
