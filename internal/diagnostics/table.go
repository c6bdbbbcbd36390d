// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package diagnostics

import (
	"time"

	"github.com/tokenpulse/tokenpulse/internal/latency"
	"github.com/tokenpulse/tokenpulse/internal/names"
)

// Not here are failures that come with an error of their own, such as a refused flush or a malformed timeline: they are
// logged where they happen. Which vantage the live page shows is its choice, so it reports the outcome as a case.

// Mistakes that components report. The rows of reasons, which NewNotices finds, have no name.
const (
	SpansUnread              Mistake = iota // cases: model calls without latency, of all
	SpansSampled                            // cases: spans that a sampler kept
	TracesInPieces                          // cases: parts of traces after the first, of all traces
	SLOUnapplied                            // cases: requests that the SLO does not apply to, of all
	ObjectiveUndefined                      // cases: requests without a verdict of the SLO, which this process does not define, of all
	ObjectiveUnseen                         // cases: requests without a verdict of the SLO, of all
	DimensionUnused                         // cases: requests without the dimension, of all
	SeriesOverflow                          // cases: requests
	ConventionsOverflow                     // cases: requests
	ConventionsDoubled                      // cases: calls
	ConventionsWithoutChunks                // cases: requests
	CallRepeated                            // cases: calls
	PointsScale                             // cases: data points
	PointsType                              // cases: data points
	PointsObjectives                        // cases: data points
	PointsLimit                             // cases: data points
	UpstreamUnreachable                     // cases: requests
	ExporterIdle                            // cases: exporters
	VantagePassedOver                       // cases: requests of an outer vantage that the live page does not show
	VantageUnknown                          // cases: requests without a known vantage, beside those of several
	SpanUnclaimed                           // cases: spans
)

const (
	operations = "operations.md"
	sources    = "sources.md"
	unmeasured = "requests of source %s have no %s"
	unjudged   = "no request had a verdict for these objectives"
	misspelled = "check the spelling of `objectives::slo` against `slos` of token_latency"
)

