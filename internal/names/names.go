// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Package names holds the attribute, event, metric and label names of tokenpulse,
// and the names of the OpenTelemetry conventions that it uses. Components and other
// internal packages refer to these constants, because the `gen_ai.*` names are in
// development upstream and are renamed between releases. Names that only identify
// one instrumentation are in its file of package source.
package names

import "slices"

// Prefix is the prefix of every attribute, event and metric of tokenpulse.
const Prefix = "tokenpulse."

// Attributes of a model call's span. SpanAttributes says what each one holds and
// which component writes it. Those that hold numbers are in package numbers.
const (
	Source    = "tokenpulse.source"
	Vantage   = "tokenpulse.vantage"
	Outcome   = "tokenpulse.outcome"
	Estimated = "tokenpulse.estimated"
	Buffered  = "tokenpulse.stream.buffered"
	// Unmeasured lists entries made by UnmeasuredEntry.
	Unmeasured = "tokenpulse.unmeasured"

	StalledAtEnd = "tokenpulse.stall.at_end"

	// Joined lists the attributes that come from other spans: their names without Prefix, "=", and the
	// span ID.
	Joined = "tokenpulse.joined"

	Timeline      = "tokenpulse.timeline" // encoded by package timeline
	ChunkOffsets  = "tokenpulse.chunk.offsets"
	ChunkTokens   = "tokenpulse.chunk.tokens"
	ChunkChannels = "tokenpulse.chunk.channels"
	ChunksDropped = "tokenpulse.chunk.dropped"
	StartUnseen   = "tokenpulse.start.unseen"
	Frames        = "tokenpulse.chunk.frames"
	Cut           = "tokenpulse.cut"
	Aggregated    = "tokenpulse.aggregated"
	Repeated      = "tokenpulse.repeated"
	Cold          = "tokenpulse.cold"
	Interrupted   = "tokenpulse.interrupted"
	Unparsed      = "tokenpulse.tap.unparsed"
	Untimed       = "tokenpulse.tap.untimed"
	Uncounted     = "tokenpulse.tap.uncounted"
)

// booleans are only written if they are true.
var booleans = []string{Buffered, StalledAtEnd, StartUnseen, Frames, Aggregated, Uncounted, Cold, Interrupted}

// IsBoolean reports whether an attribute of a model call's span is a boolean of ours, which is false if it is missing.
func IsBoolean(name string) bool { return slices.Contains(booleans, name) }

// Values of Untimed.
const (
	UntimedWhole     = "whole"
	UntimedReplayed  = "replayed"
	UntimedTokenless = "tokenless"
	UntimedUnparsed  = "unparsed"
)

// Attributes of the root span of a trace, besides the number numbers.TimeToAnswer.
const (
	TracePrefix       = "tokenpulse.trace."
	TraceCalls        = "tokenpulse.trace.model_call.count"
	TraceCallDuration = "tokenpulse.trace.model_call.duration"
	TraceCallShare    = "tokenpulse.trace.model_call.share"
	TraceInputTokens  = "tokenpulse.trace.input_tokens"
	TraceOutputTokens = "tokenpulse.trace.output_tokens"
)

// Values of Outcome.
const (
	OutcomeSuccess    = "success"
	OutcomeError      = "error"
	OutcomeCancelled  = "cancelled"
	OutcomeIncomplete = "incomplete"
)

// UnmeasuredIndicators are the quantities whose absence has a reason: attributes without Prefix. Every request has the
// first two or a reason; those whose chunks were observed have the last one or a reason.
var UnmeasuredIndicators = [...]string{"time_to_first_token", "time_per_output_token", "tokens_per_chunk"}

// UnmeasuredReasons are these reasons. Of several, the first counts.
var UnmeasuredReasons = [...]string{
	"implausible", "no_token", "ambiguous_unit", "not_streamed", "not_read", "not_reported", "dropped_events", "buffered", "one_token",
}

// FailureCauses are the causes of failed requests, by the HTTP status of the answer: a mistake of the client,
// 429, 5xx, and all others.
var FailureCauses = [...]string{"client", "rate_limit", "server", "other"}

// UnmeasuredEntry returns the entry of Unmeasured for an indicator without a value.
func UnmeasuredEntry(indicator, reason string) string { return indicator + "=" + reason }

// CutCollector is the value of Cut.
const CutCollector = "collector"

// Values of Source.
const (
	SourceTokenStream    = "token_stream"
	SourceTokenTap       = "token_tap"
	SourceChunkOffsets   = "chunk_offsets"
	SourceSpanEvents     = "span_events"
	SourceSemconv        = "semconv"
	SourceOpenLLMetry    = "openllmetry"
	SourceOpenInference  = "openinference"
	SourceVercelAI       = "vercel_ai"
	SourceLangfuse       = "langfuse"
	SourceLangSmith      = "langsmith"
	SourceMastra         = "mastra"
	SourceOpenLIT        = "openlit"
	SourceVLLM           = "vllm"
	SourceSGLang         = "sglang"
	SourceTensorRTLLM    = "tensorrt_llm"
	SourceTGI            = "tgi"
	SourceDynamo         = "dynamo"
	SourceLLMD           = "llm_d"
	SourceEnvoyAIGateway = "envoy_ai_gateway"
	SourceLiteLLM        = "litellm"
	SourceClaudeCode     = "claude_code"
	SourceAgentgateway   = "agentgateway"
	SourceBifrost        = "bifrost"
	SourcePipecat        = "pipecat"
	SourceCopilotChat    = "copilot_chat"
	SourceBraintrust     = "braintrust"
	SourceLogfire        = "logfire"
)

