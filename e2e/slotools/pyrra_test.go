// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package slotools

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// pyrraObject has the fields of a ServiceLevelObjective with a ratio.
type pyrraObject struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string
	Metadata   struct{ Name string }
	Spec       struct {
		Description, Target, Window string
		Indicator                   struct {
			Ratio struct {
				Errors, Total struct{ Metric string }
				Grouping      []string
			}
		}
	}
}

func pyrraObjects(t *testing.T, file string) (all []pyrraObject) {
	t.Helper()
	decoder := yaml.NewDecoder(bytes.NewReader(read(t, file)))
	decoder.KnownFields(true)
	for {
		var one pyrraObject
		if err := decoder.Decode(&one); err != nil {
			return all
		}
		require.Equal(t, "pyrra.dev/v1alpha1 ServiceLevelObjective", one.APIVersion+" "+one.Kind)
		all = append(all, one)
	}
}

// pyrraRules stands in for Pyrra 0.9, whose module cannot be had: the rules of burn rates and their fastest alert, as far as they
// depend on labels. Rules have the label slo with the name of the object, unless the selector has an equality matcher of that
// label: then they have its value. Alerts select by the equality matchers, and by the name of the object.
func pyrraRules(t *testing.T, objects []pyrraObject) string {
	t.Helper()
	var rules strings.Builder
	fmt.Fprintln(&rules, "groups:")
	for _, one := range objects {
		ratio := one.Spec.Indicator.Ratio
		total, ok := parse(t, ratio.Total.Metric).(*parser.VectorSelector)
		require.True(t, ok)
		ruleLabels := map[string]string{"slo": one.Metadata.Name}
		selectors := []string{fmt.Sprintf("slo=%q", one.Metadata.Name)}
		for _, m := range total.LabelMatchers {
			if m.Type == labels.MatchEqual && m.Name != model.MetricNameLabel {
				ruleLabels[m.Name] = m.Value
				selectors = append(selectors, m.String())
			}
		}
		record := strings.TrimSuffix(total.Name, "_total") + ":burnrate"
		selector := "{" + strings.Join(selectors, ", ") + "}"
		fmt.Fprintf(&rules, "  - name: %s\n    rules:\n", one.Metadata.Name)
		for _, window := range []string{"5m", "1h"} {
			by := " by (" + strings.Join(ratio.Grouping, ", ") + ") "
			expr := "sum" + by + "(rate(" + ratio.Errors.Metric + "[" + window + "])) / sum" + by + "(rate(" + ratio.Total.Metric + "[" + window + "]))"
			fmt.Fprintf(&rules, "      - {record: %q, expr: %q, labels: {slo: %q}}\n", record+window, expr, ruleLabels["slo"])
		}
		fmt.Fprintf(&rules, "      - {alert: ErrorBudgetBurn, expr: %q, labels: {slo: %q}}\n",
			fmt.Sprintf("%s5m%s > (14 * (1-0.99)) and %[1]s1h%[2]s > (14 * (1-0.99))", record, selector), one.Metadata.Name)
	}
	return write(t, "rules.yaml", rules.String())
}

func TestPyrra_SelectorsSelectTheirSLO(t *testing.T) {
	objects := pyrraObjects(t, slos(t, "pyrra", "720h", valid, strange, long))
	for i, slo := range []string{valid, strange, long} {
		require.Equal(t, "99", objects[i].Spec.Target)
		ratio := objects[i].Spec.Indicator.Ratio
		requireSelects(t, parse(t, ratio.Errors.Metric), slo, "bad")
		requireSelects(t, parse(t, ratio.Total.Metric), slo, "good", "bad")
	}
}

func TestPyrra_RulesAlertOnABreachAndOnNothingElse(t *testing.T) {
	objects := pyrraObjects(t, slos(t, "pyrra", "720h", valid, strange, long))
	require.Len(t, objects, 3)
	names := map[string]string{}
	for i, slo := range []string{valid, strange, long} {
		names[slo] = objects[i].Metadata.Name
	}
	requireAlerts(t, pyrraRules(t, objects), "slo", names)
}
