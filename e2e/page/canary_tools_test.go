// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/expr-lang/expr"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.uber.org/zap"
	"go.yaml.in/yaml/v3"

	"github.com/tokenpulse/tokenpulse/e2e/internal/collector"
	"github.com/tokenpulse/tokenpulse/internal/compare"
	internalseries "github.com/tokenpulse/tokenpulse/internal/series"
	"github.com/tokenpulse/tokenpulse/internal/slo"
	"github.com/tokenpulse/tokenpulse/internal/storageclient"
	"github.com/tokenpulse/tokenpulse/internal/storagetest"
)

// release is a candidate, the requests that it served for 40 minutes beside its baseline, and what follows from them.
type release struct {
	candidate string
	bad       float64 // share of the requests; that of the baseline is baselineBad

	verdict, reason string
	phase           string // of Argo's measurement
	exit            int    // of verdict.sh
}

const baselineBad = 0.2

// The odds of a bad request are 1 to 4 in the baseline. At the tolerance of 0.5, they are 1.5 to 4 in the candidate.
var releases = []release{
	{"as-good", baselineBad, "pass", "equivalent", "Successful", 0},
	{"worse-by-the-tolerance", 1.5 / 5.5, "undecided", "difference", "Inconclusive", 2},
	{"far-worse", 0.6, "fail", "difference", "Failed", 1},
}

// TestExampleCanary_ToolsActOnTheVerdict runs the conditions of Argo's template and verdict.sh on answers of the
// Collector. It starts with stored evidence: windows close after minutes.
func TestExampleCanary_ToolsActOnTheVerdict(t *testing.T) {
	t.Parallel()
	collector.ExampleEnvironment(t)
	storage := t.TempDir()
	collector.Setenv(t, "STORAGE_DIRECTORY", storage)
	(&rollout{"service.version", []string{"gen_ai.request.model", "service.version", "k8s.deployment.name"}, "baseline", releases}).store(t, storage)
	c := collector.Start(t, collector.Example(t, "canary/collector.yaml"))
	metric := argoTemplate(t)
	rows := append(slices.Clone(releases),
		release{candidate: "without-requests", verdict: "undecided", reason: "too_few", phase: "Inconclusive", exit: 2},
		release{candidate: "baseline", phase: "Error", exit: 3}) // the same version twice is a mistake
	for _, r := range rows {
		t.Run(r.candidate, func(t *testing.T) {
			arguments := map[string]string{"dimension": "service.version", "baseline": "baseline", "candidate": r.candidate, "slo": "all"}
			if r.reason == "too_few" {
				asking := *metric
				asking.Provider.Web.Method = http.MethodGet
				require.Equal(t, "Error", asking.measure(t, c, arguments), "a pair that has not begun")
			}
			require.Equal(t, r.phase, metric.measure(t, c, arguments))

			output, exit := verdictScript(t, c, "service.version", "baseline", r.candidate, "all")
			require.Equal(t, r.exit, exit, output)
			if r.verdict == "" {
				require.Contains(t, output, "remedy")
				return
			}
			require.Contains(t, output, fmt.Sprintf(`"verdict":%q,"reason":%q`, r.verdict, r.reason))
			values := url.Values{}
			for name, value := range arguments {
				values.Set(name, value)
			}
			_, answer := comparePair(t, c, http.MethodGet, values.Encode())
			require.Equal(t, []string{r.verdict, r.reason}, []string{answer.Verdict, answer.Reason}, answer.Hint)
		})
	}
}

// rollout is what an exporter has counted of releases, 4 requests of each in each second.
type rollout struct {
	dimension  string
	dimensions []string // of the exporter
	baseline   string
	releases   []release
}

// store writes the rollout where the exporter reads it.
func (o *rollout) store(t *testing.T, directory string) {
	t.Helper()
	store := compare.New(o.dimensions, nil)
	random := rand.New(rand.NewPCG(1, 2))
	now := time.Now()
	began := now.Add(-40 * time.Minute)
	bad := map[string]float64{o.baseline: baselineBad}
	for _, r := range o.releases {
		bad[r.candidate] = r.bad
		q := compare.Question{Pair: compare.Pair{Dimension: o.dimension, Baseline: o.baseline, Candidate: r.candidate, SLO: "all"}}
		_, _, err := store.Begin(&q, began)
		require.NoError(t, err)
	}
	versions := slices.Sorted(maps.Keys(bad))
	for at := began; at.Before(now); at = at.Add(time.Second) {
		for _, version := range versions {
			for range 4 {
				request := &internalseries.Contribution{Dimensions: make([]string, len(o.dimensions)), Vantage: "engine", Arrival: at.Add(time.Second)}
				request.Dimensions[slices.Index(o.dimensions, o.dimension)] = version
				verdict := slo.Good
				if random.Float64() < bad[version] {
					verdict = slo.Bad
				}
				request.Verdicts.Add("chat-ttft", verdict)
				request.Verdicts.End(slo.Finished)
				replica := fmt.Sprint(version, random.IntN(5))
				store.Record(&compare.Request{Contribution: request, Start: at, Replica: func() string { return replica }})
			}
		}
	}
	require.NoError(t, openEvidence(t, directory, store).Close(t.Context(), nil))
}

