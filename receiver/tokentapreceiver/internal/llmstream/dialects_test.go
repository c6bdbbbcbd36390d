// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package llmstream

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/tokenpulse/tokenpulse/internal/optional"
)

// What services send beyond the references of the formats. The bodies are the smallest
// ones that show it.
func TestDecoder_ReadsDialects(t *testing.T) {
	const (
		chat   = "/v1/chat/completions"
		invoke = "/model/m/invoke-with-response-stream"
	)
	for _, c := range []answer{
		{
			"Together AI: text beside the delta, and reasoning and a tool call in the delta alone", chat, sse(
				`{"choices":[{"index":0,"text":"","delta":{"role":"assistant","content":"","reasoning":"a"}}],"object":"chat.completion.chunk"}`,
				`{"choices":[{"index":0,"text":"b","delta":{"content":"b"}}],"object":"chat.completion.chunk"}`,
				`{"choices":[{"index":0,"text":"","delta":{"tool_calls":[{"index":0,"function":{"name":"f","arguments":""}}]},"finish_reason":"tool_calls"}],"object":"chat.completion.chunk"}`,
				`[DONE]`,
			), OpenAIChat, "0r? 1c? 2t?", "tool_calls", "", -1, true,
		},
		{
			"Together AI: a delta beside the text of completions", "/v1/completions", sse(
				`{"object":"completion.chunk","choices":[{"index":0,"text":"a","delta":{"token_id":5,"content":"a"}}]}`,
				`{"object":"completion.chunk","choices":[{"index":0,"text":"b","finish_reason":"length","delta":{"token_id":6,"content":"b"}}]}`,
			), OpenAICompletions, "0c? 1c?", "length", "", -1, true,
		},
		{
			"Azure: a filter result before the completions", "/openai/deployments/d/completions", sse(
				`{"id":"","object":"","model":"","choices":[],"prompt_filter_results":[{"prompt_index":0}]}`,
				`{"object":"text_completion","choices":[{"index":0,"text":"a","finish_reason":"stop"}]}`,
				`[DONE]`,
			), OpenAICompletions, "1c?", "stop", "", -1, true,
		},
		{
			"Azure: filter results after the answer", chat, sse(
				`{"id":"","object":"","model":"","choices":[],"prompt_filter_results":[{"prompt_index":0}]}`,
				`{"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"a"}}]}`,
				`{"object":"chat.completion.chunk","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`,
				`{"id":"","object":"","choices":[{"index":0,"finish_reason":null,"content_filter_results":{},"content_filter_offsets":{"check_offset":44}}],"usage":null}`,
			), OpenAIChat, "1c?", "stop", "", -1, true,
		},
		{
			"Moonshot: usage in the choice", chat, sse(
				`{"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}]}`,
				`{"object":"chat.completion.chunk","choices":[{"index":0,"delta":{},"finish_reason":"stop","usage":{"prompt_tokens":9,"completion_tokens":7,"total_tokens":16}}]}`,
				`[DONE]`,
			), OpenAIChat, "0c?", "stop", "", 7, true,
		},
		{
			"Databricks: reasoning in a list of contents", chat, sse(
				`{"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":[{"type":"reasoning","summary":[{"type":"summary_text","text":"a"}]}]}}]}`,
				`{"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":[{"type":"reasoning","summary":[{"type":"summary_text","text":"","signature":"s"}]}]}}]}`,
				`{"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":[{"type":"reasoning","text":"b"}]}}]}`,
				`{"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":[{"type":"text","text":"c"}]},"finish_reason":"stop"}]}`,
			), OpenAIChat, "0r? 2r? 3c?", "stop", "", -1, true,
		},
		{
			"Perplexity: reasoning steps, repeated by summaries", chat, sse(
				`{"object":"chat.reasoning","choices":[{"index":0,"delta":{"role":"assistant","content":"","reasoning_steps":[{"type":"web_search","thought":"a"}]}}]}`,
				`{"choices":[{"index":0,"message":{"role":"assistant","content":"","reasoning_steps":[{"type":"web_search","thought":"a"}]}}],"object":"chat.reasoning.done"}`,
				`{"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"b"}}]}`,
				`{"object":"chat.completion.done","choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"b"}}],"usage":{"completion_tokens":2}}`,
			), OpenAIChat, "0r? 2c?", "stop", "", 2, true,
		},
		{
			"audio: the transcript is content", chat, sse(
				`{"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"audio":{"id":"i","transcript":"a"}}}]}`,
				`{"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"audio":{"data":"AAAA"}}}]}`,
			), OpenAIChat, "0c? 1a", "", "", -1, false,
		},
		{
			"DeepSeek: logprobs of reasoning", chat, sse(
				`{"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":null,"reasoning_content":"a b"},"logprobs":{"content":null,"reasoning_content":[{"token":"a"},{"token":" b"}]}}]}`,
			), OpenAIChat, "0r2", "", "", -1, false,
		},
		{
			"vLLM: a stop reason is not the finish reason", chat, sse(
				`{"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null,"stop_reason":"x"}]}`,
				`{"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"b"},"stop_reason":"x","finish_reason":"stop"}]}`,
			), OpenAIChat, "0c? 1c?", "stop", "", -1, true,
		},
		{
			"OpenRouter: an error in a choice", chat, `{"object":"chat.completion","choices":[{"index":0,"message":{"content":""},"finish_reason":"error","error":{"code":502,"message":"m"}}]}`,
			OpenAIChat, "", "error", "502", -1, true,
		},
		{
			"empty errors are none", chat, sse(
				`{"object":"chat.completion.chunk","error":"","choices":[{"index":0,"delta":{"content":"a"}}]}`,
				`{"object":"chat.completion.chunk","error":false,"choices":[{"index":0,"delta":{"content":"b"},"finish_reason":"stop"}]}`,
			), OpenAIChat, "0c? 1c?", "stop", "", -1, true,
		},
		{
			"an error event in plain text", chat, sse(chatEvent("a")) + "event: error\ndata: out of memory\ndata: on device 0\n\n",
			OpenAIChat, "0c?", "", ErrorMessageOnly, -1, false,
		},
		{
			"empty events keep the connection alive", chat, "data:\n\nevent: ping\ndata:  \n\n" + sse(chatEvent("a"), "[DONE]"),
			OpenAIChat, "2c?", "", "", -1, true,
		},
		{
			"an error with details is not of TGI", chat, `{"error":{"type":"t","message":"m"},"details":["d"]}`,
			"openai_chat", "", "", "t", -1, true,
		},
		{
			"Bedrock: Mistral's chat sends parts as messages, and a stop reason", invoke,
			string(jamba(`{"choices":[{"index":0,"message":{"role":"assistant","content":"a"},"stop_reason":null}]}`)) +
				string(jamba(`{"choices":[{"index":0,"message":{"role":"assistant","content":""},"stop_reason":"length"}],"amazon-bedrock-invocationMetrics":{"inputTokenCount":3,"outputTokenCount":2}}`)),
			BedrockInvoke, "0c?", "length", "", 2, true,
		},
		{
			"Bedrock: DeepSeek's completions", invoke,
			string(jamba(`{"choices":[{"index":0,"text":"a","stop_reason":null}]}`)) + string(jamba(`{"choices":[{"index":0,"text":"b","stop_reason":"stop"}]}`)),
			BedrockInvoke, "0c? 1c?", "stop", "", -1, true,
		},
		{
			"Bedrock: Anthropic's error inside of a chunk", invoke,
			string(jamba(`{"type":"message_start","message":{"usage":{"input_tokens":3,"output_tokens":1}}}`)) + string(jamba(`{"type":"error","error":{"type":"overloaded_error","message":"m"}}`)),
			BedrockInvoke, "", "", "overloaded_error", 1, false,
		},
		{
			"Bedrock: an exception without a payload", invoke, string(frame([]byte("\x0d:message-type\x07\x00\x09exception\x0f:exception-type\x07\x00\x13throttlingException"), nil)),
			BedrockInvoke, "", "", "throttlingException", -1, false,
		},
		{
			"Bedrock: two generations of Cohere in a frame", invoke,
			string(jamba(`{"generations":[{"id":"a","text":"a","finish_reason":"MAX_TOKENS"},{"id":"b","text":"b","finish_reason":"COMPLETE"}],"prompt":"p","amazon-bedrock-invocationMetrics":{"inputTokenCount":3,"outputTokenCount":4}}`)),
			BedrockInvoke, "0c?2", "MAX_TOKENS COMPLETE", "", 4, true,
		},
		{
			"Bedrock: Jurassic", "/model/ai21.j2/invoke", `{"id":1,"prompt":{"text":"p","tokens":[]},"completions":[{"data":{"text":"a","tokens":[]},"finishReason":{"reason":"length","length":10}}]}`,
			BedrockInvoke, "0c?", "length", "", -1, true,
		},
		{
			"Bedrock: cited text of a whole answer", "/model/m/converse", `{"output":{"message":{"role":"assistant","content":[{"citationsContent":{"content":[{"text":"a"}],"citations":[{"sourceContent":[{"text":"s"}]}]}}]}},"stopReason":"end_turn","usage":{"inputTokens":3,"outputTokens":2}}`,
			BedrockConverse, "0c?", "end_turn", "", 2, true,
		},
		{
			"Cohere 1: whole tool calls", "/v1/chat", strings.Join([]string{
				`{"is_finished":false,"event_type":"stream-start","generation_id":"g"}`,
				`{"is_finished":false,"event_type":"tool-calls-generation","text":"a","tool_calls":[{"name":"f","parameters":{"x":1}}]}`,
				`{"is_finished":true,"event_type":"stream-end","finish_reason":"COMPLETE","response":{"text":"a","tool_calls":[{"name":"f","parameters":{}}],"meta":{"tokens":{"input_tokens":4,"output_tokens":2}}}}`,
			}, "\n") + "\n", Cohere, "1rt?", "COMPLETE", "", 2, true,
		},
		{
			"Cohere 1: tool calls in chunks, then whole", "/v1/chat", strings.Join([]string{
				`{"is_finished":false,"event_type":"stream-start","generation_id":"g"}`,
				`{"is_finished":false,"event_type":"tool-calls-chunk","tool_call_delta":{"index":0,"name":"f"}}`,
				`{"is_finished":false,"event_type":"tool-calls-chunk","tool_call_delta":{"index":0,"parameters":"{}"}}`,
				`{"is_finished":false,"event_type":"tool-calls-generation","tool_calls":[{"name":"f","parameters":{}}]}`,
				`{"is_finished":true,"event_type":"stream-end","finish_reason":"COMPLETE","response":{}}`,
			}, "\n") + "\n", Cohere, "1t? 2t?", "COMPLETE", "", -1, true,
		},
		{
			"Cohere 1: a tool call of a whole answer", "/v1/chat", `{"text":"","generation_id":"g","finish_reason":"COMPLETE","tool_calls":[{"name":"f","parameters":{}}],"meta":{"tokens":{"input_tokens":4,"output_tokens":2}}}`,
			Cohere, "0t?", "COMPLETE", "", 2, true,
		},
		{
			"Cohere 2: an error in the last event", "/v2/chat", sse(
				`{"type":"message-start","id":"i","delta":{"message":{"role":"assistant"}}}`,
				`{"type":"content-delta","index":0,"delta":{"message":{"content":{"text":"a"}}}}`,
				`{"type":"message-end","delta":{"finish_reason":"ERROR","error":"m"}}`,
			), Cohere, "1c?", "ERROR", ErrorMessageOnly, -1, true,
		},
		{
			"Gemini interactions: the start of a step holds its first part", "/v1beta/interactions", sse(
				`{"event_type":"interaction.created","interaction":{"id":"i","model":"m","status":"in_progress"}}`,
				`{"event_type":"step.start","index":0,"step":{"type":"thought","signature":"","summary":[{"type":"text","text":"a"}]}}`,
				`{"event_type":"step.start","index":1,"step":{"type":"model_output","content":[{"type":"text","text":"b"}]}}`,
				`{"event_type":"step.delta","index":1,"delta":{"type":"text","text":"c"}}`,
				`{"event_type":"step.start","index":2,"step":{"type":"model_output"}}`,
				`{"event_type":"step.start","index":3,"step":{"type":"function_call","name":"f","arguments":{}}}`,
				`{"event_type":"interaction.completed","interaction":{"id":"i","status":"completed"}}`,
			), GeminiInteractions, "1r? 2c? 3c? 5t?", "completed", "", -1, true,
		},
		{
			"Responses: earlier names of reasoning", "/v1/responses", sse(
				`{"type":"response.reasoning.delta","delta":"a"}`, `{"type":"response.reasoning_summary.delta","delta":"b"}`, `{"type":"response.reasoning_summary.done","text":"b"}`,
			), OpenAIResponses, "0r? 1r?", "", "", -1, false,
		},
		{
			"Gemini: what the user and a tool contributed is no output", "/v1beta/interactions", sse(
				`{"event_type":"step.start","index":0,"step":{"type":"user_input","content":[{"type":"text","text":"q"}]}}`,
				`{"event_type":"step.start","index":1,"step":{"type":"function_result","content":[{"type":"text","text":"r"}]}}`,
				`{"event_type":"step.delta","index":2,"delta":{"type":"text","text":"a"}}`,
				`{"event_type":"interaction.completed","interaction":{"id":"i","status":"completed"}}`,
			), GeminiInteractions, "2c?", "completed", "", -1, true,
		},
		{
			"Cohere 1: a citation does not end the answer", "/v1/chat",
			`{"event_type":"text-generation","text":"a"}` + "\n" + `{"event_type":"citation-generation","citations":[{"text":"a"}]}` + "\n",
			Cohere, "0c?", "", "", -1, false,
		},
		{
			"Ollama: logprobs give the tokens", "/api/chat", `{"model":"m","message":{"content":"a b"},"done":false,"logprobs":[{"token":"a"},{"token":" b"}]}` + "\n" +
				`{"model":"m","message":{"content":""},"done":true,"done_reason":"stop","eval_count":2}` + "\n",
			Ollama, "0c2", "stop", "", 2, true,
		},
	} {
		t.Run(c.name, c.check)
	}
}

