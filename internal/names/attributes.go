// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package names

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

// IsInput reports whether a component before token_latency writes the span attribute.
// token_latency derives all others.
func (a Attribute) IsInput() bool { return a.Where != byProcessor }

// Values of Attribute.Type.
const (
	typeString  = "string"
	typeInt     = "int"
	typeDouble  = "double"
	typeBool    = "boolean"
	typeBytes   = "bytes"
	typeStrings = "string[]"
	typeDoubles = "double[]"
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
	byProcessor = "token_latency"
	byBoth      = "token_stream, token_latency"
)

// SpanAttributes documents the attributes of a model call's span, without those of
// SLOAttributes.
var SpanAttributes = []Attribute{
	{Source, typeString, "", byProcessor, "Reader that recognised the span, such as `token_stream` or `vllm`."},
	{Vantage, typeString, "", byBoth, "Observer whose clock the times are from: `client`, `gateway`, `server` or `engine`."},
	{Outcome, typeString, "", byBoth, "`success`, `error`, `cancelled` or `incomplete`."},
	{Estimated, typeStrings, "", byProcessor, "Attributes of this span that are estimates or bounds, without `tokenpulse.`."},

	{RequestDuration, typeDouble, seconds, byProcessor, "Request start to request end."},
	{TimeToFirstToken, typeDouble, seconds, byProcessor, "Request start to first token, on any channel."},
	{TimeToFirstOutputToken, typeDouble, seconds, byProcessor, "Request start to first token that is not reasoning."},
	{TimePerOutputToken, typeDouble, seconds, byProcessor, "Mean time per output token after the first."},
	{InterTokenLatency + SuffixMean, typeDouble, seconds, byProcessor, "Inter-token latency of this request: mean."},
	{InterTokenLatency + SuffixP50, typeDouble, seconds, byProcessor, "Its 50th percentile."},
	{InterTokenLatency + SuffixP95, typeDouble, seconds, byProcessor, "Its 95th percentile."},
	{InterTokenLatency + SuffixP99, typeDouble, seconds, byProcessor, "Its 99th percentile."},
	{InterTokenLatency + SuffixMax, typeDouble, seconds, byProcessor, "Its maximum."},
	{InterChunkLatency + SuffixMean, typeDouble, seconds, byProcessor, "Inter-chunk latency of this request: mean."},
	{InterChunkLatency + SuffixP50, typeDouble, seconds, byProcessor, "Its 50th percentile."},
	{InterChunkLatency + SuffixP95, typeDouble, seconds, byProcessor, "Its 95th percentile."},
	{InterChunkLatency + SuffixP99, typeDouble, seconds, byProcessor, "Its 99th percentile."},
	{InterChunkLatency + SuffixMax, typeDouble, seconds, byProcessor, "Its maximum."},
	{QueueDuration, typeDouble, seconds, byBoth, "Request start to the engine's scheduling. Missing unless reported."},
	{PrefillDuration, typeDouble, seconds, byProcessor, "Scheduling to first token. With an unknown queue: request start to first token, estimated."},
	{DecodeDuration, typeDouble, seconds, byProcessor, "First token to last token."},
	{DecodeShare, typeDouble, ratio, byProcessor, "Decode duration / (prefill duration + decode duration)."},
	{NetworkDuration, typeDouble, seconds, byProcessor, "Time to first token here minus time to first token at the engine. Needs `join`."},
	{OutputTokenRate, typeDouble, perSecond, byProcessor, "1 / time per output token."},
	{RequestTokenRate, typeDouble, perSecond, byProcessor, "Output tokens / request duration."},
	{StallCount, typeInt, "{stall}", byProcessor, "Gaps longer than `stall_threshold`."},
	{StallDuration, typeDouble, seconds, byProcessor, "Sum of these gaps."},
	{FluidityIndex, typeDouble, ratio, byProcessor, "Share of the token deadlines that were met. Needs `fluidity`."},

	{ChunkCount, typeInt, "{chunk}", byProcessor, "Chunks that carried a token, dropped chunks included."},
	{TokenCount, typeInt, tokens, byProcessor, "Counted output tokens. Missing where a number was reported or chunks are frames."},
	{TokenCountMismatch, typeInt, tokens, byProcessor, "Reported output tokens minus counted ones. Missing when 0."},
	{ClockAnomalies, typeInt, "{step}", byProcessor, "Backward steps between request start, chunks and request end. Missing when 0."},
	{ChunksDropped, typeInt, "{chunk}", byReceiver, "Chunks beyond `max_chunks_per_stream`. Missing when 0."},
	{StartUnseen, typeBool, "", byReceiver, "True when the stream had no start event: its start is the first chunk. Missing otherwise."},
	{Frames, typeBool, "", byReceiver, "True when the chunks are frames, some of which may hold no token. Missing otherwise."},

	{Cut, typeString, "", byReceiver, "`collector` when a shutdown or reload of the Collector ended the stream. No SLO judges such a request. Missing otherwise."},

	{Timeline, typeBytes, "", byReceiver, "Chunk arrivals, encoded by `internal/timeline`. token_latency removes it unless `timeline: keep`."},
	{InterTokenLatencySketch, typeBytes, "", byProcessor, "Inter-token latencies as a mergeable histogram, encoded by `internal/sketch`."},
	{InterChunkLatencySketch, typeBytes, "", byProcessor, "Inter-chunk latencies likewise. Missing where they equal the inter-token latencies."},
}

// SLOAttributes documents the attributes with the verdicts on a model call.
var SLOAttributes = []Attribute{
	{SLOMet, typeStrings, "", byProcessor, "SLOs whose indicator is at or under the threshold."},
	{SLOBreached, typeStrings, "", byProcessor, "SLOs whose indicator is over the threshold, or missing when the outcome is not `success`."},
	{SLONotEligible, typeStrings, "", byProcessor, "SLOs whose indicator is missing from a `success`, and all SLOs of a request that the Collector cut."},
	{SLOBreachedIndicator, typeStrings, "", byProcessor, "Indicator of each breached SLO: an attribute without `tokenpulse.`."},
	{SLOBreachedThreshold, typeDoubles, "", byProcessor, "Threshold of each breached SLO for this request, in the indicator's unit."},
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
