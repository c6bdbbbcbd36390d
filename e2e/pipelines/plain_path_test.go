// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package pipelines

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
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/e2e/internal/collector"
	"github.com/tokenpulse/tokenpulse/e2e/internal/exposition"
	"github.com/tokenpulse/tokenpulse/e2e/internal/otlpfile"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/testenv/reference"
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

var strictSettings = reference.Settings{
	StallThreshold: int64(100 * time.Millisecond), AfterFirstChunk: true,
	FirstToken: int64(100 * time.Millisecond), NextToken: int64(20 * time.Millisecond),
}

// The path from a token event to a percentile has packed encodings, runs and fast
// paths. For random streams, its numbers equal those of the reference, and they
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
	collector.Setenv(t, "SPANS_FILE", usualFile)
	collector.Setenv(t, "STRICT_SPANS_FILE", strictFile)
	c := collector.Start(t, collector.WriteFile(t, folder, "config.yaml", plainConfig), "--config", collector.WriteFile(t, folder, "every.yaml", collector.EveryMetric))
	for _, transport := range plainTransports {
		for group := range slices.Chunk(streams, 50) {
			transport.send(t, random, c, transport.name, cutUp(random, group))
		}
	}
	var families map[string]*dto.MetricFamily
	require.Eventually(t, func() bool {
		families = exposition.Scrape(t, c)
		return exposition.RequestCount(families) >= len(streams)*len(plainTransports)
	}, collector.Patience, 100*time.Millisecond, "not every stream is counted")
	c.Stop(t)

	// Short streams first, so that the first failure is short.
	slices.SortStableFunc(streams, func(a, b *plainStream) int { return cmp.Compare(len(a.Chunks), len(b.Chunks)) })
	requirePlainSpans(t, streams, usualFile, reference.Usual)
	requirePlainSpans(t, streams, strictFile, strictSettings)
	for _, transport := range plainTransports {
		requirePlainMetrics(t, streams, families, transport.name)
	}
}

