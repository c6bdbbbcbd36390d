// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/internal/latency"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/numbers"
)

// Agents, steps and chains repeat the usage of the calls below them. Each pair is a model call and a
// span that resembles it but is not one.
func TestModelCall_IsClaimedAndSimilarSpanIsNot(t *testing.T) {
	engine := map[string]any{engineTimeToFirstToken: 0.1, engineEndToEnd: 0.5}
	tests := map[string]struct {
		call    call
		source  string
		another call
	}{
		"operation chat": {
			call{attributes: map[string]any{names.GenAIOperationName: "chat"}},
			"semconv",
			call{attributes: map[string]any{names.GenAIOperationName: "invoke_agent", names.GenAIOutputTokens: 12}},
		},
		"operation text_completion": {
			call{attributes: map[string]any{names.GenAIOperationName: "text_completion"}},
			"semconv",
			call{attributes: map[string]any{names.GenAIOperationName: "embeddings", names.GenAIInputTokens: 12}},
		},
		"operation generate_content": {
			call{attributes: map[string]any{names.GenAIOperationName: "generate_content"}},
			"semconv",
			call{attributes: map[string]any{names.GenAIOperationName: "execute_tool"}},
		},
		"Vercel AI SDK, streaming": {
			call{scope: "ai", attributes: map[string]any{"ai.operationId": "ai.streamText.doStream"}},
			"vercel_ai",
			call{scope: "ai", attributes: map[string]any{"ai.operationId": "ai.streamText"}},
		},
		"Vercel AI SDK, whole": {
			call{scope: "ai", attributes: map[string]any{"ai.operationId": "ai.generateObject.doGenerate"}},
			"vercel_ai",
			call{scope: "ai", attributes: map[string]any{"ai.operationId": "ai.toolCall"}},
		},
		"Vercel AI SDK, with the operation chat": {
			call{attributes: map[string]any{"ai.operationId": "ai.streamText.doStream", names.GenAIOperationName: "chat"}},
			"vercel_ai",
			call{attributes: map[string]any{"ai.operationId": "ai.streamText", names.GenAIOperationName: "invoke_agent"}},
		},
		"Vercel AI SDK, version 7": {
			call{scope: "gen_ai", attributes: map[string]any{names.GenAIOperationName: "chat"}},
			"vercel_ai",
			call{scope: "gen_ai", attributes: map[string]any{names.GenAIOperationName: "agent_step"}},
		},
		"OpenInference": {
			call{attributes: map[string]any{"openinference.span.kind": "LLM"}},
			"openinference",
			call{attributes: map[string]any{"openinference.span.kind": "AGENT", "llm.token_count.completion": 12}},
		},
		"Langfuse": {
			call{attributes: map[string]any{"langfuse.observation.type": "generation"}},
			"langfuse",
			call{attributes: map[string]any{"langfuse.observation.type": "embedding"}},
		},
		"LangSmith": {
			call{attributes: map[string]any{"langsmith.span.kind": "llm", names.GenAIOperationName: "chat"}},
			"langsmith",
			call{attributes: map[string]any{"langsmith.span.kind": "prompt", names.GenAIOperationName: "chat"}},
		},
		"Mastra": {
			call{attributes: map[string]any{"mastra.span.type": "model_inference"}},
			"mastra",
			call{attributes: map[string]any{"mastra.span.type": "model_chunk", names.GenAIOperationName: "model_chunk"}},
		},
		"Mastra, older": {
			call{attributes: map[string]any{"mastra.span.type": "model_generation", names.GenAIOperationName: "chat"}},
			"mastra",
			call{attributes: map[string]any{"mastra.span.type": "model_generation", names.GenAIOperationName: "model_generation"}},
		},
		"LiteLLM": {
			call{scope: "litellm", attributes: map[string]any{"llm.request.type": "acompletion"}},
			"litellm",
			call{scope: "litellm", attributes: map[string]any{"llm.request.type": "aembedding", "litellm.call_id": "c"}},
		},
		"LiteLLM, called in the process": {
			call{scope: "litellm", attributes: map[string]any{"llm.request.type": "completion", "llm.is_streaming": "True"}},
			"litellm",
			call{scope: "litellm", attributes: map[string]any{"llm.openai.usage": "{'completion_tokens': 12}"}},
		},
		"LiteLLM under another scope": {
			call{scope: "mine", attributes: map[string]any{names.GenAIOperationName: "aresponses", "litellm.call_id": "c"}},
			"litellm",
			call{scope: "mine", attributes: map[string]any{names.GenAIOperationName: "aresponses"}},
		},
		"OpenLLMetry, with no operation": {
			call{attributes: map[string]any{"llm.request.type": "chat", "gen_ai.is_streaming": false}},
			"openllmetry",
			call{attributes: map[string]any{"llm.request.type": "embedding", "gen_ai.is_streaming": false}},
		},
		"OpenLLMetry by its name and flag": {
			call{name: "openai.chat", attributes: map[string]any{"gen_ai.is_streaming": true}, events: []event{{name: "gen_ai.content.completion.chunk", after: ms}}},
			"openllmetry",
			call{name: "openai.embeddings", attributes: map[string]any{names.GenAIOperationName: "embeddings", "gen_ai.is_streaming": false}},
		},
		"LiteLLM by its old flag": {
			call{attributes: map[string]any{names.GenAIOperationName: "chat", "llm.is_streaming": "True"}},
			"litellm",
			call{attributes: map[string]any{"llm.is_streaming": "True"}},
		},
		"OpenLLMetry, which wrote that flag once": {
			call{name: "openai.chat", attributes: map[string]any{names.GenAIOperationName: "chat", "llm.is_streaming": true}},
			"openllmetry",
			call{attributes: map[string]any{names.GenAIOperationName: "invoke_agent", "llm.is_streaming": true}},
		},
		"Mastra by its first chunk": {
			call{attributes: map[string]any{names.GenAIOperationName: "chat", "mastra.completion_start_time": "2026-11-21T03:54:52.5Z"}},
			"mastra",
			call{attributes: map[string]any{names.GenAIOperationName: "model_generation", "mastra.completion_start_time": "2026-11-21T03:54:52.5Z"}},
		},
		"Langfuse by its first chunk": {
			call{attributes: map[string]any{names.GenAIOperationName: "chat", "langfuse.observation.completion_start_time": `"2026-11-21T03:54:52.5Z"`}},
			"langfuse",
			call{attributes: map[string]any{"langfuse.observation.type": "span", "langfuse.observation.completion_start_time": `"2026-11-21T03:54:52.5Z"`}},
		},
		"operation chat_streaming": {
			call{attributes: map[string]any{names.GenAIOperationName: "chat_streaming"}},
			"semconv",
			call{attributes: map[string]any{names.GenAIOperationName: "invoke_workflow", names.GenAIOutputTokens: 12}},
		},
		"operation responses, with the first token of an unknown sender": {
			call{attributes: map[string]any{names.GenAIOperationName: "responses", "gen_ai.server.time_to_first_token": 0.5}},
			"semconv",
			call{attributes: map[string]any{"gen_ai.server.time_to_first_token": 0.5}},
		},
		"operation text_completions": {
			call{attributes: map[string]any{names.GenAIOperationName: "text_completions"}},
			"semconv",
			call{attributes: map[string]any{names.GenAIOperationName: "rerank"}},
		},
		"OpenLIT by its scope": {
			call{scope: "openlit.otel.tracing", attributes: map[string]any{names.GenAIOperationName: "chat"}},
			"openlit",
			call{scope: "openlit.otel.tracing", attributes: map[string]any{names.GenAIOperationName: "embeddings"}},
		},
		"Logfire, a stream": {
			call{attributes: map[string]any{names.GenAIOperationName: "chat", "logfire.span_type": "log", "duration": 2.0}},
			"logfire",
			call{scope: "logfire.openai", attributes: map[string]any{names.GenAIOperationName: "chat", "logfire.span_type": "span"}},
		},
		"Logfire, whole by its request, and the begin of a stream with the model of its request as that of the answer": {
			call{scope: "logfire.openai", attributes: map[string]any{
				names.GenAIOperationName: "chat", "logfire.span_type": "span", "request_data": `{"model":"m"}`,
			}},
			"semconv",
			call{scope: "logfire.openai", attributes: map[string]any{
				names.GenAIOperationName: "chat", "logfire.span_type": "span", "request_data": `{"model":"m","stream":true}`, names.GenAIResponseModel: "m",
			}},
		},
		"another library's call without usage, through Logfire, and a log without a duration": {
			call{scope: "pydantic-ai", attributes: map[string]any{names.GenAIOperationName: "chat", "logfire.span_type": "span"}},
			"semconv",
			call{scope: "logfire.openai", attributes: map[string]any{names.GenAIOperationName: "chat", "logfire.span_type": "log"}},
		},
		"Pipecat, with observations of Langfuse": {
			call{name: "llm", attributes: map[string]any{names.GenAIOperationName: "chat", "metrics.ttfb": 0.5, "langfuse.observation.type": "generation"}},
			"pipecat",
			call{name: "tts", attributes: map[string]any{"metrics.ttfb": 0.5, "langfuse.observation.type": "span"}},
		},
		"Braintrust, with an attribute for each number": {
			call{attributes: map[string]any{"braintrust.span_attributes": `{"type":"llm"}`, "braintrust.metrics.completion_tokens": 12}},
			"braintrust",
			call{attributes: map[string]any{"braintrust.span_attributes": `{"type":"task"}`, "braintrust.metrics.completion_tokens": 12}},
		},
		"Logfire, whole": {
			call{attributes: map[string]any{names.GenAIOperationName: "chat", "logfire.span_type": "span", names.GenAIOutputTokens: 3}},
			"semconv",
			call{attributes: map[string]any{names.GenAIOperationName: "execute_tool", "logfire.span_type": "span"}},
		},
		"Pipecat": {
			call{name: "llm", attributes: map[string]any{"metrics.ttfb": 0.5}},
			"pipecat",
			call{name: "tts", attributes: map[string]any{"metrics.ttfb": 0.5}},
		},
		"Braintrust": {
			call{attributes: map[string]any{"braintrust.metrics": `{}`, "braintrust.span_attributes": `{"type": "llm"}`}},
			"braintrust",
			call{attributes: map[string]any{"braintrust.metrics": `{}`, "braintrust.span_attributes": `{"type":"task"}`}},
		},
		"vLLM, usage only": {
			call{name: "llm_request", attributes: map[string]any{"gen_ai.usage.completion_tokens": 12}},
			"vllm",
			call{name: "request", attributes: map[string]any{"gen_ai.usage.completion_tokens": 12}},
		},
		"unknown engine": {
			call{name: "generate", attributes: engine},
			"tensorrt_llm",
			call{name: "generate", attributes: with(engine, names.GenAIOperationName, "invoke_agent")},
		},
		"unknown engine, and a part of its request": {
			call{name: "request", attributes: engine},
			"tensorrt_llm",
			call{name: "decode_loop", attributes: map[string]any{engineEndToEnd: 0.5}},
		},
		"TensorRT-LLM by its cache transfer": {
			call{name: "llm_request", attributes: map[string]any{engineCacheTransfer: 0.01}},
			"tensorrt_llm",
			call{attributes: map[string]any{engineCacheTransfer: 0.01, "openinference.span.kind": "AGENT"}},
		},
		"llm-d, phases only": {
			call{attributes: map[string]any{"llm_d.pd_proxy.prefill_duration_ms": 400.0, "llm_d.pd_proxy.decode_duration_ms": 500.0}},
			"llm_d",
			call{attributes: map[string]any{"llm_d.pd_proxy.decode.duration_ms": 500.0}},
		},
		"vLLM": {
			call{name: "llm_request", attributes: engine},
			"vllm",
			call{name: "llm_request", attributes: map[string]any{"code.function": "step"}},
		},
		"SGLang": {
			call{name: " Req abcd1234", attributes: engine},
			"sglang",
			call{name: " Req abcd1234", attributes: map[string]any{"module": "sglang::kv_transfer"}},
		},
		"TensorRT-LLM": {
			call{scope: "trt.llm", name: "llm_request", attributes: engine},
			"tensorrt_llm",
			call{scope: "trt.llm", name: "disaggregated_request", attributes: map[string]any{}},
		},
		"TGI": {
			call{name: "generate", attributes: map[string]any{"total_time": "1s", "queue_time": "1ms"}},
			"tgi",
			call{name: "tokenize", attributes: map[string]any{"total_time": "1s", "queue_time": "1ms"}},
		},
		"Dynamo, with TGI's span name": {
			call{name: "generate", attributes: map[string]any{"ttft_ms": "12.50", "output_tokens": 12}},
			"dynamo",
			call{name: "handle_payload", attributes: map[string]any{"ttft_ms": "12.50"}},
		},
		"llm-d": {
			call{name: "llm_d.pd_proxy.request", attributes: map[string]any{"llm_d.pd_proxy.total_duration_ms": 500.0}},
			"llm_d",
			call{name: "llm_d.pd_proxy.decode", attributes: map[string]any{"llm_d.pd_proxy.decode.duration_ms": 400.0}},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, test.source, test.call.source(t))
			require.Empty(t, test.another.source(t))
			particular, _ := claimants(test.call.scope, test.call.span(t))
			require.LessOrEqual(t, len(particular), 1, "claimed by %v", particular)
		})
	}
}

