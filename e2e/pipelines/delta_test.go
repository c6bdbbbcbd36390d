// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

//go:build backends

package pipelines

import (
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/e2e/internal/collector"
	"github.com/tokenpulse/tokenpulse/e2e/internal/exposition"
)

// sendsDelta extends examples/quickstart.yaml. Its series expire after a second without requests.
const sendsDelta = `
connectors:
  token_sli/push: {temporality: delta, metrics_flush_interval: 50ms, series_expiration: 1s}
exporters:
  otlp_http:
    endpoint: "http://${env:RECEIVER}"
    sending_queue: {enabled: "${env:QUEUE}"}
    retry_on_failure: {enabled: "${env:QUEUE}", initial_interval: 50ms, max_interval: 50ms}
processors:
  token_latency:
    slos: [{name: first, indicator: time_to_first_token, threshold: 1s}]
service:
  pipelines:
    traces: {exporters: [token_sli, token_sli/push]}
    metrics: {receivers: [token_sli/push], exporters: [otlp_http]}
`

// addsUpDelta is a backend without delta, and what people put before it.
const addsUpDelta = `
receivers:
  otlp: {protocols: {http: {endpoint: "${env:RECEIVER}"}}}
processors:
  delta_to_cumulative:
exporters:
  prometheus: {endpoint: "${env:CONTRIB}", without_scope_info: true}
service:
  pipelines:
    metrics: {receivers: [otlp], processors: [delta_to_cumulative], exporters: [prometheus]}
`

// startAdding runs a Collector of make suite-backends that adds up delta.
func startAdding(t *testing.T) *collector.Process {
	t.Helper()
	p := collector.StartProcess(t, collector.Built(t, "backends/otelcol-backends"), "--config", collector.WriteFile(t, t.TempDir(), "adds.yaml", addsUpDelta), collector.OwnMetricsOff)
	p.WaitUntilReady(t)
	return p
}

// A receiver that was away, a series that expired, and a sender that restarts lose nothing
// and double nothing.
func TestDelta_AddsUpInAReceivingCollector(t *testing.T) {
	for name, queue := range map[string]string{"refused flushes": "false", "queue with retries": "true"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := collector.FreeAddress(t)
			collector.Setenv(t, "CONTRIB", url)
			url = "http://" + url + "/metrics"
			collector.Setenv(t, "RECEIVER", collector.FreeAddress(t))
			collector.Setenv(t, "QUEUE", queue)
			self, sends := collector.WithSelfMetrics(t)
			sends = append(sends, "--set=service.telemetry.metrics.level=normal", "--config", collector.WriteFile(t, t.TempDir(), "sends.yaml", sendsDelta))
			single := collector.Start(t, collector.Example(t, "quickstart.yaml"),
				"--set", "processors.token_latency.slos=[{name: first, indicator: time_to_first_token, threshold: 1s}]")
			parts := splitRecording(t, 3)
			for _, part := range parts {
				collector.Replay(t, single, part)
			}
			want := exposition.Scrape(t, single)

			sender := collector.Start(t, collector.Example(t, "quickstart.yaml"), sends...)
			collector.Replay(t, sender, parts[0])
			time.Sleep(500 * time.Millisecond) // ten flushes that fail
			startAdding(t)
			first := collector.RequestsOf(t, parts[0])
			waitForRequests(t, url, first)
			require.Eventually(t, func() bool { return exposition.ScrapeSelf(t, self).Of("token_sli_series_expired") > 0 }, collector.Patience, 50*time.Millisecond)
			collector.Replay(t, sender, parts[1])
			sender.Stop(t) // flushes
			waitForRequests(t, url, first+collector.RequestsOf(t, parts[1]))
			sender = collector.Start(t, collector.Example(t, "quickstart.yaml"), sends...)
			collector.Replay(t, sender, parts[2])
			sender.Stop(t)
			waitForRequests(t, url, collector.DemoRequests(t))
			requireSameBuckets(t, want, exposition.ScrapeURL(t, url))
		})
	}
}

// The Collector of make build does not have the exporter.
func TestBackendsPage_ClickHouseConfigIsValid(t *testing.T) {
	for _, b := range backendsPage(t) {
		if b.name == "ClickHouse" {
			collector.Run(t, collector.Built(t, "backends/otelcol-backends"), append([]string{"validate"}, backendConfigs(t, b.recipes[0])...)...)
			return
		}
	}
	t.Fatal("the page has no section ClickHouse")
}

// requireSameBuckets compares counters and native histograms. delta_to_cumulative merges
// neighbouring buckets of a histogram that would have more than 160.
func requireSameBuckets(t *testing.T, want, got map[string]*dto.MetricFamily) {
	t.Helper()
	theirs, counters, histograms, merged := bySeries(got), 0, 0, 0
	for series, metric := range bySeries(want) {
		switch h := metric.GetHistogram(); {
		case metric.Counter != nil && metric.GetCounter().GetValue() > 0: // delta does not send zeros
			counters++
			require.Contains(t, theirs, series)
			require.InEpsilon(t, metric.GetCounter().GetValue(), theirs[series].GetCounter().GetValue(), 1e-9, series)
		case h != nil:
			histograms++
			require.Contains(t, theirs, series)
			same := theirs[series].GetHistogram()
			by := h.GetSchema() - same.GetSchema()
			if by > 0 {
				merged++
			}
			require.Equal(t, coarser(nativeBuckets(h), by), nativeBuckets(same), series)
			require.Equal(t, h.GetZeroCount(), same.GetZeroCount(), series)
			require.Equal(t, h.GetSampleCount(), same.GetSampleCount(), series)
			require.InEpsilon(t, 1+h.GetSampleSum(), 1+same.GetSampleSum(), 1e-9, series)
		}
	}
	t.Logf("%d counters, %d histograms, %d of them with merged buckets", counters, histograms, merged)
	require.Greater(t, counters, 10)
	require.Greater(t, histograms, 10)
	require.Positive(t, histograms-merged)
}

// coarser merges 2^by neighbouring native buckets into one.
func coarser(buckets map[int32]int64, by int32) map[int32]int64 {
	merged := map[int32]int64{}
	for index, count := range buckets {
		merged[(index-1)>>by+1] += count
	}
	return merged
}