// requirePlainSpans compares each span with the plain answer, and with the spans of the
// same stream over other transports.
func requirePlainSpans(t *testing.T, streams []*plainStream, file string, settings reference.Settings) {
	t.Helper()
	spans := map[string]ptrace.Span{}
	for service, all := range spansByService(t, file) {
		for _, span := range all {
			spans[service+" "+otlpfile.Text(t, span.Attributes(), streamName)] = span
		}
		require.Len(t, all, len(streams), service)
	}
	require.Len(t, spans, len(streams)*len(plainTransports))
	for _, s := range streams {
		want := reference.Of(&s.Stream, settings)
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

func requirePlainSpan(t *testing.T, s *plainStream, want reference.Answer, span ptrace.Span, about string) {
	t.Helper()
	attributes := span.Attributes()
	require.EqualValues(t, s.Start, span.StartTimestamp(), about)
	require.EqualValues(t, s.LastTime(), span.EndTimestamp(), about)
	require.Equal(t, cmp.Or(s.vantage, timeline.VantageServer.String()), otlpfile.Text(t, attributes, names.Vantage), about)
	require.Equal(t, want.Outcome == names.OutcomeError, span.Status().Code() == ptrace.StatusCodeError, about)

	want.RequireAttributes(t, attributes, about)
	for name, reported := range map[string]int64{
		names.GenAIInputTokens: s.Usage.Input, names.GenAIOutputTokens: s.Usage.Output,
		names.GenAIReasoningTokens: s.Usage.Reasoning, names.GenAICacheReadInputTokens: s.Usage.CachedInput,
		names.GenAICacheWriteInputTokens: s.Usage.CacheWrite,
	} {
		got, ok := attributes.Get(name)
		require.Equal(t, reported >= 0, ok, "%s %s", name, about)
		if ok {
			require.Equal(t, reported, got.Int(), "%s %s", name, about)
		}
	}
}

// spansByService reads the spans of a file, by service name.
func spansByService(t *testing.T, file string) map[string][]ptrace.Span {
	t.Helper()
	spans := map[string][]ptrace.Span{}
	for span, resource := range otlpfile.SpansOfResources(t, file) {
		service := otlpfile.Text(t, resource, names.ServiceName)
		spans[service] = append(spans[service], span)
	}
	return spans
}

// plainSeries holds the totals of all streams of one vantage.
type plainSeries struct {
	requests map[string]float64                       // by outcome
	tokens   map[string]float64                       // by type
	samples  map[string]map[string][]reference.Number // by histogram and outcome
	stalls   reference.Number
	stalled  reference.Number
}

// plainHistograms are the histograms with one value per request: Prometheus name, with
// a phase or position if there is one, and attribute.
var plainHistograms = map[string]string{
	"tokenpulse_time_to_first_token_seconds":        "tokenpulse.time_to_first_token",
	"tokenpulse_time_to_first_output_token_seconds": "tokenpulse.time_to_first_output_token",
	"tokenpulse_time_per_output_token_seconds":      "tokenpulse.time_per_output_token",
	"tokenpulse_request_duration_seconds":           "tokenpulse.request.duration",
	"tokenpulse_phase_duration_seconds queue":       "tokenpulse.queue.duration",
	"tokenpulse_phase_duration_seconds prefill":     "tokenpulse.prefill.duration",
	"tokenpulse_phase_duration_seconds decode":      "tokenpulse.decode.duration",
	"tokenpulse_output_token_rate_per_second":       "tokenpulse.output_token_rate",
	"tokenpulse_request_token_rate_per_second":      "tokenpulse.request_token_rate",
	"tokenpulse_prefill_token_rate_per_second":      "tokenpulse.prefill_token_rate",
	"tokenpulse_time_per_token_seconds 0-10":        "tokenpulse.time_per_token.from_0",
	"tokenpulse_time_per_token_seconds 10-100":      "tokenpulse.time_per_token.from_10",
	"tokenpulse_time_per_token_seconds 100-1000":    "tokenpulse.time_per_token.from_100",
	"tokenpulse_time_per_token_seconds 1000+":       "tokenpulse.time_per_token.from_1000",
}

const (
	interTokenHistogram  = "tokenpulse_inter_token_latency_seconds"
	interChunkHistogram  = "tokenpulse_inter_chunk_latency_seconds"
	chunkTokensHistogram = "tokenpulse_tokens_per_chunk"
)

func addUpPlainly(streams []*plainStream) map[string]*plainSeries {
	all := map[string]*plainSeries{}
	for _, s := range streams {
		observer := cmp.Or(s.vantage, timeline.VantageServer.String())
		series := all[observer]
		if series == nil {
			series = &plainSeries{requests: map[string]float64{}, tokens: map[string]float64{}, samples: map[string]map[string][]reference.Number{}}
			all[observer] = series
		}
		answer := reference.Of(&s.Stream, reference.Usual)
		add := func(histogram string, samples ...reference.Number) {
			if series.samples[histogram] == nil {
				series.samples[histogram] = map[string][]reference.Number{}
			}
			series.samples[histogram][answer.Outcome] = append(series.samples[histogram][answer.Outcome], samples...)
		}
		for histogram, attribute := range plainHistograms {
			if number, ok := answer.Numbers[attribute]; ok && number.Value <= 1e9 { // token_sli rejects a prefill of nanoseconds as out of range
				add(histogram, number)
			}
		}
		add(interTokenHistogram, answer.InterToken...)
		add(interChunkHistogram, answer.InterChunk...)
		add(chunkTokensHistogram, answer.ChunkTokens...)
		series.requests[answer.Outcome]++
		output := s.Usage.Output // as reported, though reasoning above it changes TPOT
		if output < 0 {
			output = answer.OutputTokens
		}
		for kind, n := range map[string]int64{
			names.TokensInput: s.Usage.Input, names.TokensOutput: output,
			names.TokensReasoning: s.Usage.Reasoning, names.TokensCachedInput: s.Usage.CachedInput,
			names.TokensCacheWrite: s.Usage.CacheWrite,
		} {
			if n >= 0 {
				series.tokens[kind] += float64(n)
			}
		}
		stalls, stalled := answer.Numbers["tokenpulse.stall.count"], answer.Numbers["tokenpulse.stall.duration"]
		series.stalls = reference.Number{Value: series.stalls.Value + stalls.Value, Within: series.stalls.Within + stalls.Within}
		series.stalled = reference.Number{Value: series.stalled.Value + stalled.Value, Within: series.stalled.Within + stalled.Within}
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
				if exposition.Label(metric, "service_name") == transport && exposition.Label(metric, names.LabelVantage) == vantage {
					metrics = append(metrics, metric)
				}
			}
			return metrics
		}
		about := "over " + transport + " at " + vantage
		counted := func(family, by string) map[string]float64 {
			counts := map[string]float64{}
			for _, metric := range of(family) {
				counts[exposition.Label(metric, by)] += metric.GetCounter().GetValue()
			}
			return counts
		}
		require.Equal(t, want.requests, counted("tokenpulse_requests_total", names.LabelOutcome), about)
		require.Equal(t, want.tokens, counted("tokenpulse_tokens_total", names.LabelType), about)
		reference.RequireNear(t, want.stalls, counted("tokenpulse_stalls_total", "")[""], "stalls "+about)
		reference.RequireNear(t, want.stalled, counted("tokenpulse_stall_duration_seconds_total", "")[""], "time in stalls "+about)

		for name, byOutcome := range want.samples {
			family, part, _ := strings.Cut(name, " ")
			seen := map[string]*dto.Histogram{}
			for _, metric := range of(family) {
				if partOf(metric) == part {
					seen[exposition.Label(metric, names.LabelOutcome)] = metric.GetHistogram()
				}
			}
			for outcome, samples := range byOutcome {
				about := name + " of " + outcome + " " + about
				requirePlainHistogram(t, samples, seen[outcome], !isPlainSketch(name), about)
				requirePlainPercentiles(t, samples, of(percentileFamily(family)), part, outcome, about)
				delete(seen, outcome)
			}
			require.Empty(t, seen, "%s: unexpected outcomes", name)
		}
	}
}

