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

// Events that are tokens, and events that repeat tokens or hold something else.
func TestDecoder_KnowsWhichEventsAreTokens(t *testing.T) {
	const chat, responses = "/v1/chat/completions", "/v1/responses"
	chunk := func(delta, rest string) string {
		return `{"object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":` + delta + rest + `}]}`
	}
	for _, c := range []answer{
		{
			"Copilot: reasoning text, and opaque reasoning", chat, sse(
				chunk(`{"role":"assistant","content":""}`, ""), chunk(`{"reasoning_text":"a"}`, ""), chunk(`{"reasoning_opaque":"AAAA"}`, ""), chunk(`{"content":"b"}`, `,"finish_reason":"stop"`), "[DONE]",
			), OpenAIChat, "1r? 3c?", "stop", "", -1, true,
		},
		{
			"a whole message repeats the deltas before it", chat, sse(
				chunk(`{"reasoning_content":"a"}`, ""), chunk(`{"content":"b"}`, `,"finish_reason":"stop"`),
				`{"object":"chat.completion","choices":[{"index":0,"finish_reason":"stop","message":{"content":"b","reasoning_content":"a"}}],"usage":{"total_tokens":25,"prompt_tokens":20,"completion_tokens":5}}`,
			), OpenAIChat, "0r? 1c?", "stop", "", 5, true,
		},
		{
			"a message after a delta without tokens is read", chat, sse(
				chunk(`{"role":"assistant","content":""}`, ""),
				`{"object":"chat.completion.chunk","choices":[{"index":0,"message":{"content":"a"}}]}`,
				`{"object":"chat.completion.chunk","choices":[{"index":0,"message":{"content":"b"}}]}`,
			), OpenAIChat, "1c? 2c?", "", "", -1, false,
		},
		{
			"audio in place of the content", chat, sse(
				chunk(`{"content":"a"}`, ""),
				`{"object":"chat.completion.chunk","modality":"audio","choices":[{"index":0,"delta":{"content":"UklGRg=="}}]}`,
				chunk(`{"content":"UklGRg=="}`, `,"modality":"audio"`), chunk(`{"content":"UklGRg==","modality":"audio"}`, ""), chunk(`{"modality":"audio","content":"UklGRg=="}`, ""),
				`{"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"b"},"finish_reason":"stop"}],"modality":"TEXT"}`,
			), OpenAIChat, "0c? 5c?", "stop", "", -1, true,
		},
		{
			"completions: an echo of the prompt is no output", "/v1/completions", sse(
				`{"object":"text_completion","choices":[{"index":0,"text":"q r a","logprobs":{"tokens":["q"," r"," a"],"token_logprobs":[null,-1,-1]}}]}`,
				`{"object":"text_completion","choices":[{"index":0,"text":" b c","logprobs":{"tokens":[" b"," c"],"token_logprobs":[-1,-1]},"finish_reason":"length"}]}`,
			), OpenAICompletions, "0c? 1c2", "length", "", -1, true,
		},
		{
			"Responses: patches and commands of a shell, and what the shell returned", responses, sse(
				`{"type":"response.output_text.delta","delta":"a"}`, `{"type":"response.apply_patch_call_operation_diff.delta","delta":"+b"}`,
				`{"type":"response.apply_patch_call_operation_diff.done","diff":"+b"}`, `{"type":"response.shell_call_command.delta","command_index":0,"delta":"ls"}`,
				`{"type":"response.shell_call_output_content.delta","delta":{"stdout":"c"}}`, `{"type":"response.shell_call_output_content.delta","delta":"c"}`,
				`{"type":"response.some_new_call.delta","delta":"d"}`, `{"type":"response.some_new_call.delta","delta":{"a":"d"}}`, `{"type":"response.some_new_call.done","delta":"d"}`,
				`{"type":"response.audio.delta","delta":"AAAA"}`, `{"type":"response.output_audio.delta","delta":"AAAA"}`, `{"type":"response.image_generation_call.delta","delta":"AAAA"}`,
				`{"type":"response.audio.transcript.delta","delta":"e"}`,
			), OpenAIResponses, "0c? 1t? 3t? 6t? 9a 10a 12c?", "", "", -1, false,
		},
		{
			"Responses: a whole answer of a patch and a command", responses,
			`{"object":"response","status":"completed","output":[{"type":"apply_patch_call","operation":{"type":"create_file","diff":"+a"}}],"usage":{"output_tokens":3}}`,
			OpenAIResponses, "0t?", "completed", "", 3, true,
		},
		{
			"SGLang: cumulative token IDs", "/generate", sse(
				`{"output_ids":[11],"meta_info":{"prompt_tokens":3,"completion_tokens":1,"finish_reason":null}}`,
				`{"output_ids":[11,12],"meta_info":{"prompt_tokens":3,"completion_tokens":2,"finish_reason":null}}`,
				`{"output_ids":[11,12],"meta_info":{"prompt_tokens":3,"completion_tokens":2,"finish_reason":null}}`,
				`{"output_ids":[11,12,13,14],"meta_info":{"prompt_tokens":3,"completion_tokens":4,"finish_reason":{"type":"length","length":4}}}`,
				`[DONE]`,
			), SGLang, "0c1 1c1 3c2", "length", "", 4, true,
		},
		{
			"SGLang: increments of token IDs of two choices", "/generate", sse(
				`{"index":0,"output_ids":[11],"meta_info":{"completion_tokens":1,"finish_reason":null}}`,
				`{"index":1,"output_ids":[21,22],"meta_info":{"completion_tokens":2,"finish_reason":null}}`,
				`{"index":0,"output_ids":[12],"meta_info":{"completion_tokens":2,"finish_reason":{"type":"stop"}}}`,
				`{"index":1,"output_ids":[23],"meta_info":{"completion_tokens":3,"finish_reason":{"type":"length"}}}`,
				`[DONE]`,
			), SGLang, "0c1 1c2 2c1 3c1", "stop length", "", 3, true,
		},
		{
			"vLLM: token IDs in and out", "/inference/v1/generate", sse(
				`{"request_id":"r","choices":[{"index":0,"logprobs":null,"finish_reason":null,"token_ids":[11]}],"usage":null}`,
				`{"request_id":"r","choices":[{"index":0,"logprobs":null,"finish_reason":"length","token_ids":[12,13]}],"usage":null}`,
				`{"request_id":"r","choices":[],"usage":{"prompt_tokens":7,"total_tokens":10,"completion_tokens":3}}`,
				`[DONE]`,
			), VLLM, "0c1 1c2", "length", "", 3, true,
		},
		{
			"vLLM: a whole answer of token IDs", "/inference/v1/generate",
			`{"request_id":"r","choices":[{"index":0,"logprobs":null,"finish_reason":"stop","token_ids":[11,12]}],"prompt_logprobs":null}`,
			VLLM, "0c2", "stop", "", -1, true,
		},
		{
			"LightLLM: the last token says that it is", "/generate_stream", sse(
				`{"token":{"id":6,"text":"a","special":false,"count_output_tokens":1,"prompt_tokens":9},"generated_text":null,"finished":false,"finish_reason":null,"details":null}`,
				`{"token":{"id":7,"text":"b","special":false,"count_output_tokens":2,"prompt_tokens":9},"generated_text":null,"finished":true,"finish_reason":"stop","details":null}`,
			), TGI, "0c1 1c1", "stop", "", 2, true,
		},
		{
			"LightLLM: a whole answer of two choices", "/generate", `{"generated_text":["a","b"],"count_output_tokens":[3,4],"finish_reason":["stop","length"],"prompt_tokens":9}`,
			TGI, "0c?2", "stop length", "", 7, true,
		},
		{
			"LM Studio", "/api/v1/chat", named(
				`{"type":"chat.start","model_instance_id":"q/m"}`, `{"type":"prompt_processing.progress","progress":0.5}`, `{"type":"reasoning.delta","content":"a"}`,
				`{"type":"tool_call.start","tool":"f"}`, `{"type":"tool_call.arguments","tool":"f","arguments":{"x":1}}`, `{"type":"tool_call.success","tool":"f","output":"y"}`,
				`{"type":"message.start"}`, `{"type":"message.delta","content":"b"}`,
				`{"type":"chat.end","result":{"model_instance_id":"q/m","output":[{"type":"message","content":"b"}],"stats":{"input_tokens":30,"total_output_tokens":4,"reasoning_output_tokens":2,"time_to_first_token_seconds":0.2},"response_id":"resp_1"}}`,
			), LMStudio, "2r? 3t? 4t? 7c?", "", "", 4, true,
		},
		{
			"LM Studio: a whole answer", "/api/v1/chat",
			`{"model_instance_id":"q/m","output":[{"type":"reasoning","content":"a"},{"type":"message","content":"b"}],"stats":{"input_tokens":30,"total_output_tokens":4},"response_id":"resp_1"}`,
			LMStudio, "0cr?", "", "", 4, true,
		},
		{
			"LM Studio: an error", "/api/v1/chat", named(
				`{"type":"chat.start","model_instance_id":"q/m"}`, `{"type":"message.delta","content":"b"}`, `{"type":"error","error":{"type":"internal_error","message":"m"}}`,
			), LMStudio, "1c?", "", "internal_error", -1, false,
		},
		{
			"Workers AI", "/client/v4/accounts/x/ai/run/@cf/meta/llama-3.1-8b-instruct", sse(
				`{"response":"a","p":"abc"}`, `{"response":" b"}`, `{"response":"","tool_calls":[{"name":"f","arguments":{"x":1}}]}`,
				`{"response":"","usage":{"prompt_tokens":9,"completion_tokens":3,"total_tokens":12}}`, `[DONE]`,
			), WorkersAI, "0c? 1c? 2t?", "", "", 3, true,
		},
		{
			"Mistral's conversations", "/v1/conversations", named(
				`{"type":"conversation.response.started","conversation_id":"conv_1"}`,
				`{"type":"message.output.delta","content":{"type":"thinking","thinking":[{"type":"text","text":"a"}]},"model":"m"}`,
				`{"type":"tool.execution.started","name":"web_search","arguments":""}`, `{"type":"tool.execution.delta","name":"","arguments":"{"}`, `{"type":"tool.execution.done","name":"web_search","info":{"x":"y"}}`,
				`{"type":"message.output.delta","content":"b","model":"m"}`, `{"type":"message.output.delta","content":""}`, `{"type":"message.output.delta","content":{"type":"tool_reference","tool":"web_search","title":"t"}}`,
				`{"type":"function.call.delta","name":"f","arguments":"{"}`, `{"type":"function.call.delta","name":"","arguments":"}"}`,
				`{"type":"conversation.response.done","usage":{"prompt_tokens":7,"completion_tokens":4,"total_tokens":11}}`,
			), MistralConversations, "1r? 2t? 3t? 5c? 8t? 9t?", "", "", 4, true,
		},
		{
			"Mistral's conversations: a whole answer", "/v1/conversations/conv_1",
			`{"object":"conversation.response","conversation_id":"conv_1","outputs":[{"type":"tool.execution","name":"web_search"},{"type":"message.output","content":[{"type":"text","text":"a"}],"model":"m"}],"usage":{"prompt_tokens":7,"completion_tokens":4}}`,
			MistralConversations, "0ct?", "", "", 4, true,
		},
		{
			"Mistral's conversations: an error", "/v1/conversations/conv_1/restart", named(
				`{"type":"conversation.response.started","conversation_id":"conv_1"}`, `{"type":"message.output.delta","content":"a"}`, `{"type":"conversation.response.error","message":"m","code":3000}`,
			), MistralConversations, "1c?", "", "3000", -1, false,
		},
		{
			"DashScope: cumulative text", "/api/v1/services/aigc/text-generation/generation", dashScopeEvents(
				`{"output":{"choices":[{"message":{"role":"assistant","content":"","reasoning_content":"a"},"finish_reason":"null"}]},"usage":{"input_tokens":5,"output_tokens":1},"request_id":"r"}`,
				`{"output":{"choices":[{"message":{"role":"assistant","content":"b","reasoning_content":"a"},"finish_reason":"null"}]},"usage":{"input_tokens":5,"output_tokens":3},"request_id":"r"}`,
				`{"output":{"choices":[{"message":{"role":"assistant","content":"b c","reasoning_content":"a"},"finish_reason":"null"}]},"usage":{"input_tokens":5,"output_tokens":4},"request_id":"r"}`,
				`{"output":{"choices":[{"message":{"role":"assistant","content":"b c","reasoning_content":"a"},"finish_reason":"stop"}]},"usage":{"input_tokens":5,"output_tokens":4},"request_id":"r"}`,
			), DashScope, "0r1 1c2 2c1", "stop", "", 4, true,
		},
		{
			"DashScope: increments", "/api/v1/services/aigc/multimodal-generation/generation", dashScopeEvents(
				`{"output":{"choices":[{"message":{"content":[{"text":"a"}]},"finish_reason":"null"}]},"usage":{"input_tokens":5,"output_tokens":1},"request_id":"r"}`,
				`{"output":{"choices":[{"message":{"content":[{"text":"b"}]},"finish_reason":"null"}]},"usage":{"input_tokens":5,"output_tokens":2},"request_id":"r"}`,
				`{"output":{"choices":[{"message":{"content":[],"tool_calls":[{"function":{"name":"f","arguments":""}}]},"finish_reason":"null"}]},"usage":{"input_tokens":5,"output_tokens":3},"request_id":"r"}`,
				`{"output":{"choices":[{"message":{"content":[]},"finish_reason":"tool_calls"}]},"usage":{"input_tokens":5,"output_tokens":3},"request_id":"r"}`,
			), DashScope, "0c1 1c1 2t1", "tool_calls", "", 3, true,
		},
		{
			"DashScope: text of an application, then an error", "/api/v1/apps/x/completion", dashScopeEvents(
				`{"output":{"text":"a","finish_reason":"null","session_id":"s"},"usage":{},"request_id":"r"}`, `{"output":{"text":"a b","finish_reason":"null","session_id":"s"},"usage":{},"request_id":"r"}`,
			) + "id:3\nevent:error\n:HTTP_STATUS/500\ndata:{\"code\":\"InternalError\",\"message\":\"m\",\"request_id\":\"r\"}\n\n",
			DashScope, "0c? 1c?", "", "InternalError", -1, false,
		},
		{
			"DashScope: a whole answer", "/api/v1/services/aigc/text-generation/generation", `{"output":{"text":"a b","finish_reason":"stop"},"usage":{"input_tokens":5,"output_tokens":2,"total_tokens":7},"request_id":"r"}`,
			DashScope, "0c2", "stop", "", 2, true,
		},
	} {
		t.Run(c.name, c.check)
	}
}

