// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package llmstream

import (
	"encoding/base64"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/tokenpulse/tokenpulse/internal/testenv/recorded"
)

// sse joins events to a stream.
func sse(data ...string) string {
	return "data: " + strings.Join(data, "\n\ndata: ") + "\n\n"
}

// jamba returns a frame of Bedrock's InvokeModel.
func jamba(text string) []byte {
	return frame([]byte("\x0b:event-type\x07\x00\x05chunk"), []byte(`{"bytes":"`+base64.StdEncoding.EncodeToString([]byte(text))+`"}`))
}

// answer is the body of an answer and what it reports.
type answer struct {
	name, path, body string
	format           Format
	// chunks: index, channel and tokens, "?" if not counted
	chunks, finish, err string
	output              int64 // reported; -1: unknown
	ended               bool
}

// check decodes the answer at once, in single bytes and cut off at each place.
func (c answer) check(t *testing.T) {
	x := AnswerHead{Path: c.path, Status: 200}
	s := decode(x, testLimits, []byte(c.body))
	assert.Equal(t, c.format, s.Format)
	var chunks []string
	for _, chunk := range s.Chunks {
		chunks = append(chunks, describe(chunk))
	}
	assert.Equal(t, c.chunks, strings.Join(chunks, " "))
	assert.Equal(t, c.finish, strings.Join(s.FinishReasons, " "))
	assert.Equal(t, c.err, s.Error)
	assert.Equal(t, c.ended, s.Ended, "ended")
	if c.output < 0 {
		assert.False(t, s.Reported.Output.Known)
	} else {
		assert.Equal(t, c.output, s.Reported.Output.Value)
	}
	single := make([]int, len(c.body))
	for i := range single {
		single[i] = i
	}
	assert.Equal(t, s, decode(x, testLimits, []byte(c.body), single...), "in single bytes")
	lastToken := 0
	if strings.HasPrefix(c.body, "[") {
		lastToken = len(c.body) // an array ends with its bracket
	}
	checkTruncations(t, x, []byte(c.body), lastToken)
}

