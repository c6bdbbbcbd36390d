// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/e2e/internal/collector"
	"github.com/tokenpulse/tokenpulse/internal/testenv"
)

var (
	detectedObjectives = []float64{0.5, 0.9, 0.95, 0.99, 0.999}
	detectedPercent    = []float64{100, 80, 60, 40, 20, 10, 5, 2, 1}
)

// The table of detection times in docs/runbook.md is what promtool computes. To rewrite it:
//
//	go test -C e2e . -run TestRunbook_DetectionTimes -update
func TestRunbook_DetectionTimesAreThoseOfPromtool(t *testing.T) {
	t.Parallel()
	times := detectionTimes(t, testenv.Program(t, "promtool"))
	var table strings.Builder
	table.WriteString("| objective |")
	for _, percent := range detectedPercent {
		fmt.Fprintf(&table, " %v%% bad |", percent)
	}
	table.WriteString("\n|---|" + strings.Repeat("---|", len(detectedPercent)) + "\n")
	for _, objective := range detectedObjectives {
		fmt.Fprintf(&table, "| %v |", objective)
		for _, percent := range detectedPercent {
			cell := "-"
			if minutes, ok := times[combination(objective, percent)]; ok {
				cell = minutes
			}
			fmt.Fprintf(&table, " %s |", cell)
		}
		table.WriteString("\n")
	}
	t.Logf("\n%s", table.String())
	testenv.RequireTables(t, "docs/runbook.md", map[string]string{"detection times": table.String()})
}

func combination(objective, percent float64) string {
	return fmt.Sprintf("%v of %v", percent, objective)
}

// detectionTimes returns the time from the first bad request to the first page by combination of an
// objective and a share of bad requests: each is a model of its own, with one request a second. Before
// come 7 hours without a bad request.
func detectionTimes(t *testing.T, promtool string) map[string]string {
	t.Helper()
	const good, bad = 420, 300 // minutes
	var series strings.Builder
	for _, objective := range detectedObjectives {
		fmt.Fprintf(&series, "      - {series: 'tokenpulse_slo_objective{slo=\"%v\"}', values: '%vx%d'}\n", objective, objective, good+bad)
		for _, percent := range detectedPercent {
			perMinute := 60 * percent / 100
			for verdict, values := range map[string]string{
				"good": fmt.Sprintf("0+60x%d %v+%vx%d", good, 60*good+60-perMinute, 60-perMinute, bad-1),
				"bad":  fmt.Sprintf("0x%d %v+%vx%d", good, perMinute, perMinute, bad-1),
			} {
				fmt.Fprintf(&series, "      - {series: 'tokenpulse_slo_requests_total{slo=\"%v\", gen_ai_request_model=\"%s\", verdict=\"%s\"}', values: '%s'}\n",
					objective, combination(objective, percent), verdict, values)
			}
		}
	}
	// A query of promtool may load 10,000 samples, so a rule remembers the first page.
	first := collector.WriteFile(t, t.TempDir(), "first.yaml", `
groups:
  - name: first
    rules:
      - record: first_page
        expr: |
          last_over_time(first_page[5m])
          or
          min by (gen_ai_request_model) (timestamp(ALERTS{severity="page", alertstate="firing"}))
`)
	// An expectation of nothing makes promtool print the result.
	file := collector.WriteFile(t, t.TempDir(), "detection.yaml", fmt.Sprintf(`
rule_files: [%s, %s]
evaluation_interval: 1m
group_eval_order: [tokenpulse-slo-short-windows, tokenpulse-slo-long-windows, tokenpulse-slo-alerts, first]
tests:
  - interval: 1m
    input_series:
%s    promql_expr_test:
      - expr: first_page / 60 - %d
        eval_time: %dm
        exp_samples: []
`, prometheusExample(t, "rules.yaml"), first, series.String(), good, good+bad))
	printed, err := exec.CommandContext(t.Context(), promtool, "test", "rules", file).CombinedOutput()
	require.Error(t, err, "%s", printed)
	times := map[string]string{}
	for _, found := range regexp.MustCompile(`\{gen_ai_request_model="([^"]+)"\} ([0-9.E+-]+)`).FindAllStringSubmatch(string(printed), -1) {
		minutes, err := strconv.ParseFloat(found[2], 64)
		require.NoError(t, err)
		times[found[1]] = fmt.Sprintf("%d min", int(minutes))
		if minutes >= 60 {
			times[found[1]] = fmt.Sprintf("%d h %d min", int(minutes)/60, int(minutes)%60)
		}
	}
	require.NotEmpty(t, times, "%s", printed)
	return times
}
