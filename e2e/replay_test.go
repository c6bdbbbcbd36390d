// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/internal/testenv"
	"github.com/tokenpulse/tokenpulse/internal/testenv/reference"
)

// The spans and metrics of 100 real requests are those of the definitions over each
// transport, and AIPerf computed the same numbers.
func TestReplay_SpansAndMetricsEqualTheRecording(t *testing.T) {
	t.Parallel()
	requests := reference.Recording(t)
	require.Len(t, requests, 100)
	byStart := map[int64]*plainStream{}
	var streams []*plainStream
	for _, r := range requests {
		s := &plainStream{Stream: r.Stream, vantage: "client"}
		byStart[r.Start], streams = s, append(streams, s)
		if r.Computed == nil {
			continue
		}
		const within = 0.002 // milliseconds
		numbers := reference.Of(&r.Stream, reference.Usual).Numbers
		require.InDelta(t, r.Computed.TimeToFirstToken, 1e3*numbers["tokenpulse.time_to_first_token"].Value, within)
		require.InDelta(t, r.Computed.InterTokenLatency, 1e3*numbers["tokenpulse.time_per_output_token"].Value, within)
		require.InDelta(t, r.Computed.RequestLatency, 1e3*numbers["tokenpulse.request.duration"].Value, within)
	}
	require.Len(t, byStart, len(requests), "each request has its own start time")

	spansFile := filepath.Join(t.TempDir(), "spans.jsonl")
	setenv(t, "SPANS_FILE", spansFile)
	setenv(t, "OTLP_GRPC_ENDPOINT", freeAddress(t))
	setenv(t, "OTLP_HTTP_ENDPOINT", freeAddress(t))
	more := append([]string{"--config", writeFile(t, t.TempDir(), "every.yaml", everyMetric)}, fullDetail...)
	c := startCollector(t, example(t, "spans-to-file.yaml"), append(more, "--set", "exporters.token_sli.deduplication.horizon=0s")...) // the replays are equal
	transports := []string{"ndjson", "json", "protobuf", "grpc", "grpc-stream"}
	for _, transport := range transports {
		run(t, built(t, "tokengen"), "replay", testenv.UnzipRecording(t), "--service", transport,
			"--transport", transport, "--endpoint", c.endpoint(transport))
	}
	families := scrape(t, c)
	c.stop(t)
	spans := spansByService(t, spansFile)
	for _, transport := range transports {
		require.Len(t, spans[transport], len(requests))
		for _, span := range spans[transport] {
			s := byStart[int64(span.StartTimestamp())]
			require.NotNil(t, s, "no request starts at %d", span.StartTimestamp())
			requirePlainSpan(t, s, reference.Of(&s.Stream, reference.Usual), span, "over "+transport)
			requireTimeline(t, s, span)
		}
		requirePlainMetrics(t, streams, families, transport)
	}
}

// requireTimeline compares the chunks of a span with those of a stream, in whole microseconds.
func requireTimeline(t *testing.T, s *plainStream, span ptrace.Span) {
	t.Helper()
	times, _ := chunksOf(t, span)
	require.Len(t, times, len(s.Chunks))
	for i, at := range times {
		require.InDelta(t, 0, s.Chunks[i].At-at, microsecond, "chunk %d", i)
	}
}

// pooled returns the sorted values of all successful requests, in seconds.
func pooled(requests []*reference.Recorded) map[string][]float64 {
	all := map[string][]float64{}
	for _, r := range requests {
		if r.Cancelled {
			continue
		}
		answer := reference.Of(&r.Stream, reference.Usual)
		for name, attribute := range map[string]string{
			"time_to_first_token": "time_to_first_token", "time_per_output_token": "time_per_output_token", "request_duration": "request.duration",
		} {
			all[name] = append(all[name], answer.Numbers["tokenpulse."+attribute].Value)
		}
		all["inter_chunk_latency"] = append(all["inter_chunk_latency"], reference.Values(answer.InterChunk)...)
		all["inter_token_latency"] = append(all["inter_token_latency"], reference.Values(answer.InterToken)...)
	}
	for _, values := range all {
		slices.Sort(values)
	}
	return all
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
