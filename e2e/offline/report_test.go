// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Package offline tests the commands of tokenpulse that read files.
package offline

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"

	"github.com/tokenpulse/tokenpulse/e2e/internal/collector"
	"github.com/tokenpulse/tokenpulse/e2e/internal/exposition"
	"github.com/tokenpulse/tokenpulse/internal/testenv"
	"github.com/tokenpulse/tokenpulse/internal/testenv/golden"
)

// The Collector writes the spans as it received them, and as token_latency annotated them, in each format of the file
// exporter. SLOs judge them.
const writesFiles = `
receivers:
  token_stream: {}
  otlp: {protocols: {http: {endpoint: "${env:OTLP}"}}}
processors:
  token_latency:
    slos:
      - {name: ttft, indicator: time_to_first_token, threshold: 1s}
      - {name: tpot of a model, indicator: time_per_output_token, threshold: 20ms, match: {gen_ai.request.model: recorded}}
      - {name: outcome, indicator: outcome}
exporters:
  token_sli:
    zero_for: 0s
    dimensions: [service.name, gen_ai.request.model, gen_ai.provider.name]
    objectives: [{slo: ttft, objective: 0.9}]
  file/received: {path: "${env:FOLDER}/received.jsonl"}
  file/protobuf: {path: "${env:FOLDER}/received.pb", format: proto}
  file/compressed: {path: "${env:FOLDER}/received.zst", format: proto, compression: zstd}
  file/annotated: {path: "${env:FOLDER}/annotated.jsonl.zst", compression: zstd}
service:
  pipelines:
    traces/received: {receivers: [otlp, token_stream], exporters: [file/received, file/protobuf, file/compressed]}
    traces: {receivers: [otlp, token_stream], processors: [token_latency], exporters: [token_sli, file/annotated]}
`

// offlineReport is what these tests read of a report.
type offlineReport struct {
	Groups []struct {
		Labels   map[string]string
		Vantage  string
		Outcomes map[string]struct {
			Requests   uint64
			Indicators map[string]struct {
				Count                        uint64
				Sum, Min, Max, P50, P95, P99 float64
				ZeroCount                    uint64 `json:"zero_count"`
				Offset                       int
				Counts                       []uint64 `json:"bucket_counts"`
			}
		}
		Failures, Tokens, Totals map[string]float64
		Unmeasured               map[string]map[string]float64
		SLOs                     map[string]map[string]uint64
	}
	Input struct{ Requests, Duplicates int }
}

// A report has each histogram, counter and verdict of /metrics, value for value: of 20 kinds of instrumentations, engines and
// gateways, of 100 real requests and of repeated ones.
func TestReport_EqualsMetricsOfTheCollector(t *testing.T) {
	t.Parallel()
	folder, otlp := t.TempDir(), collector.FreeAddress(t)
	collector.Setenv(t, "FOLDER", folder)
	collector.Setenv(t, "OTLP", otlp)
	config := collector.WriteFile(t, t.TempDir(), "config.yaml", writesFiles)
	c := collector.Start(t, config, collector.OwnMetricsOff)
	sources, err := filepath.Glob(filepath.Join(testenv.Root(t), "processor", "tokenlatencyprocessor", "testdata", "*", "input.yaml"))
	require.NoError(t, err)
	require.Greater(t, len(sources), 50)
	for _, source := range slices.Concat(sources, sources[:10]) { // some twice, as a sender repeats them
		body, err := ptraceotlp.NewExportRequestFromTraces(golden.ReadTraces(t, source)).MarshalJSON()
		require.NoError(t, err)
		collector.PostSpans(t, otlp, "application/json", body)
	}
	collector.Replay(t, c, testenv.UnzipRecording(t))
	collector.Replay(t, c, collector.DemoRecording(t))
	scraped := samplesOf(exposition.Scrape(t, c))
	require.Greater(t, len(scraped), 150)
	report := readReport(t, "report", filepath.Join(folder, "received.jsonl"), "--config", config, "--format", "json")
	var page map[string]map[string]float64
	require.Eventually(t, func() bool { // the page counts whole slots
		page = pageNumbers(t, c, &report)
		return len(page) == len(report.pageNumbers())
	}, collector.Patience, 500*time.Millisecond)
	require.Greater(t, len(page), 40)
	c.Stop(t)

	for _, name := range []string{"received.jsonl", "received.pb", "received.zst", "annotated.jsonl.zst"} {
		t.Run(name, func(t *testing.T) {
			r := readReport(t, "report", filepath.Join(folder, name), "--config", config, "--format", "json", "--strict")
			require.Positive(t, r.Input.Duplicates)
			requireSame(t, scraped, r.samples())
			for id, numbers := range r.pageNumbers() {
				require.InDeltaMapValues(t, page[id], numbers, 1e-9, id)
			}
		})
	}
}

