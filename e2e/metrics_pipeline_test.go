// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"fmt"
	"os"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"
)

// numbersOf returns every counter, and the native buckets of every histogram, of a scrape.
// Sums are apart: their last digits depend on the order of additions.
func numbersOf(families map[string]*dto.MetricFamily) (exact map[string]string, sums map[string]float64) {
	exact, sums = map[string]string{}, map[string]float64{}
	for name, family := range families {
		for _, m := range family.Metric {
			id := fmt.Sprint(name, m.Label)
			switch h := m.Histogram; {
			case h != nil:
				exact[id] = fmt.Sprint(h.GetSampleCount(), h.GetSchema(), h.GetZeroCount(), h.PositiveSpan, h.PositiveDelta)
				sums[id] = h.GetSampleSum()
			case m.Counter != nil && name == "tokenpulse_stall_duration_seconds_total":
				sums[id] = m.GetCounter().GetValue()
			case m.Counter != nil:
				exact[id] = fmt.Sprint(m.GetCounter().GetValue())
			}
		}
	}
	return exact, sums
}

func requireSameSeries(t *testing.T, want, got map[string]*dto.MetricFamily) {
	t.Helper()
	wantExact, wantSums := numbersOf(want)
	gotExact, gotSums := numbersOf(got)
	require.Greater(t, len(wantExact), 30)
	require.Equal(t, wantExact, gotExact)
	require.Len(t, gotSums, len(wantSums))
	for id, sum := range wantSums {
		require.InEpsilon(t, 1+sum, 1+gotSums[id], 1e-12, id)
	}
}

func requestCount(families map[string]*dto.MetricFamily) (total int) {
	for _, m := range families["tokenpulse_requests_total"].GetMetric() {
		total += int(m.GetCounter().GetValue())
	}
	return total
}

// replay sends a recording over gRPC.
func replay(t *testing.T, c *collector, file string) {
	t.Helper()
	run(t, built(t, "tokengen"), "replay", file, "--transport", "grpc", "--endpoint", c.grpc)
}

// One exporter gets the spans, another the metrics of a connector that gets them, too.
func TestMetricsPipeline_EqualsTheTracesPipeline(t *testing.T) {
	for _, temporality := range []string{"cumulative", "delta"} {
		t.Run(temporality, func(t *testing.T) {
			ofMetrics := freeAddress(t)
			config := writeFile(t, t.TempDir(), "config.yaml", `
receivers: {token_stream: }
processors:
  token_latency:
    slos: [{name: ttft, indicator: time_to_first_token, threshold: 300ms}]
connectors:
  token_sli/series: {metrics_flush_interval: 100ms, temporality: `+temporality+`}
exporters:
  token_sli:
  token_sli/metrics: {endpoint: "`+ofMetrics+`"}
service:
  telemetry: {metrics: {level: none}}
  pipelines:
    traces: {receivers: [token_stream], processors: [token_latency], exporters: [token_sli, token_sli/series]}
    metrics: {receivers: [token_sli/series], exporters: [token_sli/metrics]}
`)
			c := startCollector(t, config)
			replay(t, c, demoRecording(t))
			var got map[string]*dto.MetricFamily
			require.Eventually(t, func() bool {
				response := get(t, "http://"+ofMetrics+"/metrics", "text/plain")
				if !bytes.Contains(response, []byte("tokenpulse_requests_total")) {
					return false
				}
				got = scrapeURL(t, "http://"+ofMetrics+"/metrics")
				return requestCount(got) == demoRequests(t)
			}, patience, 50*time.Millisecond)
			want := scrape(t, c)
			if temporality == "delta" { // a counter that is still 0 is not sent
				for _, family := range want {
					kept := family.Metric[:0]
					for _, m := range family.Metric {
						if m.Counter == nil || m.GetCounter().GetValue() > 0 || label(m, "slo") != "" {
							kept = append(kept, m)
						}
					}
					family.Metric = kept
				}
			}
			requireSameSeries(t, want, got)
		})
	}
}

