// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package names

// The tables in this file are the source of docs/attributes.md.

// Attribute documents one attribute that tokenpulse reads or writes under a name of
// its own.
type Attribute struct {
	Key string
	// Type is the type of the value, as OpenTelemetry calls it.
	Type string
	// Unit is a UCUM unit. It is empty for values without one.
	Unit string
	// Where is the component that writes a span attribute, or the event that has an
	// event attribute.
	Where       string
	Description string
}

// Values of Attribute.Type.
const (
	typeString  = "string"
	typeInt     = "int"
	typeDouble  = "double"
	typeBool    = "boolean"
	typeBytes   = "bytes"
	typeStrings = "string[]"
	typeDoubles = "double[]"
	typeMap     = "map"
	typeMaps    = "map[]"
)

// Values of Attribute.Unit.
const (
	seconds   = "s"
	tokens    = "{token}"
	perSecond = "{token}/s"
	ratio     = "1"
)

// Values of Attribute.Where.
const (
	byReceiver  = "token_stream"
	byTap       = "token_tap"
	byReceivers = "token_stream, token_tap"
	byProcessor = "token_latency"
	byBoth      = "token_stream, token_latency"
	byAll       = "token_stream, token_tap, token_latency"
	byTapToo    = "token_tap, token_latency"
	// byProcessorInFull marks what token_latency leaves out by default.
	byProcessorInFull = "token_latency with `detail: full`"
)

// Values of Attribute.Where: the events that have an attribute.
const (
	onChunk            = "chunk"
	onEnd              = "end"
	onEveryStreamEvent = "all four"
	onStartChunk       = "start, chunk"
	onAllButScheduled  = "start, chunk, end"
	onBreach           = "breach"
	onBurn             = "burn start, burn end"
	onEverySLOEvent    = "all three"
	onBurnStart        = "burn start"
)

// Event documents one log event.
type Event struct {
	Name, Severity, Description string
}

