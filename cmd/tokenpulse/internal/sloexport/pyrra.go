// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package sloexport

import (
	"regexp"
	"strconv"

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
	var objects []object
	for i, name := range objectNames(e, budgets) {
		b := &budgets[i]
		slo := equal(names.LabelSLO, b.SLO)
		if name != b.SLO {
			slo = names.LabelSLO + "=~" + strconv.Quote(regexp.QuoteMeta(b.SLO))
			e.notef("Pyrra alerts on SLO %q, but shows no error budget of it, since the object has another name; rename the SLO to have both", b.SLO)
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
	noteUnreachable(e, budgets, "Pyrra", 14)
	return e.writeObjects(objects)
}

// noteUnreachable names the objectives whose highest burn rate, with all requests bad, is below that of a tool's fastest alert.
func noteUnreachable(e *Export, budgets []budget, tool string, factor float64) {
	for _, b := range budgets {
		if highest := 1 / (1 - b.Objective.Objective); highest < factor {
			e.notef("%s's fastest alert cannot fire for SLO %q: its burn rate is at most %.3g, the alert needs %.3g; rules with --to prometheus lower that", tool, b.SLO, highest, factor)
		}
	}
}
