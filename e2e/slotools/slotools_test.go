// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Package slotools lets the code of Sloth and OpenSLO read what `tokenpulse slos` writes, and promtool run the rules that
// come of it. It is a module of its own, because Sloth needs the libraries of Kubernetes.
package slotools

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/require"
)

// The names are one that all tools allow, one that none allows, and one of 80 characters.
const (
	valid   = "chat-ttft"
	strange = `Chat "TPOT" {{x}} 1.5s`
)

var long = strings.Repeat("long-", 16)

// slos writes SLOs with an objective of 0.99 each in a format, and returns the file.
func slos(t *testing.T, format string, window string, names ...string) string {
	t.Helper()
	var text strings.Builder
	fmt.Fprintln(&text, "slos:")
	for _, name := range names {
		fmt.Fprintf(&text, "  - {name: %q, indicator: time_to_first_token, threshold: 1s, match: {note: '{{.window}}'}}\n", name)
	}
	fmt.Fprintln(&text, "objectives:")
	for _, name := range names {
		fmt.Fprintf(&text, "  - {slo: %q, objective: 0.99, window: %s}\n", name, window)
	}
	folder := t.TempDir()
	input, output := filepath.Join(folder, "slos.yaml"), filepath.Join(folder, format+".yaml")
	require.NoError(t, os.WriteFile(input, []byte(text.String()), 0o600))
	run(t, "../../dist/tokenpulse", "slos", input, "--to", format, "-o", output)
	return output
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	return text
}

func write(t *testing.T, name, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	return file
}

func run(t *testing.T, program string, args ...string) {
	t.Helper()
	output, err := exec.CommandContext(t.Context(), program, args...).CombinedOutput()
	require.NoError(t, err, "%s %v:\n%s", program, args, output)
}

// counters are the series of an SLO. Each minute 60 requests are good of the model good, and 40 of the model bad, whose other
// 20 are bad after the first hour. The engine and the client see all of them.
func counters(slo string) string {
	var text strings.Builder
	for _, vantage := range []string{"client", "engine"} {
		for labels, values := range map[string]string{
			`gen_ai_request_model="good", verdict="good"`:         "0+60x720",
			`gen_ai_request_model="good", verdict="bad"`:          "0x720",
			`gen_ai_request_model="bad", verdict="good"`:          "0+60x59 3600+40x660",
			`gen_ai_request_model="bad", verdict="bad"`:           "0x59 0+20x660",
			`gen_ai_request_model="good", verdict="not_eligible"`: "0+600x720",
		} {
			fmt.Fprintf(&text, "      - {series: %q, values: %q}\n",
				fmt.Sprintf("tokenpulse_slo_requests_total{job=\"tokenpulse\", slo=%q, vantage=%q, gen_ai_provider_name=\"p\", %s}", slo, vantage, labels), values)
		}
	}
	return text.String()
}

// requireAlerts checks that rules alert on the model bad alone, once per SLO and vantage, and not in the good hour. label is
// that of the SLO on the alerts.
func requireAlerts(t *testing.T, rules, label string, alerts map[string]string) {
	t.Helper()
	run(t, "promtool", "check", "rules", rules)
	var series, samples strings.Builder
	for slo, name := range alerts {
		series.WriteString(counters(slo))
		for _, vantage := range []string{"client", "engine"} {
			fmt.Fprintf(&samples, "          - {labels: %q, value: 1}\n", fmt.Sprintf("{%s=%q, vantage=%q, gen_ai_request_model=\"bad\"}", label, name, vantage))
		}
	}
	test := fmt.Sprintf(`rule_files: [%s]
evaluation_interval: 1m
tests:
  - interval: 1m
    input_series:
%s    promql_expr_test:
      - {expr: ALERTS, eval_time: 59m, exp_samples: []}
      - expr: count by (%s, vantage, gen_ai_request_model) (count by (%[3]s, vantage, gen_ai_request_model) (ALERTS{alertstate="firing"}))
        eval_time: 3h
        exp_samples:
%s`, rules, series.String(), label, samples.String())
	run(t, "promtool", "test", "rules", write(t, "test.yaml", test))
}

// requireSelects checks that a selector of PromQL selects some verdicts of an SLO.
func requireSelects(t *testing.T, selector parser.Expr, slo string, verdicts ...string) {
	t.Helper()
	vector, ok := selector.(*parser.VectorSelector)
	require.True(t, ok, selector)
	require.Equal(t, "tokenpulse_slo_requests_total", vector.Name)
	for _, m := range vector.LabelMatchers {
		switch m.Name {
		case "slo":
			require.True(t, m.Matches(slo))
			require.False(t, m.Matches(slo+"x"))
			require.False(t, m.Matches(strings.ReplaceAll(slo, ".", "x")) && strings.Contains(slo, "."))
		case "verdict":
			for _, verdict := range []string{"good", "bad", "not_eligible"} {
				require.Equal(t, slices.Contains(verdicts, verdict), m.Matches(verdict), verdict)
			}
		}
	}
}

func parse(t *testing.T, query string) parser.Expr {
	t.Helper()
	expr, err := parser.ParseExpr(query)
	require.NoError(t, err)
	return expr
}