// SpanAttributes documents the attributes of a model call's span, without those of
// SLOAttributes.
var SpanAttributes = []Attribute{
	{Source, typeString, "", byTapToo, "Reader that recognised the span, such as `token_stream` or `vllm`."},
	{Vantage, typeString, "", byAll, "Observer whose clock the times are from: `client`, `gateway`, `server` or `engine`."},
	{Outcome, typeString, "", byAll, "`success`, `error`, `cancelled` or `incomplete`."},
	{Estimated, typeStrings, "", byProcessor, "Attributes of this span that are estimates or bounds, without `tokenpulse.`."},
	{Unmeasured, typeStrings, "", byProcessor, "Why a time to first token or a time per output token is missing, such as `time_per_output_token=buffered`. [sources.md](sources.md#missing-latencies) has the reasons. Missing when both are known."},
	{Buffered, typeBool, "", byProcessor, "True when something between engine and observer held the stream back. Time per output token and inter-token latency are then missing. Missing otherwise."},

	{RequestDuration, typeDouble, seconds, byProcessor, "Request start to request end."},
	{TimeToFirstToken, typeDouble, seconds, byProcessor, "Request start to first token, on any channel."},
	{TimeToFirstOutputToken, typeDouble, seconds, byProcessor, "Request start to first token that is not reasoning."},
	{TimePerOutputToken, typeDouble, seconds, byProcessor, "Mean time per output token after the first."},
	{InterTokenLatency + SuffixMean, typeDouble, seconds, byProcessorInFull, "Inter-token latency of this request: mean."},
	{InterTokenLatency + SuffixP50, typeDouble, seconds, byProcessor, "Its 50th percentile."},
	{InterTokenLatency + SuffixP95, typeDouble, seconds, byProcessor, "Its 95th percentile."},
	{InterTokenLatency + SuffixP99, typeDouble, seconds, byProcessor, "Its 99th percentile."},
	{InterTokenLatency + SuffixMax, typeDouble, seconds, byProcessor, "Its maximum."},
	{InterChunkLatency + SuffixMean, typeDouble, seconds, byProcessorInFull, "Inter-chunk latency of this request: mean."},
	{InterChunkLatency + SuffixP50, typeDouble, seconds, byProcessorInFull, "Its 50th percentile."},
	{InterChunkLatency + SuffixP95, typeDouble, seconds, byProcessorInFull, "Its 95th percentile."},
	{InterChunkLatency + SuffixP99, typeDouble, seconds, byProcessorInFull, "Its 99th percentile."},
	{InterChunkLatency + SuffixMax, typeDouble, seconds, byProcessorInFull, "Its maximum."},
	{QueueDuration, typeDouble, seconds, byAll, "Request start to the engine's scheduling. Missing unless reported."},
	{PrefillDuration, typeDouble, seconds, byTapToo, "Scheduling to first token. With an unknown queue: request start to first token, estimated. From token_tap: as the service reported it."},
	{DecodeDuration, typeDouble, seconds, byTapToo, "First token to last token. From token_tap: as the service reported it, if it did."},
	{DecodeShare, typeDouble, ratio, byProcessorInFull, "Decode duration / (prefill duration + decode duration)."},
	{NetworkDuration, typeDouble, seconds, byTapToo, "Time to first token here minus time to first token at the engine. Needs `join`, or a service that reports its own to token_tap."},
	{OutputTokenRate, typeDouble, perSecond, byProcessorInFull, "1 / time per output token."},
	{RequestTokenRate, typeDouble, perSecond, byProcessorInFull, "Output tokens / request duration."},
	{StallCount, typeInt, "{stall}", byProcessor, "Gaps longer than `stall_threshold`. Missing when 0."},
	{StallDuration, typeDouble, seconds, byProcessor, "Sum of these gaps. Missing when 0."},
	{StalledAtEnd, typeBool, "", byProcessor, "True when the client cancelled during a stall: the request is bad for `all`. Missing otherwise."},
	{FluidityIndex, typeDouble, ratio, byProcessor, "Share of the token deadlines that were met. Needs `fluidity`."},

	{ChunkCount, typeInt, "{chunk}", byProcessor, "Chunks that carried a token, dropped chunks included."},
	{TokenCount, typeInt, tokens, byProcessor, "Counted output tokens. Missing where a number was reported or chunks are frames."},
	{TokenCountMismatch, typeInt, tokens, byProcessor, "Reported output tokens minus counted ones. Missing when 0."},
	{ClockAnomalies, typeInt, "{step}", byProcessor, "Backward steps between request start, chunks and request end. Missing when 0."},
	{ChunksDropped, typeInt, "{chunk}", byReceivers, "Chunks beyond `max_chunks_per_stream`. Missing when 0."},
	{StartUnseen, typeBool, "", byReceivers, "True when the stream had no start event: its start is the first chunk. Missing otherwise."},
	{Frames, typeBool, "", byReceiver, "True when the chunks are frames, some of which may hold no token. Missing otherwise."},

	{Cut, typeString, "", byReceivers, "`collector` when the Collector ended the stream: at a shutdown, a reload, or a limit of token_tap. No SLO judges such a request. Missing otherwise."},
	{Unparsed, typeStrings, "", byTap, "What could not be read of an answer: `content_encoding`, `corrupt`, `format`, `invalid`, `memory` (beyond `max_memory_mib`), `panic` or `too_long`. It was forwarded. Missing otherwise."},
	{Aggregated, typeBool, "", byReceiver, "True when the receiver adds the request to series itself. `token_sli` then counts it nowhere: in no metric, verdict or budget. Missing otherwise."},

	{Timeline, typeBytes, "", byReceivers, "Chunk arrivals, encoded by `internal/timeline`. token_latency removes it unless `timeline: keep`."},
	{InterTokenLatencySketch, typeBytes, "", byProcessor, "Inter-token latencies as a mergeable histogram, encoded by `internal/sketch`. Missing with `distribution: drop`."},
	{InterChunkLatencySketch, typeBytes, "", byProcessorInFull, "Inter-chunk latencies likewise. Missing where they equal the inter-token latencies."},
}