// UnknownService is the value of ServiceName that the OpenTelemetry conventions have for a service
// without a name.
const UnknownService = "unknown_service"

// Attributes of the OpenTelemetry conventions.
const (
	ServiceName                = "service.name"
	GenAIOperationName         = "gen_ai.operation.name"
	GenAIProviderName          = "gen_ai.provider.name"
	GenAISystem                = "gen_ai.system" // the former name of GenAIProviderName
	GenAIRequestModel          = "gen_ai.request.model"
	GenAIOutputType            = "gen_ai.output.type"
	GenAIRequestStream         = "gen_ai.request.stream"
	GenAIResponseModel         = "gen_ai.response.model"
	GenAIResponseID            = "gen_ai.response.id"
	GenAIFinishReasons         = "gen_ai.response.finish_reasons"
	GenAITimeToFirstChunk      = "gen_ai.response.time_to_first_chunk"
	GenAIInputTokens           = "gen_ai.usage.input_tokens"
	GenAIOutputTokens          = "gen_ai.usage.output_tokens"
	GenAIReasoningTokens       = "gen_ai.usage.reasoning.output_tokens"
	GenAICacheReadInputTokens  = "gen_ai.usage.cache_read.input_tokens"
	GenAICacheWriteInputTokens = "gen_ai.usage.cache_write.input_tokens"
	HTTPRequestMethod          = "http.request.method"
	HTTPResponseStatusCode     = "http.response.status_code"
	ServerAddress              = "server.address"
	ServiceInstanceID          = "service.instance.id"
	ServerPort                 = "server.port"
	ErrorType                  = "error.type"
	OpenInferenceSpanKind      = "openinference.span.kind"
)

// Metrics of the token_sli exporter and connector that share no name with a span
// attribute.
const (
	Requests = "tokenpulse.requests"
	// RequestsUnmeasured counts requests without an indicator.
	RequestsUnmeasured = "tokenpulse.requests.unmeasured"
	// RequestsFailed counts requests with the outcome error or incomplete.
	RequestsFailed = "tokenpulse.requests.failed"
	// StreamsOpen has the streams that have not ended.
	StreamsOpen = "tokenpulse.streams.open"
	// EngineState has the state of each engine that a receiver watches.
	EngineState = "tokenpulse.engine.state"
	// EngineSilence is how long each engine has sent no token although open requests should get some.
	EngineSilence = "tokenpulse.engine.silence"
	// CompareVerdict has the verdict on two values of a dimension.
	CompareVerdict = "tokenpulse.compare.verdict"
	// Metrics of the load at which replicas meet an objective.
	CapacityLoad        = "tokenpulse.capacity.load"
	CapacityLimit       = "tokenpulse.capacity.limit"
	CapacityUtilization = "tokenpulse.capacity.utilization"
	// SuffixPercentile makes the name of a histogram that of its percentile gauge.
	SuffixPercentile = ".percentile"
)

// Attributes of the conventions' metrics, besides those of spans.
const (
	GenAITokenType     = "gen_ai.token.type"
	GenAITokenModality = "gen_ai.token.modality"
	// ModalityUnknown is the value of GenAITokenModality for tokens whose modality is not reported.
	ModalityUnknown = "unknown"
)

// Labels of the metrics of token_sli, besides its dimensions.
const (
	LabelVantage    = "vantage"
	LabelOutcome    = "outcome"
	LabelPhase      = "phase"
	LabelPosition   = "position"
	LabelType       = "type"
	LabelPercentile = "percentile"
	LabelWindow     = "window"
	// Labels of RequestsUnmeasured.
	LabelIndicator = "indicator"
	LabelReason    = "reason"
	// LabelCause is a label of RequestsFailed, with a value of FailureCauses.
	LabelCause = "cause"
	// LabelSilent is a label of StreamsOpen, with a value of SilentBands.
	LabelSilent = "silent"
	// LabelEngine is a label of EngineState and EngineSilence, LabelState of EngineState.
	LabelEngine = "engine"
	LabelState  = "state"
	// Labels of CompareVerdict, with LabelVerdict.
	LabelDimension = "dimension"
	LabelBaseline  = "baseline"
	LabelCandidate = "candidate"
	// LabelKind is a label of CapacityLoad and CapacityLimit, with a value of capacity.Kind.
	LabelKind = "kind"
	// LabelOverflow marks the series of all requests beyond the series limit. The
	// OpenTelemetry SDK specification defines it.
	LabelOverflow = "otel.metric.overflow"
)

// Values of LabelPhase.
const (
	PhaseQueue   = "queue"
	PhasePrefill = "prefill"
	PhaseDecode  = "decode"
	PhaseNetwork = "network"
	// PhaseTransfer is that of a KV cache that goes from the engine of the prefill to that of the decode.
	PhaseTransfer = "transfer"
	// PhaseFirstToken is that of open streams before their first token. Afterwards they are in PhaseDecode.
	PhaseFirstToken = "first_token"
)

// Values of LabelType.
const (
	TokensInput       = "input"
	TokensOutput      = "output"
	TokensReasoning   = "reasoning"
	TokensCachedInput = "cached_input"
	TokensCacheWrite  = "cache_write"
)

// Modalities of tokens that the conventions have attributes for.
const (
	ModalityText  = "text"
	ModalityImage = "image"
	ModalityAudio = "audio"
)
