// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package pipelines

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/e2e/internal/collector"
	"github.com/tokenpulse/tokenpulse/e2e/internal/exposition"
	"github.com/tokenpulse/tokenpulse/e2e/internal/otlpfile"
)

// everySpan extends examples/slo-sampling.yaml: it also writes the spans that enter the
// sampler.
const everySpan = `
exporters:
  file/all:
    path: ${env:ALL_SPANS_FILE}
service:
  pipelines:
    traces/metrics:
      exporters: [token_sli, forward, file/all]
`

// thresholds are those of examples/slo-sampling.yaml, in seconds.
var thresholds = map[string]struct {
	attribute string
	seconds   float64
}{
	"chat-ttft": {"tokenpulse.time_to_first_token", 1},
	"chat-tpot": {"tokenpulse.time_per_output_token", 0.040},
	"steady":    {"tokenpulse.inter_token_latency.p99", 0.250},
}

// recount returns a request's verdicts, computed from the latencies on its span.
func recount(t *testing.T, span ptrace.Span) map[string]string {
	t.Helper()
	attributes, verdicts := span.Attributes(), map[string]string{}
	for slo, limit := range thresholds {
		value, known := attributes.Get(limit.attribute)
		_, cut := attributes.Get("tokenpulse.cut")
		switch {
		case cut:
			verdicts[slo] = "not_eligible"
		case known && value.Double() <= limit.seconds:
			verdicts[slo] = "good"
		case known || otlpfile.Text(t, attributes, "tokenpulse.outcome") != "success":
			verdicts[slo] = "bad"
		default:
			verdicts[slo] = "not_eligible"
		}
	}
	return verdicts
}

// The expected verdicts, attainment and goodput come from a recount of all spans. These
// include every kind of request that is judged differently: see requireEveryKind.
func TestExampleSLOSampling_KeepsEveryBreachAndAShareOfTheRest(t *testing.T) {
	t.Parallel()
	sampledFile := collector.ExampleEnvironment(t)
	folder := t.TempDir()
	allFile := filepath.Join(folder, "all.jsonl")
	collector.Setenv(t, "ALL_SPANS_FILE", allFile)
	collector.Setenv(t, "DECISION_WAIT", "2s")
	c := collector.Start(t, collector.Example(t, "slo-sampling.yaml"), "--config", collector.WriteFile(t, folder, "more.yaml", everySpan),
		"--set", "receivers.token_stream.idle_timeout=1s", "--set", "receivers.token_stream.first_token_timeout=1s")
	const requests = 10_000
	collector.Run(t, collector.Built(t, "tokenpulse"), "generate", "--fast", "--requests", "10000", "--seed", "7",
		"--cancel-ratio", "0.05", "--error-ratio", "0.05", "--incomplete-ratio", "0.05",
		"--one-token-ratio", "0.05", "--reasoning-only-ratio", "0.05",
		"--transport", "protobuf", "--endpoint", c.HTTP)
	var metrics map[string]*dto.MetricFamily
	require.Eventually(t, func() bool {
		metrics = exposition.Scrape(t, c)
		return exposition.RequestCount(metrics) >= requests
	}, collector.Patience, 100*time.Millisecond, "not every stream is counted")
	c.Stop(t)
	requireEveryKind(t, otlpfile.ReadSpans(t, allFile))
	requireAttainment(t, metrics, otlpfile.ReadSpans(t, allFile))

	sampled := map[pcommon.TraceID]bool{}
	for _, span := range otlpfile.ReadSpans(t, sampledFile) {
		sampled[span.TraceID()] = true
	}
	all := otlpfile.ReadSpans(t, allFile)
	require.Len(t, all, requests)
	breaches, rest, kept := 0, 0, 0
	for _, span := range all {
		breached := false
		for slo, verdict := range recount(t, span) {
			require.Equal(t, verdict == "good", otlpfile.Lists(span, "tokenpulse.slo.met", slo), "%s met", slo)
			require.Equal(t, verdict == "bad", otlpfile.Lists(span, "tokenpulse.slo.breached", slo), "%s breached", slo)
			require.Equal(t, verdict == "not_eligible", otlpfile.Lists(span, "tokenpulse.slo.not_eligible", slo), "%s not eligible", slo)
			breached = breached || verdict == "bad"
		}
		switch {
		case breached:
			breaches++
			require.True(t, sampled[span.TraceID()], "a trace with a breach is not kept")
		default:
			rest++
			if sampled[span.TraceID()] {
				kept++
			}
		}
	}
	t.Logf("%d breached; of the other %d, %d were kept", breaches, rest, kept)
	require.Greater(t, breaches, requests/20)
	require.Greater(t, rest, requests/20)
	// The sampler hashes the trace id. The share is 10% within five standard deviations of
	// random sampling.
	require.InDelta(t, 0.10, float64(kept)/float64(rest), 0.016)
}

