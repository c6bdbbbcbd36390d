// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package names_test

import (
	"cmp"
	"slices"
	"strings"

	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/numbers"
)

// The tables in this file are the source of docs/attributes.md.

// attribute documents one attribute that tokenpulse reads or writes under a name of
// its own.
type attribute struct {
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

// Values of attribute.Type.
const (
	typeString  = "string"
	typeInt     = "int"
	typeDouble  = "double"
	typeBool    = "boolean"
	typeBytes   = "bytes"
	typeStrings = "string[]"
	typeInts    = "int[]"
	typeDoubles = "double[]"
	typeMap     = "map"
	typeMaps    = "map[]"
)

// Values of attribute.Unit.
const (
	seconds   = "s"
	tokens    = "{token}"
	perSecond = "{token}/s"
	ratio     = "1"
)

// Values of attribute.Where.
const (
	bySenders   = "any SDK"
	byReceiver  = "token_stream"
	byTap       = "token_tap"
	byReceivers = "token_stream, token_tap"
	byProcessor = "token_latency"
	byBoth      = "token_stream, token_latency"
	byAll       = "token_stream, token_tap, token_latency"
	byTapToo    = "token_tap, token_latency"
	// byProcessorInFull marks what token_latency leaves out by default.
	byProcessorInFull = "token_latency, `detail: full`"
)

// Values of attribute.Where: the events that have an attribute.
const (
	onStall         = "stall"
	onBreach        = "breach"
	onBurn          = "burn start, burn end"
	onEverySLOEvent = "all three"
	onBurnStart     = "burn start"
)

// event documents one log event.
type event struct {
	Name, Severity, Description string
}

// numberRows documents the numbers that a function selects, in the order of their table.
func numberRows(selects func(id numbers.ID) bool) (all []attribute) {
	for id := range numbers.Count {
		row := id.Row()
		a := attribute{row.Attribute, typeDouble, row.Unit, cmp.Or(row.By, byProcessor), row.Meaning}
		switch {
		case row.Whole:
			a.Type = typeInt
		case id.IsDistribution():
			a.Type = typeBytes
		}
		if row.Full {
			a.Where = byProcessorInFull
		}
		if selects(id) {
			all = append(all, a)
		}
	}
	return all
}

// isStandard reports whether the OpenTelemetry conventions define the attribute of a number.
func isStandard(id numbers.ID) bool { return !strings.HasPrefix(id.Attribute(), names.Prefix) }

// spanAttributes documents the attributes of a model call's span, without those of
// sloAttributes.
var spanAttributes = slices.Concat([]attribute{
	{names.Source, typeString, "", byTapToo, "Reader that recognised the span, such as `token_stream` or `vllm`."},
	{names.Vantage, typeString, "", byAll, "Observer whose clock the times are from: `client`, `gateway`, `server` or `engine`."},
	{names.Outcome, typeString, "", byAll, "`success`, `error`, `cancelled` or `incomplete`."},
	{names.Estimated, typeStrings, "", byProcessor, "Attributes of this span that are estimates or bounds, without `tokenpulse.`."},
	{names.Unmeasured, typeStrings, "", byProcessor, "Why a time to first token or a time per output token is missing, such as `time_per_output_token=buffered`. [Reasons](sources.md#missing-latencies)."},
	{names.Buffered, typeBool, "", byProcessor, "True when something between engine and observer [held the stream back](definitions.md#edge-cases)."},
}, numberRows(func(id numbers.ID) bool { return !isStandard(id) && !id.OfTrace() }), []attribute{
	{names.StalledAtEnd, typeBool, "", byProcessor, "True when the client cancelled during a stall: the request is bad for `all`."},

	{names.Joined, typeStrings, "", byProcessor, "Attributes that [`join`](whole-traces.md) took from another span, with its ID, such as `queue.duration=c000000000000001`."},

	{names.ChunksDropped, typeInt, "{chunk}", byReceivers, "Chunks that are missing at the end of the timeline: beyond `max_chunks_per_stream`, or of token_tap after an event that was too long. Missing when 0."},
	{names.StartUnseen, typeBool, "", byTap, "True when the start of the request was not observed: the span starts at the first chunk."},
	{names.Frames, typeBool, "", bySenders, "True when the chunks are frames, some of which may hold no token."},

	{names.Cut, typeString, "", byReceivers, "`collector` when the Collector ended the stream: at a shutdown, a reload, or a limit of token_tap. No SLO judges such a request."},
	{names.Repeated, typeString, "", byProcessor, "ID of the span that counts for the same request, which another instrumentation sent. Needs `join` or `roll_up`."},
	{names.Untimed, typeString, "", byTap, "Why the tokens of the answer have no times: `whole` (it came in one piece), `replayed` (it was generated before), `unparsed` (an event before the first known token was too long) or `tokenless` (it is complete without a token)."},
	{names.Uncounted, typeBool, "", byTap, "True when each chunk counts as at least one token, because the service reported neither usage nor the tokens of every chunk."},
	{names.Unparsed, typeStrings, "", byTap, "What could not be read of an answer: `content_encoding`, `corrupt`, `format`, `invalid`, `memory` (beyond `max_memory_mib`), `panic` or `too_long`. It was forwarded."},
	{names.Aggregated, typeBool, "", byReceiver, "True when the receiver adds the request to series itself. `token_sli` then counts it nowhere: in no metric, verdict or budget."},

	{names.ChunkOffsets, typeInts, "us", bySenders, "[Chunk arrivals](timeline-attributes.md): microseconds since the span's start. token_latency removes it and the next two unless `timeline: keep`."},
	{names.ChunkTokens, typeInts, tokens, bySenders, "Tokens of each of these chunks. Missing when each has one."},
	{names.ChunkChannels, typeStrings, "", bySenders, "Channel of each of these chunks: `content`, `reasoning` or `tool_call`. Missing when all are `content`."},
	{names.Timeline, typeBytes, "", byReceivers, "Chunk arrivals, encoded by `internal/timeline`. token_latency removes it unless `timeline: keep`."},
})

// sloAttributes documents the attributes with the verdicts on a model call.
var sloAttributes = []attribute{
	{names.SLOMet, typeStrings, "", byProcessor, "SLOs with the [verdict](definitions.md#verdict-on-one-request) good."},
	{names.SLOBreached, typeStrings, "", byProcessor, "SLOs with the verdict bad."},
	{names.SLONotEligible, typeStrings, "", byProcessor, "SLOs that cannot judge the request."},
	{names.SLOBreachedIndicator, typeStrings, "", byProcessor, "Indicator of each breached SLO: an attribute without `tokenpulse.`."},
	{names.SLOBreachedThreshold, typeDoubles, "", byProcessor, "Threshold of each breached SLO for this request, in the indicator's unit. Empty for `outcome`."},
	{names.SLOVerdictPrefix + "<name>", typeString, "", byProcessor, "`breached`: the verdict of one SLO, for trace backends that cannot search lists. With `detail: full` also `met` and `not_eligible`."},
	{names.SLOOfTrace, typeStrings, "", byProcessor, "SLOs among those above that judge the trace of a root span, by `trace.time_to_answer`. They do not count toward `all`."},
}

// traceAttributes documents the attributes of a trace's root span. They need `roll_up`.
var traceAttributes = append(numberRows(numbers.ID.OfTrace), []attribute{
	{names.TraceCalls, typeInt, "{call}", byProcessor, "Requests to models. One that several vantage points saw counts once."},
	{names.TraceInputTokens, typeInt, tokens, byProcessor, "Sum of their input tokens."},
	{names.TraceOutputTokens, typeInt, tokens, byProcessor, "Sum of their output tokens."},
	{names.TraceCallDuration, typeDouble, seconds, byProcessor, "Time in which at least one of them was under way."},
	{names.TraceCallShare, typeDouble, ratio, byProcessor, "That time / duration of the root span."},
}...)

// standardAttributes documents the attributes of the OpenTelemetry conventions that
// tokenpulse writes.
var standardAttributes = append(numberRows(func(id numbers.ID) bool { return isStandard(id) && id.Row().Modality == "" }), []attribute{
	{"gen_ai.usage.<modality>.<type>_tokens", typeInt, tokens, byTap, "Reported `input`, `output` or `cache_read.input` tokens of modality `text`, `image` or `audio`. Missing when 0."},
	{names.GenAIOperationName, typeString, "", byTapToo, "Operation, such as `chat`."},
	{names.GenAIProviderName, typeString, "", byTapToo, "Provider of the model."},
	{names.GenAIRequestModel, typeString, "", byTapToo, "Requested model. If the span names only the model of the response (`gen_ai.response.model`), that one."},
	{names.GenAITimeToFirstChunk, typeDouble, seconds, byProcessor, "Time to first chunk, as the instrumentation reported it."},
	{names.ErrorType, typeString, "", byAll, "Why the request is an error. `token_stream` and `token_latency` set it where the finish reason or missing tokens decide, unless the span has one."},
	{names.GenAIFinishReasons, typeStrings, "", byReceivers, "The finish reason of the stream's end event, or those of the answer."},
}...)

// spanEvents documents the span events of a model call.
var spanEvents = []event{
	{names.FirstTokenEvent, "", "The first token."},
	{names.StallEvent, "", "The last token before a gap longer than `stall_threshold`, or before a client gave up waiting. Only the 16 longest; `tokenpulse.stall.count` of the span counts all."},
	{names.LastTokenEvent, "", "The last token."},
}

// spanEventAttributes documents the attributes of spanEvents.
var spanEventAttributes = []attribute{
	{numbers.StallDuration.Attribute(), typeDouble, seconds, onStall, "How long no token came."},
	{names.TokenIndex, typeInt, "", onStall, "Number of tokens before the stall: the index, from 0, of the token that came late."},
}

// sloEvents documents the log events that the token_sli connector sends.
var sloEvents = []event{
	{names.SLOBreachEvent, "Warn", "A request breached an SLO. Trace ID, span ID, end time and resource are those of its span."},
	{names.SLOBurnStartEvent, "Error (page), Warn (ticket)", "A burn-rate alert's condition starts to hold for an objective of a series."},
	{names.SLOBurnEndEvent, "Info", "That condition no longer holds."},
}

// sloEventAttributes documents the attributes of sloEvents, besides the configured
// dimensions.
var sloEventAttributes = []attribute{
	{names.Vantage, typeString, "", onEverySLOEvent, "Vantage of the request, or of the series."},
	{names.Outcome, typeString, "", onBreach, "Outcome of the request."},
	{names.SLOBreached, typeStrings, "", onBreach, "Names of the breached SLOs, at most 64."},
	{names.SLOBreaches, typeMaps, "", onBreach, "One map per breached SLO, with the four keys below."},
	{names.SLOName, typeString, "", onBreach, "Key of that map: name of the SLO."},
	{names.SLOIndicator, typeString, "", onBreach, "Key of that map: indicator, an attribute without `tokenpulse.`."},
	{names.SLOThreshold, typeDouble, "", onBreach, "Key of that map: threshold, in the indicator's unit."},
	{names.SLOValue, typeDouble, "", onBreach, "Key of that map: measured value. Missing where the request has no such value."},
	{names.SLOEventName, typeString, "", onBurn, "Name of the SLO."},
	{names.SLOAlertName, typeString, "", onBurn, "`near_total_breach`, `fast_burn`, `slow_burn` or `steady_burn`."},
	{names.SLOAlertSeverity, typeString, "", onBurn, "`page` or `ticket`."},
	{names.SLOAlertFactor, typeDouble, ratio, onBurn, "Burn rate that both windows have to exceed. Missing for `near_total_breach`."},
	{names.SLOAlertCause, typeString, "", onBurnStart, "`errors` if more than half of the bad requests of a `near_total_breach` failed, client mistakes left out."},
	{names.SLOAlertLong, typeString, "", onBurn, "Long window, such as `1h`."},
	{names.SLOAlertShort, typeString, "", onBurn, "Short window, such as `5m`."},
	{names.SLOObjective, typeDouble, ratio, onBurnStart, "Configured share of good requests."},
	{names.SLOAlertLongBurn, typeDouble, ratio, onBurnStart, "Burn rate over the long window."},
	{names.SLOAlertShortBurn, typeDouble, ratio, onBurnStart, "Burn rate over the short window."},
	{names.SLOBudgetRemaining, typeDouble, ratio, onBurnStart, "Share of the error budget that is left; negative when overspent."},
	{names.LabelOverflow, typeBool, "", onBurn, "True for the series of all requests beyond `max_series`. It has no dimensions."},
}
