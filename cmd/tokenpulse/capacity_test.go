// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/synthetic"
)

// slosOfEngines are what the limit of the engines of generate is about.
func slosOfEngines(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "slos.yaml")
	require.NoError(t, os.WriteFile(path, []byte(`slos:
  - {name: ttft, indicator: time_to_first_token, threshold: `+synthetic.LimitTTFT.String()+`}
  - {name: tpot, indicator: time_per_output_token, threshold: `+synthetic.LimitTPOT.String()+`}
objectives:
  - {slo: tpot, objective: 0.4}
  - {slo: ttft, objective: 0.9}
`), 0o600))
	return path
}

// runOf returns a run of two engines whose limit is known.
func runOf(t *testing.T, rate, duration string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "run-"+rate+".jsonl")
	_, err := run(t.Context(), "generate", "--engines", "2", "--rate", rate, "--duration", duration, "--seed", "3", "--output", path)
	require.NoError(t, err)
	return path
}

type capacityAnswer struct {
	Objective     float64
	Limit, Missed *struct {
		Run          string
		Requests     float64
		OutputTokens float64 `json:"output_tokens"`
		PromptTokens float64 `json:"prompt_tokens"`
	}
	Reason string
	Runs   []struct{ Replicas, Requests, Good int }
	Load   *struct {
		Replicas int `json:"replicas_needed"`
	}
}

func capacityOf(t *testing.T, args ...string) (a capacityAnswer, code int) {
	t.Helper()
	code, out, problems := execute(t.Context(), append([]string{"capacity", "--format", "json"}, args...)...)
	require.NoError(t, json.Unmarshal([]byte(out), &a), problems)
	return a, code
}

// An objective of 0.5 takes minutes to decide; e2e has one of 0.95.
func TestCapacity_AgreesWithTheKnownLimitOfEngines(t *testing.T) {
	slos, below, above := slosOfEngines(t), runOf(t, "3.5", "2m"), runOf(t, "9", "3m")
	config := synthetic.Config{
		Engines: 2, Rate: 1, Models: []synthetic.Model{{Name: "m", Speed: 1}}, Prefill: synthetic.DefaultPrefill, TPOT: synthetic.DefaultTPOT,
		ReasoningRatio: 0.3, ToolCallRatio: 0.1,
	}
	truth, ok := config.Limit(0.5)
	require.True(t, ok)
	a, code := capacityOf(t, above, below, "--slos", slos, "--objective", "0.5", "--load", "40")
	require.Zero(t, code)
	require.Equal(t, below, a.Limit.Run)
	require.Equal(t, above, a.Missed.Run)
	require.InEpsilon(t, 1.75, a.Limit.Requests, 0.1)
	require.LessOrEqual(t, a.Limit.Requests, truth.Requests)
	require.GreaterOrEqual(t, a.Missed.Requests, truth.Requests)
	require.Equal(t, 2, a.Runs[0].Replicas)
	require.InDelta(t, 40/a.Limit.Requests, a.Load.Replicas, 1)

	a, code = capacityOf(t, below, "--slos", slos, "--objective", "0.5", "--replicas", "1")
	require.Equal(t, exitUndecided, code, "no run missed it")
	require.Equal(t, "knee_not_seen", a.Reason)
	require.InEpsilon(t, 3.5, a.Limit.Requests, 0.1)

	a, code = capacityOf(t, below, "--slos", slos, "--slo", "ttft")
	require.InDelta(t, 0.9, a.Objective, 0, "that of the file")
	require.Equal(t, exitUndecided, code, "two minutes are too short")
	require.Equal(t, "too_few", a.Reason)

	trace, _, _ := writeWorkload(t, below)
	code, out, problems := execute(t.Context(), "capacity", below, above, "--slos", slos, "--objective", "0.5", "--workload", trace)
	require.Zero(t, code, problems)
	require.Regexp(t, `(?m)^The limit of a replica is at least \S+ requests/s \(\S+\), and below \S+ requests/s`, out)
	require.Regexp(t, `(?m)^The workload needs [23] replicas for its highest load of 10 minutes, 3\.\d+ requests/s,$`, out)
}

func TestCapacity_RejectsFlags(t *testing.T) {
	slos, spans := slosOfEngines(t), writeSpans(t, 1)
	for name, args := range map[string][]string{
		"share in percent":       {"--objective", "95"},
		"objective of the file":  {"--slo", "tpot"},
		"negative load":          {"--load", "-1"},
		"no replica":             {"--replicas", "0"},
		"unknown format":         {"--format", "html"},
		"two loads":              {"--load", "1", "--workload", spans},
		"workload that is none":  {"--workload", filepath.Join(t.TempDir(), "none")},
		"no SLOs in that file":   {"--slos", spans},
		"no configuration there": {"--config", filepath.Join(t.TempDir(), "none")},
	} {
		code, _, problems := execute(t.Context(), append([]string{"capacity", spans, "--slos", slos}, args...)...)
		require.Equal(t, exitUsage, code, name)
		require.NotEmpty(t, problems, name)
	}
	code, _, problems := execute(t.Context(), "capacity", spans)
	require.Equal(t, exitFailed, code)
	require.Contains(t, problems, `no request has a verdict of the SLO "all"; give its definition by --slos`)
	code, _, problems = execute(t.Context(), "capacity", spans, "--slos", slos, "--workload", demo)
	require.Equal(t, exitFailed, code)
	require.Contains(t, problems, "demo.jsonl: line 1: the request has no timestamp")
	require.Contains(t, problems, "; tokenpulse workload writes a trace")
}

// Requests that count twice would be twice the evidence.
func TestCapacity_RejectsAFileInTwoRuns(t *testing.T) {
	spans := writeSpans(t, 1)
	link := filepath.Join(t.TempDir(), "link.jsonl")
	require.NoError(t, os.Symlink(spans, link))
	for _, other := range []string{spans, filepath.Dir(spans), link} {
		code, _, problems := execute(t.Context(), "capacity", spans, other)
		require.Equal(t, exitUsage, code)
		require.Contains(t, problems, " is in the runs "+spans+" and "+other+"; give the file of each run once")
	}
	code, _, problems := execute(t.Context(), "capacity", "-", "-")
	require.Equal(t, exitUsage, code)
	require.Contains(t, problems, "- is in the runs - and -")
}

func TestCapacity_ReadsACompressedTrace(t *testing.T) {
	text, err := os.ReadFile(conversation)
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "trace.jsonl.gz")
	file, err := os.Create(path)
	require.NoError(t, err)
	compressed := gzip.NewWriter(file)
	_, err = compressed.Write(text)
	require.NoError(t, errors.Join(err, compressed.Close(), file.Close()))
	trace, err := readTrace(t.Context(), path)
	require.NoError(t, err)
	require.Len(t, trace.Requests, bytes.Count(text, []byte("\n")))
}

func TestCapacity_SaysWhatATraceIs(t *testing.T) {
	code, _, problems := execute(t.Context(), "capacity", conversation, "--slos", slosOfEngines(t))
	require.Equal(t, exitFailed, code)
	require.Contains(t, problems, "looks like a trace of a workload, which has no latencies; give it to tokenpulse replay, or to --workload of tokenpulse capacity")
}
