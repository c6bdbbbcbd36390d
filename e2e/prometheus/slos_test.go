// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/tokenpulse/tokenpulse/e2e/internal/collector"
	"github.com/tokenpulse/tokenpulse/internal/testenv"
)

// writeRules lets `tokenpulse slos` write the rules for objectives, and returns the file.
func writeRules(t *testing.T, objectives string) string {
	t.Helper()
	folder := t.TempDir()
	input := collector.WriteFile(t, folder, "slos.yaml", objectives)
	rules := folder + "/rules.yaml"
	collector.Run(t, collector.Built(t, "tokenpulse"), "slos", input, "--to", "prometheus", "-o", rules)
	return rules
}

// ruleTests is a file of promtool.
type ruleTests struct {
	RuleFiles          []string   `yaml:"rule_files"`
	EvaluationInterval string     `yaml:"evaluation_interval"`
	GroupEvalOrder     []string   `yaml:"group_eval_order"`
	Tests              []ruleTest `yaml:"tests"`
}

type ruleTest struct {
	Name        string       `yaml:"name"`
	Interval    string       `yaml:"interval"`
	InputSeries []testSeries `yaml:"input_series"`
	Exprs       []exprTest   `yaml:"promql_expr_test,omitempty"`
	Alerts      []any        `yaml:"alert_rule_test,omitempty"`
}

type testSeries struct {
	Series string `yaml:"series"`
	Values string `yaml:"values"`
}

type exprTest struct {
	Expr    string       `yaml:"expr"`
	Time    string       `yaml:"eval_time"`
	Samples []testSample `yaml:"exp_samples"`
}

type testSample struct {
	Labels string  `yaml:"labels"`
	Value  float64 `yaml:"value"`
}

// shippedRuleTests returns the tests of the shipped rules.
func shippedRuleTests(t *testing.T) (file ruleTests) {
	t.Helper()
	text, err := os.ReadFile(prometheusExample(t, "rules_test.yaml"))
	require.NoError(t, err)
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	require.NoError(t, decoder.Decode(&file))
	return file
}

// run runs one test with rules.
func (f ruleTests) run(t *testing.T, rules string, test ruleTest) {
	t.Helper()
	f.RuleFiles, f.Tests = []string{rules}, []ruleTest{test}
	text, err := yaml.Marshal(f)
	require.NoError(t, err)
	collector.Run(t, testenv.Program(t, "promtool"), "test", "rules", collector.WriteFile(t, t.TempDir(), "test.yaml", string(text)))
}

var objectiveSeries = regexp.MustCompile(`^tokenpulse_slo_objective\{.*slo="([^"]*)"`)

// withoutObjectives removes the gauges of objectives from the series of a test, and returns the strictest of each SLO.
func withoutObjectives(t *testing.T, test *ruleTest) map[string]float64 {
	t.Helper()
	objectives := map[string]float64{}
	test.InputSeries = slices.DeleteFunc(test.InputSeries, func(one testSeries) bool {
		found := objectiveSeries.FindStringSubmatch(one.Series)
		if found == nil {
			return false
		}
		text, _, _ := strings.Cut(one.Values, "x")
		objective, err := strconv.ParseFloat(text, 64)
		require.NoError(t, err)
		objectives[found[1]] = max(objectives[found[1]], objective)
		return true
	})
	return objectives
}

var allAlerts = regexp.MustCompile(`\bALERTS\b\{?`)

// Each test of the shipped rules that has objectives passes with rules that know them, without the gauges. These rules also know
// the spent budget, of which those tests have no gauge.
func TestSLOs_RulesAlertWithoutGaugesAsTheShippedRulesDoWithThem(t *testing.T) {
	t.Parallel()
	file, tried := shippedRuleTests(t), 0
	for _, test := range file.Tests {
		objectives := withoutObjectives(t, &test)
		if len(objectives) == 0 {
			continue
		}
		tried++
		for i := range test.Exprs {
			test.Exprs[i].Expr = allAlerts.ReplaceAllStringFunc(test.Exprs[i].Expr, func(found string) string {
				if strings.HasSuffix(found, "{") {
					return found + `alertname!="TokenSLOBudgetExhausted", `
				}
				return found + `{alertname!="TokenSLOBudgetExhausted"}`
			})
		}
		t.Run(test.Name, func(t *testing.T) {
			t.Parallel()
			var text strings.Builder
			text.WriteString("objectives:\n")
			for _, slo := range slices.Sorted(maps.Keys(objectives)) {
				fmt.Fprintf(&text, "  - {slo: %q, objective: %v}\n", slo, objectives[slo])
			}
			rules := writeRules(t, text.String())
			collector.Run(t, testenv.Program(t, "promtool"), "check", "rules", rules)
			file.run(t, rules, test)
		})
	}
	require.Greater(t, tried, 10)
}

