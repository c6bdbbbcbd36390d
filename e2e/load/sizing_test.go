// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package load

import (
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/e2e/internal/collector"
	"github.com/tokenpulse/tokenpulse/internal/testenv"
)

var (
	sizing     = flag.Bool("sizing", false, "let TestSizing measure all cases, one after the other, instead of one per pipeline")
	sizingTime = flag.Duration("sizing-time", 15*time.Second, "how long TestSizing sends and scrapes")
)

// sizingPipelines are the ways to metrics whose memory differs.
var sizingPipelines = []struct {
	name    string
	scraped bool
	config  string
}{
	{name: "spans, exporter", scraped: true, config: `
exporters:
  token_sli: {dimensions: [tenant], max_series: %[1]d%[2]s}
service:
  pipelines:
    traces: {receivers: [token_stream], processors: [token_latency], exporters: [token_sli]}
`},
	{name: "spans, connector, OTLP", config: `
connectors:
  token_sli: {dimensions: [tenant], max_series: %[1]d, metrics_flush_interval: 10s%[2]s}
exporters:
  nop:
service:
  pipelines:
    traces: {receivers: [token_stream], processors: [token_latency], exporters: [token_sli]}
    metrics: {receivers: [token_sli], exporters: [nop]}
`},
	{name: "spans, connector, exporter", scraped: true, config: `
connectors:
  token_sli/agent: {dimensions: [tenant], max_series: %[1]d, metrics_flush_interval: 10s}
exporters:
  token_sli: {dimensions: [tenant], max_series: %[1]d%[2]s}
service:
  pipelines:
    traces: {receivers: [token_stream], processors: [token_latency], exporters: [token_sli/agent]}
    metrics: {receivers: [token_sli/agent], exporters: [token_sli]}
`},
}

// sizingConfig returns the configuration of a pipeline with n SLOs, each with an objective.
func sizingConfig(pipeline string, maxSeries, n int) string {
	var slos, objectives []string
	for i := range n {
		slos = append(slos, fmt.Sprintf("{name: slo-%d, indicator: time_to_first_token, threshold: %dms}", i, 10*(i+1)))
		objectives = append(objectives, fmt.Sprintf("{slo: slo-%d, objective: 0.9}", i))
	}
	return fmt.Sprintf(`
receivers: {token_stream: {}}
processors: {token_latency: {slos: [%s]}}`, strings.Join(slos, ", ")) +
		fmt.Sprintf(pipeline, maxSeries, ", objectives: ["+strings.Join(objectives, ", ")+"]") + `  telemetry: {metrics: {level: none}}
`
}

// peak runs a Collector with many series and objectives, all of which get requests and are scraped every five
// seconds or flushed every ten, and returns the largest resident memory in bytes.
func peak(t *testing.T, pipeline string, scraped bool, series, objectives int) (largest int64) {
	config := collector.WriteFile(t, t.TempDir(), "config.yaml", sizingConfig(pipeline, 2*series+2, objectives))
	start := collector.StartPushing
	if scraped {
		start = collector.Start
	}
	c := start(t, config)
	defer c.Stop(t)
	scrape := func() {
		if !scraped {
			return
		}
		r, err := http.NewRequest(http.MethodGet, c.MetricsURL(), http.NoBody)
		require.NoError(t, err)
		r.Header.Set("Accept", "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited")
		response, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		defer response.Body.Close()
		_, err = io.Copy(io.Discard, response.Body)
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, response.StatusCode)
	}
	next := time.Now()
	for round, end := 0, time.Now().Add(*sizingTime); time.Now().Before(end); round++ {
		sendTenants(t, c, series, round)
		for ; time.Now().Before(next); time.Sleep(50 * time.Millisecond) {
		}
		scrape()
		next = next.Add(5 * time.Second)
	}
	return c.PeakMemory(t)
}

// documented returns the resident memory in bytes that the page of operations gives for a pipeline.
func documented(t *testing.T, pipeline string, series, objectives int) float64 {
	page, err := os.ReadFile(filepath.Join(testenv.Root(t), "docs", "operations.md"))
	require.NoError(t, err)
	row := regexp.MustCompile(`(?m)^\| ` + pipeline + ` \| (\d+) MiB \| (\d+) kB \| (\d+) kB \|`).FindStringSubmatch(string(page))
	require.NotNil(t, row, "docs/operations.md has no row of this pipeline")
	number := func(i int) float64 {
		n, err := strconv.ParseFloat(row[i], 64)
		require.NoError(t, err)
		return n
	}
	return number(1)*(1<<20) + float64(series)*1000*(number(2)+float64(objectives)*number(3))
}

// The formulas of docs/operations.md hold for the process, at Go's default heap.
func TestSizing(t *testing.T) {
	allSeries, allObjectives := []int{500}, []int{10}
	if *sizing {
		allSeries, allObjectives = []int{1, 500, 2000}, []int{0, 5, 10}
	}
	for _, pipeline := range sizingPipelines {
		t.Run(pipeline.name, func(t *testing.T) {
			if !*sizing {
				t.Parallel()
			}
			for _, series := range allSeries {
				for _, objectives := range allObjectives {
					measured, expected := float64(peak(t, pipeline.config, pipeline.scraped, series, objectives)), documented(t, pipeline.name, series, objectives)
					t.Logf("%d series, %d objectives: %.0f MiB, by the page %.0f MiB", series, objectives, measured/(1<<20), expected/(1<<20))
					assert.InDelta(t, 1, measured/expected, 0.25)
				}
			}
		})
	}
}