func readReport(t *testing.T, args ...string) (r offlineReport) {
	t.Helper()
	command := exec.CommandContext(t.Context(), collector.Built(t, "tokenpulse"), args...)
	var warnings bytes.Buffer
	command.Stderr = &warnings
	out, err := command.Output()
	require.NoError(t, err, warnings.String())
	require.NoError(t, json.Unmarshal(out, &r))
	return r
}

// pageNumbers asks the API of the live page for the latencies of each group of a report, and their percentiles.
func pageNumbers(t *testing.T, c *collector.Collector, r *offlineReport) map[string]map[string]float64 {
	t.Helper()
	all := map[string]map[string]float64{}
	for _, g := range r.Groups {
		if g.Vantage == "" {
			continue // which the API has no filter for
		}
		for outcome := range g.Outcomes {
			query := url.Values{"range": {"1h"}, "vantage": {g.Vantage}, "outcome": {outcome}}
			for _, name := range []string{"service.name", "gen_ai.request.model", "gen_ai.provider.name"} {
				query.Add("where", name+"="+g.Labels[name])
			}
			var answer collector.LivePageAnswer
			c.AskPage(t, "now?"+query.Encode(), &answer)
			for name, values := range answer.Indicators {
				all[fmt.Sprint(g.Labels, g.Vantage, outcome, name)] = values
			}
		}
	}
	return all
}

// pageNumbers returns the same numbers of the report.
func (r *offlineReport) pageNumbers() map[string]map[string]float64 {
	all := map[string]map[string]float64{}
	for _, g := range r.Groups {
		if g.Vantage == "" {
			continue
		}
		for outcome, o := range g.Outcomes {
			for name, h := range o.Indicators {
				all[fmt.Sprint(g.Labels, g.Vantage, outcome, name)] = map[string]float64{
					"count": float64(h.Count), "mean": h.Sum / float64(h.Count), "min": h.Min, "max": h.Max, "p50": h.P50, "p95": h.P95, "p99": h.P99,
				}
			}
		}
	}
	return all
}

// sample is a value of a metric: a number, or the buckets of a histogram and its sum.
type sample struct {
	exact string
	sum   float64
}

func requireSame(t *testing.T, want, got map[string]sample) {
	t.Helper()
	require.Equal(t, slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(got)))
	for id, w := range want {
		require.Equal(t, w.exact, got[id].exact, id)
		require.InDelta(t, w.sum, got[id].sum, 1e-9*max(1, w.sum), "%s: only the order of additions may differ", id)
	}
}

// samplesOf returns the counters and histograms of a scrape that are not zero.
func samplesOf(families map[string]*dto.MetricFamily) map[string]sample {
	all := map[string]sample{}
	for name, family := range families {
		for _, m := range family.Metric {
			labels := map[string]string{}
			for _, l := range m.Label {
				labels[l.GetName()] = l.GetValue()
			}
			switch {
			case m.Histogram != nil:
				all[id(name, labels)] = histogramSample(m.Histogram)
			case m.Counter.GetValue() > 0 && strings.Contains(name, "seconds"):
				all[id(name, labels)] = sample{sum: m.Counter.GetValue()}
			case m.Counter.GetValue() > 0:
				all[id(name, labels)] = sample{exact: fmt.Sprint(m.Counter.GetValue())}
			}
		}
	}
	return all
}

