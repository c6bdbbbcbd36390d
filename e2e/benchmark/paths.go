// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"time"
)

// path is one way to process one load, measured as CPU time per unit.
type path struct {
	key
	arguments []string // the program and its arguments
	// newAction is called for each process, so that each gets the same requests.
	newAction func() action
	prepare   func(c *collectorProcess) // before the first action; may be nil
	warm      int                       // actions before the measurement, at least
	units     float64                   // requests, spans or histograms per action
	checks    []check
}

// key identifies a path: what is sent, and what processes it.
type key struct{ load, kind string }

func (k key) String() string { return k.load + ": " + k.kind }

// measurement is the result of a path in one round.
type measurement struct {
	nanos  float64 // CPU time per unit
	memory float64 // peak, in bytes
}

// results holds the measurements of each round.
type results map[key][]measurement

// cost returns the median CPU time in nanoseconds per unit.
func (r results) cost(load, kind string) float64 { return median(r.nanos(key{load, kind})) }

func (r results) nanos(k key) (nanos []float64) {
	for _, m := range r[k] {
		nanos = append(nanos, m.nanos)
	}
	return nanos
}

// check compares a counter of the Collector with the number of actions. Receivers
// respond after the pipeline is done, and series are published once a second.
type check struct {
	published bool // by token_sli or spanmetrics; otherwise one of the Collector's own metrics
	metric    string
	perAction float64
}

// accepted and events check the Collector's own metrics.
func accepted(spans float64) check {
	return check{metric: "otelcol_receiver_accepted_spans", perAction: spans}
}

func events(count int) check {
	return check{metric: "otelcol_receiver_token_stream_events_accepted", perAction: float64(count)}
}

func scraped(metric string, perAction float64) check { return check{true, metric, perAction} }

// counted checks that the series have each request of whole streams, and each token.
func counted(l load) []check {
	requests := float64(len(l.lengths))
	return []check{
		scraped("tokenpulse_requests_total", requests),
		scraped("tokenpulse_inter_token_latency_seconds_count", float64(l.tokens())-requests),
	}
}