// requireEveryKind checks that every outcome and every kind of answer without an
// indicator occurs: about 500 requests each, by tokenpulse's ratios. It compares their
// verdicts with docs/definitions.md.
func requireEveryKind(t *testing.T, spans []ptrace.Span) {
	t.Helper()
	kinds := map[string]int{}
	for _, span := range spans {
		attributes := span.Attributes()
		has := func(attribute string) bool {
			_, known := attributes.Get(attribute)
			return known
		}
		tokens, usage := attributes.Get("gen_ai.usage.output_tokens")
		outcome := otlpfile.Text(t, attributes, "tokenpulse.outcome")
		kinds[outcome]++
		switch {
		case outcome != "success":
			if !has("tokenpulse.time_to_first_token") {
				kinds[outcome+" without a token"]++
				for slo := range thresholds {
					require.True(t, otlpfile.Lists(span, "tokenpulse.slo.breached", slo), "an aborted stream without a token breaches %s", slo)
				}
			}
		case !has("tokenpulse.time_to_first_output_token"):
			kinds["reasoning only"]++
			reasoning, known := attributes.Get("gen_ai.usage.reasoning.output_tokens")
			require.True(t, known && usage)
			require.Equal(t, tokens.Int(), reasoning.Int())
			require.True(t, has("tokenpulse.time_to_first_token"), "a reasoning-only answer has a time to first token")
		case usage && tokens.Int() == 1:
			kinds["one token"]++
			require.False(t, has("tokenpulse.time_per_output_token"), "a one-token answer has no TPOT")
			require.False(t, otlpfile.Lists(span, "tokenpulse.slo.not_eligible", "chat-ttft"))
			require.True(t, otlpfile.Lists(span, "tokenpulse.slo.not_eligible", "chat-tpot"))
			require.True(t, otlpfile.Lists(span, "tokenpulse.slo.not_eligible", "steady"))
		}
	}
	t.Log(kinds)
	for _, kind := range []string{"success", "error", "cancelled", "incomplete", "one token", "reasoning only"} {
		require.Greater(t, kinds[kind], 300, kind)
	}
	for _, kind := range []string{"error", "cancelled", "incomplete"} {
		require.Positive(t, kinds[kind+" without a token"], kind)
	}
}

// requireAttainment compares the counters with an exact recount of all spans, and the
// gauges with the numbers that follow from it.
func requireAttainment(t *testing.T, metrics map[string]*dto.MetricFamily, spans []ptrace.Span) {
	t.Helper()
	type key struct{ slo, verdict string }
	want := map[key]float64{}
	for _, span := range spans {
		verdicts := recount(t, span)
		for slo, verdict := range verdicts {
			want[key{slo, verdict}]++
		}
		want[key{"all", verdictOnAll(span.Attributes(), verdicts)}]++
	}
	got := map[key]float64{}
	for _, metric := range metrics["tokenpulse_slo_requests_total"].GetMetric() {
		got[key{exposition.Label(metric, "slo"), exposition.Label(metric, "verdict")}] += metric.GetCounter().GetValue()
	}
	for k, n := range got {
		require.InDelta(t, want[k], n, 0, "%v", k)
	}
	for k := range want {
		require.Contains(t, got, k)
	}
	for _, slo := range []string{"chat-ttft", "chat-tpot", "steady", "all"} {
		good, bad := want[key{slo, "good"}], want[key{slo, "bad"}]
		require.Positive(t, good, slo)
		require.Positive(t, bad, slo)
		t.Logf("%s: %.0f good, %.0f bad, %.0f not eligible: attainment %.4f", slo, good, bad, want[key{slo, "not_eligible"}], good/(good+bad))
	}
	for _, metric := range metrics["tokenpulse_slo_objective"].GetMetric() {
		objective := map[string]float64{"chat-ttft": 0.95, "chat-tpot": 0.95, "all": 0.9}[exposition.Label(metric, "slo")]
		require.InDelta(t, objective, metric.GetGauge().GetValue(), 1e-12)
	}
	requireBurnRates(t, metrics)
}

// verdictOnAll returns the verdict on a request as a whole. The client of a cancelled one
// waited for a stall if the time after decode is longer than half a second.
func verdictOnAll(attributes pcommon.Map, verdicts map[string]string) string {
	seconds := func(name string) float64 {
		v, _ := attributes.Get("tokenpulse." + name)
		return v.Double()
	}
	_, streamed := attributes.Get("tokenpulse.decode.duration")
	wait := seconds("request.duration") - seconds("time_to_first_token") - seconds("decode.duration")
	outcome, _ := attributes.Get("tokenpulse.outcome")
	if _, cut := attributes.Get("tokenpulse.cut"); cut {
		return "not_eligible"
	}
	switch outcome.Str() {
	case "error", "incomplete":
		return "bad"
	case "cancelled":
		if streamed && wait > 0.5 {
			return "bad"
		}
	}
	all := "not_eligible"
	for _, verdict := range verdicts {
		if verdict == "bad" || verdict == "good" && all != "bad" {
			all = verdict
		}
	}
	return all
}

// requireBurnRates compares each burn rate with the counters of its series. All requests
// are within the shortest window.
func requireBurnRates(t *testing.T, metrics map[string]*dto.MetricFamily) {
	t.Helper()
	counts := map[string]map[string]float64{} // by series and SLO, by verdict
	for _, metric := range metrics["tokenpulse_slo_requests_total"].GetMetric() {
		series := seriesOf(metric, "verdict")
		if counts[series] == nil {
			counts[series] = map[string]float64{}
		}
		counts[series][exposition.Label(metric, "verdict")] = metric.GetCounter().GetValue()
	}
	burnRates := metrics["tokenpulse_slo_burn_rate"].GetMetric()
	require.NotEmpty(t, burnRates)
	for _, metric := range burnRates {
		of := counts[seriesOf(metric, "window")]
		allowed := 0.05
		if exposition.Label(metric, "slo") == "all" {
			allowed = 0.1
		}
		require.InDelta(t, of["bad"]/(of["good"]+of["bad"])/allowed, metric.GetGauge().GetValue(), 1e-9, "%v", metric.GetLabel())
	}
}

// seriesOf returns all labels of a metric but one.
func seriesOf(metric *dto.Metric, without string) string {
	var labels []string
	for _, pair := range metric.GetLabel() {
		if pair.GetName() != without {
			labels = append(labels, pair.GetName()+"="+pair.GetValue())
		}
	}
	slices.Sort(labels)
	return strings.Join(labels, ",")
}
