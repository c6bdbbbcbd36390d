// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Package rollouts runs examples/canary: the built Collector with the rollout tools' own code. Run `make build` first.
package rollouts

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	argo "github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"
	analysisutil "github.com/argoproj/argo-rollouts/utils/analysis"
	flagger "github.com/fluxcd/flagger/pkg/apis/flagger/v1beta1"
	flaggercontroller "github.com/fluxcd/flagger/pkg/controller"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/yaml"
)

const (
	// patience is how long a verdict may take. It needs three blocks of 5 minutes, and windows close after 2 minutes.
	patience = 25 * time.Minute
	// shippedAPI is where the files of examples/canary look for the Collector.
	shippedAPI = "http://tokenpulse.observability:9464"
)

// pair is two versions of one service, and what the tools do in the end.
type pair struct {
	service             string // its Deployments are this and, of the baseline, with `-primary`
	baseline, candidate string // versions
	bad                 float64

	phase                        argo.AnalysisPhase
	rollout, promotion, rollback bool // answers to Flagger
	exit                         int  // of verdict.sh
}

var pairs = []*pair{
	{service: "engine", baseline: "5d9c7b8f4", candidate: "7f6b9d5c8", bad: 0.1, phase: argo.AnalysisPhaseSuccessful, rollout: true, promotion: true, exit: 0},
	{service: "chat", baseline: "6c8d7f9b5", candidate: "66b5c9f7d", bad: 0.4, phase: argo.AnalysisPhaseFailed, rollback: true, exit: 1},
}

// tolerated is worse by exactly the tolerance of 1.5 times the odds: 1 bad request for 6 good ones, and for 9 in the baseline.
var tolerated = &pair{service: "search", baseline: "7d8b49557f", candidate: "f5d97cb66", bad: 1. / 7}

func TestRollouts_ToolsActOnTheVerdict(t *testing.T) {
	c := startCollector(t)
	c.send(t, append(pairs, tolerated))
	runs := startArgo(t)
	template := decode[argo.AnalysisTemplate](t, "argo-analysis-template.yaml", c.api)
	began := time.Now()
	for _, p := range pairs {
		t.Run(p.service, func(t *testing.T) {
			t.Parallel()
			waited := make(chan scriptEnd, 1)
			go func() { waited <- c.script(t.Context(), p, "3600") }()
			require.Equal(t, 2, c.script(t.Context(), p, "0").exit, "verdict.sh while undecided")
			requireFlagger(t, c, p, true, false, false)

			result := runs.finish(t, p.service, analyse(t, template, p))
			t.Logf("%s after %s: %d inconclusive, %d successful, %d failed", result.Phase, time.Since(began).Round(time.Second), result.Inconclusive, result.Successful, result.Failed)
			require.Equal(t, p.phase, result.Phase, result.Message)
			require.Greater(t, result.Inconclusive, int32(20), "each half minute of the first 17 minutes")
			require.Zero(t, result.Error)
			requireFlagger(t, c, p, p.rollout, p.promotion, p.rollback)
			end := <-waited
			t.Logf("verdict.sh: %s", end.output)
			require.Equal(t, p.exit, end.exit, "verdict.sh")
		})
	}
	t.Run("worse by the tolerance", func(t *testing.T) {
		t.Parallel()
		run := analyse(t, template, tolerated)
		limit := intstr.FromInt32(44) // 22 minutes: by then, the difference shows
		run.Spec.Metrics[0].InconclusiveLimit = &limit
		result := runs.finish(t, tolerated.service, run)
		require.Equal(t, argo.AnalysisPhaseInconclusive, result.Phase, "the rollout waits for a person: %s", result.Message)
		requireFlagger(t, c, tolerated, true, false, false)
		end := c.script(t.Context(), tolerated, "0")
		require.Equal(t, 2, end.exit, "verdict.sh")
		require.Contains(t, end.output, `"reason":"difference"`)
	})
	t.Run("a pair without traffic", func(t *testing.T) {
		t.Parallel()
		run := analyse(t, template, &pair{baseline: "old", candidate: "new"})
		run.Spec.Metrics[0].Interval = "10ms" // the limit is as shipped
		result := runs.finish(t, "nothing", run)
		require.Equal(t, argo.AnalysisPhaseInconclusive, result.Phase, "the rollout waits for a person")
		require.EqualValues(t, 121, result.Inconclusive)
	})
	t.Run("a mistake in the question", func(t *testing.T) {
		t.Parallel()
		end := c.script(t.Context(), &pair{baseline: "one", candidate: "one"}, "0")
		require.Equal(t, 3, end.exit, "verdict.sh")
		require.Contains(t, end.output, "remedy")
	})
}