// isPlainSketch reports whether a histogram has several values per request, which
// arrive as a sketch.
func isPlainSketch(histogram string) bool {
	return histogram == interTokenHistogram || histogram == interChunkHistogram || histogram == chunkTokensHistogram
}

// partOf returns the phase or the position of a metric that has one.
func partOf(metric *dto.Metric) string {
	return cmp.Or(exposition.Label(metric, names.LabelPhase), exposition.Label(metric, names.LabelPosition))
}

func percentileFamily(family string) string {
	for _, unit := range []string{"_seconds", "_per_second"} {
		if before, found := strings.CutSuffix(family, unit); found {
			return before + "_percentile" + unit
		}
	}
	return family + "_percentile"
}

// bucketWidth is the relative width of a sketch's bucket.
var bucketWidth = math.Exp2(1.0/64) - 1

// requirePlainHistogram counts the values under every bound. Values within their
// tolerance of a bound may count on either side.
func requirePlainHistogram(t *testing.T, samples []reference.Number, h *dto.Histogram, exact bool, about string) {
	t.Helper()
	require.EqualValues(t, len(samples), h.GetSampleCount(), about)
	if len(samples) == 0 {
		return
	}
	var sum reference.Number
	for _, s := range samples {
		sum.Value += s.Value
		sum.Within += s.Within + 1e-9*s.Value
	}
	reference.RequireNear(t, sum, h.GetSampleSum(), "sum of "+about)

	underBound := func(bound, over, got float64) {
		least, most := 0.0, 0.0
		for _, s := range samples {
			if s.Value+s.Within <= bound {
				least++
			}
			if s.Value-s.Within <= bound*(1+over) {
				most++
			}
		}
		require.LessOrEqual(t, least, got, "values up to %v: %s", bound, about)
		require.GreaterOrEqual(t, most, got, "values up to %v: %s", bound, about)
	}
	over := 0.0
	if !exact {
		over = bucketWidth + reference.LastDigits
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
			underBound(math.Exp2(float64(index-1)/64)*(1-reference.LastDigits), 2*reference.LastDigits, count)
			inBucket += h.GetPositiveDelta()[delta]
			count += float64(inBucket)
			underBound(math.Exp2(float64(index)/64)*(1-reference.LastDigits), 2*reference.LastDigits, count)
			delta++
			index++
		}
	}
	require.InDelta(t, len(samples), count, 0, about)
}

func requirePlainPercentiles(t *testing.T, samples []reference.Number, gauges []*dto.Metric, part, outcome, about string) {
	t.Helper()
	values, off := reference.Values(samples), 0.0
	for _, s := range samples {
		off = max(off, s.Within)
	}
	missing := map[string]float64{"50": 0.5, "90": 0.9, "95": 0.95, "99": 0.99, "99.9": 0.999}
	for _, gauge := range gauges {
		if exposition.Label(gauge, names.LabelOutcome) != outcome || partOf(gauge) != part || exposition.Label(gauge, names.LabelWindow) != "1h" {
			continue
		}
		percentile := exposition.Label(gauge, names.LabelPercentile)
		require.NotEmpty(t, values, about)
		require.Contains(t, missing, percentile, about)
		exact := reference.NearestRank(values, missing[percentile])
		reference.RequireNear(t, reference.Number{Value: exact, Within: exact*reference.SketchError + off}, gauge.GetGauge().GetValue(), "percentile "+percentile+" of "+about)
		delete(missing, percentile)
	}
	if len(samples) > 0 {
		require.Empty(t, missing, "percentiles of %s are missing", about)
	}
}
