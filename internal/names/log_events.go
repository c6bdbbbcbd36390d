package names

// Log events that tell a stream, as the events of NDJSON do.
const (
	LogStreamStart     = "tokenpulse.stream.start"
	LogStreamScheduled = "tokenpulse.stream.scheduled"
	LogStreamChunk     = "tokenpulse.stream.chunk"
	LogStreamEnd       = "tokenpulse.stream.end"
)

// Log events of others, and span events of the same name. Each is one chunk of the
// stream that its span is.
const (
	LogTokenGenerated       = "gen_ai.token.generated"
	LogCompletionChunk      = "gen_ai.content.completion.chunk"
	LogCompletionChunkOfLLM = "llm.content.completion.chunk"
	LogContentChunk         = "gen_ai.content.chunk"
	LogStreamedChunk        = "gen_ai.stream.chunk"
)

// LogEventName is the attribute that held a log record's event name before the
// record had a field for it.
const LogEventName = "event.name"

// Attributes of log events that become those of a span, besides
// GenAIProviderName and GenAIOperationName.
const (
	PrefixGenAIRequest = "gen_ai.request."
	// GenAISystem is the former name of GenAIProviderName.
	GenAISystem = "gen_ai.system"
)

// Fields of the events of a stream, as attributes of LogStreamStart and so on.
const (
	LogStreamID     = "stream_id"
	LogTraceID      = "trace_id"
	LogSpanID       = "span_id"
	LogParentSpanID = "parent_span_id"
	LogVantage      = "vantage"
	LogAttributes   = "attributes"
	LogTokens       = "tokens"
	LogChannel      = "channel"
	LogSeq          = "seq"
	LogFinishReason = "finish_reason"
	LogError        = "error"
	LogCancelled    = "cancelled"
	// LogUsage is a map, or the first part of names: LogUsage + "." + field.
	LogUsage             = "usage"
	LogInputTokens       = "input_tokens"
	LogOutputTokens      = "output_tokens"
	LogReasoningTokens   = "reasoning_tokens"
	LogCachedInputTokens = "cached_input_tokens"
)
