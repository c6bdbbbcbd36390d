// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package names_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

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
	// Where is what writes an attribute of carriedAttributes. It is empty in tables of which the page
	// says it once.
	Where string
	// Description is empty for a number that docs/definitions.md has the formula of.
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
)

// event documents one log event.
type event struct {
	Name, Severity, Description string
}

// numberRows documents the numbers that a function selects, in the order of their table.
func numberRows(selects func(id numbers.ID) bool) (all []attribute) {
	for id := range numbers.Count {
		row := id.Row()
		a := attribute{Key: row.Attribute, Type: typeDouble, Unit: row.Unit, Description: row.Meaning}
		switch {
		case row.Whole:
			a.Type = typeInt
		case id.IsDistribution():
			a.Type = typeBytes
		}
		if selects(id) {
			all = append(all, a)
		}
	}
	return all
}

// isStandard reports whether the OpenTelemetry conventions define the attribute of a number.
func isStandard(id numbers.ID) bool { return !strings.HasPrefix(id.Attribute(), names.Prefix) }

// derived reports whether token_latency writes a number on the span of a model call under our prefix.
func derived(id numbers.ID) bool { return !isStandard(id) && !id.OfTrace() }

// spanAttributes documents the attributes that token_latency writes on a model call's span, without
// those of fullAttributes and sloAttributes.
var spanAttributes = slices.Concat([]attribute{
	{names.Source, typeString, "", "", "Reader that recognised the span, such as `token_stream` or `vllm`."},
	{names.Vantage, typeString, "", "", "Observer whose clock the times are from: `client`, `gateway`, `server` or `engine`."},
	{names.Outcome, typeString, "", "", "`success`, `error`, `cancelled` or `incomplete`."},
	{names.Estimated, typeStrings, "", "", "Attributes of this span that are estimates or bounds, without `tokenpulse.`."},
	{names.Unmeasured, typeStrings, "", "", "Why a time to first token or per output token, or the tokens of chunks, are missing, such as `time_per_output_token=buffered`: [reasons](sources.md#missing-latencies)."},
	{names.Buffered, typeBool, "", "", "True when something between engine and observer [held the stream back](definitions.md#edge-cases)."},
}, numberRows(func(id numbers.ID) bool { return derived(id) && !id.Row().Full }), []attribute{
	{names.StalledAtEnd, typeBool, "", "", "True when the client cancelled during a stall: the request is bad for `all`."},
	{names.Cold, typeBool, "", "", "True when the request is a [cold start](definitions.md#cold-starts) of its replica. Needs `cold_start`."},

	{names.Joined, typeStrings, "", "", "Attributes that [`join`](whole-traces.md) took from another span, with its ID, such as `queue.duration=c000000000000001`."},
	{names.Repeated, typeString, "", "", "ID of the span that counts for the same request, which another instrumentation sent. Needs `join` or `roll_up`."},
})

// Conditions of SLOs read each boolean as false where it is missing.
func TestIsBoolean(t *testing.T) {
	for _, a := range slices.Concat(spanAttributes, carriedAttributes) {
		require.Equal(t, a.Type == typeBool, names.IsBoolean(a.Key), a.Key)
	}
}

// fullAttributes documents the numbers that token_latency leaves out by default.
var fullAttributes = numberRows(func(id numbers.ID) bool { return derived(id) && id.Row().Full })

