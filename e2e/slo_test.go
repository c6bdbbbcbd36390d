package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// everySpan is added to examples/slo-sampling.yaml: it also writes the spans that
// the sampler sees.
const everySpan = `
exporters:
  file/all:
    path: ${env:ALL_SPANS_FILE}
service:
  pipelines:
    traces/metrics:
      exporters: [token_sli, file/all]
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

// recount judges a request anew, by what its span says of its latency.
func recount(t *testing.T, span ptrace.Span) map[string]string {
	t.Helper()
	attributes, verdicts := span.Attributes(), map[string]string{}
	for slo, limit := range thresholds {
		value, known := attributes.Get(limit.attribute)
		switch {
		case known && value.Double() <= limit.seconds:
			verdicts[slo] = "good"
		case known || text(t, attributes, "tokenpulse.outcome") != "success":
			verdicts[slo] = "bad"
		default:
			verdicts[slo] = "not_eligible"
		}
	}
	return verdicts
}

// The sampler keeps every trace that breached an SLO, and the configured share of
// the rest.
func TestExampleSLOSampling(t *testing.T) {
	sampledFile := exampleEnvironment(t)
	folder := t.TempDir()
	allFile, more := filepath.Join(folder, "all.jsonl"), filepath.Join(folder, "more.yaml")
	t.Setenv("ALL_SPANS_FILE", allFile)
	t.Setenv("DECISION_WAIT", "2s")
	require.NoError(t, os.WriteFile(more, []byte(everySpan), 0o600))
	c := startCollector(t, example(t, "slo-sampling.yaml"), "--config", more)
	const requests = 10_000
	run(t, built(t, "tokengen"), "generate", "--fast", "--requests", "10000", "--seed", "7",
		"--transport", "protobuf", "--endpoint", c.http)
	metrics := scrape(t, c)
	c.stop(t)
	requireAttainment(t, metrics, readSpans(t, allFile))

	sampled := map[pcommon.TraceID]bool{}
	for _, span := range readSpans(t, sampledFile) {
		sampled[span.TraceID()] = true
	}
	all := readSpans(t, allFile)
	require.Len(t, all, requests)
	breaches, rest, kept := 0, 0, 0
	for _, span := range all {
		breached := false
		for slo, verdict := range recount(t, span) {
			require.Equal(t, verdict == "good", lists(span, "tokenpulse.slo.met", slo), "%s met", slo)
			require.Equal(t, verdict == "bad", lists(span, "tokenpulse.slo.breached", slo), "%s breached", slo)
			require.Equal(t, verdict == "not_eligible", lists(span, "tokenpulse.slo.not_eligible", slo), "%s not eligible", slo)
			breached = breached || verdict == "bad"
		}
		switch {
		case breached:
			breaches++
			require.True(t, sampled[span.TraceID()], "a trace that breached is kept")
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
	// The sampler decides by a hash of the trace's id: 10% to within five standard
	// deviations of a coin that is tossed as often.
	require.InDelta(t, 0.10, float64(kept)/float64(rest), 0.016)
}

// requireAttainment compares the counters with a recount of all spans, exactly, and
// the gauges with what follows from it.
func requireAttainment(t *testing.T, metrics map[string]*dto.MetricFamily, spans []ptrace.Span) {
	t.Helper()
	type key struct{ slo, verdict string }
	want := map[key]float64{}
	outcomes := map[string]bool{}
	for _, span := range spans {
		outcomes[text(t, span.Attributes(), "tokenpulse.outcome")] = true
		all := "not_eligible"
		for slo, verdict := range recount(t, span) {
			want[key{slo, verdict}]++
			switch {
			case verdict == "bad", verdict == "good" && all != "bad":
				all = verdict
			}
		}
		want[key{"all", all}]++
	}
	require.Len(t, outcomes, 3, "success, error and cancelled requests are there")

	got := map[key]float64{}
	for _, metric := range metrics["tokenpulse_slo_requests_total"].GetMetric() {
		got[key{label(metric, "slo"), label(metric, "verdict")}] += metric.GetCounter().GetValue()
	}
	for k, n := range got {
		require.InDelta(t, want[k], n, 0, "%v", k)
	}
	for k := range want {
		require.Contains(t, got, k)
	}
	for _, metric := range metrics["tokenpulse_slo_objective"].GetMetric() {
		objective := map[string]float64{"chat-ttft": 0.95, "chat-tpot": 0.95, "all": 0.9}[label(metric, "slo")]
		require.InDelta(t, objective, metric.GetGauge().GetValue(), 1e-12)
	}
	requireBurnRates(t, metrics)
}

// requireBurnRates compares each burn rate with the counters of its series, all of
// which are within the shortest window.
func requireBurnRates(t *testing.T, metrics map[string]*dto.MetricFamily) {
	t.Helper()
	counts := map[string]map[string]float64{} // by series and SLO, by verdict
	for _, metric := range metrics["tokenpulse_slo_requests_total"].GetMetric() {
		series := seriesOf(metric, "verdict")
		if counts[series] == nil {
			counts[series] = map[string]float64{}
		}
		counts[series][label(metric, "verdict")] = metric.GetCounter().GetValue()
	}
	burnRates := metrics["tokenpulse_slo_burn_rate"].GetMetric()
	require.NotEmpty(t, burnRates)
	for _, metric := range burnRates {
		of := counts[seriesOf(metric, "window")]
		allowed := 0.05
		if label(metric, "slo") == "all" {
			allowed = 0.1
		}
		require.InDelta(t, of["bad"]/(of["good"]+of["bad"])/allowed, metric.GetGauge().GetValue(), 1e-9, "%v", metric.GetLabel())
	}
}

// seriesOf returns all labels but one.
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

func lists(span ptrace.Span, attribute, slo string) bool {
	list, ok := span.Attributes().Get(attribute)
	if !ok {
		return false
	}
	for _, listed := range list.Slice().All() {
		if listed.Str() == slo {
			return true
		}
	}
	return false
}
