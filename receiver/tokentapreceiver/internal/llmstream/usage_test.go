// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package llmstream

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/tokenpulse/tokenpulse/internal/optional"
	"github.com/tokenpulse/tokenpulse/internal/testenv/recorded"
)

// Providers that report a total do so over all tokens of input and output, which is
// what the normalised counts have to add up to.
func TestUsage_AddsUpToTheReportedTotal(t *testing.T) {
	checked := 0
	for _, r := range recorded.Answers(t) {
		if strings.HasPrefix(r.File, "openai_realtime/gemini_live_") || r.File == "gemini/unary_thinking_vertex_express.json" {
			continue // these totals leave out the thoughts and the answer's single token
		}
		for _, name := range []string{"total_tokens", "totalTokenCount", "totalTokens"} {
			var total int64
			if json.Unmarshal(r.UsageRaw[name], &total) != nil {
				continue
			}
			s := decode(headOf(&r), testLimits, r.Body)
			u := s.Usage()
			assert.Equal(t, total, u.Input.Value+u.Output.Value, r.File)
			assert.LessOrEqual(t, u.Reasoning.Value, u.Output.Value, r.File)
			assert.LessOrEqual(t, u.CacheRead.Value, u.Input.Value, r.File)
			checked++
		}
	}
	assert.Greater(t, checked, 50)
}

func TestUsage_Normalises(t *testing.T) {
	counts := func(in, out, reasoning, read, creation int64) Usage {
		known := func(n int64) optional.Value[int64] { return optional.Value[int64]{Value: max(n, 0), Known: n >= 0} }
		return Usage{Input: known(in), Output: known(out), Reasoning: known(reasoning), CacheRead: known(read), CacheWrite: known(creation)}
	}
	for _, c := range []struct {
		name, json string
		format     Format
		want       Usage
	}{
		{
			"Anthropic's input leaves out the cache", `{"input_tokens":3,"output_tokens":9,"cache_read_input_tokens":20,"cache_creation_input_tokens":100}`,
			AnthropicMessages, counts(123, 9, -1, 20, 100),
		},
		{
			"Bedrock's as well", `{"inputTokens":3,"outputTokens":9,"cacheReadInputTokens":20,"cacheWriteInputTokens":100}`,
			BedrockConverse, counts(123, 9, -1, 20, 100),
		},
		{
			"Gemini's output leaves out thoughts", `{"promptTokenCount":10,"candidatesTokenCount":5,"thoughtsTokenCount":7,"toolUsePromptTokenCount":2,"cachedContentTokenCount":4}`,
			Gemini, counts(12, 12, 7, 4, -1),
		},
		{
			"OpenAI's counts include both", `{"prompt_tokens":10,"completion_tokens":12,"total_tokens":22,"prompt_tokens_details":{"cached_tokens":8},"completion_tokens_details":{"reasoning_tokens":7}}`,
			OpenAIChat, counts(10, 12, 7, 8, -1),
		},
		{
			"xAI's total shows that reasoning is extra", `{"prompt_tokens":10,"completion_tokens":2,"total_tokens":19,"completion_tokens_details":{"reasoning_tokens":7}}`,
			OpenAIChat, counts(10, 9, 7, -1, -1),
		},
		{
			"Grok on Azure has more cached than prompt tokens", `{"prompt_tokens":10,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":64}}`,
			OpenAIChat, counts(74, 2, -1, 64, -1),
		},
		{
			"OpenRouter's reasoning exceeds the output", `{"prompt_tokens":10,"completion_tokens":20,"total_tokens":30,"completion_tokens_details":{"reasoning_tokens":25}}`,
			OpenAIChat, counts(10, 20, 20, -1, -1),
		},
		{
			"DeepSeek's cache hits", `{"prompt_tokens":10,"completion_tokens":20,"prompt_cache_hit_tokens":6}`,
			OpenAIChat, counts(10, 20, -1, 6, -1),
		},
		{
			"not counts", `{"prompt_tokens":-1,"completion_tokens":"many","prompt_cache_hit_tokens":1e300,"total_tokens":1.5}`,
			OpenAIChat, counts(-1, -1, -1, -1, -1),
		},
	} {
		o := Observation{Format: c.format, UsageFinal: true, Reported: readUsage(value(c.json))}
		got := o.Usage()
		got.total, got.toolInput = optional.Value[int64]{}, optional.Value[int64]{}
		assert.Equal(t, c.want, got, c.name)
	}
}