// named joins events to a stream in which each event is named by its type.
func named(events ...string) string {
	var body strings.Builder
	for _, e := range events {
		body.WriteString("event: " + string(value(e).get("type").raw()) + "\ndata: " + e + "\n\n")
	}
	return body.String()
}

// dashScopeEvents joins events to a stream of DashScope.
func dashScopeEvents(events ...string) string {
	return "id:1\nevent:result\n:HTTP_STATUS/200\ndata:" + strings.Join(events, "\n\nid:1\nevent:result\n:HTTP_STATUS/200\ndata:") + "\n\n"
}

func TestRequestOf_ReadsThePathsOfOwnFormats(t *testing.T) {
	for path, want := range map[string]RequestFacts{
		"/inference/v1/generate":           {Format: VLLM, Operation: "text_completion", Model: "b"},
		"/api/v1/chat":                     {SharedPath: "/api/v1/chat", Operation: "chat", Model: "b"},
		"/v1/chat":                         {SharedPath: "/v1/chat", Operation: "chat", Model: "b"},
		"/v1/conversations":                {SharedPath: "/v1/conversations", Operation: "chat", Model: "b"},
		"/v1/conversations/conv_1/restart": {SharedPath: "/v1/conversations/", Operation: "chat", Model: "b"},
		"/api/v1/services/aigc/text-generation/generation":       {Format: DashScope, Operation: "chat", Model: "b"},
		"/api/v1/services/aigc/multimodal-generation/generation": {SharedPath: "/services/aigc/multimodal-generation/generation", Operation: "chat", Model: "b"},
		"/api/v1/apps/x/completion":                              {Format: DashScope, Operation: "chat", Model: "b"},
		"/completion":                                            {SharedPath: "/completion", Operation: "text_completion", Model: "b"},
	} {
		assert.Equal(t, want, RequestOf(path, "", []byte(`{"model":"b"}`)), path)
	}
}