// What no recording has, written by hand after the references of the providers: one
// event per element.
func TestDecoder_ReadsFormatsWithoutRecordings(t *testing.T) {
	const chat = "/v1/chat/completions"
	for _, c := range []answer{
		{
			"TGI: special tokens are not visible", "/generate_stream", strings.ReplaceAll(sse(
				`{"index":1,"token":{"id":1,"text":" a","logprob":-1,"special":false},"generated_text":null,"details":null}`,
				`{"index":2,"token":{"id":2,"text":"\n","logprob":-1,"special":false},"generated_text":null,"details":null}`,
				`{"index":3,"token":{"id":3,"text":"</s>","logprob":-1,"special":true},"generated_text":"a\n","details":{"finish_reason":"eos_token","generated_tokens":3,"input_length":5}}`,
			), "data: ", "data:"), TGI, "0c1 1c1", "eos_token", "", 3, true,
		},
		{
			"TGI: an error ends the stream", "/generate_stream", sse(
				`{"index":1,"token":{"id":1,"text":" a","special":false},"generated_text":null}`, `{"error":"Request failed","error_type":"generation"}`,
			), TGI, "0c1", "", "generation", -1, false,
		},
		{
			"DJL: events without blank lines between them", "/invocations", "data: " + strings.Join([]string{
				`{"token":{"id":1,"text":" a"}}`, `{"token":{"id":2,"text":" b"},"generated_text":"a b","details":{"finish_reason":"length","generated_tokens":2}}`,
			}, "\ndata: ") + "\n", TGI, "0c2", "length", "", 2, true,
		},
		{
			"SGLang: text is cumulative", "/generate", sse(
				`{"text":"a","meta_info":{"id":"x","prompt_tokens":3,"completion_tokens":1,"cached_tokens":0,"finish_reason":null}}`,
				`{"text":"a","meta_info":{"id":"x","prompt_tokens":3,"completion_tokens":1,"finish_reason":null}}`,
				`{"text":"a b c","meta_info":{"id":"x","prompt_tokens":3,"completion_tokens":4,"finish_reason":null}}`,
				`{"text":"a b c","meta_info":{"id":"x","prompt_tokens":3,"completion_tokens":5,"finish_reason":{"type":"stop","matched":2}}}`,
				`[DONE]`,
			), SGLang, "0c1 2c3", "stop", "", 5, true,
		},
		{
			"llama.cpp: text is held back for a stop word", "/completion", sse(
				`{"index":0,"content":"a","tokens":[5],"stop":false,"tokens_predicted":1,"tokens_evaluated":7}`,
				`{"index":0,"content":"","tokens":[6],"stop":false,"tokens_predicted":2,"tokens_evaluated":7}`,
				`{"index":0,"content":" b","tokens":[7],"stop":false,"tokens_predicted":3,"tokens_evaluated":7}`,
				`{"index":0,"content":"","tokens":[],"stop":true,"tokens_predicted":4,"tokens_evaluated":7,"stop_type":"word","timings":{"prompt_ms":1,"predicted_ms":2}}`,
			), LlamaCpp, "0c1 2c2", "word", "", 4, true,
		},
		{
			"llama.cpp: completions without OpenAI's shape", "/completions", sse(`{"content":"a","stop":false}`, `{"content":"","stop":true,"stopped_eos":true,"tokens_predicted":1}`),
			LlamaCpp, "0c?", "eos", "", 1, true,
		},
		{
			"llama.cpp: an error field", "/completion", "data: {\"content\":\"a\",\"stop\":false}\n\nerror: {\"code\":500,\"message\":\"m\",\"type\":\"server_error\"}\n\n",
			LlamaCpp, "0c?", "", "server_error", -1, false,
		},
		{
			"Triton", "/v2/models/ensemble/generate_stream", sse(`{"model_name":"ensemble","text_output":"a"}`, `{"model_name":"ensemble","text_output":""}`, `{"model_name":"ensemble","text_output":"b"}`),
			Triton, "0c? 2c?", "", "", -1, true,
		},
		{
			"Gemini interactions", "/v1beta/interactions", sse(
				`{"event_type":"interaction.start","interaction":{"id":"i","model":"m","status":"in_progress"}}`,
				`{"event_type":"step.delta","index":0,"delta":{"type":"thought_summary","content":{"type":"text","text":"t"}}}`,
				`{"event_type":"step.delta","index":0,"delta":{"type":"thought_signature","signature":"s"}}`,
				`{"event_type":"step.delta","index":1,"delta":{"type":"text","text":"a"}}`,
				`{"event_type":"interaction.completed","interaction":{"id":"i","status":"completed","usage":{"total_input_tokens":4,"total_output_tokens":2,"total_thought_tokens":3}}}`,
				`[DONE]`,
			), GeminiInteractions, "1r? 3c?", "completed", "", 2, true,
		},
		{
			"Gemini: an error in the middle without data", "/v1beta/models/m:streamGenerateContent", "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"a\"}]}}]}\r\n\r\n{\r\n  \"error\": {\r\n    \"code\": 499,\r\n    \"status\": \"CANCELLED\"\r\n  }\r\n}\r\n",
			Gemini, "0c?", "", "499", -1, false,
		},
		{
			"Gemini: partial arguments", "/v1/models/m:streamGenerateContent", sse(
				`{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f"}}]}}]}`,
				`{"candidates":[{"content":{"parts":[{"functionCall":{"partialArgs":[{"jsonPath":"$.a","stringValue":"v"}]}}]}}]}`,
				`{"candidates":[{"content":{"parts":[{"functionCall":{"partialArgs":[{"jsonPath":"$.a","stringValue":""}]}}]}}]}`,
				`{"candidates":[{"content":{"parts":[{"functionCall":{}}]},"finishReason":"STOP"}]}`,
			), Gemini, "0t? 1t?", "STOP", "", -1, true,
		},
		{
			"Gemini: thoughts and an error in an array", "/v1beta/models/m:streamGenerateContent", "[{\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"a\",\"thought\":true}]}}]}\n,\r\n" +
				"{\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"]\",\"thought\":false},{\"text\":\"b\"}]}}]},\n{\"error\":{\"code\":503,\"status\":\"UNAVAILABLE\"}}]",
			Gemini, "0r? 1c?", "", "503", -1, false,
		},
		{
			"Ollama: generate with thinking", "/api/generate", `{"model":"m","response":"","thinking":"a","done":false}` + "\n" +
				`{"model":"m","response":"b","done":false}` + "\n" + `{"model":"m","response":"","done":true,"done_reason":"stop","eval_count":2}` + "\n",
			Ollama, "0r? 1c?", "stop", "", 2, true,
		},
		{
			"Replicate: plain text", "/v1/predictions/x/stream", "event: output\nid: 1:0\ndata: a\ndata: b\n\nevent: output\nid: 2:0\ndata:  c\n\nevent: done\nid: 3:0\ndata: {}\n\n",
			Replicate, "0c? 1c?", "", "", -1, true,
		},
		{
			"Replicate: text that looks like an error, then an error", "/v1/predictions/x/stream", "event: output\ndata: {\"error\":{\"type\":\"text\"}}\n\nevent: error\ndata: {\"detail\":\"m\"}\n\n",
			Replicate, "0c?", "", ErrorMessageOnly, -1, false,
		},
		{
			"vLLM: token IDs", chat, sse(
				`{"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"role":"assistant","content":""},"token_ids":null}],"prompt_token_ids":[1,2]}`,
				`{"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"a b"},"token_ids":[1,2,3]}]}`,
				`{"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":""},"token_ids":[4]}]}`,
				`{"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"reasoning":"c"},"token_ids":[5],"finish_reason":"length","stop_reason":null}]}`,
				`[DONE]`,
			), OpenAIChat, "1c3 3r2", "length", "", -1, true,
		},
		{
			"tokens without text belong to the next chunk alone", chat, sse(
				`{"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":""},"token_ids":[1,2]}]}`,
				`{"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"a"},"token_ids":[3]}]}`,
				`{"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"b"},"token_ids":[4]}]}`,
			), OpenAIChat, "1c3 2c1", "", "", -1, false,
		},
		{
			"an error outside the framing, then an event without a blank line", chat, sse(chatEvent("a")) + "{\"error\":{\"type\":\"t\"}}\n" + sse(chatEvent("b")),
			OpenAIChat, "0c? 1c?", "", "t", -1, false,
		},
		{
			"vLLM: continuous usage", chat, sse(
				`{"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"role":"assistant","content":""}}],"usage":{"prompt_tokens":9,"completion_tokens":0}}`,
				`{"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"a"}}],"usage":{"prompt_tokens":9,"completion_tokens":2}}`,
				`{"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"b"},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":7}}`,
				`{"object":"chat.completion.chunk","choices":[],"usage":{"prompt_tokens":9,"completion_tokens":7}}`,
				`[DONE]`,
			), OpenAIChat, "1c2 2c5", "stop", "", 7, true,
		},
		{
			"usage in the finish event alone does not count the last chunk", chat, sse(
				`{"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"a"}}]}`,
				`{"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"b"},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":7}}`,
			), OpenAIChat, "0c? 1c?", "stop", "", 7, true,
		},
		{
			"TGI: usage per choice adds up", "/v1/completions", sse(
				`{"object":"text_completion","choices":[{"index":0,"text":"a","finish_reason":""}]}`,
				`{"object":"text_completion","choices":[{"index":1,"text":"b","finish_reason":"length"}],"usage":{"prompt_tokens":2,"completion_tokens":3}}`,
				`{"object":"text_completion","choices":[{"index":0,"text":"c","finish_reason":"length"}],"usage":{"prompt_tokens":2,"completion_tokens":4}}`,
			), OpenAICompletions, "0c? 1c? 2c?", "length length", "", 7, true,
		},
		{
			"three choices in one event", chat, sse(`{"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"a"}},{"index":1,"delta":{"content":"b"}},{"index":2,"delta":{"content":""}}]}`),
			OpenAIChat, "0c?2", "", "", -1, false,
		},
		{
			"Groq: error event without end", chat, "data: {\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}}]}\n\nevent: error\ndata: {\"error\":{\"message\":\"m\",\"type\":\"invalid_request_error\",\"code\":\"tool_use_failed\"}}\n\n",
			OpenAIChat, "0c?", "", "invalid_request_error", -1, false,
		},
		{
			"Perplexity: the message beside the delta is cumulative", chat, sse(
				`{"object":"chat.completion.chunk","choices":[{"index":0,"message":{"content":"a"},"delta":{"role":"assistant","content":"a"}}]}`,
				`{"object":"chat.completion.done","choices":[{"index":0,"message":{"content":"a"},"delta":{"content":""},"finish_reason":"stop"}]}`,
			), OpenAIChat, "0c?", "stop", "", -1, true,
		},
		{
			"both names of the same reasoning", chat, sse(`{"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"","reasoning":"a","reasoning_details":[{"type":"reasoning.text","text":"a"}]}}]}`),
			OpenAIChat, "0r?", "", "", -1, false,
		},
		{
			"Mistral: both channels in one chunk", chat, sse(`{"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"a"}]},{"type":"text","text":"b"}]}}]}`),
			OpenAIChat, "0cr?", "", "", -1, false,
		},
		{
			"Responses: incomplete, with a refusal", "/v1/responses", sse(
				`{"type":"response.created","response":{"id":"r","object":"response","status":"in_progress","model":"m"}}`,
				`{"type":"response.refusal.delta","delta":"a"}`,
				`{"type":"response.refusal.done","refusal":"a"}`,
				`{"type":"response.incomplete","response":{"id":"r","status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"usage":{"input_tokens":1,"output_tokens":2}}}`,
			), OpenAIResponses, "1f?", "max_output_tokens", "", 2, true,
		},
		{
			"Responses: failed after an error event", "/v1/responses", sse(
				`{"type":"response.created","response":{"id":"r","object":"response","status":"in_progress"}}`,
				`{"type":"error","code":"rate_limit_exceeded","message":"m","param":null}`,
				`{"type":"response.failed","response":{"id":"r","status":"failed","error":{"code":"server_error","message":"m"}}}`,
			), OpenAIResponses, "", "failed", "rate_limit_exceeded", -1, true,
		},
		{
			"Anthropic: overloaded, redacted thinking", "/v1/messages", "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"i\",\"model\":\"m\",\"usage\":{\"input_tokens\":5,\"output_tokens\":2}}}\n\n" +
				"event: ping\ndata: {\"type\":\"ping\"}\n\ndata: {\"type\":\"content_block_start\",\"content_block\":{\"type\":\"redacted_thinking\",\"data\":\"x\"}}\n\n" +
				"event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"m\"},\"request_id\":\"r\"}\n\n",
			AnthropicMessages, "2r?", "", "overloaded_error", 2, false,
		},
		{
			"Ollama: thinking, a tool call, and an error after it", "/api/chat", `{"model":"m","message":{"role":"assistant","content":"","thinking":"a"},"done":false}` + "\n" +
				`{"model":"m","message":{"role":"assistant","content":"","tool_calls":[{"function":{"name":"f","arguments":{"a":1}}}]},"done":false}` + "\n" + `{"error":"boom"}` + "\n",
			Ollama, "0r? 1t?", "", ErrorMessageOnly, -1, false,
		},
		{
			"Bedrock: Jamba's events are OpenAI's, with metrics", "/model/ai21.jamba/invoke-with-response-stream", string(jamba(`{"id":"c","choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}]}`)) +
				string(jamba(`{"id":"c","choices":[{"index":0,"delta":{"content":""},"finish_reason":"stop"}],"amazon-bedrock-invocationMetrics":{"inputTokenCount":3,"outputTokenCount":2}}`)),
			BedrockInvoke, "0c?", "stop", "", 2, true,
		},
		{
			"a gateway's retry begins the message again", "/v1/messages", sse(
				`{"type":"message_start","message":{"id":"i","usage":{"input_tokens":5,"output_tokens":2}}}`,
				`{"type":"content_block_delta","delta":{"type":"text_delta","text":"a"}}`,
				`{"type":"message_start","message":{"id":"j","usage":{"input_tokens":5,"output_tokens":1}}}`,
				`{"type":"content_block_delta","delta":{"type":"text_delta","text":"a"}}`,
				`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":9}}`, `{"type":"message_stop"}`,
			), AnthropicMessages, "1c? 3c?", "end_turn", "", 9, true,
		},
		{
			"an event that is no JSON is skipped", chat, sse(`{"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"a"}}]}`, `{"choices":`, `{"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"b"}}]}`),
			OpenAIChat, "0c? 2c?", "", "", -1, false,
		},
		{
			"TGI on the root path: two answers in one document", "/", `[{"generated_text":"a"},{"generated_text":"b"}]`, TGI, "0c? 1c?", "", "", -1, true,
		},
		{
			"TGI on the root path: an error", "/", `{"error":"overloaded","error_type":"overloaded"}`, TGI, "", "", "overloaded", -1, true,
		},
		{
			"Bedrock: a Llama answer that was cut keeps its running count", "/model/llama/invoke-with-response-stream",
			string(jamba(`{"generation":"a","prompt_token_count":4,"generation_token_count":1}`)) + string(jamba(`{"generation":" b","generation_token_count":3}`)),
			BedrockInvoke, "0c1 1c2", "", "", 3, false,
		},
		{
			"Groq: usage beside a null one", chat, sse(
				`{"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"a"}}]}`,
				`{"object":"chat.completion.chunk","choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"x_groq":{"usage":{"completion_tokens":7}},"usage":null}`,
				`[DONE]`,
			), OpenAIChat, "0c?", "stop", "", 7, true,
		},
		{"another service on the root path", "/", `{"message":"hello","usage":3}`, "", "", "", "", -1, false},
		{"MCP over SSE", "/mcp", sse(`{"jsonrpc":"2.0","id":1,"result":{"content":"a"}}`), "", "", "", "", -1, false},
		{"embeddings", "/v1/embeddings", `{"object":"list","data":[{"embedding":[1]}],"usage":{"prompt_tokens":3}}`, "", "", "", "", -1, false},
		{"HTML", chat, "<html><body>502</body></html>", "", "", "", "", -1, false},
		{"an empty body", chat, "", "", "", "", "", -1, false},
		{"an unknown path", "/x", sse(`{"object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{"content":"a"}}]}`, `[DONE]`), OpenAIChat, "0c?", "", "", -1, true},
	} {
		t.Run(c.name, c.check)
	}
}

