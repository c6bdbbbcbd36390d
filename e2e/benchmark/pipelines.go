// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package main

const protocols = `protocols: {http: {endpoint: "$http"}, grpc: {endpoint: "$grpc"}}`

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

// sliConfig is the pipeline of tokenpulse. The receiver's settings end with a comma, the
// exporter's begin with one.
func sliConfig(receiver, receiverSettings, exporterSettings string) string {
	return collectorConfig(receiver+`: {`+receiverSettings+protocols+`}`, `
processors: {token_latency: {}}
exporters: {token_sli: {endpoint: "$scrape"`+exporterSettings+`}}`,
		`traces: {receivers: [`+receiver+`], processors: [token_latency], exporters: [token_sli]}`)
}

func nopConfig() string {
	return collectorConfig(`otlp: {`+protocols+`}`, `exporters: {nop: {}}`, `traces: {receivers: [otlp], exporters: [nop]}`)
}

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

	withoutDeduplication = `, deduplication: {horizon: 0s}`
)