func TestTimings_OfEnginesInTheAnswer(t *testing.T) {
	const chat, completions = "/v1/chat/completions", "/v1/completions"
	metrics := `"metrics":{"queue_time_ms":10,"time_to_first_token_ms":80.5,"generation_time_ms":1200,"mean_itl_ms":9.1}`
	engine := Timings{Queue: optional.Of(10 * time.Millisecond), Prefill: optional.Of(80_500 * time.Microsecond), Decode: optional.Of(1200 * time.Millisecond)}
	for name, c := range map[string]struct {
		path, body string
		want       Timings
	}{
		"vLLM's chat":           {chat, sse(chatEvent("a"), `{"object":"chat.completion.chunk","choices":[],"usage":{"completion_tokens":1},`+metrics+`}`), engine},
		"vLLM's completions":    {completions, sse(`{"object":"text_completion","choices":[{"index":0,"text":"a","finish_reason":"stop"}],` + metrics + `}`), engine},
		"vLLM's responses":      {"/v1/responses", sse(`{"type":"response.output_text.delta","delta":"a"}`, `{"type":"response.completed","response":{"status":"completed",`+metrics+`}}`), engine},
		"vLLM without a timing": {chat, sse(chatEvent("a"), `{"object":"chat.completion.chunk","choices":[],"metrics":{"queue_time_ms":null}}`), Timings{}},
		"Cerebras": {
			chat, sse(chatEvent("a"), `{"object":"chat.completion.chunk","choices":[],"usage":{"completion_tokens":1},"time_info":{"queue_time":0.5,"prompt_time":0.25,"completion_time":0.125,"total_time":1,"created":1700000000}}`),
			Timings{Queue: optional.Of(500 * time.Millisecond), Prefill: optional.Of(250 * time.Millisecond), Decode: optional.Of(125 * time.Millisecond), Total: optional.Of(time.Second)},
		},
		"LM Studio": {
			"/api/v1/chat", named(`{"type":"chat.start"}`, `{"type":"chat.end","result":{"stats":{"total_output_tokens":4,"time_to_first_token_seconds":0.25}}}`),
			Timings{FirstToken: optional.Of(250 * time.Millisecond)},
		},
	} {
		assert.Equal(t, c.want, decode(AnswerHead{Path: c.path}, testLimits, []byte(c.body)).Timings, name)
	}
}

