// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/internal/testenv"
	"github.com/tokenpulse/tokenpulse/internal/testenv/reference"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
)

// gapsInMilliseconds returns the time between the chunks of a recorded request.
func gapsInMilliseconds(request *testenv.Recorded) []float64 {
	var gaps []float64
	for i := range request.Chunks[1:] {
		gaps = append(gaps, float64(request.Chunks[i+1].Time-request.Chunks[i].Time)/1e6)
	}
	return gaps
}

// The spans and metrics of 100 real requests are those of the recording, and the
// same over each transport.
func TestReplay_SpansAndMetricsEqualTheRecording(t *testing.T) {
	requests := testenv.Recording(t)
	require.Len(t, requests, 100)

	var histograms []map[string]*dto.Histogram
	transports := []string{"ndjson", "json", "protobuf", "grpc", "grpc-stream"}
	for _, transport := range transports {
		t.Run(transport, func(t *testing.T) {
			spansFile := filepath.Join(t.TempDir(), "spans.jsonl")
			setenv(t, "SPANS_FILE", spansFile)
			setenv(t, "OTLP_GRPC_ENDPOINT", freeAddress(t))
			setenv(t, "OTLP_HTTP_ENDPOINT", freeAddress(t))
			c := startCollector(t, filepath.Join(testenv.Root(t), "examples", "spans-to-file.yaml"), append([]string{"--config", writeFile(t, t.TempDir(), "every.yaml", everyMetric)}, fullDetail...)...)
			run(t, built(t, "tokengen"), "replay", testenv.UnzipRecording(t),
				"--transport", transport, "--endpoint", c.endpoint(transport))
			families := scrape(t, c)
			c.stop(t)

			requireRecordedSpans(t, requests, readSpans(t, spansFile))
			requireRecordedPercentiles(t, requests, families)
			requireRecordedCounts(t, families)
			histograms = append(histograms, successHistograms(families))
		})
	}
	require.Len(t, histograms, len(transports))
	for i := range histograms {
		require.Equal(t, histograms[0], histograms[i], "%s and %s differ", transports[0], transports[i])
	}
	requireAIPerfStatistics(t, requests)
}

func readSpans(t *testing.T, file string) []ptrace.Span {
	t.Helper()
	var spans []ptrace.Span
	for span := range spansOfResources(t, file) {
		spans = append(spans, span)
	}
	return spans
}

// spansOfResources yields the spans that a file exporter wrote, each with the
// attributes of its resource.
func spansOfResources(t *testing.T, file string) iter.Seq2[ptrace.Span, pcommon.Map] {
	t.Helper()
	written, err := os.ReadFile(file)
	require.NoError(t, err)
	return func(yield func(ptrace.Span, pcommon.Map) bool) {
		for line := range bytes.Lines(written) {
			traces, err := (&ptrace.JSONUnmarshaler{}).UnmarshalTraces(line)
			require.NoError(t, err)
			for _, resource := range traces.ResourceSpans().All() {
				for _, scope := range resource.ScopeSpans().All() {
					for _, span := range scope.Spans().All() {
						if !yield(span, resource.Resource().Attributes()) {
							return
						}
					}
				}
			}
		}
	}
}

func requireRecordedSpans(t *testing.T, requests []*testenv.Recorded, spans []ptrace.Span) {
	t.Helper()
	require.Len(t, spans, len(requests))
	byStart := map[int64]ptrace.Span{}
	for _, span := range spans {
		byStart[int64(span.StartTimestamp())] = span
	}
	require.Len(t, byStart, len(requests), "each request has its own start time")
	for _, request := range requests {
		span, found := byStart[request.Start]
		require.True(t, found, "no span starts at %d", request.Start)
		attributes := span.Attributes()
		if request.Cancelled {
			require.Equal(t, "cancelled", text(t, attributes, "tokenpulse.outcome"))
			_, found := attributes.Get("tokenpulse.time_to_first_token")
			require.False(t, found, "a request without tokens has no TTFT")
			continue
		}
		const within = 0.002 // milliseconds
		require.Equal(t, "success", text(t, attributes, "tokenpulse.outcome"))
		require.Equal(t, "token_stream", text(t, attributes, "tokenpulse.source"))
		require.InDelta(t, request.Computed.TimeToFirstToken, milliseconds(t, attributes, "tokenpulse.time_to_first_token"), within)
		require.InDelta(t, request.Computed.InterTokenLatency, milliseconds(t, attributes, "tokenpulse.time_per_output_token"), within)
		require.InDelta(t, request.Computed.RequestLatency, milliseconds(t, attributes, "tokenpulse.request.duration"), within)

		_, anomalies := attributes.Get("tokenpulse.clock.anomalies")
		require.False(t, anomalies, "the clock of the recording never steps back")

		recorded, gaps := gapsInMilliseconds(request), gapsOf(t, attributes)
		require.Len(t, gaps, len(recorded))
		for i, gap := range gaps {
			require.InDelta(t, recorded[i], gap, within, "gap %d", i)
		}
		sorted := slices.Sorted(slices.Values(recorded))
		require.InDelta(t, reference.Mean(sorted), milliseconds(t, attributes, "tokenpulse.inter_chunk_latency.mean"), within)
		require.InDelta(t, sorted[len(sorted)-1], milliseconds(t, attributes, "tokenpulse.inter_chunk_latency.max"), within)
		for suffix, q := range map[string]float64{".p50": 0.5, ".p95": 0.95, ".p99": 0.99} {
			require.InEpsilon(t, reference.NearestRank(sorted, q), milliseconds(t, attributes, "tokenpulse.inter_chunk_latency"+suffix), 0.01)
		}
	}
}