// An answer that spent its limit on hidden reasoning reports no output beside it.
func TestUsage_OfThoughtsAlone(t *testing.T) {
	body := sse(`{"candidates":[{"finishReason":"MAX_TOKENS"}],"usageMetadata":{"promptTokenCount":3,"thoughtsTokenCount":60,"totalTokenCount":63}}`)
	s := decode(AnswerHead{Path: "/v1beta/models/m:streamGenerateContent"}, testLimits, []byte(body))
	assert.Equal(t, optional.Of[int64](60), s.Usage().Output)
	assert.Equal(t, optional.Of[int64](60), s.Usage().Reasoning)
	assert.False(t, s.Reported.Output.Known)
	assert.True(t, s.UsageFinal)

	cut := sse(`{"candidates":[{"content":{"parts":[{"text":"a"}]}}],"usageMetadata":{"promptTokenCount":3,"thoughtsTokenCount":60}}`)
	s = decode(AnswerHead{Path: "/v1beta/models/m:streamGenerateContent"}, testLimits, []byte(cut))
	assert.False(t, s.Usage().Output.Known, "the text was not counted yet")
}

func TestUsage_OfCaches(t *testing.T) {
	realtime := readUsage(value(`{"input_tokens":9,"output_tokens":2,"input_token_details":{"cached_tokens":4,"audio_tokens":5}}`))
	assert.Equal(t, optional.Of[int64](4), realtime.CacheRead)
	chat := readUsage(value(`{"prompt_tokens":9,"prompt_tokens_details":{"cached_tokens":4,"cache_write_tokens":3}}`))
	assert.Equal(t, optional.Of[int64](3), chat.CacheWrite)
}