// Several systems may send a span for one request. Their observations differ by vantage.
func TestVantage_ByInstrumentation(t *testing.T) {
	chat := map[string]any{names.GenAIOperationName: "chat"}
	tests := map[string]struct {
		call    call
		vantage string
	}{
		"client":               {call{kind: ptrace.SpanKindClient, attributes: chat}, "client"},
		"internal to a client": {call{kind: ptrace.SpanKindInternal, attributes: chat}, "client"},
		"server":               {call{kind: ptrace.SpanKindServer, attributes: chat}, "server"},
		"gateway":              {call{scope: "envoyproxy/ai-gateway", kind: ptrace.SpanKindClient, attributes: chat}, "gateway"},
		"proxy":                {call{scope: "litellm", kind: ptrace.SpanKindClient, attributes: chat}, "gateway"},
		"frontend":             {call{name: "http-request", attributes: map[string]any{"ttft_ms": "1"}}, "gateway"},
		"worker":               {call{name: "engine.generate", attributes: map[string]any{"ttft_ms": "1"}}, "engine"},
		"engine":               {call{name: "llm_request", kind: ptrace.SpanKindServer, attributes: map[string]any{engineEndToEnd: 0.5}}, "engine"},
		"carried by the span":  {call{attributes: with(chat, names.Vantage, "engine")}, "engine"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			o, _ := test.call.latency(t)
			require.Equal(t, test.vantage, o.Vantage.String())
		})
	}
}