// SLOAttributes documents the attributes with the verdicts on a model call.
var SLOAttributes = []Attribute{
	{SLOMet, typeStrings, "", byProcessor, "SLOs whose indicator is at or under the threshold. For `outcome`: on a `success`."},
	{SLOBreached, typeStrings, "", byProcessor, "SLOs whose indicator is over the threshold, or missing when the outcome is not `success`. For `outcome`: on `error` and `incomplete`."},
	{SLONotEligible, typeStrings, "", byProcessor, "SLOs whose indicator is missing from a `success`, SLOs of `outcome` on `cancelled`, and all SLOs of a request that the Collector cut."},
	{SLOBreachedIndicator, typeStrings, "", byProcessor, "Indicator of each breached SLO: an attribute without `tokenpulse.`."},
	{SLOBreachedThreshold, typeDoubles, "", byProcessor, "Threshold of each breached SLO for this request, in the indicator's unit. Empty for `outcome`."},
	{SLOOfTrace, typeStrings, "", byProcessor, "SLOs among those above that judge the trace of a root span, by `trace.time_to_answer`. They do not count toward `all`."},
}

// TraceAttributes documents the attributes of a trace's root span. They need `roll_up`.
var TraceAttributes = []Attribute{
	{TraceCalls, typeInt, "{call}", byProcessor, "Requests to models. One that several vantage points saw counts once."},
	{TraceInputTokens, typeInt, tokens, byProcessor, "Sum of their input tokens."},
	{TraceOutputTokens, typeInt, tokens, byProcessor, "Sum of their output tokens."},
	{TraceCallDuration, typeDouble, seconds, byProcessor, "Time in which at least one of them was under way."},
	{TraceCallShare, typeDouble, ratio, byProcessor, "That time / duration of the root span."},
	{TraceTimeToAnswer, typeDouble, seconds, byProcessor, "Start of the root span to first output token of the last request."},
}

// StandardAttributes documents the attributes of the OpenTelemetry conventions that
// tokenpulse writes.
var StandardAttributes = []Attribute{
	{GenAIOperationName, typeString, "", byTapToo, "Operation, such as `chat`."},
	{GenAIProviderName, typeString, "", byTapToo, "Provider of the model."},
	{GenAIRequestModel, typeString, "", byTapToo, "Requested model."},
	{GenAIInputTokens, typeInt, tokens, byAll, "Reported input tokens."},
	{GenAIOutputTokens, typeInt, tokens, byAll, "Reported output tokens, reasoning included."},
	{GenAIReasoningTokens, typeInt, tokens, byAll, "Reported reasoning tokens."},
	{GenAICacheReadInputTokens, typeInt, tokens, byAll, "Reported input tokens that were read from a cache."},
	{GenAITimeToFirstChunk, typeDouble, seconds, byProcessor, "Time to first chunk, as the instrumentation reported it."},
	{GenAIFinishReasons, typeStrings, "", byReceivers, "The finish reason of the stream's end event, or those of the answer."},
}

// StreamEvents documents the log events with which a service reports a token stream.
var StreamEvents = []Event{
	{LogStreamStart, "", "Request start."},
	{LogStreamScheduled, "", "The engine took the request out of its queue."},
	{LogStreamChunk, "", "Tokens arrived."},
	{LogStreamEnd, "", "Request end."},
}

