// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokenlatencyprocessor

// sourceRow is a row of the first table of docs/sources.md: a system that users run. Its numbers come
// from processing its folders of testdata, which must all give the same.
type sourceRow struct {
	system  string
	folders []string
	// reasons explains each estimated number.
	reasons []reason
	// more is the setting of the system that adds numbers, if there is one.
	more string
}

type reason struct {
	numbers []string
	because string
}

// caseRow is a row of the second table: a call that is not a plain stream.
type caseRow struct {
	situation string
	folder    string
}

// Reasons that several rows share.
var (
	prefillHoldsQueue = reason{[]string{"prefill"}, "prefill includes queue and network"}
	untilTheEnd       = reason{[]string{"TPOT", "decode"}, "TPOT and decode run until the request's end instead of the last token"}
	roleFrame         = reason{[]string{"TTFT"}, "TTFT is that of the first frame, which holds the role"}
	framesAreTokens   = reason{[]string{"TPOT", "ITL", "decode"}, "TPOT, ITL and decode are those of frames, some of which hold no token"}
)

const includeUsage = "`stream_options.include_usage` in the request, for tokens"

var sourceRows = []sourceRow{
	{
		system: "`token_stream`", folders: []string{"plain_stream"},
		reasons: []reason{prefillHoldsQueue},
		more:    "the event `scheduled`, for queue and an exact prefill",
	},
	{system: "`token_stream`, with `scheduled`", folders: []string{"queue_known"}},
	{system: "`token_tap`, with timings of the service", folders: []string{"token_tap_service_timings", "token_tap_speculative"}},
	{
		system: "OpenTelemetry conventions: .NET (Microsoft.Extensions.AI)", folders: []string{"semconv_dotnet"},
		reasons: []reason{prefillHoldsQueue, untilTheEnd},
		more:    "`LatestExperimental` as its `SemanticConvention` in the newest versions, for TTFT",
	},
	{
		system: "OpenTelemetry conventions: python-genai", folders: []string{"semconv_python_genai"},
		reasons: []reason{prefillHoldsQueue, untilTheEnd},
		more:    "opentelemetry-python-genai instead of the older packages in contrib, for TTFT",
	},
	{
		system: "OpenTelemetry conventions: pydantic-ai", folders: []string{"semconv_pydantic_ai"},
		reasons: []reason{prefillHoldsQueue, untilTheEnd},
		more:    "a new version, for TTFT",
	},
	{
		system: "OpenTelemetry conventions: instrumentation-openai (JavaScript)", folders: []string{"semconv_js"},
		more: includeUsage,
	},
	{
		system: "OpenLLMetry, Python", folders: []string{"openllmetry_python"},
		reasons: []reason{roleFrame, prefillHoldsQueue, framesAreTokens},
		more:    includeUsage + " reported by the service instead of counted frames",
	},
	{
		system: "OpenLLMetry, Python, more than 128 frames", folders: []string{"openllmetry_dropped_events"},
		reasons: []reason{{[]string{"ITL"}, "ITL lacks the oldest frames, which the SDK dropped"}},
		more:    "a higher limit of events per span in the SDK, for TTFT and TPOT",
	},
	{
		system: "OpenLLMetry, JavaScript", folders: []string{"openllmetry_js"},
		more: "`enrichTokens`, for tokens of streams, counted by OpenLLMetry",
	},
	{
		system: "OpenInference, Python", folders: []string{"openinference_python", "openinference_responses"},
		reasons: []reason{
			{[]string{"TTFT"}, "TTFT is that of the first frame, which holds the role or reports that the response was created"},
			prefillHoldsQueue, untilTheEnd,
		},
	},
	{system: "OpenInference, JavaScript, streamed chat", folders: []string{"openinference_js"}},
	{
		system: "Vercel AI SDK v6", folders: []string{"vercel_ai_v6", "vercel_ai_stream_object"},
		reasons: []reason{prefillHoldsQueue, untilTheEnd},
		more:    "`experimental_telemetry: { isEnabled: true }` in the call, for the spans",
	},
	{
		system: "Vercel AI SDK v7, legacy telemetry", folders: []string{"vercel_ai_v7_legacy"},
		reasons: []reason{prefillHoldsQueue, untilTheEnd},
		more:    "`GenAIOpenTelemetry` instead, for the mean gap",
	},
	{
		system: "Vercel AI SDK v7", folders: []string{"vercel_ai_v7"},
		reasons: []reason{prefillHoldsQueue, untilTheEnd},
	},
	{
		system: "Langfuse", folders: []string{"langfuse_js", "langfuse_python"},
		reasons: []reason{roleFrame, prefillHoldsQueue, untilTheEnd},
		more:    includeUsage + " and TPOT",
	},
	{
		system: "LangSmith, with `new_token` events", folders: []string{"langsmith"},
		reasons: []reason{roleFrame, prefillHoldsQueue, framesAreTokens},
		more:    "the events, which some senders omit: without them there are only tokens",
	},
	{
		system: "OpenLIT", folders: []string{"openlit_streaming"},
		reasons: []reason{
			roleFrame, prefillHoldsQueue, untilTheEnd,
			{[]string{"mean gap"}, "the mean gap is that of all frames"},
		},
		more: includeUsage + " reported by the service instead of counted by OpenLIT",
	},
	{
		system: "Mastra", folders: []string{"mastra", "mastra_model_generation"},
		reasons: []reason{prefillHoldsQueue, untilTheEnd},
	},
	{
		system: "AWS Strands Agents", folders: []string{"semconv_strands"},
		reasons: []reason{prefillHoldsQueue, untilTheEnd},
	},
	{
		system: "RTP-LLM", folders: []string{"semconv_rtp_llm"},
		reasons: []reason{prefillHoldsQueue, untilTheEnd},
	},
	{
		system: "any sender of `gen_ai.response.time_to_first_token` that [fits one unit](#units)", folders: []string{"semconv_one_unit"},
		reasons: []reason{prefillHoldsQueue, untilTheEnd},
		more:    "a unit that is known: `gen_ai.response.time_to_first_chunk`, in seconds",
	},
	{
		system: "Claude Code", folders: []string{"claude_code"},
		reasons: []reason{prefillHoldsQueue, untilTheEnd},
	},
	{
		system: "agentgateway", folders: []string{"agentgateway"},
		reasons: []reason{prefillHoldsQueue, untilTheEnd},
	},
	{
		system: "Bifrost", folders: []string{"bifrost"},
		reasons: []reason{prefillHoldsQueue, untilTheEnd},
	},
	{
		system: "GitHub Copilot Chat, earlier versions", folders: []string{"copilot_chat"},
		reasons: []reason{prefillHoldsQueue, untilTheEnd},
	},
	{
		system: "Braintrust", folders: []string{"braintrust"},
		reasons: []reason{prefillHoldsQueue, untilTheEnd},
	},
	{
		system: "Pipecat", folders: []string{"pipecat"},
		reasons: []reason{roleFrame, prefillHoldsQueue, untilTheEnd},
	},
	{system: "Logfire, streams", folders: []string{"logfire"}},
	{system: "vLLM", folders: []string{"vllm"}, more: "`--otlp-traces-endpoint`, for the spans; [its environment or `join`](whole-traces.md#the-model-of-an-engine), for the model"},
	{
		system: "SGLang", folders: []string{"sglang"},
		reasons: []reason{{[]string{"prefill"}, "prefill includes the queue"}},
		more:    "a release of September 2026 or later, for exact decode and TPOT",
	},
	{
		system: "TensorRT-LLM", folders: []string{"tensorrt_llm"},
		reasons: []reason{prefillHoldsQueue, untilTheEnd},
		more:    "`return_perf_metrics`, for its times, and for queue if measured",
	},
	{system: "TGI", folders: []string{"tgi_stream", "tgi_generate"}},
	{
		system: "NVIDIA Dynamo, frontend", folders: []string{"dynamo_frontend"},
		reasons: []reason{prefillHoldsQueue, untilTheEnd},
		more:    "`DYN_LOGGING_JSONL` and `OTEL_EXPORT_ENABLED`, for the spans",
	},
	{
		system: "NVIDIA Dynamo, worker", folders: []string{"dynamo_worker"},
		reasons: []reason{
			prefillHoldsQueue, untilTheEnd,
			{[]string{"ITL mean/p50/p99/max"}, "ITL is between chunks, each with any number of tokens"},
		},
		more: "`DYN_LOGGING_JSONL` and `OTEL_EXPORT_ENABLED`, for the spans",
	},
	{
		system: "llm-d, sidecar", folders: []string{"llm_d"},
		reasons: []reason{{[]string{"prefill", "decode"}, "prefill and decode are whole HTTP requests, including queue and network"}},
		more:    "the spans of the engine behind it, for TTFT",
	},
	{system: "Envoy AI Gateway", folders: []string{"envoy_ai_gateway", "envoy_ai_gateway_conventions"}},
	{
		system: "Envoy AI Gateway, old releases", folders: []string{"envoy_ai_gateway_live_event"},
		reasons: []reason{roleFrame, prefillHoldsQueue, untilTheEnd},
	},
	{
		system: "LiteLLM, first OpenTelemetry integration", folders: []string{"litellm_v1", "litellm_v1_own_span"},
		more: "the second integration, for TTFT and TPOT",
	},
	{
		system:  "LiteLLM, second OpenTelemetry integration",
		folders: []string{"litellm_v2", "litellm_v2_words_of_others"},
		reasons: []reason{prefillHoldsQueue, untilTheEnd},
	},
	{
		system: "any span with [chunk offsets](timeline-attributes.md)", folders: []string{"chunk_offsets", "chunk_offsets_of_an_instrumentation"},
		reasons: []reason{prefillHoldsQueue},
		more:    "`tokenpulse.queue.duration` on the span, for queue and an exact prefill",
	},
	{
		system: "any span of a model call with an event `gen_ai.token.generated` per chunk of tokens", folders: []string{"span_events_tokens"},
		reasons: []reason{prefillHoldsQueue},
		more:    "chunk offsets instead: SDKs keep 128 events per span",
	},
	{
		system: "any span of a model call with an event per chunk", folders: []string{"span_events_chunks"},
		reasons: []reason{
			{[]string{"TTFT"}, "TTFT is that of the first frame, which may hold no token"},
			prefillHoldsQueue, framesAreTokens,
		},
		more: "`token_stream` instead, for exact numbers",
	},
	{
		system: "any span of a model call with events for first and last token", folders: []string{"span_events_first_and_last"},
		reasons: []reason{prefillHoldsQueue},
		more:    "`token_stream` instead, for ITL",
	},
	{
		system: "any span of a model call with `ttft_ms`", folders: []string{"span_events_milliseconds"},
		reasons: []reason{prefillHoldsQueue, untilTheEnd},
		more:    "an event `last_token`, for exact decode and TPOT",
	},
}

