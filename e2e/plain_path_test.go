// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"cmp"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
)

var plainSeed = flag.Uint64("plain-seed", 1, "seed of the random streams of TestPlainPath; 0 takes a new one")

// plainConfig derives every stream twice: with the usual settings, which take the fast
// paths, and with settings that make the processor visit each chunk.
const plainConfig = `
receivers:
  token_stream:
    idle_timeout: 10s # for streams without an end; others have parts in up to three requests
    first_token_timeout: 10s
processors:
  token_latency:
    timeline: keep
    detail: full
  token_latency/strict:
    detail: full
    stall_threshold: 100ms
    tpot_denominator: after_first_chunk
    fluidity: {time_to_first_token: 100ms, time_per_output_token: 20ms}
exporters:
  token_sli:
  file:
    path: ${env:SPANS_FILE}
  file/strict:
    path: ${env:STRICT_SPANS_FILE}
service:
  pipelines:
    traces:
      receivers: [token_stream]
      processors: [token_latency]
      exporters: [token_sli, file]
    traces/strict:
      receivers: [token_stream]
      processors: [token_latency/strict]
      exporters: [file/strict]
  telemetry:
    metrics:
      level: none
`

var (
	usualSettings  = plainSettings{stallThreshold: 500_000_000}
	strictSettings = plainSettings{stallThreshold: 100_000_000, afterFirstChunk: true, firstToken: 100_000_000, nextToken: 20_000_000}
)

