package e2e

import (
	"os"
	"path/filepath"
	"testing"

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
	c.stop(t)

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
	require.InDelta(t, 0.10, float64(kept)/float64(rest), 0.03)
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