// await waits until the counter equals the expected value exactly.
func (k check) await(c *collectorProcess, actions int) {
	address := c.telemetry
	if k.published {
		address = c.scrape
	}
	want := k.perAction * float64(actions)
	var got float64
	for range 200 {
		if got = sum(c.metrics(address), k.metric); got == want {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	try(fmt.Errorf("%s is %v, expected %v; the Collector lost or repeated data", k.metric, got, want))
}

// Kinds of paths.
const (
	wire        = "metrics from the wire"
	wireSpans   = "metrics from the wire, and spans of 1%"
	wireSLOs    = "metrics from the wire, three SLOs"
	wireSeries  = "metrics from the wire, `max_series` of 20,000"
	wireGRPC    = "metrics from the wire, over gRPC"
	wireStream  = "metrics from the wire, over gRPC `Stream`"
	wireNDJSON  = "metrics from the wire, as NDJSON"
	everySpan   = "a span per request"
	nop         = "`otlp` → `nop`"
	nopGRPC     = "`otlp` → `nop`, over gRPC"
	spanmetrics = "`otlp` → `spanmetrics`"
	floor       = "a loop by hand"

	foreign         = "`otlp` → `token_latency` → `token_sli`"
	foreignMet      = "the same, three SLOs met"
	foreignBreached = "the same, three SLOs breached"
	peerNop         = "`otlp` → `nop`, in the build with `spanmetrics`"
)

// Names of the loads.
const (
	tokens10     = "10 tokens"
	tokens100    = "100 tokens"
	tokens500    = "500 tokens"
	tokens10000  = "10,000 tokens"
	code         = "code"
	conversation = "conversation"
	uniqueValues = "10 tokens, a unique attribute value each"
	inParts      = "500 tokens in ten parts"
	manySeries   = "500 tokens, 10,000 series"
	alone        = "100 tokens, one stream per HTTP request"
	foreignSpans = "spans of an engine"
)

const (
	protobufType = "application/x-protobuf"
	otlpMethod   = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
	tokensMethod = "/tokenpulse.v1.TokenStreamService/"

	// messagesPerCall is how many requests one call of Stream carries: ten turns of streams
	// in ten parts. Live senders keep a call open for longer.
	messagesPerCall = 100
)

var (
	everyKind = []string{wire, wireSpans, wireGRPC, wireNDJSON, everySpan, nop, nopGRPC, spanmetrics, floor}
	mainKinds = []string{wire, wireSpans, everySpan, nop, spanmetrics, floor}
)

// loads are the streams that are sent, and the kinds of paths that each is sent along.
// Requests with longer streams have fewer of them, as if senders collected for a while.
var loads = []struct {
	load
	kinds []string
}{
	{fixed(tokens10, 500, 10), append([]string{wireSLOs}, everyKind...)},
	{fixed(tokens100, 250, 100), everyKind},
	{fixed(tokens500, 50, 500), everyKind},
	{fixed(tokens10000, 2, 10_000), everyKind},
	{mix(code, codeLengths, 10), mainKinds},
	{mix(conversation, conversationLengths, 2), mainKinds},
	{fixed(uniqueValues, 500, 10).withUniqueValues(), []string{wire, nop}},
	{fixed(inParts, 50, 500).inParts(10), []string{wire, wireGRPC, wireStream, nop, nopGRPC}},
	{fixed(manySeries, 50, 500).ofSeries(10_000), []string{wireSeries, nop}},
	{fixed(alone, 1, 100), mainKinds},
}

// kinds describes the paths of token streams.
var kinds = map[string]struct {
	config string
	encode func(streams []stream, part, parts int) []byte
	send   send
}{
	wire:        {wireConfig("", everySecond, ""), tokenStreams, postTokens},
	wireSpans:   {wireConfig(spansOfOnePercent, everySecond, toNop), tokenStreams, postTokens},
	wireSLOs:    {wireConfig(threeSLOs, everySecond, ""), tokenStreams, postTokens},
	wireSeries:  {wireConfig("", "max_series: 20000", ""), tokenStreams, postTokens},
	wireGRPC:    {wireConfig("", everySecond, ""), tokenStreams, call(tokensMethod + "Export")},
	wireStream:  {wireConfig("", everySecond, ""), tokenStreams, nil},
	wireNDJSON:  {wireConfig("", everySecond, ""), tokenEvents, post("/v1/tokens", "application/x-ndjson")},
	everySpan:   {spanConfig("token_stream", ""), tokenStreams, postTokens},
	nop:         {config("nop.yaml"), spanEvents, post("/v1/traces", protobufType)},
	nopGRPC:     {config("nop.yaml"), spanEvents, call(otlpMethod)},
	spanmetrics: {spanmetricsConfig(countEvents), spanEvents, post("/v1/traces", protobufType)},
	floor:       {"", tokenStreams, postTokens},
}

var postTokens = post("/v1/tokens", protobufType)

// groups returns the paths that take turns: one group per load.
func groups(o options) (groups [][]*path) {
	for _, l := range loads {
		var group []*path
		for _, kind := range l.kinds {
			if o.selects(key{l.name, kind}) {
				group = append(group, tokenPath(l.load, kind, o))
			}
		}
		groups = append(groups, group)
	}
	for _, group := range [][]*path{foreignPaths(o), scrapePaths(o)} {
		groups = append(groups, slices.DeleteFunc(group, func(p *path) bool { return !o.selects(p.key) }))
	}
	return slices.DeleteFunc(groups, func(group []*path) bool { return len(group) == 0 })
}

// atDefaultHeap returns the paths whose costs depend most on the garbage collector. The page has them for both heaps.
func atDefaultHeap(groups [][]*path) (some [][]*path) {
	for _, group := range groups {
		if load := group[0].load; load == foreignSpans || slices.Contains(fixedLoads, load) {
			some = append(some, slices.DeleteFunc(slices.Clone(group), func(p *path) bool {
				return !slices.Contains([]string{wire, wireNDJSON, nop, foreign, foreignMet, foreignBreached, spanmetrics, peerNop}, p.kind)
			}))
		}
	}
	return some
}

// tokenPath returns the path of a kind for a load of token streams.
func tokenPath(l load, kind string, o options) *path {
	k := kinds[kind]
	if kind == nop || kind == nopGRPC || kind == spanmetrics {
		l.parts, l.series = 1, len(models) // a span is sent whole, and nop has no series
	}
	streams := float64(len(l.lengths)) / float64(l.parts)
	p := &path{key: key{l.name, kind}, arguments: collectorWith(o.binary(kind), k.config), units: streams}
	bodies := l.bodies(k.encode)
	p.warm = connections * len(bodies[0])
	p.newAction = func() action { return bodies.inTurn(k.send) }
	switch kind {
	case floor:
		p.arguments = []string{o.self, "-serve", "floor", "-address", "$http"}
	case nop, nopGRPC:
		p.checks = []check{accepted(streams)}
	case spanmetrics:
		p.checks = []check{
			accepted(streams), scraped("traces_span_metrics_calls_total", streams), scraped("traces_span_metrics_events_total", float64(l.tokens())),
		}
	case wireStream:
		p.newAction = func() action { return bodies.overOneCall(tokensMethod+"Stream", messagesPerCall) }
		p.units, p.warm = streams*messagesPerCall, connections
		p.checks = []check{events(messagesPerCall * len(l.lengths))}
	case wireNDJSON:
		p.checks = append(counted(l), events(l.tokens()+2*len(l.lengths)))
	case everySpan:
		p.checks = append(counted(l), accepted(streams), events(len(l.lengths)))
	case wireSeries:
		p.checks = []check{{metric: "otelcol_token_sli_requests", perAction: float64(len(l.lengths))}} // published too rarely
	default:
		p.checks = []check{events(len(l.lengths))}
		if l.parts == 1 {
			p.checks = append(p.checks, counted(l)...)
		}
	}
	return p
}
