// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package sloexport

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

type slothSpec struct {
	Service string     `yaml:"service"`
	SLOs    []slothSLO `yaml:"slos"`
}

type slothSLO struct {
	Name        string        `yaml:"name"`
	Description string        `yaml:"description"`
	Objective   float64       `yaml:"objective"` // percent
	SLI         slothSLI      `yaml:"sli"`
	Alerting    slothAlerting `yaml:"alerting"`
}

type slothSLI struct {
	Events slothEvents `yaml:"events"`
}

type slothEvents struct {
	ErrorQuery string `yaml:"errorQuery"`
	TotalQuery string `yaml:"totalQuery"`
}

type slothAlerting struct {
	Name        string     `yaml:"name"`
	PageAlert   slothAlert `yaml:"pageAlert"`
	TicketAlert slothAlert `yaml:"ticketAlert"`
}

type slothAlert struct {
	Labels map[string]string `yaml:"labels"`
}

// service groups the SLOs in tools that need a name for that.
const service = "tokenpulse"

// slothPeriod is that of Sloth without options.
const slothPeriod = 30 * 24 * time.Hour

// writeSloth writes a PrometheusServiceLevel for each window: Sloth's period is an option that holds for a whole file.
func writeSloth(e *Export, budgets []budget, c counter) error {
	objectNames := objectNames(e, budgets)
	var windows []time.Duration
	slos := map[time.Duration][]slothSLO{}
	for i, b := range budgets {
		if !slices.Contains(windows, b.Window) {
			windows = append(windows, b.Window)
		}
		slos[b.Window] = append(slos[b.Window], slothSLO{
			Name:        objectNames[i],
			Description: b.description,
			Objective:   percent(b.Objective.Objective),
			SLI:         slothSLI{slothEvents{c.slothQuery(b.SLO, bad), c.slothQuery(b.SLO, eligible)}},
			Alerting: slothAlerting{
				Name:        "TokenSLOBurn",
				PageAlert:   slothAlert{map[string]string{"severity": "page"}},
				TicketAlert: slothAlert{map[string]string{"severity": "ticket"}},
			},
		})
	}
	slices.Sort(windows)
	var objects []object
	for _, window := range windows {
		name := service + "-" + promDuration(window)
		objects = append(objects, object{
			APIVersion: "sloth.slok.dev/v1",
			Kind:       "PrometheusServiceLevel",
			Metadata:   metadata{Name: name},
			Spec:       slothSpec{service, slos[window]},
		})
		if window != slothPeriod {
			e.notef("Sloth reads no window from a file: give %s to Sloth by itself, with --default-slo-period=%s and, for periods other than 28d and 30d, AlertWindows by --slo-period-windows-path",
				name, promDuration(window))
		}
	}
	noteUnreachable(e, budgets, "Sloth", 14.4)
	return e.writeObjects(objects)
}

// slothQuery returns a query that Sloth fills in as a template of Go.
func (c counter) slothQuery(slo, verdict string) string {
	selector := strings.ReplaceAll(c.of(slo, verdict), "{{", `{{"{{"}}`)
	return fmt.Sprintf("sum by (%s) (rate(%s[{{.window}}]))", strings.Join(c.grouping, ", "), selector)
}