var caseRows = []caseRow{
	{"`token_tap`, without usage", "token_tap_uncounted"},
	{"`token_tap`, not streamed", "token_tap_not_streaming"},
	{"`token_tap`, not streamed though the request asked for it", "token_tap_stream_stopped"},
	{"`token_tap`, an event before the first known token was too long", "token_tap_unparsed"},
	{"OpenLLMetry, Python, not streamed", "openllmetry_not_streaming"},
	{"OpenLLMetry, Python, aborted by the client", "openllmetry_old_names"},
	{"Vercel AI SDK v6, not streamed", "vercel_ai_generate"},
	{"Vercel AI SDK, aborted, in versions that send a span", "vercel_ai_aborted"},
	{"OpenLIT, not streamed", "openlit_not_streaming"},
	{"LiteLLM, not streamed", "litellm_v2_not_streaming"},
	{"Langfuse, failed", "langfuse_error"},
	{"OpenTelemetry conventions, cancelled, with a cancellation error", "semconv_cancelled"},
	{"OpenTelemetry conventions, a time of an unknown unit", "semconv_ambiguous_unit"},
	{"OpenTelemetry conventions, a timing under an unknown name", "semconv_not_read"},
	{"OpenTelemetry conventions, several answers", "semconv_choices"},
	{"OpenTelemetry conventions, output without reasoning", "semconv_reasoning_excluded"},
	{"vLLM, one token", "vllm_one_token"},
	{"vLLM, pooling", "vllm_pooling"},
	{"SGLang, aborted", "sglang_aborted"},
	{"SGLang, decode server before September 2026", "sglang_decode"},
	{"TensorRT-LLM, cancelled in the queue", "tensorrt_llm_cancelled"},
	{"TensorRT-LLM, prefill-only server", "tensorrt_llm_prefill_only"},
	{"NVIDIA Dynamo, worker, cancelled", "dynamo_cancelled"},
	{"NVIDIA Dynamo, worker, failed", "dynamo_error"},
}
