// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package names

// The tables in this file and those in attributes.go are the source of docs/attributes.md.

// Event documents one log event.
type Event struct {
	Name, Severity, Description string
}

// Values of Attribute.Type that only log events have.
const (
	typeMap  = "map"
	typeMaps = "map[]"
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

// StandardAttributes documents the attributes of the OpenTelemetry conventions that
// tokenpulse writes.
var StandardAttributes = []Attribute{
	{GenAIOperationName, typeString, "", byProcessor, "Operation, such as `chat`."},
	{GenAIProviderName, typeString, "", byProcessor, "Provider of the model."},
	{GenAIRequestModel, typeString, "", byProcessor, "Requested model."},
	{GenAIInputTokens, typeInt, tokens, byBoth, "Reported input tokens."},
	{GenAIOutputTokens, typeInt, tokens, byBoth, "Reported output tokens, reasoning included."},
	{GenAIReasoningTokens, typeInt, tokens, byBoth, "Reported reasoning tokens."},
	{GenAICacheReadInputTokens, typeInt, tokens, byBoth, "Reported input tokens that were read from a cache."},
	{GenAITimeToFirstChunk, typeDouble, seconds, byProcessor, "Time to first chunk, as the instrumentation reported it."},
	{GenAIFinishReasons, typeStrings, "", byReceiver, "The finish reason of the stream's end event."},
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