// StreamEventAttributes documents the attributes of StreamEvents.
var StreamEventAttributes = []Attribute{
	{LogStreamID, typeString, "", onEveryStreamEvent, "ID of the stream. Ignored in records with a trace ID and a span ID: those are its ID."},
	{LogTraceID, typeString, "", onStartChunk, "Trace of the new span, 32 hexadecimal digits. Used only in records without a trace ID."},
	{LogSpanID, typeString, "", onStartChunk, "ID of the new span, 16 hexadecimal digits."},
	{LogParentSpanID, typeString, "", onStartChunk, "Parent of the new span, 16 hexadecimal digits. Default: the record's span ID."},
	{LogVantage, typeString, "", onStartChunk, "`client`, `gateway`, `server` (default) or `engine`."},
	{LogAttributes, typeMap, "", onAllButScheduled, "Attributes for the new span, copied as they are."},
	{LogTokens, typeInt, tokens, onChunk, "Tokens of the chunk, default 1. A chunk of 0 tokens is accepted and not recorded."},
	{LogChannel, typeString, "", onChunk, "`content` (default), `reasoning` or `tool_call`."},
	{LogSeq, typeInt, "", onChunk, "Sequence number: orders chunks and removes repeats."},
	{LogUsage, typeMap, "", onEnd, "Reported token counts: `input_tokens`, `output_tokens`, `reasoning_tokens`, `cached_input_tokens`."},
	{LogUsage + "." + LogInputTokens, typeInt, tokens, onEnd, "Input tokens. An attribute of this key can replace the key of the map."},
	{LogUsage + "." + LogOutputTokens, typeInt, tokens, onEnd, "Output tokens, reasoning included; likewise."},
	{LogUsage + "." + LogReasoningTokens, typeInt, tokens, onEnd, "Reasoning tokens; likewise."},
	{LogUsage + "." + LogCachedInputTokens, typeInt, tokens, onEnd, "Input tokens that were read from a cache; likewise."},
	{LogFinishReason, typeString, "", onEnd, "Finish reason. Of a list, the first entry counts."},
	{LogError, typeString, "", onEnd, "Error message. The outcome is then `error`."},
	{LogCancelled, typeBool, "", onEnd, "True when the client went away. The outcome is then `cancelled`."},
}

// SLOEvents documents the log events that the token_sli connector sends.
var SLOEvents = []Event{
	{SLOBreachEvent, "Warn", "A request breached an SLO. Trace ID, span ID, end time and resource are those of its span."},
	{SLOBurnStartEvent, "Error (page), Warn (ticket)", "A burn-rate alert's condition starts to hold for an objective of a series."},
	{SLOBurnEndEvent, "Info", "That condition no longer holds."},
}

// SLOEventAttributes documents the attributes of SLOEvents, besides the configured
// dimensions.
var SLOEventAttributes = []Attribute{
	{Vantage, typeString, "", onEverySLOEvent, "Vantage of the request, or of the series."},
	{Outcome, typeString, "", onBreach, "Outcome of the request."},
	{SLOBreached, typeStrings, "", onBreach, "Names of the breached SLOs, at most 64."},
	{SLOBreaches, typeMaps, "", onBreach, "One map per breached SLO, with the four keys below."},
	{SLOName, typeString, "", onBreach, "Key of that map: name of the SLO."},
	{SLOIndicator, typeString, "", onBreach, "Key of that map: indicator, an attribute without `tokenpulse.`."},
	{SLOThreshold, typeDouble, "", onBreach, "Key of that map: threshold, in the indicator's unit."},
	{SLOValue, typeDouble, "", onBreach, "Key of that map: measured value. Missing where the request has no such value."},
	{SLOEventName, typeString, "", onBurn, "Name of the SLO."},
	{SLOAlertName, typeString, "", onBurn, "`fast_burn`, `slow_burn` or `steady_burn`."},
	{SLOAlertSeverity, typeString, "", onBurn, "`page` or `ticket`."},
	{SLOAlertFactor, typeDouble, ratio, onBurn, "Burn rate that both windows have to exceed."},
	{SLOAlertLong, typeString, "", onBurn, "Long window, such as `1h`."},
	{SLOAlertShort, typeString, "", onBurn, "Short window, such as `5m`."},
	{SLOObjective, typeDouble, ratio, onBurnStart, "Configured share of good requests."},
	{SLOAlertLongBurn, typeDouble, ratio, onBurnStart, "Burn rate over the long window."},
	{SLOAlertShortBurn, typeDouble, ratio, onBurnStart, "Burn rate over the short window."},
	{SLOBudgetRemaining, typeDouble, ratio, onBurnStart, "Share of the error budget that is left; negative when overspent."},
	{LabelOverflow, typeBool, "", onBurn, "True for the series of all requests beyond `max_series`. It has no dimensions."},
}
