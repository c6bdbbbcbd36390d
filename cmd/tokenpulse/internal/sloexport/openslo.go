// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package sloexport

import (
	"fmt"
	"time"

	"github.com/tokenpulse/tokenpulse/internal/names"
)

type openSLOSpec struct {
	Description     string             `yaml:"description"`
	Service         string             `yaml:"service"`
	Indicator       openSLOIndicator   `yaml:"indicator"`
	TimeWindow      []openSLOWindow    `yaml:"timeWindow"`
	BudgetingMethod string             `yaml:"budgetingMethod"`
	Objectives      []openSLOObjective `yaml:"objectives"`
}

type openSLOIndicator struct {
	Metadata metadata     `yaml:"metadata"`
	Spec     openSLORatio `yaml:"spec"`
}

type openSLORatio struct {
	RatioMetric openSLORatioMetric `yaml:"ratioMetric"`
}

type openSLORatioMetric struct {
	Counter bool          `yaml:"counter"`
	Good    openSLOMetric `yaml:"good"`
	Total   openSLOMetric `yaml:"total"`
}

type openSLOMetric struct {
	MetricSource openSLOSource `yaml:"metricSource"`
}

type openSLOSource struct {
	Type string            `yaml:"type"`
	Spec map[string]string `yaml:"spec"`
}

type openSLOWindow struct {
	Duration  string `yaml:"duration"`
	IsRolling bool   `yaml:"isRolling"`
}

type openSLOObjective struct {
	DisplayName string  `yaml:"displayName"`
	Target      float64 `yaml:"target"`
}

// Limits of texts, in characters.
const (
	maxOpenSLODescription = 1050
	maxOpenSLODisplayName = 63
)

// writeOpenSLO writes an SLO for each budget. OpenSLO knows no grouping: the counts are those of all series.
func writeOpenSLO(e *Export, budgets []budget, c counter) error {
	var objects []object
	for i, name := range objectNames(e, budgets) {
		b := &budgets[i]
		duration, err := openSLODuration(b.Window)
		if err != nil {
			return fmt.Errorf("objective of SLO %q: %w", b.SLO, err)
		}
		objects = append(objects, object{
			APIVersion: "openslo/v1",
			Kind:       "SLO",
			Metadata:   metadata{Name: name, DisplayName: cut(b.SLO, maxOpenSLODisplayName)},
			Spec: openSLOSpec{
				Description: cut(b.description, maxOpenSLODescription),
				Service:     service,
				Indicator: openSLOIndicator{
					Metadata: metadata{Name: name},
					Spec: openSLORatio{openSLORatioMetric{
						Counter: true,
						Good:    c.openSLOMetric(b.SLO, good),
						Total:   c.openSLOMetric(b.SLO, eligible),
					}},
				},
				TimeWindow:      []openSLOWindow{{duration, true}},
				BudgetingMethod: "Occurrences",
				Objectives:      []openSLOObjective{{percentText(b.Objective.Objective) + "% of requests are good", b.Objective.Objective}},
			},
		})
	}
	e.notef("OpenSLO knows no grouping: its objects count the requests of all models and vantages together; select some with a matcher such as %s", equal(names.LabelVantage, "client"))
	return e.writeObjects(objects)
}

func (c counter) openSLOMetric(slo, verdict string) openSLOMetric {
	return openSLOMetric{openSLOSource{"Prometheus", map[string]string{"query": "sum(" + c.of(slo, verdict) + ")"}}}
}

// openSLODuration returns a duration with one unit, the largest that divides it.
func openSLODuration(d time.Duration) (string, error) {
	for _, unit := range [...]struct {
		length time.Duration
		name   string
	}{{24 * time.Hour, "d"}, {time.Hour, "h"}, {time.Minute, "m"}} {
		if d%unit.length == 0 {
			return fmt.Sprintf("%d%s", d/unit.length, unit.name), nil
		}
	}
	return "", fmt.Errorf("`window` is %v; OpenSLO has whole minutes", d)
}

func cut(text string, limit int) string {
	if characters := []rune(text); len(characters) > limit {
		return string(characters[:limit])
	}
	return text
}