// describe prints index, channels and tokens of a chunk.
func describe(c Chunk) string {
	var text strings.Builder
	text.WriteString(strconv.FormatInt(c.Index, 10))
	for i, letter := range "crtfa" {
		if c.Channels>>i&1 == 1 {
			text.WriteRune(letter)
		}
	}
	if !c.Counted && c.Channels != Audio {
		text.WriteByte('?')
	}
	if c.Counted || c.Tokens > 1 {
		text.WriteString(strconv.FormatInt(c.Tokens, 10))
	}
	return text.String()
}

func TestDecoder_MarksAReplay(t *testing.T) {
	body := sse(`{"type":"response.output_text.delta","delta":"a"}`, `{"type":"response.completed","response":{"id":"r","status":"completed"}}`)
	assert.True(t, decode(AnswerHead{Path: "/v1/responses/r", RawQuery: "stream=true&starting_after=0"}, testLimits, []byte(body)).Replayed)
	assert.False(t, decode(AnswerHead{Path: "/v1/responses"}, testLimits, []byte(body)).Replayed)
}

// A read that first shows how a response ended is that response.
func TestDecoder_ReadsTheStatusOfEveryReading(t *testing.T) {
	body := sse(`{"type":"response.cancelled","response":{"id":"r","status":"cancelled"}}`)
	assert.True(t, decode(AnswerHead{Path: "/v1/responses/r", RawQuery: "stream=true"}, testLimits, []byte(body)).Cancelled)
	assert.True(t, decode(AnswerHead{Path: "/v1/responses"}, testLimits, []byte(body)).Cancelled)
}

