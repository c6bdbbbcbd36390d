// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package main

// Names of the paths.
const (
	tokensHTTP        = "protobuf over HTTP → token_stream → token_latency → token_sli"
	tokensRepeatable  = "the first path, without deduplication"
	tokensGRPC        = "protobuf over gRPC → token_stream → token_latency → token_sli"
	tokensNDJSON      = "NDJSON over HTTP → token_stream → token_latency → token_sli"
	eventsHTTP        = "OTLP span events, protobuf over HTTP → otlp → nop"
	eventsGRPC        = "OTLP span events, protobuf over gRPC → otlp → nop"
	eventsJSON        = "OTLP span events, JSON over HTTP → otlp → nop"
	eventsSpanmetrics = "OTLP span events, protobuf over HTTP → otlp → spanmetrics → prometheus"
	spansSLI          = "OTLP over gRPC → otlp → token_latency → token_sli"
	spansRepeatable   = "the first path, without deduplication, of spans"
	spansNop          = "OTLP over gRPC → otlp → nop"
	spansSpanmetrics  = "OTLP over gRPC → otlp → spanmetrics → prometheus"
	spansPeerNop      = "OTLP over gRPC → otlp → nop, in the spanmetrics build"
	scrapeSLI         = "token_sli: native and classic buckets, protobuf"
	scrapeSLIText     = "token_sli: classic buckets, text"
	scrapePeer        = "prometheus: native buckets, protobuf"
	scrapePeerText    = "prometheus: classic buckets, text"
)

const (
	protobufType = "application/x-protobuf"
	otlpMethod   = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
)

// tokenPaths returns the paths of tokens. The one through spanmetrics needs the peers
// binary.
func tokenPaths(collector, peers string) []*path {
	var messages, lines [connections][]byte
	for i, name := range [connections]string{"first", "second"} {
		streams := plan(name, tokensPerStream)
		messages[i], lines[i] = tokenStreams(streams), tokenEvents(streams)
	}
	events := spanEvents(plan("any", tokensPerStream))
	protobufEvents, jsonEvents := same(must(events.MarshalProto())), same(must(events.MarshalJSON()))

	toSLI := func(name, settings string, do action) *path {
		return &path{
			name: name, unit: "token", binary: collector, config: sliConfig("token_stream", "", settings), do: do, units: tokensPerRequest,
			checks: []check{
				accepted(streamsPerRequest),
				scraped("tokenpulse_requests_total", streamsPerRequest),
				scraped("tokenpulse_inter_token_latency_seconds_count", streamsPerRequest*(tokensPerStream-1)),
			},
		}
	}
	toNop := func(name string, do action) *path {
		return &path{
			name: name, unit: "token", binary: collector, config: nopConfig(), do: do, units: tokensPerRequest,
			checks: []check{accepted(streamsPerRequest)},
		}
	}
	paths := []*path{
		toSLI(tokensHTTP, "", post("/v1/tokens", protobufType, messages)),
		toSLI(tokensRepeatable, withoutDeduplication, post("/v1/tokens", protobufType, messages)),
		toSLI(tokensGRPC, "", call("/tokenpulse.v1.TokenStreamService/Export", messages)),
		toSLI(tokensNDJSON, "", post("/v1/tokens", "application/x-ndjson", lines)),
		toNop(eventsHTTP, post("/v1/traces", protobufType, protobufEvents)),
		toNop(eventsGRPC, call(otlpMethod, protobufEvents)),
		toNop(eventsJSON, post("/v1/traces", "application/json", jsonEvents)),
	}
	if peers != "" {
		paths = append(paths, &path{
			name: eventsSpanmetrics, unit: "token", binary: peers, config: spanmetricsConfig(countEvents),
			do: post("/v1/traces", protobufType, protobufEvents), units: tokensPerRequest,
			checks: []check{
				accepted(streamsPerRequest),
				scraped("traces_span_metrics_calls_total", streamsPerRequest),
				scraped("traces_span_metrics_events_total", tokensPerRequest),
			},
		})
	}
	return paths
}

// spanPaths returns the paths of spans without token events.
func spanPaths(collector, peers string) []*path {
	body := same(engineSpans(0, len(models)))
	through := func(name, binary, config string, checks ...check) *path {
		return &path{
			name: name, unit: "span", binary: binary, config: config, do: call(otlpMethod, body), units: spansPerRequest,
			checks: append(checks, accepted(spansPerRequest)),
		}
	}
	return []*path{
		through(spansSLI, collector, sliConfig("otlp", "", ""),
			scraped("tokenpulse_requests_total", spansPerRequest),
			scraped("tokenpulse_time_to_first_token_seconds_count", spansPerRequest)),
		through(spansRepeatable, collector, sliConfig("otlp", "", withoutDeduplication), scraped("tokenpulse_requests_total", spansPerRequest)),
		through(spansNop, collector, nopConfig()),
		through(spansSpanmetrics, peers, spanmetricsConfig(countEvents), scraped("traces_span_metrics_calls_total", spansPerRequest)),
		through(spansPeerNop, peers, nopConfig()),
	}
}
