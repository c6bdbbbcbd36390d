// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package sloexport

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/tokenpulse/tokenpulse/internal/names"
)

type pyrraSpec struct {
	Description string         `yaml:"description"`
	Target      string         `yaml:"target"` // percent
	Window      string         `yaml:"window"`
	Indicator   pyrraIndicator `yaml:"indicator"`
}

type pyrraIndicator struct {
	Ratio pyrraRatio `yaml:"ratio"`
}

type pyrraRatio struct {
	Errors   pyrraMetric `yaml:"errors"`
	Total    pyrraMetric `yaml:"total"`
	Grouping []string    `yaml:"grouping"`
}

type pyrraMetric struct {
	Metric string `yaml:"metric"`
}

// writePyrra writes a ServiceLevelObjective for each budget.
//
// Pyrra labels its rules with slo, the name of the object, and our counter has a label slo, too. An equality matcher of
// that label replaces the one of the rules, so that their alerts select nothing if the names differ. A regular
// expression does not.
func writePyrra(e *Export, budgets []budget, c counter) error {
	var (
		objects []object
		renamed []string
	)
	for i, name := range objectNames(e, budgets) {
		b := &budgets[i]
		slo := equal(names.LabelSLO, b.SLO)
		if name != b.SLO {
			slo = names.LabelSLO + "=~" + strconv.Quote(regexp.QuoteMeta(b.SLO))
			renamed = append(renamed, strconv.Quote(b.SLO))
		}
		objects = append(objects, object{
			APIVersion: "pyrra.dev/v1alpha1",
			Kind:       "ServiceLevelObjective",
			Metadata:   metadata{Name: name},
			Spec: pyrraSpec{
				Description: b.description,
				Target:      percentText(b.Objective.Objective),
				Window:      promDuration(b.Window),
				Indicator: pyrraIndicator{pyrraRatio{
					Errors:   pyrraMetric{c.selector(slo, bad)},
					Total:    pyrraMetric{c.selector(slo, eligible)},
					Grouping: c.grouping,
				}},
			},
		})
	}
	if len(renamed) > 0 {
		e.notef("Pyrra alerts on %s, but shows no error budget, since the object has another name; rename the SLO to have both", strings.Join(renamed, ", "))
	}
	noteUnreachable(e, budgets, "Pyrra", 14)
	return e.writeObjects(objects)
}

// noteUnreachable names the objectives whose highest burn rate, with all requests bad, is below that of a tool's fastest alert.
func noteUnreachable(e *Export, budgets []budget, tool string, factor float64) {
	var low []string
	for _, b := range budgets {
		if highest := 1 / (1 - b.Objective.Objective); highest < factor {
			low = append(low, fmt.Sprintf("%q (%.3g)", b.SLO, highest))
		}
	}
	if len(low) > 0 {
		e.notef("%s's fastest alert needs a burn rate of %.3g, above the highest that these objectives allow: %s; rules of --to prometheus alert", tool, factor, strings.Join(low, ", "))
	}
}