func TestTimings_OfAzureInTheUsage(t *testing.T) {
	s := decode(AnswerHead{Path: "/v1/chat/completions"}, testLimits, []byte(sse(
		chatEvent("a"), `{"object":"chat.completion.chunk","choices":[],"usage":{"completion_tokens":1,"latency_checkpoint":{"service_ttft_ms":501,"service_ttlt_ms":528}}}`,
	)))
	assert.Equal(t, optional.Of(501*time.Millisecond), s.Timings.FirstToken)
	assert.Equal(t, optional.Of(528*time.Millisecond), s.Timings.Total)
}

// Whole texts that are no JSON are reported as unreadable, and empty events are not.
func TestDecoder_DoesNotReportEmptyEventsAsUnreadable(t *testing.T) {
	s := decode(AnswerHead{Path: "/v1/chat/completions"}, testLimits, []byte("data:\n\ndata:  \ndata:\n\n"+sse(chatEvent("a"), "x")))
	assert.Equal(t, Unparsed{Invalid: 1}, s.Unparsed)
}

func TestDecoder_ReadsAnErrorAmongOtherLines(t *testing.T) {
	body := "event: error\ndata: {\"error\":{\"type\":\"overloaded_error\"}}\ndata: [DONE]\n\n"
	s := decode(AnswerHead{Path: "/v1/chat/completions"}, testLimits, []byte(body))
	assert.Equal(t, "overloaded_error", s.Error)
	assert.Zero(t, s.Unparsed)
}

// The first event of a model on Bedrock may not show yet what its choices are.
func TestBedrockInvoke_RecognisesALaterEvent(t *testing.T) {
	var r record
	read := newBedrockInvoke()
	read(event{}, value(`{"choices":[]}`), &r)
	read(event{}, value(`{"choices":[{"index":0,"delta":{"content":"a"}}]}`), &r)
	assert.Equal(t, Content, r.channels)
}