// carriedAttributes documents the attributes that a span carries before token_latency.
var carriedAttributes = []attribute{
	{names.ChunksDropped, typeInt, "{chunk}", byReceivers, "Chunks missing at the end of the timeline: beyond `max_chunks_per_stream`, or after an event too long for token_tap. Missing when 0."},
	{names.Interrupted, typeBool, "", byReceivers + ", " + bySenders, "True when the user interrupted the answer, such as by speaking: [audio](definitions.md#audio)."},
	{names.StartUnseen, typeBool, "", byTap, "True when the request's start was not observed: the span starts at the first chunk."},
	{names.Frames, typeBool, "", bySenders, "True when the chunks are frames, some of which may hold no token."},

	{names.Cut, typeString, "", byReceivers, "`collector` when the Collector ended the stream: at a shutdown, a reload, or a limit of token_tap. No SLO judges such a request."},
	{names.Untimed, typeString, "", byTap, "Why tokens have no times: the answer came in one piece (`whole`), was generated before (`replayed`), had an event too long before the first known token (`unparsed`), or is complete without a token (`tokenless`)."},
	{names.Uncounted, typeBool, "", byTap, "True when the service did not report the tokens of every chunk: each counts as at least one."},
	{names.Unparsed, typeStrings, "", byTap, "What could not be read of an answer: `content_encoding`, `corrupt`, `format`, `invalid`, `memory` (beyond `max_memory_mib`), `panic` or `too_long`. It was forwarded."},
	{names.Aggregated, typeBool, "", byReceiver, "True when the receiver adds the request to series itself: `token_sli` counts it in no metric, verdict or budget."},

	{names.ChunkOffsets, typeInts, "us", bySenders, "[Chunk arrivals](timeline-attributes.md): microseconds since the span's start. Removed with the next two unless `timeline: keep`."},
	{names.ChunkTokens, typeInts, tokens, bySenders, "Tokens of each of these chunks. Missing when each has one."},
	{names.ChunkChannels, typeStrings, "", bySenders, "Channel of each of these chunks: `content`, `reasoning`, `tool_call` or `audio`. Missing when all are `content`."},
	{names.Timeline, typeBytes, "", byReceivers, "Chunk arrivals, encoded by `internal/timeline`. Removed unless `timeline: keep`."},
}

const slosByVerdict = "SLOs whose [verdict](definitions.md#verdict-on-one-request) is good, bad or not eligible."

// sloAttributes documents the attributes with the verdicts on a model call.
var sloAttributes = []attribute{
	{names.SLOMet, typeStrings, "", "", slosByVerdict},
	{names.SLOBreached, typeStrings, "", "", slosByVerdict},
	{names.SLONotEligible, typeStrings, "", "", slosByVerdict},
	{names.SLOBreachedIndicator, typeStrings, "", "", "Indicator of each breached SLO: an attribute without `tokenpulse.`."},
	{names.SLOBreachedThreshold, typeDoubles, "", "", "Threshold of each breached SLO for this request, in the indicator's unit. Empty for `outcome`."},
	{names.SLOVerdictPrefix + "<name>", typeString, "", "", "`breached`: the verdict of one SLO, for trace backends that cannot search lists. With `detail: full` also `met` and `not_eligible`."},
	{names.SLOOfTrace, typeStrings, "", "", "SLOs among those above that judge the trace of a root span, by `trace.time_to_answer`. They do not count toward `all`."},
}

// traceAttributes documents the attributes of a trace's root span. They need `roll_up`.
var traceAttributes = append(numberRows(numbers.ID.OfTrace), []attribute{
	{names.TraceCallDuration, typeDouble, seconds, "", ""},
	{names.TraceCallShare, typeDouble, ratio, "", ""},
	{names.TraceCalls, typeInt, "{call}", "", ""},
	{names.TraceInputTokens, typeInt, tokens, "", ""},
	{names.TraceOutputTokens, typeInt, tokens, "", ""},
}...)