// The counts by modality in the usage of the recordings. All others report only 0, or none.
func TestUsage_ByModality(t *testing.T) {
	want := map[string][3]ByModality{ // input, output, cache read
		"gemini/code_execution.sse":                      {{TextTokens: 21 + 243}}, // with the results of tools
		"gemini/gemini3_signature_only_chunk.sse":        {{TextTokens: 9}},
		"gemini/json_array_int_enums.json":               {{TextTokens: 8}, {TextTokens: 578}},
		"gemini/no_content_parts.sse":                    {{TextTokens: 34}, {ImageTokens: 1290}},
		"gemini/text_crlf.sse":                           {{TextTokens: 7}, {TextTokens: 10}},
		"gemini/thinking_function_call_signature.sse":    {{TextTokens: 38}},
		"gemini/thought_summaries.sse":                   {{TextTokens: 10}},
		"gemini/unary_thinking.json":                     {{TextTokens: 14}},
		"gemini/unary_thinking_vertex_express.json":      {{TextTokens: 18}, {TextTokens: 1}},
		"gemini/vertex_sse.sse":                          {{TextTokens: 9}, {TextTokens: 73}},
		"openai_chat/derived_cr_only.sse":                {{TextTokens: 165}},
		"openai_realtime/gemini_live_audio.ndjson":       {{TextTokens: 1131}, {AudioTokens: 26}},
		"openai_realtime/gemini_live_interrupted.ndjson": {{TextTokens: 1200, AudioTokens: 1}, {AudioTokens: 109}},
		"openai_realtime/text_in_audio_out.ndjson":       {{TextTokens: 16}, {TextTokens: 9, AudioTokens: 15}},
	}
	for _, r := range recorded.Answers(t) {
		s := decode(headOf(&r), testLimits, r.Body)
		u := s.Usage()
		got := [3]ByModality{u.InputBy, u.OutputBy, u.CacheReadBy}
		assert.Equal(t, want[r.File], got, r.File)
		delete(want, r.File)
	}
	assert.Empty(t, want)
	for usage, want := range map[string][3]ByModality{
		`{"input_token_details":{"text_tokens":7,"audio_tokens":5,"image_tokens":3,"cached_tokens":6,"cached_tokens_details":{"text_tokens":4,"audio_tokens":2}}}`: {{7, 3, 5}, {}, {4, 0, 2}},
		`{"promptTokensDetails":[{"modality":"VIDEO","tokenCount":9},{"modality":4,"tokenCount":3}],"cacheTokensDetails":[{"modality":"TEXT","tokenCount":2}]}`:    {{AudioTokens: 3}, {}, {TextTokens: 2}},
		`{"input_tokens_by_modality":[{"modality":"image","tokens":258}],"output_tokens_by_modality":[{"modality":"text","tokens":5}]}`:                            {{ImageTokens: 258}, {TextTokens: 5}},
		`{"prompt_tokens_details":{"audio_tokens":-1,"text_tokens":"many"},"candidatesTokensDetails":[{"modality":{}},7]}`:                                         {},
	} {
		u := readUsage(value(usage))
		assert.Equal(t, want, [3]ByModality{u.InputBy, u.OutputBy, u.CacheReadBy}, usage)
	}
}

func TestUsage_IgnoresASeedAndZerosAfterTokens(t *testing.T) {
	start := sse(`{"type":"message_start","message":{"usage":{"input_tokens":16,"output_tokens":1}}}`)
	seed := decode(AnswerHead{Path: "/v1/messages"}, testLimits, []byte(start))
	assert.Equal(t, optional.Of(int64(16)), seed.Usage().Input)
	assert.False(t, seed.Usage().Output.Known)
	final := decode(AnswerHead{Path: "/v1/messages"}, testLimits, []byte(start+sse(`{"type":"message_delta","usage":{"output_tokens":9}}`)))
	assert.Equal(t, optional.Of(int64(9)), final.Usage().Output)
	zeros := Observation{Format: OpenAIResponses, TokenChunks: 3, UsageFinal: true, Reported: readUsage(value(`{"input_tokens":0,"output_tokens":0}`))}
	assert.Equal(t, Usage{}, zeros.Usage())
}

