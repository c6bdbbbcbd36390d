package main

// Names of the paths.
const (
	oursHTTP       = "protobuf over HTTP → token_stream → token_latency → token_sli"
	oursGRPC       = "protobuf over gRPC → token_stream → token_latency → token_sli"
	oursNDJSON     = "NDJSON over HTTP → token_stream → token_latency → token_sli"
	eventsHTTP     = "OTLP span events, protobuf over HTTP → otlp → nop"
	eventsGRPC     = "OTLP span events, protobuf over gRPC → otlp → nop"
	eventsJSON     = "OTLP span events, JSON over HTTP → otlp → nop"
	eventsCounted  = "OTLP span events, protobuf over HTTP → otlp → spanmetrics → prometheus"
	spansOurs      = "OTLP over gRPC → otlp → token_latency → token_sli"
	spansNop       = "OTLP over gRPC → otlp → nop"
	spansCounted   = "OTLP over gRPC → otlp → spanmetrics → prometheus"
	spansPeerNop   = "OTLP over gRPC → otlp → nop, in the build of spanmetrics"
	scrapeOurs     = "token_sli: native and classic buckets, protobuf"
	scrapeOursText = "token_sli: classic buckets, text"
	scrapePeer     = "prometheus: native buckets, protobuf"
	scrapePeerText = "prometheus: classic buckets, text"
)

const (
	protobufType = "application/x-protobuf"
	otlpMethod   = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"

	textFormat     = "text/plain;version=0.0.4"
	protobufFormat = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited"
)

// forTokens are the paths of tokens. Without a peers binary there is none through
// spanmetrics.
func forTokens(collector, peers string) []*path {
	var ours, lines [connections][]byte
	for i, name := range [connections]string{"first", "second"} {
		streams := plan(name, tokensPerStream)
		ours[i], lines[i] = tokenStreams(streams), tokenEvents(streams)
	}
	events := spanEvents(plan("any", tokensPerStream))
	protobufEvents, jsonEvents := same(protobufOf(events)), same(jsonOf(events))

	toSLI := func(name string, do action) *path {
		return &path{
			name: name, unit: "token", binary: collector, config: tokenStreamToSLI, do: do, units: tokensPerRequest,
			proofs: []proof{
				accepted(streamsPerRequest),
				scraped("tokenpulse_requests_total", streamsPerRequest),
				scraped("tokenpulse_inter_token_latency_seconds_count", streamsPerRequest*(tokensPerStream-1)),
			},
		}
	}
	toNop := func(name string, do action) *path {
		return &path{
			name: name, unit: "token", binary: collector, config: otlpToNop, do: do, units: tokensPerRequest,
			proofs: []proof{accepted(streamsPerRequest)},
		}
	}
	paths := []*path{
		toSLI(oursHTTP, post("/v1/tokens", protobufType, ours)),
		toSLI(oursGRPC, call("/tokenpulse.v1.TokenStreamService/Export", ours)),
		toSLI(oursNDJSON, post("/v1/tokens", "application/x-ndjson", lines)),
		toNop(eventsHTTP, post("/v1/traces", protobufType, protobufEvents)),
		toNop(eventsGRPC, call(otlpMethod, protobufEvents)),
		toNop(eventsJSON, post("/v1/traces", "application/json", jsonEvents)),
	}
	if peers != "" {
		paths = append(paths, &path{
			name: eventsCounted, unit: "token", binary: peers, config: otlpToSpanmetrics(counting),
			do: post("/v1/traces", protobufType, protobufEvents), units: tokensPerRequest,
			proofs: []proof{
				accepted(streamsPerRequest),
				scraped("traces_span_metrics_calls_total", streamsPerRequest),
				scraped("traces_span_metrics_events_total", tokensPerRequest),
			},
		})
	}
	return paths
}

// forSpans are the paths of spans without token events.
func forSpans(collector, peers string) []*path {
	body := same(engineSpans(0, len(models)))
	through := func(name, binary, config string, proofs ...proof) *path {
		return &path{
			name: name, unit: "span", binary: binary, config: config, do: call(otlpMethod, body), units: spansPerRequest,
			proofs: append(proofs, accepted(spansPerRequest)),
		}
	}
	return []*path{
		through(spansOurs, collector, otlpToSLI(""),
			scraped("tokenpulse_requests_total", spansPerRequest),
			scraped("tokenpulse_time_to_first_token_seconds_count", spansPerRequest)),
		through(spansNop, collector, otlpToNop),
		through(spansCounted, peers, otlpToSpanmetrics(counting), scraped("traces_span_metrics_calls_total", spansPerRequest)),
		through(spansPeerNop, peers, otlpToNop),
	}
}

func same(body []byte) (bodies [connections][]byte) {
	for i := range bodies {
		bodies[i] = body
	}
	return bodies
}