// standardAttributes documents the attributes of the OpenTelemetry conventions that
// tokenpulse writes.
var standardAttributes = append(numberRows(func(id numbers.ID) bool { return isStandard(id) && id.Row().Modality == "" }), []attribute{
	{"gen_ai.usage.<modality>.<type>_tokens", typeInt, tokens, "", "Reported `input`, `output` or `cache_read.input` tokens of modality `text`, `image` or `audio`. Missing when 0."},
	{names.GenAIOperationName, typeString, "", "", "Operation, such as `chat`."},
	{names.GenAIProviderName, typeString, "", "", "Provider of the model."},
	{names.GenAIRequestModel, typeString, "", "", "Requested model. If the span names only the model of the response (`gen_ai.response.model`), that one."},
	{names.GenAITimeToFirstChunk, typeDouble, seconds, "", "Time to first chunk, as the instrumentation reported it."},
	{names.ErrorType, typeString, "", "", "Why the request is an error. `token_stream` and `token_latency` set it where the finish reason or missing tokens decide, unless the span has one."},
	{names.GenAIFinishReasons, typeStrings, "", "", "The finish reason of the stream's end event, or those of the answer."},
}...)

// spanEvents documents the span events of a model call.
var spanEvents = []event{
	{names.FirstTokenEvent, "", "The first token."},
	{names.StallEvent, "", "The last token before a gap longer than `stall_threshold`, or before a client gave up waiting. Only the 16 longest; `tokenpulse.stall.count` of the span counts all."},
	{names.LastTokenEvent, "", "The last token."},
}

// spanEventAttributes documents the attributes of spanEvents.
var spanEventAttributes = []attribute{
	{numbers.StallDuration.Attribute(), typeDouble, seconds, "", "How long no token came."},
	{names.TokenIndex, typeInt, "", "", "Number of tokens before the stall: the index, from 0, of the token that came late."},
}

// sloEvents documents the log events that the token_sli connector sends.
var sloEvents = []event{
	{names.SLOBreachEvent, "Warn", "A request breached an SLO. Trace ID, span ID, end time and resource are those of its span."},
	{names.SLOBurnStartEvent, "Error (page), Warn (ticket)", "A burn-rate alert's condition starts to hold for an objective of a series."},
	{names.SLOBurnEndEvent, "Info", "That condition no longer holds."},
}

// breachAttributes documents the attributes of breach events, besides the configured dimensions.
var breachAttributes = []attribute{
	{names.Vantage, typeString, "", "", "Vantage of the request."},
	{names.Outcome, typeString, "", "", "Outcome of the request."},
	{names.SLOBreached, typeStrings, "", "", "Names of the breached SLOs, at most 64."},
	{names.SLOBreaches, typeMaps, "", "", "One map per breached SLO: `slo` its name, `indicator` an attribute without `tokenpulse.`, `threshold` in its unit, `value` as measured, if there is one."},
}

// burnAttributes documents the attributes of burn events, besides the configured dimensions, and
// burnStartAttributes those that only the start has.
var (
	burnAttributes = []attribute{
		{names.Vantage, typeString, "", "", "Vantage of the series."},
		{names.SLOEventName, typeString, "", "", "Name of the SLO."},
		{names.SLOAlertName, typeString, "", "", "`near_total_breach`, `fast_burn`, `slow_burn` or `steady_burn`."},
		{names.SLOAlertSeverity, typeString, "", "", "`page` or `ticket`."},
		{names.SLOAlertFactor, typeDouble, ratio, "", "Burn rate that both windows have to exceed. Missing for `near_total_breach`."},
		{names.SLOAlertLong, typeString, "", "", "Long window, such as `1h`."},
		{names.SLOAlertShort, typeString, "", "", "Short window, such as `5m`."},
		{names.LabelOverflow, typeBool, "", "", "True for the series of all requests beyond `max_series`, which has no dimensions."},
	}
	burnStartAttributes = []attribute{
		{names.SLOAlertCause, typeString, "", "", "`errors` if more than half of the bad requests of a `near_total_breach` failed, client mistakes left out."},
		{names.SLOObjective, typeDouble, ratio, "", "Configured share of good requests."},
		{names.SLOAlertLongBurn, typeDouble, ratio, "", "Burn rate over the long window."},
		{names.SLOAlertShortBurn, typeDouble, ratio, "", "Burn rate over the short window."},
		{names.SLOBudgetRemaining, typeDouble, ratio, "", "Share of the error budget that is left; negative when overspent."},
	}
)
