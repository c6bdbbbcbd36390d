// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokenlatencyprocessor

// sourceRow is a system in the table of docs/sources.md. Its numbers come from processing its
// folders of testdata, which must all give the same. Systems with the same numbers share a row.
type sourceRow struct {
	system  string
	folders []string
	// estimates says what each estimated number is, apart from prefill.
	estimates []estimate
	// noTokens marks a system that reports no output tokens. The text below the table names it.
	noTokens bool
}

type estimate struct {
	numbers []string
	is      string
}

// Estimates that several rows share.
var (
	firstFrame  = estimate{[]string{"TTFT"}, "first frame"}
	untilTheEnd = estimate{[]string{"TPOT", "decode"}, "to the end"}
	ofFrames    = estimate{[]string{"TPOT", "ITL", "decode"}, "of frames"}
)

var sourceRows = []sourceRow{
	{system: "`token_tap`, if the service reports timings", folders: []string{"token_tap_service_timings", "token_tap_speculative"}},
	{system: "`token_stream`", folders: []string{"plain_stream"}},
	{system: "`token_stream` with the event `scheduled`", folders: []string{"queue_known"}},
	{system: "[chunk offsets](timeline-attributes.md)", folders: []string{"chunk_offsets", "chunk_offsets_of_an_instrumentation"}},

	{system: ".NET (Microsoft.Extensions.AI)", folders: []string{"semconv_dotnet"}, estimates: []estimate{untilTheEnd}},
	{system: "pydantic-ai", folders: []string{"semconv_pydantic_ai"}, estimates: []estimate{untilTheEnd}},
	{system: "Vercel AI SDK v6", folders: []string{"vercel_ai_v6", "vercel_ai_stream_object"}, estimates: []estimate{untilTheEnd}},
	{system: "Vercel AI SDK v7 with legacy telemetry", folders: []string{"vercel_ai_v7_legacy"}, estimates: []estimate{untilTheEnd}},
	{system: "Mastra", folders: []string{"mastra", "mastra_model_generation"}, estimates: []estimate{untilTheEnd}},
	{system: "AWS Strands Agents", folders: []string{"semconv_strands"}, estimates: []estimate{untilTheEnd}},
	{system: "Claude Code", folders: []string{"claude_code"}, estimates: []estimate{untilTheEnd}},
	{system: "GitHub Copilot Chat (earlier versions)", folders: []string{"copilot_chat"}, estimates: []estimate{untilTheEnd}},
	{system: "Braintrust", folders: []string{"braintrust"}, estimates: []estimate{untilTheEnd}},
	{
		system: "any sender of `gen_ai.response.time_to_first_token` that [fits one unit](#units)", folders: []string{"semconv_one_unit"},
		estimates: []estimate{untilTheEnd},
	},
	{system: "any model call with `ttft_ms`", folders: []string{"span_events_milliseconds"}, estimates: []estimate{untilTheEnd}},
	{system: "python-genai", folders: []string{"semconv_python_genai"}, estimates: []estimate{untilTheEnd}},
	{system: "Vercel AI SDK v7", folders: []string{"vercel_ai_v7"}, estimates: []estimate{untilTheEnd}},
	{system: "OpenInference, Python", folders: []string{"openinference_python", "openinference_responses"}, estimates: []estimate{firstFrame, untilTheEnd}},
	{system: "Langfuse", folders: []string{"langfuse_js", "langfuse_python"}, estimates: []estimate{firstFrame, untilTheEnd}},
	{system: "Pipecat", folders: []string{"pipecat"}, estimates: []estimate{firstFrame, untilTheEnd}},
	{
		system: "OpenLIT", folders: []string{"openlit_streaming"},
		estimates: []estimate{firstFrame, untilTheEnd, {[]string{"mean gap"}, "mean gap of frames"}},
	},
	{system: "OpenLLMetry, Python", folders: []string{"openllmetry_python"}, estimates: []estimate{firstFrame, ofFrames}},
	{system: "LangSmith with `new_token` events", folders: []string{"langsmith"}, estimates: []estimate{firstFrame, ofFrames}},
	{system: "any model call with an event per chunk", folders: []string{"span_events_chunks"}, estimates: []estimate{firstFrame, ofFrames}},
	{system: "any model call with events `gen_ai.token.generated`", folders: []string{"span_events_tokens"}},
	{system: "OpenTelemetry's OpenAI instrumentation, JavaScript", folders: []string{"semconv_js"}},
	{system: "OpenLLMetry, JavaScript", folders: []string{"openllmetry_js"}},
	{system: "OpenInference, JavaScript, streamed chat", folders: []string{"openinference_js"}, noTokens: true},
	{system: "Logfire, streams", folders: []string{"logfire"}},

	{system: "LiteLLM, second OpenTelemetry integration", folders: []string{"litellm_v2", "litellm_v2_words_of_others"}, estimates: []estimate{untilTheEnd}},
	{system: "agentgateway", folders: []string{"agentgateway"}, estimates: []estimate{untilTheEnd}},
	{system: "Bifrost", folders: []string{"bifrost"}, estimates: []estimate{untilTheEnd}},
	{system: "NVIDIA Dynamo's frontend", folders: []string{"dynamo_frontend"}, estimates: []estimate{untilTheEnd}},
	{system: "Envoy AI Gateway, old releases", folders: []string{"envoy_ai_gateway_live_event"}, estimates: []estimate{firstFrame, untilTheEnd}},
	{system: "Envoy AI Gateway", folders: []string{"envoy_ai_gateway", "envoy_ai_gateway_conventions"}},
	{system: "LiteLLM, first OpenTelemetry integration", folders: []string{"litellm_v1", "litellm_v1_own_span"}},
	{
		system: "llm-d's sidecar", folders: []string{"llm_d"}, noTokens: true,
		estimates: []estimate{{[]string{"decode"}, "prefill, decode: HTTP requests"}},
	},

	{system: "RTP-LLM", folders: []string{"semconv_rtp_llm"}, estimates: []estimate{untilTheEnd}},
	{system: "any model call with events for first and last token", folders: []string{"span_events_first_and_last"}},

	{system: "vLLM", folders: []string{"vllm"}},
	{system: "SGLang", folders: []string{"sglang"}},
	{system: "TensorRT-LLM", folders: []string{"tensorrt_llm"}, estimates: []estimate{untilTheEnd}},
	{
		system: "NVIDIA Dynamo's worker", folders: []string{"dynamo_worker"},
		estimates: []estimate{untilTheEnd, {[]string{"ITL mean/p50/p99/max"}, "mean/p50/p99/max of chunks"}},
	},
	{system: "TGI", folders: []string{"tgi_stream", "tgi_generate"}, noTokens: true},
}

// unusualCalls lists the folders of calls that are not plain streams. They have no row: the page says
// why numbers of such calls are missing.
var unusualCalls = []string{
	"token_tap_uncounted",
	"token_tap_not_streaming",
	"token_tap_stream_stopped",
	"token_tap_unparsed",
	"openllmetry_dropped_events",
	"openllmetry_not_streaming",
	"openllmetry_old_names",
	"vercel_ai_generate",
	"vercel_ai_aborted",
	"openlit_not_streaming",
	"litellm_v2_not_streaming",
	"langfuse_error",
	"semconv_cancelled", "semconv_interrupted",
	"semconv_ambiguous_unit",
	"semconv_not_read",
	"semconv_choices",
	"semconv_reasoning_excluded",
	"vllm_one_token",
	"vllm_pooling",
	"sglang_aborted",
	"sglang_decode",
	"tensorrt_llm_cancelled",
	"tensorrt_llm_prefill_only",
	"dynamo_cancelled",
	"dynamo_error",
}