// Only Gemini streams the elements of an array; several JSON texts in a row are a stream.
func TestDecoder_DistinguishesStreamsFromDocuments(t *testing.T) {
	const candidate = `{"candidates":[{"content":{"parts":[{"text":"a"}]}}]}`
	for body, streamed := range map[string]bool{
		`[{"generated_text":"a"}]`:                                  false,
		`[{"generated_text":"a"},{"generated_text":"b"}]`:           false,
		"[" + candidate + "," + candidate + "]":                     true,
		`{"response":"a","done":false}{"response":"b","done":true}`: true,
		chatEvent("a"): false,
	} {
		assert.Equal(t, streamed, decode(AnswerHead{Path: "/", Status: 200}, testLimits, []byte(body)).Streamed, body)
	}
}

func TestRequestOf(t *testing.T) {
	for _, c := range []struct {
		target, body string
		want         RequestFacts
	}{
		{"/openai/v1/chat/completions", `{"messages":[{"role":"user"}],"model":"gpt","stream":true}`, RequestFacts{Model: "gpt", Stream: true, Operation: "chat", Format: OpenAIChat}},
		{"/v1/chat/completions", `{"model":"gpt","stream":true,"messages":[{"content":"cut he`, RequestFacts{Model: "gpt", Stream: true, Operation: "chat", Format: OpenAIChat}},
		{"/openai/deployments/my%20gpt/chat/completions", `{"model":"ignored"}`, RequestFacts{Model: "my gpt", Operation: "chat", Format: OpenAIChat}},
		{"/together/v1/completions", `{"model":"m","stream":false}`, RequestFacts{Model: "m", Operation: "text_completion", Format: OpenAICompletions}},
		{"/v1/responses/resp_1?stream=true&starting_after=3", ``, RequestFacts{Stream: true, Operation: "chat", Format: OpenAIResponses, Replayed: true}},
		{"/v1/messages", `{"model":"claude","stream":true}`, RequestFacts{Model: "claude", Stream: true, Operation: "chat", Format: AnthropicMessages}},
		{"/v1/projects/p/locations/l/publishers/anthropic/models/claude@1:streamRawPredict", `{"stream":true}`, RequestFacts{Model: "claude@1", Stream: true, Operation: "chat", Format: AnthropicMessages}},
		{"/v1/projects/p/publishers/anthropic/models/claude@1:rawPredict", `{}`, RequestFacts{Model: "claude@1", Operation: "chat", Format: AnthropicMessages}},
		{"/v1beta/models/gemini-2:streamGenerateContent?alt=sse", `{}`, RequestFacts{Model: "gemini-2", Stream: true, Operation: "generate_content", Format: Gemini}},
		{"/v1/projects/p/endpoints/7:rawPredict", `{"model":"claude"}`, RequestFacts{Model: "claude", Operation: "chat", Format: AnthropicMessages}},
		{"/v1beta/models/gemini-2:generateContent", `{"stream":true}`, RequestFacts{Model: "gemini-2", Operation: "generate_content", Format: Gemini}},
		{"/v1beta/openai/chat/completions", `{"model":"gemini","stream":true}`, RequestFacts{Model: "gemini", Stream: true, Operation: "chat", Format: OpenAIChat}},
		{"/model/us.anthropic.claude-v1%3A0/converse-stream", `{}`, RequestFacts{Model: "us.anthropic.claude-v1:0", Stream: true, Operation: "chat", Format: BedrockConverse}},
		{"/model/arn:aws:bedrock:us-east-1:1:inference-profile/x/invoke", `{}`, RequestFacts{Model: "arn:aws:bedrock:us-east-1:1:inference-profile/x", Operation: "chat", Format: BedrockInvoke}},
		{"/api/chat", `{"model":"llama"}`, RequestFacts{Model: "llama", Stream: true, Operation: "chat", SharedPath: "/api/chat"}},
		{"/api/generate", `{"model":"llama","stream":false}`, RequestFacts{Model: "llama", Operation: "text_completion", SharedPath: "/api/generate"}},
		{"/v2/models/ensemble/versions/1/generate_stream", `{"text_input":"a","parameters":{"stream":false}}`, RequestFacts{Model: "ensemble", Operation: "text_completion", Format: Triton}},
		{"/generate_stream", `{"inputs":"a"}`, RequestFacts{Stream: true, Operation: "text_completion", SharedPath: "/generate_stream", Fits: true}},
		{"/v2/chat", `{"model":"command","stream":true}`, RequestFacts{Model: "command", Stream: true, Operation: "chat", Format: Cohere}},
		{"/v1/realtime?model=gpt-realtime", ``, RequestFacts{Model: "gpt-realtime", Stream: true, Operation: "chat", Format: OpenAIRealtime}},
		{"/", `{"inputs":"a","stream":true}`, RequestFacts{Stream: true, Operation: "text_completion", SharedPath: "/", Fits: true}},
		{"/invocations", `{"inputs":"a"}`, RequestFacts{Operation: "text_completion", SharedPath: "/invocations", Fits: true}},
		{"/api/chat", `{"model":"llama","messages":[]}`, RequestFacts{Model: "llama", Stream: true, Operation: "chat", SharedPath: "/api/chat", Fits: true}},
		{"/v1/responses", `{"model":"m","generate":false}`, RequestFacts{Model: "m", Operation: "chat", Format: OpenAIResponses, NoTokens: true}},
		{"/v1/messages", `{"model":"m","max_tokens":0}`, RequestFacts{Model: "m", Operation: "chat", Format: AnthropicMessages, NoTokens: true}},
		{"/v1/responses/input_tokens", `{"model":"m"}`, RequestFacts{Model: "m", NoRequest: true}},
		{"/v1/responses/resp_1/cancel", ``, RequestFacts{NoRequest: true}},
		{"/v1/responses/resp_1/input_items", ``, RequestFacts{NoRequest: true}},
		{"/v1/messages/count_tokens", `{"model":"m"}`, RequestFacts{Model: "m", NoRequest: true}},
		{"/chain/invoke", `{"input":{}}`, RequestFacts{}},
		{"/mcp", `{"jsonrpc":"2.0"}`, RequestFacts{}},
		{"/v1/chat/completions", `[1,2`, RequestFacts{Operation: "chat", Format: OpenAIChat}},
	} {
		path, query, _ := strings.Cut(c.target, "?")
		assert.Equal(t, c.want, RequestOf(path, query, []byte(c.body)), c.target)
	}
}

func TestRequestOf_FindsTheModelsOfTheRecordings(t *testing.T) {
	for _, r := range recorded.Answers(t) {
		x := headOf(&r)
		if facts := RequestOf(x.Path, x.RawQuery, r.Request); r.RequestModel != "" {
			assert.Equal(t, strings.TrimPrefix(r.RequestModel, "models/"), facts.Model, r.File)
		}
	}
}
