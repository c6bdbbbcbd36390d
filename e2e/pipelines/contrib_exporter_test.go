// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package pipelines

import (
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/e2e/internal/collector"
	"github.com/tokenpulse/tokenpulse/e2e/internal/exposition"
)

// behindConnector extends examples/quickstart.yaml with contrib's exporter.
const behindConnector = `
connectors:
  token_sli/otlp: {metrics_flush_interval: 100ms}
exporters:
  prometheus: {endpoint: "${env:CONTRIB}", enable_open_metrics: true, without_scope_info: true}
processors:
  token_latency:
    slos: [{name: first, indicator: time_to_first_token, threshold: 1ms}]
service:
  pipelines:
    traces: {exporters: [token_sli, token_sli/otlp]}
    metrics: {receivers: [token_sli/otlp], exporters: [prometheus]}
`

// docs/prometheus.md says what contrib's exporter makes of the connector's metrics. It is
// compared with the token_sli exporter of the same Collector.
func TestContribPrometheusExporter_KeepsNativeBucketsOnly(t *testing.T) {
	t.Parallel()
	address := collector.FreeAddress(t)
	collector.Setenv(t, "CONTRIB", address)
	c := collector.Start(t, collector.Example(t, "quickstart.yaml"), "--config", collector.WriteFile(t, t.TempDir(), "contrib.yaml", behindConnector))
	collector.Replay(t, c, collector.DemoRecording(t))
	url := "http://" + address + "/metrics"
	waitForRequests(t, url, collector.DemoRequests(t))

	ours, theirs := bySeries(exposition.Scrape(t, c)), bySeries(exposition.ScrapeURL(t, url))
	histograms := 0
	for series, metric := range ours {
		if strings.Contains(series, "_percentile_") {
			continue
		}
		require.Contains(t, theirs, series)
		same := theirs[series]
		require.Equal(t, metric.GetCounter().GetValue(), same.GetCounter().GetValue(), series)
		if want, got := metric.GetHistogram(), same.GetHistogram(); want != nil {
			histograms++
			require.EqualValues(t, 6, got.GetSchema(), series)
			require.Equal(t, nativeBuckets(want), nativeBuckets(got), series)
			require.InEpsilon(t, want.GetSampleSum(), got.GetSampleSum(), 1e-9, series)
			require.Empty(t, got.GetBucket(), series)
		}
	}
	require.Positive(t, histograms)

	for _, format := range []string{"text/plain", "application/openmetrics-text; version=1.0.0"} {
		text := string(collector.Get(t, url, format))
		bucket := regexp.MustCompile(`(?m)^tokenpulse_\w+_bucket\{.*`).FindAllString(text, -1)
		require.Len(t, bucket, histograms, format)
		for _, line := range bucket {
			require.Contains(t, line, `le="+Inf"`, format)
		}
	}
}

// waitForRequests waits until contrib's exporter, which has no metrics at first, has
// counted a number of requests.
func waitForRequests(t *testing.T, url string, want int) {
	t.Helper()
	requests := 0
	require.Eventually(t, func() bool {
		requests = 0
		for _, counter := range regexp.MustCompile(`(?m)^tokenpulse_requests_total\{.* (\d+)$`).FindAllSubmatch(collector.Get(t, url, "text/plain"), -1) {
			n, err := strconv.Atoi(string(counter[1]))
			require.NoError(t, err)
			requests += n
		}
		return requests == want
	}, collector.Patience, 100*time.Millisecond, "%s has not %d requests", url, want)
}

// bySeries returns metrics by name and labels.
func bySeries(families map[string]*dto.MetricFamily) map[string]*dto.Metric {
	all := map[string]*dto.Metric{}
	for name, family := range families {
		for _, metric := range family.GetMetric() {
			series := []string{name}
			for _, pair := range metric.GetLabel() {
				series = append(series, pair.GetName()+"="+pair.GetValue())
			}
			all[strings.Join(series, " ")] = metric
		}
	}
	return all
}

// nativeBuckets returns the values in each native bucket, by index.
func nativeBuckets(h *dto.Histogram) map[int32]int64 {
	buckets, index, count := map[int32]int64{}, int32(0), int64(0)
	deltas := h.GetPositiveDelta()
	for _, span := range h.GetPositiveSpan() {
		index += span.GetOffset()
		for range span.GetLength() {
			if count += deltas[0]; count != 0 {
				buckets[index] = count
			}
			deltas, index = deltas[1:], index+1
		}
	}
	return buckets
}