// The path from a token event to a percentile has packed encodings, runs and fast
// paths. For random streams, its numbers equal those that plainly computes, and they
// are the same over each transport.
func TestPlainPath_NumbersAreThoseOfTheDefinitions(t *testing.T) {
	t.Parallel()
	seed := *plainSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("same streams again: go test -C e2e . -run TestPlainPath -plain-seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	streams := make([]*plainStream, 500)
	for i := range streams {
		streams[i] = randomStream(random, i)
	}

	folder := t.TempDir()
	usualFile, strictFile := filepath.Join(folder, "usual.jsonl"), filepath.Join(folder, "strict.jsonl")
	setenv(t, "SPANS_FILE", usualFile)
	setenv(t, "STRICT_SPANS_FILE", strictFile)
	c := startCollector(t, writeFile(t, folder, "config.yaml", plainConfig), "--config", writeFile(t, folder, "every.yaml", everyMetric))
	for _, transport := range plainTransports {
		for group := range slices.Chunk(streams, 50) {
			transport.send(t, random, c, transport.name, cutUp(random, group))
		}
	}
	var families map[string]*dto.MetricFamily
	require.Eventually(t, func() bool {
		families = scrape(t, c)
		return requestCount(families) >= len(streams)*len(plainTransports)
	}, patience, 100*time.Millisecond, "not every stream is counted")
	c.stop(t)

	// Short streams first, so that the first failure is short.
	slices.SortStableFunc(streams, func(a, b *plainStream) int { return cmp.Compare(len(a.chunks), len(b.chunks)) })
	requirePlainSpans(t, streams, usualFile, usualSettings)
	requirePlainSpans(t, streams, strictFile, strictSettings)
	for _, transport := range plainTransports {
		requirePlainMetrics(t, streams, families, transport.name)
	}
}

// requirePlainSpans compares each span with the plain answer, and with the spans of the
// same stream over other transports.
func requirePlainSpans(t *testing.T, streams []*plainStream, file string, settings plainSettings) {
	t.Helper()
	spans := map[string]ptrace.Span{}
	for service, all := range spansByService(t, file) {
		for _, span := range all {
			spans[service+" "+text(t, span.Attributes(), streamName)] = span
		}
		require.Len(t, all, len(streams), service)
	}
	require.Len(t, spans, len(streams)*len(plainTransports))
	for _, s := range streams {
		want := plainly(s, settings)
		first := spans[plainTransports[0].name+" "+s.id]
		for _, transport := range plainTransports {
			span := spans[transport.name+" "+s.id]
			about := fmt.Sprintf("over %s: %+v", transport.name, *s)
			requirePlainSpan(t, s, want, span, about)
			require.Equal(t, first.Attributes().AsRaw(), span.Attributes().AsRaw(), about)
			require.Equal(t, first.Kind(), span.Kind(), about)
			require.Equal(t, first.Status().Code(), span.Status().Code(), about)
		}
	}
}

func requirePlainSpan(t *testing.T, s *plainStream, want plainAnswer, span ptrace.Span, about string) {
	t.Helper()
	attributes := span.Attributes()
	require.EqualValues(t, s.start, span.StartTimestamp(), about)
	require.EqualValues(t, s.lastKnown(s.arrivals()), span.EndTimestamp(), about)
	require.Equal(t, want.outcome, text(t, attributes, names.Outcome), about)
	require.Equal(t, cmp.Or(s.vantage, timeline.VantageServer.String()), text(t, attributes, names.Vantage), about)
	require.Equal(t, want.outcome == names.OutcomeError && s.failure != "", span.Status().Code() == ptrace.StatusCodeError, about)

	for name, number := range want.numbers {
		got, ok := attributes.Get(name)
		if !ok && strings.HasPrefix(name, "tokenpulse.stall.") && number.value <= number.within {
			continue // zero stalls are not written
		}
		require.True(t, ok, "%s is missing, want %v; %s", name, number.value, about)
		requireNear(t, number, plainDouble(got), name+" "+about)
	}
	for name, v := range attributes.All() {
		if strings.HasPrefix(name, names.Prefix) && (v.Type() == pcommon.ValueTypeDouble || v.Type() == pcommon.ValueTypeInt) {
			require.Contains(t, want.numbers, name, "got %v, absent by definition; %s", v.AsRaw(), about)
		}
	}
	for name, reported := range map[string]int64{
		names.GenAIInputTokens: s.input, names.GenAIOutputTokens: s.output,
		names.GenAIReasoningTokens: s.reasoning, names.GenAICacheReadInputTokens: s.cached,
		names.GenAICacheWriteInputTokens: s.written,
	} {
		got, ok := attributes.Get(name)
		require.Equal(t, reported >= 0, ok, "%s %s", name, about)
		if ok {
			require.Equal(t, reported, got.Int(), "%s %s", name, about)
		}
	}
	_, buffered := attributes.Get(names.Buffered)
	require.Equal(t, want.buffered, buffered, about)
	var unmeasured []string
	if list, ok := attributes.Get(names.Unmeasured); ok {
		for _, entry := range list.Slice().All() {
			unmeasured = append(unmeasured, entry.Str())
		}
	}
	require.Equal(t, want.unmeasured(), unmeasured, about)
	var estimated []string
	if list, ok := attributes.Get(names.Estimated); ok {
		for _, listed := range list.Slice().All() {
			estimated = append(estimated, listed.Str())
		}
	}
	require.ElementsMatch(t, want.estimated, estimated, about)
}

func plainDouble(v pcommon.Value) float64 {
	if v.Type() == pcommon.ValueTypeInt {
		return float64(v.Int())
	}
	return v.Double()
}

// lastDigits is the relative difference that floating point may cause between two
// computations of one number.
const lastDigits = 1e-12

func requireNear(t *testing.T, want plainNumber, got float64, about string) {
	t.Helper()
	require.LessOrEqual(t, math.Abs(want.value-got), want.within+lastDigits*math.Abs(want.value), "got %v, want %v: %s", got, want.value, about)
}

// spansByService reads the spans of a file, by service name.
func spansByService(t *testing.T, file string) map[string][]ptrace.Span {
	t.Helper()
	spans := map[string][]ptrace.Span{}
	for span, resource := range spansOfResources(t, file) {
		service := text(t, resource, names.ServiceName)
		spans[service] = append(spans[service], span)
	}
	return spans
}

// plainSeries holds the totals of all streams of one vantage.
type plainSeries struct {
	requests map[string]float64                  // by outcome
	tokens   map[string]float64                  // by type
	samples  map[string]map[string][]plainNumber // by histogram and outcome
	stalls   plainNumber
	stalled  plainNumber
}

// plainHistograms are the histograms with one value per request: Prometheus name, with
// a phase if there is one, and attribute.
var plainHistograms = map[string]string{
	"tokenpulse_time_to_first_token_seconds":        "tokenpulse.time_to_first_token",
	"tokenpulse_time_to_first_output_token_seconds": "tokenpulse.time_to_first_output_token",
	"tokenpulse_time_per_output_token_seconds":      "tokenpulse.time_per_output_token",
	"tokenpulse_request_duration_seconds":           "tokenpulse.request.duration",
	"tokenpulse_phase_duration_seconds queue":       "tokenpulse.queue.duration",
	"tokenpulse_phase_duration_seconds prefill":     "tokenpulse.prefill.duration",
	"tokenpulse_phase_duration_seconds decode":      "tokenpulse.decode.duration",
	"tokenpulse_output_token_rate_per_second":       "tokenpulse.output_token_rate",
}

const (
	interTokenHistogram = "tokenpulse_inter_token_latency_seconds"
	interChunkHistogram = "tokenpulse_inter_chunk_latency_seconds"
)

func addUpPlainly(streams []*plainStream) map[string]*plainSeries {
	all := map[string]*plainSeries{}
	for _, s := range streams {
		observer := cmp.Or(s.vantage, timeline.VantageServer.String())
		series := all[observer]
		if series == nil {
			series = &plainSeries{requests: map[string]float64{}, tokens: map[string]float64{}, samples: map[string]map[string][]plainNumber{}}
			all[observer] = series
		}
		answer := plainly(s, usualSettings)
		add := func(histogram string, samples ...plainNumber) {
			if series.samples[histogram] == nil {
				series.samples[histogram] = map[string][]plainNumber{}
			}
			series.samples[histogram][answer.outcome] = append(series.samples[histogram][answer.outcome], samples...)
		}
		for histogram, attribute := range plainHistograms {
			if number, ok := answer.numbers[attribute]; ok {
				add(histogram, number)
			}
		}
		add(interTokenHistogram, answer.interToken...)
		add(interChunkHistogram, answer.interChunk...)
		series.requests[answer.outcome]++
		for kind, n := range map[string]int64{
			names.TokensInput: s.input, names.TokensOutput: answer.outputTokens,
			names.TokensReasoning: s.reasoning, names.TokensCachedInput: s.cached,
			names.TokensCacheWrite: s.written,
		} {
			series.tokens[kind] += float64(max(0, n))
		}
		stalls, stalled := answer.numbers["tokenpulse.stall.count"], answer.numbers["tokenpulse.stall.duration"]
		series.stalls = plainNumber{series.stalls.value + stalls.value, series.stalls.within + stalls.within}
		series.stalled = plainNumber{series.stalled.value + stalled.value, series.stalled.within + stalled.within}
	}
	return all
}

// requirePlainMetrics compares the exported metrics of one transport's streams.
func requirePlainMetrics(t *testing.T, streams []*plainStream, families map[string]*dto.MetricFamily, transport string) {
	t.Helper()
	for vantage, want := range addUpPlainly(streams) {
		of := func(family string) []*dto.Metric {
			var metrics []*dto.Metric
			for _, metric := range families[family].GetMetric() {
				if label(metric, "service_name") == transport && label(metric, names.LabelVantage) == vantage {
					metrics = append(metrics, metric)
				}
			}
			return metrics
		}
		about := "over " + transport + " at " + vantage
		counted := func(family, by string) map[string]float64 {
			counts := map[string]float64{}
			for _, metric := range of(family) {
				counts[label(metric, by)] += metric.GetCounter().GetValue()
			}
			return counts
		}
		require.Equal(t, want.requests, counted("tokenpulse_requests_total", names.LabelOutcome), about)
		require.Equal(t, want.tokens, counted("tokenpulse_tokens_total", names.LabelType), about)
		requireNear(t, want.stalls, counted("tokenpulse_stalls_total", "")[""], "stalls "+about)
		requireNear(t, want.stalled, counted("tokenpulse_stall_duration_seconds_total", "")[""], "time in stalls "+about)

		for name, byOutcome := range want.samples {
			family, phase, _ := strings.Cut(name, " ")
			seen := map[string]*dto.Histogram{}
			for _, metric := range of(family) {
				if label(metric, names.LabelPhase) == phase {
					seen[label(metric, names.LabelOutcome)] = metric.GetHistogram()
				}
			}
			for outcome, samples := range byOutcome {
				about := name + " of " + outcome + " " + about
				requirePlainHistogram(t, samples, seen[outcome], !isPlainSketch(name), about)
				requirePlainPercentiles(t, samples, of(percentileFamily(family)), phase, outcome, about)
				delete(seen, outcome)
			}
			require.Empty(t, seen, "%s: unexpected outcomes", name)
		}
	}
}

// isPlainSketch reports whether a histogram has several values per request, which
// arrive as a sketch.
func isPlainSketch(histogram string) bool {
	return histogram == interTokenHistogram || histogram == interChunkHistogram
}

func percentileFamily(family string) string {
	for _, unit := range []string{"_seconds", "_per_second"} {
		if before, found := strings.CutSuffix(family, unit); found {
			return before + "_percentile" + unit
		}
	}
	return family
}

// bucketWidth is the relative width of a sketch's bucket.
var bucketWidth = math.Exp2(1.0/64) - 1

// requirePlainHistogram counts the values under every bound. Values within their
// tolerance of a bound may count on either side.
func requirePlainHistogram(t *testing.T, samples []plainNumber, h *dto.Histogram, exact bool, about string) {
	t.Helper()
	require.EqualValues(t, len(samples), h.GetSampleCount(), about)
	if len(samples) == 0 {
		return
	}
	var sum plainNumber
	for _, s := range samples {
		sum.value += s.value
		sum.within += s.within + 1e-9*s.value
	}
	requireNear(t, sum, h.GetSampleSum(), "sum of "+about)

	underBound := func(bound, over, got float64) {
		least, most := 0.0, 0.0
		for _, s := range samples {
			if s.value+s.within <= bound {
				least++
			}
			if s.value-s.within <= bound*(1+over) {
				most++
			}
		}
		require.LessOrEqual(t, least, got, "values up to %v: %s", bound, about)
		require.GreaterOrEqual(t, most, got, "values up to %v: %s", bound, about)
	}
	over := 0.0
	if !exact {
		over = bucketWidth + lastDigits
	}
	for _, bucket := range h.GetBucket() {
		underBound(bucket.GetUpperBound(), over, float64(bucket.GetCumulativeCount()))
	}
	// Native buckets have the bounds 2^(i/64), see docs/definitions.md.
	require.EqualValues(t, 6, h.GetSchema(), about)
	count, inBucket, index, delta := float64(h.GetZeroCount()), int64(0), int32(0), 0
	underBound(h.GetZeroThreshold(), 0, count)
	for _, span := range h.GetPositiveSpan() {
		index += span.GetOffset()
		for range span.GetLength() {
			underBound(math.Exp2(float64(index-1)/64)*(1-lastDigits), 2*lastDigits, count)
			inBucket += h.GetPositiveDelta()[delta]
			count += float64(inBucket)
			underBound(math.Exp2(float64(index)/64)*(1-lastDigits), 2*lastDigits, count)
			delta++
			index++
		}
	}
	require.InDelta(t, len(samples), count, 0, about)
}

func requirePlainPercentiles(t *testing.T, samples []plainNumber, gauges []*dto.Metric, phase, outcome, about string) {
	t.Helper()
	values, off := plainValues(samples), 0.0
	for _, s := range samples {
		off = max(off, s.within)
	}
	missing := map[string]float64{"50": 0.5, "90": 0.9, "95": 0.95, "99": 0.99, "99.9": 0.999}
	for _, gauge := range gauges {
		if label(gauge, names.LabelOutcome) != outcome || label(gauge, names.LabelPhase) != phase || label(gauge, names.LabelWindow) != "1h" {
			continue
		}
		percentile := label(gauge, names.LabelPercentile)
		require.NotEmpty(t, values, about)
		require.Contains(t, missing, percentile, about)
		exact := nearestRank(values, missing[percentile])
		requireNear(t, plainNumber{exact, exact*sketchError + off}, gauge.GetGauge().GetValue(), "percentile "+percentile+" of "+about)
		delete(missing, percentile)
	}
	if len(samples) > 0 {
		require.Empty(t, missing, "percentiles of %s are missing", about)
	}
}