// The exporter stands in both pipelines of this Collector: there is one /metrics. It shows each
// request twice, because nothing says that the metrics are of the same requests.
func TestMetricsPipeline_SharesTheExporterWithTheTracesPipeline(t *testing.T) {
	c := startCollector(t, writeFile(t, t.TempDir(), "config.yaml", `
receivers: {token_stream: }
processors: {token_latency: }
connectors:
  token_sli/series: {metrics_flush_interval: 100ms}
exporters: {token_sli: }
service:
  telemetry: {metrics: {level: none}}
  pipelines:
    traces: {receivers: [token_stream], processors: [token_latency], exporters: [token_sli, token_sli/series]}
    metrics: {receivers: [token_sli/series], exporters: [token_sli]}
`))
	replay(t, c, demoRecording(t))
	require.Eventually(t, func() bool { return requestCount(scrape(t, c)) == 2*demoRequests(t) }, patience, 50*time.Millisecond)
	c.stop(t)
	require.NotContains(t, c.output(t), "error")
}

// One Collector aggregates streams in the receiver, without spans; another has spans.
func TestMetricsPipeline_OfTheReceiverEqualsTheTracesPipeline(t *testing.T) {
	direct := startCollector(t, writeFile(t, t.TempDir(), "config.yaml", `
receivers: {token_stream: {series: {metrics_flush_interval: 100ms}}}
exporters: {token_sli: }
service:
  telemetry: {metrics: {level: none}}
  pipelines:
    metrics: {receivers: [token_stream], exporters: [token_sli]}
`))
	ofSpans := startCollector(t, example(t, "quickstart.yaml"))
	replay(t, direct, demoRecording(t))
	replay(t, ofSpans, demoRecording(t))
	require.Eventually(t, func() bool {
		text := get(t, direct.metricsURL(), "text/plain")
		return bytes.Contains(text, []byte("tokenpulse_requests_total")) && requestCount(scrape(t, direct)) == demoRequests(t)
	}, patience, 50*time.Millisecond)
	requireSameSeries(t, scrape(t, ofSpans), scrape(t, direct))
}

// startAgent runs examples/metrics-agent.yaml in front of a gateway.
func startAgent(t *testing.T, more ...string) *collector {
	t.Helper()
	c := &collector{http: freeAddress(t), grpc: freeAddress(t)}
	c.process = start(t, built(t, "otelcol-tokenpulse"), append([]string{
		"--config", example(t, "metrics-agent.yaml"), ownMetricsOff,
		"--set", "receivers.token_stream.protocols.http.endpoint=" + c.http,
		"--set", "receivers.token_stream.protocols.grpc.endpoint=" + c.grpc,
	}, more...)...)
	c.waitForListener(t, c.grpc)
	return c
}

// Two agents, one of which restarts, publish to a gateway. Its numbers are those of one
// Collector that got all streams.
func TestExampleMetricsGateway_AddsUpTheAgents(t *testing.T) {
	exampleEnvironment(t)
	t.Setenv("GATEWAY_ENDPOINT", os.Getenv("OTLP_GRPC_ENDPOINT"))
	gateway := startCollector(t, example(t, "metrics-gateway.yaml"))
	single := startCollector(t, example(t, "quickstart.yaml"))

	recording, err := os.ReadFile(demoRecording(t))
	require.NoError(t, err)
	parts := make([]bytes.Buffer, 3)
	for line := range bytes.Lines(recording) {
		_, after, found := bytes.Cut(line, []byte(`"stream_id":"`))
		require.True(t, found)
		id, _, _ := bytes.Cut(after, []byte(`"`))
		sum := 0
		for _, c := range id {
			sum += int(c)
		}
		parts[sum%len(parts)].Write(line)
	}
	var files []string
	for i := range parts {
		require.NotZero(t, parts[i].Len())
		files = append(files, writeFile(t, t.TempDir(), fmt.Sprintf("part-%d.jsonl", i), parts[i].String()))
		replay(t, single, files[i])
	}

	t.Setenv("HOSTNAME", "first")
	first := startAgent(t, "--set", "connectors.token_sli/series.metrics_flush_interval=50ms")
	t.Setenv("HOSTNAME", "second")
	second := startAgent(t, "--set", "connectors.token_sli/series.temporality=delta")
	replay(t, first, files[0])
	replay(t, second, files[1])
	first.stop(t) // its last flush arrives, and the gateway keeps it
	t.Setenv("HOSTNAME", "first")
	first = startAgent(t)
	replay(t, first, files[2])
	first.stop(t)
	second.stop(t)

	want, got := scrape(t, single), scrape(t, gateway)
	require.Equal(t, demoRequests(t), requestCount(want))
	requireSameSeries(t, want, got)
}
