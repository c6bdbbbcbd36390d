// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package names

// Log events of a token stream. They have the fields of the NDJSON events.
const (
	LogStreamStart     = "tokenpulse.stream.start"
	LogStreamScheduled = "tokenpulse.stream.scheduled"
	LogStreamChunk     = "tokenpulse.stream.chunk"
	LogStreamEnd       = "tokenpulse.stream.end"
)

// Log events, and span events of the same names, that other instrumentations send.
// Each one is a chunk of the stream of its span.
const (
	LogTokenGenerated     = "gen_ai.token.generated"
	LogCompletionChunk    = "gen_ai.content.completion.chunk"
	LogLLMCompletionChunk = "llm.content.completion.chunk"
	LogContentChunk       = "gen_ai.content.chunk"
	LogGenAIStreamChunk   = "gen_ai.stream.chunk"
)

// LogEventName is the attribute with the event name in log records that predate the
// EventName field.
const LogEventName = "event.name"

// GenAISystem is the former name of GenAIProviderName.
const GenAISystem = "gen_ai.system"

// LogAttributesCopied are the attributes of log events that are copied to the stream's span. The OpenTelemetry
// conventions define them, and none holds text of a prompt.
var LogAttributesCopied = []string{
	GenAIProviderName, GenAISystem, GenAIOperationName, GenAIRequestModel, GenAIRequestStream,
	"gen_ai.request.choice.count", "gen_ai.request.encoding_formats", "gen_ai.request.frequency_penalty",
	"gen_ai.request.max_tokens", "gen_ai.request.presence_penalty", "gen_ai.request.seed", "gen_ai.request.temperature",
	"gen_ai.request.top_k", "gen_ai.request.top_p",
}

// Fields of a stream's events: attributes of the log records LogStreamStart,
// LogStreamScheduled, LogStreamChunk and LogStreamEnd.
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
	// LogUsage is a map with the fields below. A record can also have each field as
	// an attribute of its own, with LogUsage and a dot in front.
	LogUsage                 = "usage"
	LogInputTokens           = "input_tokens"
	LogOutputTokens          = "output_tokens"
	LogReasoningTokens       = "reasoning_tokens"
	LogCachedInputTokens     = "cached_input_tokens"
	LogCacheWriteInputTokens = "cache_write_input_tokens"
)