// gapsOf returns the time between the chunks of a span's timeline, in milliseconds.
func gapsOf(t *testing.T, attributes pcommon.Map) []float64 {
	t.Helper()
	stored, found := attributes.Get("tokenpulse.timeline")
	require.True(t, found)
	walk, err := timeline.Decode(stored.Bytes().AsRaw())
	require.NoError(t, err)
	var gaps []float64
	var last time.Duration
	for first := true; walk.Next(); first = false {
		if !first {
			gaps = append(gaps, float64(walk.Offset()-last)/1e6)
		}
		last = walk.Offset()
	}
	require.NoError(t, walk.Err())
	return gaps
}

// requireRecordedPercentiles compares the percentile gauges with the exact nearest rank
// among all requests.
func requireRecordedPercentiles(t *testing.T, requests []*testenv.Recorded, families map[string]*dto.MetricFamily) {
	t.Helper()
	for name, values := range pooled(requests) {
		family := families["tokenpulse_"+name+"_percentile_seconds"]
		require.NotNil(t, family, name)
		for _, window := range []string{"1m", "5m", "1h"} {
			for _, q := range []float64{0.5, 0.9, 0.95, 0.99} {
				gauge := find(t, family, map[string]string{
					"outcome": "success", "window": window, "percentile": strconv.Itoa(int(math.Round(100 * q))),
				})
				require.InEpsilon(t, reference.NearestRank(values, q)/1e3, gauge.GetGauge().GetValue(), 0.01, "%s %v over %s", name, q, window)
			}
		}
	}
}

// pooled returns the sorted values of all successful requests, in milliseconds. Each
// chunk of this recording is one token, so inter-token and inter-chunk latency are
// equal.
func pooled(requests []*testenv.Recorded) map[string][]float64 {
	all := map[string][]float64{}
	for _, request := range requests {
		if request.Cancelled {
			continue
		}
		all["time_to_first_token"] = append(all["time_to_first_token"], request.Computed.TimeToFirstToken)
		all["time_per_output_token"] = append(all["time_per_output_token"], request.Computed.InterTokenLatency)
		all["request_duration"] = append(all["request_duration"], request.Computed.RequestLatency)
		all["inter_chunk_latency"] = append(all["inter_chunk_latency"], gapsInMilliseconds(request)...)
		all["inter_token_latency"] = append(all["inter_token_latency"], gapsInMilliseconds(request)...)
	}
	for _, values := range all {
		slices.Sort(values)
	}
	return all
}

func requireRecordedCounts(t *testing.T, families map[string]*dto.MetricFamily) {
	t.Helper()
	requests := families["tokenpulse_requests_total"]
	require.InDelta(t, 89, find(t, requests, map[string]string{"outcome": "success"}).GetCounter().GetValue(), 0)
	require.InDelta(t, 11, find(t, requests, map[string]string{"outcome": "cancelled"}).GetCounter().GetValue(), 0)
	tokens := families["tokenpulse_tokens_total"]
	// The totals are those that AIPerf printed.
	require.InDelta(t, 48950, find(t, tokens, map[string]string{"type": "input"}).GetCounter().GetValue(), 0)
	require.InDelta(t, 21624, find(t, tokens, map[string]string{"type": "output"}).GetCounter().GetValue(), 0)
	require.InDelta(t, 19792, find(t, tokens, map[string]string{"type": "reasoning"}).GetCounter().GetValue(), 0)
	for _, name := range []string{"time_to_first_token", "inter_token_latency", "inter_chunk_latency", "time_per_output_token"} {
		for _, metric := range families["tokenpulse_"+name+"_seconds"].GetMetric() {
			require.NotEqual(t, "cancelled", label(metric, "outcome"), "%s: the cancelled requests had no tokens", name)
		}
	}
}

