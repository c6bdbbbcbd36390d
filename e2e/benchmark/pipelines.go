package main

// The configs of the Collectors that are measured. All have the metrics about
// themselves on, as they are by default: they prove that everything arrived.
const (
	otlp        = `{otlp: {protocols: {http: {endpoint: "$http"}, grpc: {endpoint: "$grpc"}}}}`
	tokenStream = `{token_stream: {protocols: {http: {endpoint: "$http"}, grpc: {endpoint: "$grpc"}}}}`
	telemetry   = `{metrics: {readers: [{pull: {exporter: {prometheus: {host: 127.0.0.1, port: $telemetry_port}}}}]}}`

	otlpToNop = `
receivers: ` + otlp + `
exporters: {nop: {}}
service:
  telemetry: ` + telemetry + `
  pipelines: {traces: {receivers: [otlp], exporters: [nop]}}
`
	tokenStreamToSLI = `
receivers: ` + tokenStream + `
processors: {token_latency: {}}
exporters: {token_sli: {endpoint: "$scrape"}}
service:
  telemetry: ` + telemetry + `
  pipelines: {traces: {receivers: [token_stream], processors: [token_latency], exporters: [token_sli]}}
`
)

func otlpToSLI(settings string) string {
	return `
receivers: ` + otlp + `
processors: {token_latency: {}}
exporters: {token_sli: {endpoint: "$scrape"` + settings + `}}
service:
  telemetry: ` + telemetry + `
  pipelines: {traces: {receivers: [otlp], processors: [token_latency], exporters: [token_sli]}}
`
}

// otlpToSpanmetrics has the dimensions that token_sli has by default.
func otlpToSpanmetrics(settings string) string {
	return `
receivers: ` + otlp + `
connectors:
  spanmetrics: {
    dimensions: [{name: gen_ai.provider.name}, {name: gen_ai.request.model}, {name: gen_ai.operation.name}]` + settings + `}
exporters: {prometheus: {endpoint: "$scrape"}}
service:
  telemetry: ` + telemetry + `
  pipelines:
    traces: {receivers: [otlp], exporters: [spanmetrics]}
    metrics: {receivers: [spanmetrics], exporters: [prometheus]}
`
}

const (
	// Counting events asks for one dimension more. This one is on none of them,
	// which is the cheapest.
	counting    = `, histogram: {exponential: {max_size: 160}}, events: {enabled: true, dimensions: [{name: gen_ai.token.type}]}, metrics_flush_interval: 1s`
	exponential = `, histogram: {exponential: {max_size: 160}}, metrics_flush_interval: 5s`
	// As many buckets as token_sli has.
	explicit = `, histogram: {unit: s, explicit: {buckets: [
      1ms, 5ms, 10ms, 25ms, 50ms, 100ms, 150ms, 200ms, 300ms, 500ms, 750ms, 1s, 1500ms, 2s, 3s, 5s, 7500ms,
      10s, 15s, 20s, 30s, 60s, 120s, 300s, 600s]}}, metrics_flush_interval: 5s`

	// Percentiles are left out, as the other side has none.
	histogramsOnly = `, windows: [], quantiles: []`
)