// analyse returns what Argo makes of the template for the versions of a pair.
func analyse(t *testing.T, template *argo.AnalysisTemplate, p *pair) *argo.AnalysisRun {
	t.Helper()
	args := []argo.Argument{{Name: "baseline", Value: &p.baseline}, {Name: "candidate", Value: &p.candidate}}
	run, err := analysisutil.NewAnalysisRunFromTemplates([]*argo.AnalysisTemplate{template}, nil, args, nil, nil, nil, nil, "", "", "llm")
	require.NoError(t, err)
	require.NoError(t, analysisutil.ValidateMetrics(run.Spec.Metrics))
	return run
}

// requireFlagger checks what Flagger's own client of webhooks makes of the answers. To Flagger, each answer without an error
// is a yes: https://docs.flagger.app/usage/webhooks.
func requireFlagger(t *testing.T, c *collector, p *pair, rollout, promotion, rollback bool) {
	t.Helper()
	canary := decode[flagger.Canary](t, "flagger-canary.yaml", c.api)
	asked := 0
	for _, hook := range canary.Spec.Analysis.Webhooks {
		want, known := map[flagger.HookType]bool{
			flagger.RolloutHook: rollout, flagger.ConfirmPromotionHook: promotion, flagger.RollbackHook: rollback,
		}[hook.Type]
		if !known {
			continue
		}
		(*hook.Metadata)["baseline"], (*hook.Metadata)["candidate"] = p.service+"-primary", p.service
		err := flaggercontroller.CallWebhook(*canary, flagger.CanaryPhaseProgressing, hook)
		require.Equal(t, want, err == nil, "%s: %v", hook.Type, err)
		if err != nil {
			require.Contains(t, err.Error(), `"verdict"`, "%s: the answer is in Flagger's events", hook.Type)
		}
		asked++
	}
	require.Equal(t, 3, asked)
}

// A new release of the same Deployments begins anew: Flagger calls this hook before it routes traffic.
func TestRollouts_FlaggerForgetsTheReleaseBefore(t *testing.T) {
	c := startCollector(t)
	canary := decode[flagger.Canary](t, "flagger-canary.yaml", c.api)
	hook := canary.Spec.Analysis.Webhooks[0]
	require.Equal(t, flagger.PreRolloutHook, hook.Type)
	var since []float64
	for range 2 {
		require.NoError(t, flaggercontroller.CallWebhook(*canary, flagger.CanaryPhaseProgressing, hook))
		since = append(since, c.since(t, *hook.Metadata))
		time.Sleep(time.Second)
	}
	require.Greater(t, since[1], since[0])
}

func TestRollouts_RolloutIsOfArgosForm(t *testing.T) {
	rollout := decode[argo.Rollout](t, "argo-rollout.yaml", shippedAPI)
	analysis := rollout.Spec.Strategy.Canary.Steps[1].Analysis
	template := decode[argo.AnalysisTemplate](t, "argo-analysis-template.yaml", shippedAPI)
	require.Equal(t, template.Name, analysis.Templates[0].TemplateName)
	for _, arg := range analysis.Args {
		require.Contains(t, names(template.Spec.Args), arg.Name)
	}
}

func names(args []argo.Argument) (all []string) {
	for i := range args {
		all = append(all, args[i].Name)
	}
	return all
}

// decode reads a file of examples/canary, refuses unknown fields, and replaces the address of the API.
func decode[T any](t *testing.T, name, api string) *T {
	t.Helper()
	text, err := os.ReadFile(example(name))
	require.NoError(t, err)
	object := new(T)
	require.NoError(t, yaml.UnmarshalStrict(bytes.ReplaceAll(text, []byte(shippedAPI), []byte(api)), object), name)
	return object
}

func example(name string) string { return filepath.Join("..", "..", "examples", "canary", name) }

// scriptEnd is how verdict.sh ended.
type scriptEnd struct {
	exit   int
	output string
}

// script runs verdict.sh until it ends.
func (c *collector) script(ctx context.Context, p *pair, timeout string) scriptEnd {
	command := exec.CommandContext(ctx, example("verdict.sh"), "service.version", p.baseline, p.candidate, "all")
	command.Env = append(os.Environ(), "TOKENPULSE="+c.api, "TIMEOUT="+timeout)
	output, _ := command.CombinedOutput()
	return scriptEnd{command.ProcessState.ExitCode(), string(output)}
}