// successHistograms returns all histograms without exemplars and start times, which
// differ between runs.
func successHistograms(families map[string]*dto.MetricFamily) map[string]*dto.Histogram {
	all := map[string]*dto.Histogram{}
	for name, family := range families {
		for _, metric := range family.GetMetric() {
			if histogram := metric.GetHistogram(); histogram != nil {
				histogram.Exemplars, histogram.CreatedTimestamp = nil, nil
				for _, bucket := range histogram.GetBucket() {
					bucket.Exemplar = nil
				}
				// The order of requests differs, and so may the last digits of a sum.
				sum := math.Round(histogram.GetSampleSum()*1e6) / 1e6
				histogram.SampleSum = &sum
				all[name+" "+label(metric, "outcome")+" "+label(metric, "phase")] = histogram
			}
		}
	}
	return all
}

// requireAIPerfStatistics checks that the recording's percentiles, interpolated
// linearly, are those that AIPerf printed. It logs them beside the exact nearest rank.
func requireAIPerfStatistics(t *testing.T, requests []*testenv.Recorded) {
	t.Helper()
	type oracleCase struct {
		ID       string
		Expected map[string]json.RawMessage
	}
	var cases []oracleCase
	testenv.ReadJSON(t, "oracle/cases.json", &cases)
	at := slices.IndexFunc(cases, func(c oracleCase) bool { return c.ID == "aiperf-run1" })
	require.GreaterOrEqual(t, at, 0)
	values := pooled(requests)
	t.Log("ms; exact nearest rank (this project) | as printed by AIPerf (linear interpolation between ranks)")
	for ours, theirs := range map[string]string{
		"time_to_first_token": "ttft", "inter_chunk_latency": "inter_chunk_latency", "time_per_output_token": "inter_token_latency",
	} {
		var printed map[string]float64
		require.NoError(t, json.Unmarshal(cases[at].Expected[theirs], &printed))
		line := []string{fmt.Sprintf("%-22s", ours)}
		for _, q := range []float64{0.5, 0.9, 0.95, 0.99} {
			percentile := fmt.Sprintf("p%.0f", q*100)
			require.InEpsilon(t, reference.Linear(values[ours], q), printed[percentile], 1e-9, "%s of %s", percentile, theirs)
			line = append(line, fmt.Sprintf("%s %.3f | %.3f", percentile, reference.NearestRank(values[ours], q), printed[percentile]))
		}
		t.Log(strings.Join(line, "  "))
	}
}

func milliseconds(t *testing.T, attributes pcommon.Map, name string) float64 {
	t.Helper()
	value, found := attributes.Get(name)
	require.True(t, found, "no attribute %s", name)
	return value.Double() * 1e3
}

func text(t *testing.T, attributes pcommon.Map, name string) string {
	t.Helper()
	value, found := attributes.Get(name)
	require.True(t, found, "no attribute %s", name)
	return value.Str()
}

// scrape reads /metrics as Prometheus does, in protobuf.
func scrape(t *testing.T, c *collector) map[string]*dto.MetricFamily {
	t.Helper()
	return scrapeURL(t, c.metricsURL())
}

func scrapeURL(t *testing.T, url string) map[string]*dto.MetricFamily {
	t.Helper()
	families := scrapeAny(t, url)
	require.NotEmpty(t, families)
	return families
}

// scrapeAny is scrapeURL where no metric is an answer, too.
func scrapeAny(t *testing.T, url string) map[string]*dto.MetricFamily {
	t.Helper()
	format := expfmt.NewFormat(expfmt.TypeProtoDelim)
	decoder := expfmt.NewDecoder(bytes.NewReader(get(t, url, string(format))), format)
	families := map[string]*dto.MetricFamily{}
	for {
		family := &dto.MetricFamily{}
		if decoder.Decode(family) != nil {
			break
		}
		families[family.GetName()] = family
	}
	return families
}

// find returns the only metric of a family that has all of the labels.
func find(t *testing.T, family *dto.MetricFamily, labels map[string]string) *dto.Metric {
	t.Helper()
	var found []*dto.Metric
	for _, metric := range family.GetMetric() {
		matches := true
		for name, value := range labels {
			matches = matches && label(metric, name) == value
		}
		if matches {
			found = append(found, metric)
		}
	}
	require.Len(t, found, 1, "%s with %v", family.GetName(), labels)
	return found[0]
}

func label(metric *dto.Metric, name string) string {
	for _, pair := range metric.GetLabel() {
		if pair.GetName() == name {
			return pair.GetValue()
		}
	}
	return ""
}