func histogramSample(h *dto.Histogram) sample {
	buckets, index, count := map[int]uint64{}, 0, int64(0)
	deltas := h.GetPositiveDelta()
	for _, span := range h.GetPositiveSpan() {
		index += int(span.GetOffset())
		for range span.GetLength() {
			count += deltas[0]
			deltas = deltas[1:]
			if count > 0 {
				buckets[index-1] = uint64(count) // Prometheus numbers the bucket of index i of OpenTelemetry i+1
			}
			index++
		}
	}
	return sample{fmt.Sprint(h.GetSampleCount(), h.GetZeroCount(), buckets), h.GetSampleSum()}
}

func id(name string, labels map[string]string) string {
	var pairs []string
	for k, v := range labels {
		if v != "" {
			pairs = append(pairs, k+"="+v)
		}
	}
	slices.Sort(pairs)
	return name + "{" + strings.Join(pairs, ",") + "}"
}

// metricNames are those of Prometheus for the names of a report.
var metricNames = map[string]string{
	"queue": "tokenpulse_phase_duration_seconds", "prefill": "tokenpulse_phase_duration_seconds", "decode": "tokenpulse_phase_duration_seconds",
	"network": "tokenpulse_phase_duration_seconds", "transfer": "tokenpulse_phase_duration_seconds",
	"output_token_rate": "tokenpulse_output_token_rate_tokens_per_second",
	"stalls":            "tokenpulse_stalls_total",
	"stall.duration":    "tokenpulse_stall_duration_seconds_total",
}

// samples returns those of a report, as /metrics has them.
func (r *offlineReport) samples() map[string]sample {
	all := map[string]sample{}
	for _, g := range r.Groups {
		labelled := func(pairs ...string) map[string]string {
			labels := map[string]string{"vantage": g.Vantage}
			for k, v := range g.Labels {
				labels[strings.ReplaceAll(k, ".", "_")] = v
			}
			for i := 0; i < len(pairs); i += 2 {
				labels[pairs[i]] = pairs[i+1]
			}
			return labels
		}
		number := func(name string, n float64, pairs ...string) {
			if n > 0 {
				all[id(name, labelled(pairs...))] = sample{exact: fmt.Sprint(n)}
			}
		}
		for outcome, o := range g.Outcomes {
			number("tokenpulse_requests_total", float64(o.Requests), "outcome", outcome)
			for name, h := range o.Indicators {
				metric, pairs := metricNames[name], []string{"outcome", outcome}
				if strings.HasPrefix(metric, "tokenpulse_phase") {
					pairs = append(pairs, "phase", name)
				}
				if metric == "" {
					metric = "tokenpulse_" + name + "_seconds"
				}
				buckets := map[int]uint64{}
				for i, n := range h.Counts {
					if n > 0 {
						buckets[h.Offset+i] = n
					}
				}
				all[id(metric, labelled(pairs...))] = sample{fmt.Sprint(h.Count, h.ZeroCount, buckets), h.Sum}
			}
		}
		for cause, n := range g.Failures {
			number("tokenpulse_requests_failed_total", n, "cause", cause)
		}
		for kind, n := range g.Tokens {
			number("tokenpulse_tokens_total", n, "type", kind)
		}
		for name, n := range g.Totals {
			if metric := metricNames[name]; strings.Contains(metric, "seconds") {
				all[id(metric, labelled())] = sample{sum: n}
			} else {
				number(metric, n)
			}
		}
		for indicator, reasons := range g.Unmeasured {
			for reason, n := range reasons {
				number("tokenpulse_requests_unmeasured_total", n, "indicator", indicator, "reason", reason)
			}
		}
		for name, verdicts := range g.SLOs {
			for verdict, n := range verdicts {
				number("tokenpulse_slo_requests_total", float64(n), "slo", name, "verdict", verdict)
			}
		}
	}
	return all
}