func TestDecoder_ReadsSpeculativeDecodingOfVLLM(t *testing.T) {
	s := decode(AnswerHead{Path: "/v1/chat/completions"}, testLimits, []byte(sse(chatEvent("a"),
		`{"object":"chat.completion.chunk","choices":[],"usage":{"completion_tokens":35},"metrics":{"speculative_decoding":{"num_spec_steps":43,"num_accepted_draft_tokens":10,"num_draft_tokens":129}}}`,
	)))
	assert.Equal(t, optional.Of[int64](10), s.AcceptedTokens)
	assert.Equal(t, optional.Of[int64](129), s.DraftTokens)
}

func TestWorkersAI_TakesTheModelOfThePath(t *testing.T) {
	const path = "/client/v4/accounts/x/ai/run/@cf/meta/llama-3.1-8b-instruct"
	assert.Equal(t, "@cf/meta/llama-3.1-8b-instruct", decode(AnswerHead{Path: path}, testLimits, []byte(sse(`{"response":"a"}`))).Model)
	assert.Empty(t, decode(AnswerHead{Path: "/x"}, testLimits, []byte(sse(`{"response":"a"}`))).Model)
	assert.Empty(t, decode(AnswerHead{Path: path}, testLimits, []byte(sse(`{"response":"a","other":1}`))).Format)
}
