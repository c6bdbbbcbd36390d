// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package pipelines

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/tokenpulse/tokenpulse/e2e/internal/collector"
	"github.com/tokenpulse/tokenpulse/e2e/internal/exposition"
	"github.com/tokenpulse/tokenpulse/e2e/internal/otlpfile"
)

// The connector pushes the same counts that the exporter publishes.
func TestExampleOTLPMetrics_ConnectorEqualsExporter(t *testing.T) {
	t.Parallel()
	collector.ExampleEnvironment(t)
	file := filepath.Join(t.TempDir(), "metrics.jsonl")
	collector.Setenv(t, "METRICS_FILE", file)
	c := collector.Start(t, collector.Example(t, "otlp-metrics.yaml"))
	collector.Replay(t, c, collector.DemoRecording(t))
	scraped := exposition.Scrape(t, c)
	c.Stop(t) // flushes

	want := map[string]uint64{} // tokens and their gaps, by model and outcome
	for _, metric := range scraped["tokenpulse_inter_token_latency_seconds"].GetMetric() {
		want[exposition.Label(metric, "gen_ai_request_model")+" "+exposition.Label(metric, "outcome")] += metric.GetHistogram().GetSampleCount()
	}
	require.NotEmpty(t, want)

	got, requests := map[string]uint64{}, 0
	for name, metric := range lastMetrics(t, file) {
		switch name {
		case "tokenpulse.inter_token_latency":
			require.Equal(t, pmetric.AggregationTemporalityCumulative, metric.ExponentialHistogram().AggregationTemporality())
			for _, point := range metric.ExponentialHistogram().DataPoints().All() {
				require.EqualValues(t, 6, point.Scale())
				if point.Timestamp() > point.StartTimestamp() { // the other point is the zero that starts a series
					got[otlpfile.Text(t, point.Attributes(), "gen_ai.request.model")+" "+otlpfile.Text(t, point.Attributes(), "outcome")] += point.Count()
				}
			}
		case "tokenpulse.requests":
			for _, point := range metric.Sum().DataPoints().All() {
				requests += int(point.IntValue())
			}
		}
	}
	require.Equal(t, want, got)
	require.Equal(t, collector.DemoRequests(t), requests)
}

// lastMetrics returns the metrics of the last batch in a file, by name.
func lastMetrics(t *testing.T, file string) map[string]pmetric.Metric {
	t.Helper()
	written, err := os.ReadFile(file)
	require.NoError(t, err)
	lines := bytes.Split(bytes.TrimSpace(written), []byte("\n"))
	metrics, err := (&pmetric.JSONUnmarshaler{}).UnmarshalMetrics(lines[len(lines)-1])
	require.NoError(t, err)
	byName := map[string]pmetric.Metric{}
	for _, metric := range metrics.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().All() {
		byName[metric.Name()] = metric
	}
	return byName
}

// Series from the wire count what those of spans count.
func TestExampleWireMetrics_EqualsTheSpanPath(t *testing.T) {
	t.Parallel()
	counts := map[string]map[string]uint64{}
	for _, config := range []string{"otlp-metrics.yaml", "wire-metrics.yaml"} {
		collector.ExampleEnvironment(t)
		file := filepath.Join(t.TempDir(), "metrics.jsonl")
		collector.Setenv(t, "METRICS_FILE", file)
		c := collector.Start(t, collector.Example(t, config))
		collector.Replay(t, c, collector.DemoRecording(t))
		c.Stop(t) // flushes
		counts[config] = map[string]uint64{}
		for name, metric := range lastMetrics(t, file) {
			if metric.Type() != pmetric.MetricTypeExponentialHistogram {
				continue
			}
			for _, point := range metric.ExponentialHistogram().DataPoints().All() {
				if point.Timestamp() > point.StartTimestamp() { // the other point is the zero that starts a series
					counts[config][name+" "+otlpfile.Text(t, point.Attributes(), "gen_ai.request.model")] += point.Count()
				}
			}
		}
	}
	require.NotEmpty(t, counts["wire-metrics.yaml"])
	require.Equal(t, counts["otlp-metrics.yaml"], counts["wire-metrics.yaml"])
}