func TestTimings_OfTheRecordings(t *testing.T) {
	ms := func(f float64) time.Duration { return time.Duration(f * float64(time.Millisecond)) }
	const unknown = -1
	want := map[string][5]time.Duration{ // queue, prefill, decode, first token, total
		"openai_chat/hf_router_groq_whole_tool_call.sse":       {72077716, 24482456, 41889890, unknown, 66372346},
		"openai_chat/gpustack_vllm_no_done_server_timings.sse": {unknown, unknown, unknown, ms(38.631), unknown},
		"azure_openai/o4mini_tool_stream_v1_path.sse":          {unknown, unknown, unknown, ms(780), ms(1684)},
		"llamacpp/chat_gptoss_timings.sse":                     {unknown, ms(8.996), ms(484.01), unknown, unknown},
		"llamacpp/unary_chat.json":                             {unknown, ms(79.333), ms(476.185), unknown, unknown},
		"ollama/chat_stream.ndjson":                            {unknown, 27608250, 105611917, 38473250 + 27608250, 171946792},
		"trtllm/generate_unary_perf_metrics.json":              {538000, 126016000, 1171024000, 126554000, unknown},
		"bedrock_invoke/claude3_messages.bin":                  {unknown, unknown, unknown, ms(378), ms(738)},
		"bedrock_converse/claude_thinking.bin":                 {unknown, unknown, unknown, unknown, ms(1999)},
		"bedrock_invoke/unary_titan.json":                      {unknown, unknown, unknown, unknown, ms(2433)},
		"tgi/hf_endpoint_unary_list.json":                      {0, unknown, unknown, unknown, ms(2484)},
		"openai_chat/derived_cr_only.sse":                      {unknown, unknown, unknown, unknown, unknown},
	}
	checked := 0
	for _, r := range recorded.Answers(t) {
		times, ok := want[r.File]
		if !ok {
			continue
		}
		s := decode(headOf(&r), testLimits, r.Body)
		for i, got := range []optional.Value[time.Duration]{s.Timings.Queue, s.Timings.Prefill, s.Timings.Decode, s.Timings.FirstToken, s.Timings.Total} {
			if name := fmt.Sprint(r.File, " ", i); times[i] == unknown {
				assert.False(t, got.Known, name)
			} else {
				assert.True(t, got.Known, name)
				assert.InDelta(t, times[i], got.Value, 1, name)
			}
		}
		checked++
	}
	assert.Len(t, want, checked)
}

func TestTimings_OfTheHeader(t *testing.T) {
	header := http.Header{
		"X-Metrics-Ttft-Ms": {"150.5"}, "X-Metrics-E2e-Ms": {"900"}, "X-Queue-Time": {"7"}, "X-Prompt-Tokens": {"5"}, "X-Generated-Tokens": {"9"},
	}
	x := AnswerHead{Path: "/v1/chat/completions", Status: 200, ContentType: "application/json", Header: header}
	s := decode(x, testLimits, []byte(`{"object":"chat.completion","choices":[{"message":{"content":"a"},"finish_reason":"stop"}],"usage":{"completion_tokens":3,"queue_time":0.25}}`))
	assert.Equal(t, optional.Of(150500*time.Microsecond), s.Timings.FirstToken)
	assert.Equal(t, optional.Of(900*time.Millisecond), s.Timings.Total)
	assert.Equal(t, optional.Of(250*time.Millisecond), s.Timings.Queue, "the body has precedence")
	assert.Equal(t, optional.Of(int64(5)), s.Reported.Input)
	assert.Equal(t, optional.Of(int64(3)), s.Reported.Output, "the body has precedence")
}

func TestUsage_KeepsTheRunningTotalOfAnAnswerThatWasCut(t *testing.T) {
	body := sse(`{"candidates":[{"content":{"parts":[{"text":"a"}]}}],"usageMetadata":{"promptTokenCount":4,"candidatesTokenCount":3}}`)
	s := decode(AnswerHead{Path: "/v1/models/m:streamGenerateContent"}, testLimits, []byte(body))
	assert.False(t, s.UsageFinal)
	assert.False(t, s.Ended)
	assert.Equal(t, optional.Of(int64(3)), s.Usage().Output)
}

// Llama and Titan on Bedrock report running totals, Claude a seed.
func TestUsage_OfBedrockAnswersThatWereCut(t *testing.T) {
	x := AnswerHead{Path: "/model/m/invoke-with-response-stream", ContentType: "application/vnd.amazon.eventstream"}
	llama := decode(x, testLimits, jamba(`{"generation":"a","prompt_token_count":4,"generation_token_count":3}`))
	assert.Equal(t, optional.Of(int64(3)), llama.Usage().Output)
	assert.False(t, llama.UsageFinal)
	start := jamba(`{"type":"message_start","message":{"usage":{"input_tokens":16,"output_tokens":1}}}`)
	seed := decode(x, testLimits, start)
	assert.False(t, seed.Usage().Output.Known)
	metrics := jamba(`{"type":"message_stop","amazon-bedrock-invocationMetrics":{"inputTokenCount":16,"outputTokenCount":9}}`)
	whole := decode(x, testLimits, append(start, metrics...))
	assert.Equal(t, optional.Of(int64(9)), whole.Usage().Output)
}
