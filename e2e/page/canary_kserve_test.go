// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/tokenpulse/tokenpulse/e2e/internal/collector"
	"github.com/tokenpulse/tokenpulse/e2e/internal/vllmfleet"
	"github.com/tokenpulse/tokenpulse/internal/compare"
)

// kserveDimensions are those of examples/canary/kserve.yaml.
var kserveDimensions = []string{"gen_ai.request.model", "llm_isvc_name"}

// startKServeExample runs examples/canary/kserve.yaml, which keeps its evidence in a directory.
func startKServeExample(t *testing.T, directory string) *collector.Collector {
	t.Helper()
	collector.ExampleEnvironment(t)
	collector.Setenv(t, "STORAGE_DIRECTORY", directory)
	return collector.Start(t, collector.Example(t, "canary/kserve.yaml"))
}

// askKServe asks how a service compares with my-model-v1.
func askKServe(t *testing.T, c *collector.Collector, method, candidate string) (status int, answer comparison) {
	t.Helper()
	pair := url.Values{"dimension": {"llm_isvc_name"}, "baseline": {"my-model-v1"}, "candidate": {candidate}, "slo": {"all"}}
	return comparePair(t, c, method, pair.Encode())
}

// kservePods are pods of an LLMInferenceService that send spans with the resource that KServe gives them.
func kservePods(t *testing.T, service string) *vllmfleet.Fleet {
	t.Helper()
	f := &vllmfleet.Fleet{Address: collector.Getenv(t, "OTLP_HTTP_ENDPOINT"), Model: "my-model", At: time.Now()}
	for i := range 3 {
		f.Replicas = append(f.Replicas, fmt.Sprintf("%s-kserve-649dc95869-%d", service, i))
	}
	f.Describe = func(resource pcommon.Map, pod string) {
		// otelResourceAttributeEnvVars of pkg/controller/v1alpha2/llmisvc/tracing.go in kserve/kserve at 102442c7
		const variable = "k8s.namespace.name=my-namespace,k8s.node.name=node-1,k8s.pod.name=%s,llmisvc.name=%s"
		for attribute := range strings.SplitSeq(fmt.Sprintf(variable, pod, service), ",") {
			key, value, _ := strings.Cut(attribute, "=")
			resource.PutStr(key, value)
		}
		resource.PutStr("service.name", "inference-server-decode")
	}
	return f
}

// A service is an arm and its pods are replicas, by what KServe writes on spans.
func TestExampleKServe_CountsThePodsOfEachService(t *testing.T) {
	t.Parallel()
	directory := t.TempDir()
	c := startKServeExample(t, directory)
	for _, service := range []string{"my-model-v2", "my-model-v1"} { // the pair begins with the candidate
		kservePods(t, service).Serve(t, 100*time.Millisecond, 200, service == "my-model-v2")
	}
	require.Contains(t, string(collector.Get(t, c.MetricsURL(), "text/plain")),
		`tokenpulse_requests_total{gen_ai_request_model="my-model",llm_isvc_name="my-model-v2",outcome="success",vantage="engine"} 60`)
	c.Stop(t)

	q := compare.Question{Pair: compare.Pair{Dimension: "llm_isvc_name", Baseline: "my-model-v1", Candidate: "my-model-v2", SLO: "all"}}
	q.SetDefaults()
	store := compare.New(kserveDimensions, []compare.Question{q})
	openEvidence(t, directory, store)
	answer, err := store.Ask(&q, time.Now().Add(5*time.Minute)) // the windows are closed then
	require.NoError(t, err)
	require.Equal(t, []uint64{60, 0}, []uint64{answer.Baseline.Requests, answer.Baseline.Bad})
	require.Equal(t, []uint64{60, 60}, []uint64{answer.Candidate.Requests, answer.Candidate.Bad})
	require.Equal(t, []int{3, 3}, []int{answer.Baseline.Replicas, answer.Candidate.Replicas})
	require.Equal(t, "engine", answer.Vantage)
}

// It starts with stored evidence: windows close after minutes.
func TestExampleKServe_PassesAnEqualServiceAndFailsASlowOne(t *testing.T) {
	t.Parallel()
	directory := t.TempDir()
	(&rollout{"llm_isvc_name", kserveDimensions, "my-model-v1", []release{
		{candidate: "my-model-v2", bad: baselineBad}, {candidate: "my-model-v3", bad: 0.6},
	}}).store(t, directory)
	c := startKServeExample(t, directory)
	for candidate, verdict := range map[string]string{"my-model-v2": "pass", "my-model-v3": "fail"} {
		_, answer := askKServe(t, c, http.MethodGet, candidate)
		require.Equal(t, verdict, answer.Verdict, "%s: %s", candidate, answer.Hint)
	}
	require.Contains(t, string(collector.Get(t, c.MetricsURL(), "text/plain")),
		`tokenpulse_compare_verdict{baseline="my-model-v1",candidate="my-model-v2",dimension="llm_isvc_name",slo="all",verdict="pass"} 1`)
}
