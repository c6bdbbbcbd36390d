// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package sloexport

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/tokenpulse/tokenpulse/internal/slo"
)

type ruleFile struct {
	Groups []struct {
		Name  string
		Rules []rule
	}
}

type rule struct {
	Record, Alert, Expr string
	Labels              map[string]string
	Annotations         map[string]string
	KeepFiringFor       string `yaml:"keep_firing_for"`
	For                 string
}

func rulesOf(t *testing.T, text []byte) (all []rule) {
	t.Helper()
	var file ruleFile
	require.NoError(t, yaml.Unmarshal(text, &file))
	for _, group := range file.Groups {
		all = append(all, group.Rules...)
	}
	return all
}

func shipped(t *testing.T) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "examples/prometheus/rules.yaml"))
	require.NoError(t, err)
	return text
}

func recorded(all []rule, record string) (exprs map[string]string) {
	exprs = map[string]string{}
	for _, one := range all {
		if one.Record == record {
			exprs[one.Labels["slo"]+" "+one.Labels["alert"]] = one.Expr
		}
	}
	return exprs
}

// The events of the Collector and the rules alert at the same burn rates.
func TestRules_HaveTheFactorsOfTheCollector(t *testing.T) {
	want := map[string]string{}
	for i := range slo.Alerts {
		if alert := &slo.Alerts[i]; alert.Page && alert.Factor > 0 {
			want[" "+alert.Name] = fmt.Sprintf("clamp_max(0.9 / tokenpulse_slo:error_budget, %v)", alert.Factor)
		}
	}
	require.Len(t, want, 2)
	require.Equal(t, want, recorded(rulesOf(t, shipped(t)), "tokenpulse_slo:burn_rate_limit"))
}

func TestPrometheus_ChangesOnlyRulesThatDependOnObjectives(t *testing.T) {
	others := func(all []rule) (rest []rule) {
		for _, one := range all {
			switch one.Record {
			case "tokenpulse_slo:error_budget", "tokenpulse_slo:burn_rate_limit", "tokenpulse_slo:budget_spent", "tokenpulse_slo:budget_spent_of_history":
			default:
				rest = append(rest, one)
			}
		}
		return rest
	}
	e := requireExport(t, "prometheus", "objectives: [{slo: a, objective: 0.99}, {slo: all, objective: 0.5}]")
	require.Equal(t, others(rulesOf(t, shipped(t))), others(rulesOf(t, e.Text)))
	require.NotEmpty(t, others(rulesOf(t, e.Text)))
}

func TestPrometheus_WritesObjectivesAndScaledLimits(t *testing.T) {
	e := requireExport(t, "prometheus", `
slos: [{name: "a\"b{{c}}", indicator: outcome, match: {k: "line\nbreak"}}]
objectives: [{slo: "a\"b{{c}}", objective: 0.99, window: 168h}, {slo: month, objective: 0.999}, {slo: day, objective: 0.9, window: 24h}, {slo: all, objective: 0.5, window: 2160h}]
`)
	all := rulesOf(t, e.Text)
	require.Equal(t, map[string]string{
		`a"b{{c}} `: "vector(1 - 0.99)", "month ": "vector(1 - 0.999)", "day ": "vector(1 - 0.9)", "all ": "vector(1 - 0.5)",
	}, recorded(all, "tokenpulse_slo:error_budget"))

	// 14.4 and 6 are for 30 days: 7/30, 1, at least a burn rate of 1, and 3 times as much.
	limit := func(name, factor string) string {
		return fmt.Sprintf("clamp_max(0.9 / tokenpulse_slo:error_budget{slo=%q}, %s)", name, factor)
	}
	require.Equal(t, map[string]string{
		`a"b{{c}} fast_burn`: limit(`a"b{{c}}`, "3.36"), `a"b{{c}} slow_burn`: limit(`a"b{{c}}`, "1.4"),
		"month fast_burn": limit("month", "14.4"), "month slow_burn": limit("month", "6"),
		"day fast_burn": limit("day", "1"), "day slow_burn": limit("day", "1"),
		"all fast_burn": limit("all", "43.2"), "all slow_burn": limit("all", "18"),
	}, recorded(all, "tokenpulse_slo:burn_rate_limit"))
	require.Contains(t, recorded(all, "tokenpulse_slo:budget_spent_of_history")["all "], `{slo="all"}[90d:1h]`)
}