func TestOutcome_ByInstrumentation(t *testing.T) {
	chat := map[string]any{names.GenAIOperationName: "chat"}
	engine := map[string]any{engineEndToEnd: 0.5}
	tests := map[string]struct {
		call    call
		outcome string
	}{
		"nothing reported":        {call{attributes: chat}, "success"},
		"stop, as a list":         {call{attributes: with(chat, names.GenAIFinishReasons, []any{"stop"})}, "success"},
		"stop, as a text":         {call{attributes: with(chat, names.GenAIFinishReasons, "stop")}, "success"},
		"an error, as a list":     {call{attributes: with(chat, names.GenAIFinishReasons, []any{"stop", "error"})}, "error"},
		"aborted, as JSON":        {call{name: " Req a", attributes: with(engine, names.GenAIFinishReasons, `["stop", "abort"]`)}, "cancelled"},
		"cancelled, as JSON":      {call{scope: "trt.llm", attributes: with(engine, names.GenAIFinishReasons, `["cancelled"]`)}, "cancelled"},
		"continued elsewhere":     {call{scope: "trt.llm", attributes: with(engine, names.GenAIFinishReasons, `["not_finished"]`)}, "incomplete"},
		"not finish reasons":      {call{attributes: with(chat, names.GenAIFinishReasons, []any{int64(1), nil, ""})}, "success"},
		"the client's own error":  {call{attributes: with(chat, names.ErrorType, "System.OperationCanceledException")}, "cancelled"},
		"another error":           {call{attributes: with(chat, names.ErrorType, "TimeoutError")}, "success"}, // the status is not an error
		"Dynamo: cancelled":       {call{name: "engine.generate", attributes: map[string]any{"cancelled": true}}, "cancelled"},
		"Dynamo: as a text":       {call{name: "engine.generate", attributes: map[string]any{"cancelled": "true"}}, "cancelled"},
		"Dynamo: not cancelled":   {call{name: "engine.generate", attributes: map[string]any{"cancelled": false}}, "success"},
		"Dynamo: dropped":         {call{name: "engine.generate", attributes: map[string]any{"ttft_ms": "1", "finish_reason": "Dropped"}}, "cancelled"},
		"Dynamo: an error's text": {call{name: "engine.generate", attributes: map[string]any{"ttft_ms": "1", "finish_reason": "Error(was Cancelled upstream)"}}, "error"},
		"Langfuse": {
			call{attributes: map[string]any{"langfuse.observation.type": "generation", "langfuse.observation.level": "ERROR"}}, "error",
		},
		"agentgateway, by the status of the answer": {call{scope: "agentgateway", attributes: with(chat, "http.status", 503)}, "error"},
		"agentgateway, answered":                    {call{scope: "agentgateway", attributes: with(chat, "http.status", 200)}, "success"},
		"Langfuse, a warning": {
			call{attributes: map[string]any{"langfuse.observation.type": "generation", "langfuse.observation.level": "WARNING"}}, "success",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, l := test.call.latency(t)
			require.Equal(t, test.outcome, l.Outcome)
		})
	}
}

// Phases are estimates for an engine whose prefill includes the queue, and for a gateway whose phases
// include the network.
func TestPhases_EstimatedIfTheyIncludeMore(t *testing.T) {
	phases := map[string]any{enginePrefill: 0.2, engineDecode: 0.6, engineTimeToFirstToken: 0.3}
	tests := map[string]struct {
		call            call
		prefill, decode latency.Measure
	}{
		"vLLM":   {call{name: "llm_request", attributes: phases}, exactly(0.2), exactly(0.6)},
		"SGLang": {call{name: "prefill Req a", attributes: phases}, about(0.2), exactly(0.6)},
		"llm-d": {call{attributes: map[string]any{
			"llm_d.pd_proxy.total_duration_ms": 900.0, "llm_d.pd_proxy.prefill_duration_ms": 200.0, "llm_d.pd_proxy.decode_duration_ms": 600.0,
		}}, about(0.2), about(0.6)},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, l := test.call.latency(t)
			require.Equal(t, test.prefill, l.Measures[numbers.PrefillDuration])
			require.Equal(t, test.decode, l.Measures[numbers.DecodeDuration])
		})
	}
}
