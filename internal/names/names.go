// Package names holds every attribute, metric and label name that tokenpulse
// reads or writes, once. The `gen_ai.*` names are still in development upstream
// and change between releases, so no other package spells one out.
package names

// Prefix is what our attributes and metrics begin with.
const Prefix = "tokenpulse."

// Attributes that the token_latency processor writes on a span. Those that are
// also the name of a metric of the token_sli exporter carry the same quantity.
// Durations are in seconds.
const (
	Source   = "tokenpulse.source"
	Vantage  = "tokenpulse.vantage"
	Outcome  = "tokenpulse.outcome"
	Estimate = "tokenpulse.estimated"

	TimeToFirstToken       = "tokenpulse.time_to_first_token"
	TimeToFirstOutputToken = "tokenpulse.time_to_first_output_token"
	TimePerOutputToken     = "tokenpulse.time_per_output_token"
	InterTokenLatency      = "tokenpulse.inter_token_latency"
	InterChunkLatency      = "tokenpulse.inter_chunk_latency"
	RequestDuration        = "tokenpulse.request.duration"
	QueueDuration          = "tokenpulse.queue.duration"
	PrefillDuration        = "tokenpulse.prefill.duration"
	DecodeDuration         = "tokenpulse.decode.duration"
	DecodeShare            = "tokenpulse.decode.share"
	OutputTokenRate        = "tokenpulse.output_token_rate"
	RequestTokenRate       = "tokenpulse.request_token_rate"
	StallCount             = "tokenpulse.stall.count"
	StallDuration          = "tokenpulse.stall.duration"
	FluidityIndex          = "tokenpulse.fluidity_index"
	ChunkCount             = "tokenpulse.chunk.count"
	TokenCount             = "tokenpulse.token_count"
	TokenCountMismatch     = "tokenpulse.token_count.mismatch"
	ClockAnomalies         = "tokenpulse.clock.anomalies"

	// Timeline holds a stream's chunk arrivals, as package timeline encodes them.
	Timeline = "tokenpulse.timeline"
	// ChunksDropped counts the chunks of a stream that its timeline lacks
	// because a limit of the receiver was reached.
	ChunksDropped = "tokenpulse.chunk.dropped"
	// StartUnseen is true on the span of a stream that was first heard of when it
	// was under way.
	StartUnseen = "tokenpulse.start.unseen"
	// Frames is true on the span of a stream of which the chunks are frames: some
	// may hold no token.
	Frames = "tokenpulse.chunk.frames"
	// InterTokenLatencySketch and InterChunkLatencySketch hold the request's
	// distribution, as package sketch encodes it.
	InterTokenLatencySketch = "tokenpulse.inter_token_latency.sketch"
	InterChunkLatencySketch = "tokenpulse.inter_chunk_latency.sketch"
)

// Attributes that the token_latency processor writes when it sees a whole trace.
const (
	// NetworkDuration is how much longer the first token took to the client than
	// to the engine.
	NetworkDuration = "tokenpulse.network.duration"

	// Those of a trace's root span sum up its model calls.
	TraceCalls        = "tokenpulse.trace.model_call.count"
	TraceCallDuration = "tokenpulse.trace.model_call.duration"
	TraceCallShare    = "tokenpulse.trace.model_call.share"
	TraceInputTokens  = "tokenpulse.trace.input_tokens"
	TraceOutputTokens = "tokenpulse.trace.output_tokens"
	TraceTimeToAnswer = "tokenpulse.trace.time_to_answer"
)

// SpanAttributeCapacity is the number of attributes to allocate for a model-call
// span: about ten from token_stream and up to 28 from token_latency. One allocation
// is cheaper than two, and 38 is the largest count in its allocation size class.
const SpanAttributeCapacity = 38

// Suffixes of InterTokenLatency and InterChunkLatency.
const (
	SuffixMean = ".mean"
	SuffixP50  = ".p50"
	SuffixP95  = ".p95"
	SuffixP99  = ".p99"
	SuffixMax  = ".max"
)

// Values of Vantage: who looked at the clock.
const (
	VantageClient  = "client"
	VantageGateway = "gateway"
	VantageServer  = "server"
	VantageEngine  = "engine"
)

// Values of Outcome.
const (
	OutcomeSuccess    = "success"
	OutcomeError      = "error"
	OutcomeCancelled  = "cancelled"
	OutcomeIncomplete = "incomplete"
)

// Values of Source: which reader found the timings.
const (
	SourceTokenStream    = "token_stream"
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
)

// Attributes of the OpenTelemetry conventions.
const (
	ServiceName               = "service.name"
	GenAIOperationName        = "gen_ai.operation.name"
	GenAIProviderName         = "gen_ai.provider.name"
	GenAIRequestModel         = "gen_ai.request.model"
	GenAIRequestStream        = "gen_ai.request.stream"
	GenAIFinishReasons        = "gen_ai.response.finish_reasons"
	GenAITimeToFirstChunk     = "gen_ai.response.time_to_first_chunk"
	GenAIInputTokens          = "gen_ai.usage.input_tokens"
	GenAIOutputTokens         = "gen_ai.usage.output_tokens"
	GenAIReasoningTokens      = "gen_ai.usage.reasoning.output_tokens"
	GenAICacheReadInputTokens = "gen_ai.usage.cache_read.input_tokens"
	ErrorType                 = "error.type"
	OpenInferenceSpanKind     = "openinference.span.kind"
)

// Metrics of the token_sli exporter that no span attribute is named after.
const (
	PhaseDuration = "tokenpulse.phase.duration"
	Requests      = "tokenpulse.requests"
	Tokens        = "tokenpulse.tokens"
	Stalls        = "tokenpulse.stalls"
	// SuffixQuantile follows a histogram's name.
	SuffixQuantile = ".quantile"
)

// Labels of the token_sli exporter's metrics, besides its dimensions.
const (
	LabelVantage  = "vantage"
	LabelOutcome  = "outcome"
	LabelPhase    = "phase"
	LabelType     = "type"
	LabelQuantile = "quantile"
	LabelWindow   = "window"
	// LabelOverflow marks the series that takes what the cardinality limit
	// turned away; the OpenTelemetry SDK specification names it.
	LabelOverflow = "otel.metric.overflow"
)

// Values of LabelPhase.
const (
	PhaseQueue   = "queue"
	PhasePrefill = "prefill"
	PhaseDecode  = "decode"
)

// Values of LabelType.
const (
	TokensInput       = "input"
	TokensOutput      = "output"
	TokensReasoning   = "reasoning"
	TokensCachedInput = "cached_input"
)