var rows = [...]row{
	SpansUnread: {
		key: "spans_unread", page: operations,
		seen:   threshold{cases: 20, share: 1}, // in a working pipeline, a few calls that no reader claims may come first
		says:   "spans of model calls arrive without latency, so TTFT, TPOT and SLOs are missing",
		remedy: "add a token_latency processor to the pipeline in front of token_sli, or to an earlier pipeline",
	},
	SpansSampled: {
		key: "spans_sampled", page: operations,
		says:   "spans were sampled before they arrived (`ot=th` in tracestate), so token_sli counts only a share of the requests",
		remedy: "put token_sli before the sampler, for example in a pipeline of its own; sample in the Collector if an SDK samples",
	},
	TracesInPieces: {
		key: "traces_in_pieces", page: operations,
		seen: threshold{cases: 20, share: 0.1}, // fewer may be late spans
		says: "traces arrive in pieces, so `join` and `roll_up` miss the spans in other batches",
		remedy: "put groupbytrace in front of token_latency, with no batch processor in between; " +
			"if several Collectors share the traffic, send all spans of a trace to one of them",
	},
	SLOUnapplied: {
		key: "slo_unapplied", page: operations,
		seen:   threshold{cases: 100, share: 1, after: 15 * time.Minute},
		says:   "no request matched these SLOs, so they have no verdicts",
		remedy: "compare their `match`, `match_regexp` and `match_range` with the attributes of the spans and resources",
	},
	ObjectiveUndefined: {
		key: "objective_unseen", page: operations,
		seen: threshold{cases: 20, share: 1}, says: unjudged, remedy: misspelled,
	},
	ObjectiveUnseen: { // as another Collector may define the SLO
		key: "objective_unseen", page: operations,
		seen: threshold{cases: 100, share: 1, after: 15 * time.Minute}, says: unjudged, remedy: misspelled,
	},
	DimensionUnused: {
		key: "dimension_unused", page: operations,
		seen:   threshold{cases: 100, share: 1},
		says:   "no request has this dimension",
		remedy: "check its spelling in `dimensions`, and that the senders set the attribute",
	},
	SeriesOverflow: {
		key: "series_overflow", page: operations,
		says: "requests or open streams of new series go to one series, `otel.metric.overflow`, because `max_series` or, in token_stream, " +
			"`max_share_per_client` is reached",
		remedy: "remove a dimension with many values, or raise the limit",
	},
	ConventionsOverflow: {
		key: "conventions_overflow", page: operations,
		says:   "requests with new attributes of `conventions` go to one series, `otel.metric.overflow`, because `max_series` is reached",
		remedy: "narrow `conventions::attributes`, or raise the limit",
	},
	ConventionsDoubled: {
		key: "conventions_doubled", page: operations,
		says:   "two vantages of one trace count under the same names of `conventions`, so their requests count twice",
		remedy: "name one of client and gateway, and one of server and engine, in `conventions::vantages`",
	},
	ConventionsWithoutChunks: {
		key: "conventions_without_chunks", page: operations,
		says:   "the time per output chunk of `conventions` is missing, because spans carry no gaps between chunks",
		remedy: "set `detail: full` of token_latency",
	},
	CallRepeated: {
		key: "call_repeated", page: operations, others: "other scopes",
		says:   "two instrumentations send a span each of one model call, so the call counts twice",
		remedy: "switch one of them off, or put groupbytrace and `join: true` of token_latency in front",
	},
	PointsScale: {
		key: "points_scale", page: operations,
		says:   "histograms arrive with other buckets than those of scale 6, so token_sli ignores them",
		remedy: "let no processor or SDK lower their scale between the connector or receiver that sends them and token_sli",
	},
	PointsType: {
		key: "points_type", page: operations,
		says:   "metrics arrive with another type than tokenpulse sends, so token_sli ignores them",
		remedy: "send them to token_sli over OTLP without a conversion, such as one by Prometheus",
	},
	PointsObjectives: {
		key: "points_objectives", page: operations,
		says:   "this exporter and a producer of its metrics both have `objectives`, so the exporter ignores the gauges of the producer",
		remedy: "remove `objectives` from one of them: from the exporter if it has only this producer, else from the producer",
	},
	PointsLimit: {
		key: "points_limit", page: operations,
		says:   "the exporter remembers 100 * `max_series` streams of data points, and ignores new ones",
		remedy: "raise `max_series`, or use fewer dimensions at the producers",
	},
	UpstreamUnreachable: {
		key: "upstream_unreachable", page: operations, again: true,
		says: "failed to reach an upstream", remedy: "check its endpoint, and that it runs",
	},
	ExporterIdle: {
		key: "exporter_idle", page: operations,
		says:   "a token_sli exporter is in no pipeline, so nothing listens on its endpoint",
		remedy: "add it to the `exporters` of a pipeline, or remove it",
	},
	VantagePassedOver: {
		key: "vantage_passed_over", page: "live-page.md",
		says:   "an outer vantage has fewer than half as many requests as the one that has most, so the numbers are those of an inner one",
		remedy: "check that all requests of the outer one arrive here, or choose it to see its part",
	},
	VantageUnknown: {
		key: "vantage_unknown", page: "live-page.md",
		says:   "some requests have no known vantage, and are added although another vantage may have seen them, too",
		remedy: "read spans with `token_latency`, and raise `max_series` if it is reached",
	},
	SpanUnclaimed: {
		key: "unclaimed", page: sources,
		says:   "no reader claims a span that looks like a model call, so it has no latency",
		remedy: "set gen_ai.operation.name on it",
	},
	{
		key: "implausible", page: sources, reason: latency.Implausible, says: unmeasured,
		remedy: "check the unit of the sender's times (milliseconds sent as seconds?) and its clock",
	},
	{
		key: "no_token", page: sources, normal: true, reason: latency.NoToken, says: unmeasured,
		remedy: "none needed for failed requests; if requests succeed, report their chunks",
	},
	{
		key: "not_streamed", page: sources, normal: true, reason: latency.NotStreamed, says: unmeasured,
		remedy: "none needed; if the calls do stream, update the instrumentation so that it sets gen_ai.request.stream",
	},
	{
		key: "not_streamed", page: sources, reason: streamStopped, says: unmeasured,
		remedy: "the requests ask for a stream: turn on streaming in what stopped it between the service and the observer, such as a gateway or a cache",
	},
	{
		key: "ambiguous_unit", page: sources, reason: latency.AmbiguousUnit, says: unmeasured,
		remedy: "write gen_ai.response.time_to_first_chunk in seconds, or report the unit of the sender",
	},
	{
		key: "not_read", page: sources, reason: latency.NotRead, says: unmeasured,
		remedy: "write gen_ai.response.time_to_first_chunk in seconds from the sender's own attribute, for example with the transform processor",
	},
	{
		key: "not_reported", page: sources, reason: latency.NotReported, says: unmeasured,
		remedy: "turn on the sender's setting that reports the first token and the usage, or send token events to token_stream",
	},
	{ // its senders already send token events
		key: "not_reported", page: sources, reason: latency.NotReported, source: names.SourceTokenStream, says: unmeasured,
		remedy: "send a start event for each stream, with the time of the request",
	},
	{
		key: "dropped_events", page: sources, reason: latency.DroppedEvents, says: unmeasured,
		remedy: "raise the SDK's limit of events per span, such as OTEL_SPAN_EVENT_COUNT_LIMIT",
	},
	{
		key: "dropped_events", page: sources, reason: latency.DroppedEvents, source: names.SourceTokenTap, says: unmeasured,
		remedy: "raise max_event_bytes of token_tap",
	},
	{
		key: "buffered", page: sources, reason: latency.Buffered, says: unmeasured,
		remedy: "turn off response buffering in the proxy between the engine and the observer",
	},
	{
		key: "one_token", page: sources, normal: true, reason: latency.OneToken, says: unmeasured,
		remedy: "none needed",
	},
}