// requests returns the series of an SLO with 60 requests a minute. Of each period with its length in minutes, a share is bad.
func requests(slo string, periods ...[2]float64) []testSeries {
	values := func(share func(bad float64) float64) string {
		var text []string
		count := 0.0
		for _, period := range periods {
			minutes, rate := period[0], 60*share(period[1])
			text = append(text, fmt.Sprintf("%g+%gx%g", count, rate, minutes-1))
			count += rate * minutes
		}
		return strings.Join(text, " ")
	}
	series := func(verdict string, share func(bad float64) float64) testSeries {
		return testSeries{fmt.Sprintf("tokenpulse_slo_requests_total{slo=%q, verdict=%q}", slo, verdict), values(share)}
	}
	return []testSeries{
		series("bad", func(bad float64) float64 { return bad }),
		series("good", func(bad float64) float64 { return 1 - bad }),
	}
}

// firing expects an alert of SLOs at a time.
func firing(alert, at string, slos ...string) exprTest {
	test := exprTest{Expr: fmt.Sprintf("count by (slo) (ALERTS{alertname=%q})", alert), Time: at}
	for _, slo := range slos {
		test.Samples = append(test.Samples, testSample{fmt.Sprintf("{slo=%q}", slo), 1})
	}
	return test
}

// An hour with a burn rate of 14.4 spends 2% of a month's budget, and one of 3.36 that of a week's.
func TestSLOs_RulesAlertAtTheSameShareOfTheBudgetForEachWindow(t *testing.T) {
	t.Parallel()
	rules := writeRules(t, `objectives: [{slo: week, objective: 0.99, window: 168h}, {slo: month, objective: 0.99}, {slo: quarter, objective: 0.99, window: 2160h}]`)
	// Burn rates of 3, 4, 14, 15, 43 and 44, for two hours each.
	var periods [][2]float64
	for _, bad := range []float64{0.03, 0.04, 0.14, 0.15, 0.43, 0.44} {
		periods = append(periods, [2]float64{120, bad})
	}
	const alert = "TokenSLOFastBurn"
	shippedRuleTests(t).run(t, rules, ruleTest{
		Interval:    "1m",
		InputSeries: slices.Concat(requests("week", periods...), requests("month", periods...), requests("quarter", periods...)),
		Exprs: []exprTest{
			firing(alert, "115m"),
			firing(alert, "235m", "week"),
			firing(alert, "355m", "week"),
			firing(alert, "475m", "week", "month"),
			firing(alert, "595m", "week", "month"),
			firing(alert, "715m", "week", "month", "quarter"),
		},
	})
}

// Two days with 0.5% bad requests, then one with 2%: of a budget of 1%, half is spent, then the mean of the window.
func TestSLOs_RulesKnowTheSpentBudgetWithoutGauges(t *testing.T) {
	t.Parallel()
	rules := writeRules(t, `objectives: [{slo: days, objective: 0.99, window: 48h}, {slo: month, objective: 0.99}]`)
	spent := func(at string, days, month float64) exprTest {
		return exprTest{"round(tokenpulse_slo:budget_spent, 0.1)", at, []testSample{{`{slo="days"}`, days}, {`{slo="month"}`, month}}}
	}
	const alert = "TokenSLOBudgetExhausted"
	periods := [][2]float64{{48 * 60, 0.005}, {26 * 60, 0.02}}
	shippedRuleTests(t).run(t, rules, ruleTest{
		Interval:    "1m",
		InputSeries: slices.Concat(requests("days", periods...), requests("month", periods...)),
		Exprs: []exprTest{
			{Expr: "tokenpulse_slo:budget_spent", Time: "23h"}, // a short history
			spent("47h", 0.5, 0.5),
			firing(alert, "47h"),
			spent("73h", 1.3, 1),         // (23 * 0.5 + 25 * 2) / 48 = 1.28, (48 * 0.5 + 25 * 2) / 73 = 1.01
			firing(alert, "65h", "days"), // (31 * 0.5 + 17 * 2) / 48 = 1.03, (48 * 0.5 + 17 * 2) / 65 = 0.89
		},
	})
}