// openEvidence gives a store what the exporter has written. Closing it writes what the exporter reads.
func openEvidence(t *testing.T, directory string, store *compare.Store) *compare.Saved {
	t.Helper()
	host, stop := storagetest.NewHostIn(t, directory)
	t.Cleanup(stop)
	owner := storageclient.Owner{Kind: component.KindExporter, ID: component.MustNewID("token_sli"), Name: "comparisons"}
	saved, _, err := storageclient.OpenSnapshots(t.Context(), host, &storagetest.FileStorage, owner, store.Values(), zap.NewNop())
	require.NoError(t, err)
	return saved
}

// argoMetric is a metric of an AnalysisTemplate of Argo Rollouts.
type argoMetric struct {
	SuccessCondition string `yaml:"successCondition"`
	FailureCondition string `yaml:"failureCondition"`
	Provider         struct {
		Web struct{ URL, Method string }
	}
}

// argoTemplate returns the metric of examples/canary, for which the rollout there gives the arguments.
func argoTemplate(t *testing.T) *argoMetric {
	t.Helper()
	type argument struct{ Name, Value string }
	var template struct {
		Metadata struct{ Name string }
		Spec     struct {
			Args    []argument
			Metrics []argoMetric
		}
	}
	var rollout struct {
		Spec struct {
			Strategy struct {
				Canary struct {
					Steps []struct {
						Analysis struct {
							Templates []struct {
								TemplateName string `yaml:"templateName"`
							}
							Args []argument
						}
					}
				}
			}
		}
	}
	for name, into := range map[string]any{"argo-analysis-template.yaml": &template, "argo-rollout.yaml": &rollout} {
		content, err := os.ReadFile(collector.Example(t, "canary/"+name))
		require.NoError(t, err)
		require.NoError(t, yaml.Unmarshal(content, into))
	}
	analysis := rollout.Spec.Strategy.Canary.Steps[1].Analysis
	require.Equal(t, template.Metadata.Name, analysis.Templates[0].TemplateName)
	given := analysis.Args
	for _, a := range template.Spec.Args {
		if a.Value != "" {
			given = append(given, a)
		}
	}
	for _, a := range template.Spec.Args {
		require.True(t, slices.ContainsFunc(given, func(g argument) bool { return g.Name == a.Name }), "no value for %s", a.Name)
	}
	require.Len(t, template.Spec.Metrics, 1)
	return &template.Spec.Metrics[0]
}

// measure returns the phase of a measurement by the rules of Argo's documentation: an answer other than 2xx is an error,
// the failure condition comes before the success condition, and with neither, the measurement is inconclusive.
// https://argo-rollouts.readthedocs.io/en/stable/features/analysis/
func (m *argoMetric) measure(t *testing.T, c *collector.Collector, arguments map[string]string) string {
	t.Helper()
	const shipped = "http://tokenpulse.observability:9464/"
	require.True(t, strings.HasPrefix(m.Provider.Web.URL, shipped))
	address := strings.Replace(m.Provider.Web.URL, shipped, c.PageURL(""), 1)
	for name, value := range arguments {
		address = strings.ReplaceAll(address, "{{args."+name+"}}", value)
	}
	require.NotContains(t, address, "{{")
	status, body := send(t, m.Provider.Web.Method, address)
	if status < 200 || status > 299 {
		return "Error"
	}
	var result any
	require.NoError(t, json.Unmarshal(body, &result))
	holds := func(condition string) bool {
		value, err := expr.Eval(condition, map[string]any{"result": result}) // as Argo does
		require.NoError(t, err, condition)
		return value.(bool)
	}
	failed, successful := holds(m.FailureCondition), holds(m.SuccessCondition)
	switch {
	case failed:
		return "Failed"
	case successful:
		return "Successful"
	default:
		return "Inconclusive"
	}
}

// verdictScript asks once with verdict.sh.
func verdictScript(t *testing.T, c *collector.Collector, arguments ...string) (output string, exit int) {
	t.Helper()
	command := exec.CommandContext(t.Context(), collector.Example(t, "canary/verdict.sh"), arguments...)
	command.Env = append(os.Environ(), "TOKENPULSE="+strings.TrimSuffix(c.PageURL(""), "/"), "TIMEOUT=0")
	written, _ := command.CombinedOutput() // the exit code is the result
	return string(written), command.ProcessState.ExitCode()
}
