// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package main

import "strings"

const protocols = `protocols: {http: {endpoint: "$http"}, grpc: {endpoint: "$grpc"}}`

// collectorWith returns the arguments of a Collector with a config.
func collectorWith(binary, config string) []string {
	return []string{binary, "--config", "yaml:" + config}
}

// collectorConfig returns the config of a Collector. The metrics about itself are on, as
// by default, and the checks read them.
func collectorConfig(receivers, components, pipelines string) string {
	return `
receivers: {` + receivers + `}
` + components + `
service:
  telemetry: {metrics: {readers: [{pull: {exporter: {prometheus: {host: 127.0.0.1, port: $telemetry_port}}}}]}}
  pipelines: {` + pipelines + `}
`
}

// wireConfig makes series in the receiver, whose settings end with a comma.
func wireConfig(receiver, series, pipelines string) string {
	return collectorConfig(
		`token_stream: {`+receiver+`series: {`+series+`}, `+protocols+`}`,
		`exporters: {token_sli: {endpoint: "$scrape"}, nop: {}}`,
		`metrics: {receivers: [token_stream], exporters: [token_sli]}`+pipelines)
}

// withPprof lets a Collector serve profiles.
func withPprof(config string) string {
	return "extensions: {pprof: {endpoint: \"$pprof\"}}" + strings.Replace(config, "service:", "service:\n  extensions: [pprof]", 1)
}

// spanConfig makes series of spans. Those of token_stream come annotated.
func spanConfig(receiver, exporterSettings string) string {
	latency, processors := "", "token_latency"
	if receiver == "token_stream" {
		latency, processors = "latency: {}, ", ""
	}
	return collectorConfig(receiver+`: {`+latency+protocols+`}`, `
processors: {token_latency: {}}
exporters: {token_sli: {endpoint: "$scrape"`+exporterSettings+`}}`,
		`traces: {receivers: [`+receiver+`], processors: [`+processors+`], exporters: [token_sli]}`)
}

// foreignConfig makes series of other spans in the connector, as spanmetrics does.
var foreignConfig = collectorConfig(`otlp: {`+protocols+`}`, `
processors: {token_latency: {}}
connectors: {token_sli/spans: {`+everySecond+`}}
exporters: {token_sli: {endpoint: "$scrape"}}`,
	`traces: {receivers: [otlp], processors: [token_latency], exporters: [token_sli/spans]}, metrics: {receivers: [token_sli/spans], exporters: [token_sli]}`)

var nopConfig = collectorConfig(`otlp: {`+protocols+`}`, `exporters: {nop: {}}`, `traces: {receivers: [otlp], exporters: [nop]}`)

// spanmetricsConfig has the default dimensions of token_sli.
func spanmetricsConfig(settings string) string {
	return collectorConfig(`otlp: {`+protocols+`}`, `
connectors:
  spanmetrics: {
    dimensions: [{name: gen_ai.provider.name}, {name: gen_ai.request.model}, {name: gen_ai.operation.name}]`+settings+`}
exporters: {prometheus: {endpoint: "$scrape"}}`,
		`traces: {receivers: [otlp], exporters: [spanmetrics]}, metrics: {receivers: [spanmetrics], exporters: [prometheus]}`)
}

const (
	// spanmetrics requires an additional dimension for event counts. No event has this
	// one, which is the cheapest case.
	countEvents = `, histogram: {exponential: {max_size: 160}}, events: {enabled: true, dimensions: [{name: gen_ai.token.type}]}, metrics_flush_interval: 1s`
	exponential = `, histogram: {exponential: {max_size: 160}}, metrics_flush_interval: 5s`
	// classic has as many buckets as the histograms of token_sli on average.
	classic = `, histogram: {unit: s, explicit: {buckets: [
      1ms, 50ms, 100ms, 250ms, 500ms, 1s, 2s, 5s, 10s, 30s, 120s, 600s]}}, metrics_flush_interval: 5s`

	// The prometheus exporter has no percentiles, so token_sli leaves them out.
	histogramsOnly = `, windows: [], percentiles: []`

	// The default is 15 s. The checks need not wait as long; spanmetrics has the same.
	everySecond = `metrics_flush_interval: 1s`

	spansOfOnePercent = `spans: {share: 0.01}, `
	toNop             = `, traces: {receivers: [token_stream], exporters: [nop]}`

	threeSLOs = `latency: {slos: [
    {name: ttft, indicator: time_to_first_token, threshold: 500ms},
    {name: tpot, indicator: time_per_output_token, threshold: 50ms},
    {name: duration, indicator: request.duration, threshold: 30s}]}, `
)
