// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Package sloexport writes SLOs and their objectives as Prometheus rules, and as objects of tools that make such rules.
// All of them count requests by verdict, so what is good or bad stays the decision of token_latency.
package sloexport

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/config"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/slo"
)

// Export is what a format makes of SLOs.
type Export struct {
	Text []byte
	// Notes are what the user should know of it, such as SLOs that are left out.
	Notes []string
}

func (e *Export) notef(format string, args ...any) {
	e.Notes = append(e.Notes, fmt.Sprintf(format, args...))
}

// formats are in the order of the documentation.
var formats = []struct {
	name  string
	write func(*Export, []budget, counter) error
}{
	{"prometheus", writePrometheus},
	{"pyrra", writePyrra},
	{"sloth", writeSloth},
	{"openslo", writeOpenSLO},
}

// Formats returns the names of the formats.
func Formats() (all []string) {
	for _, f := range formats {
		all = append(all, f.name)
	}
	return all
}

// To writes the SLOs that have an objective in a format. It returns an error if none has one.
func To(format string, c config.Config) (Export, error) {
	i := slices.Index(Formats(), format)
	if i < 0 {
		return Export{}, fmt.Errorf("unknown format %q; valid formats: %s", format, strings.Join(Formats(), ", "))
	}
	var e Export
	budgets, err := budgetsOf(&e, c)
	if err != nil {
		return Export{}, err
	}
	if !c.SLI.Selection().Has(names.SLORequests) {
		e.notef("`metrics` switches %s off, so there is nothing to alert on; remove that entry", names.SLORequests)
	}
	if err := formats[i].write(&e, budgets, counterOf(c.SLI.Series.Dimensions.Names())); err != nil {
		return Export{}, err
	}
	return e, nil
}

// budget is an objective, and what it judges.
type budget struct {
	slo.Objective
	// description is one sentence without full stop.
	description string
}

// budgetsOf returns the objectives in their order.
func budgetsOf(e *Export, c config.Config) (all []budget, err error) {
	described := map[string]string{names.SLOAll: "every SLO that applies to a request, and its outcome"}
	var without []string
	for i := range c.Latency.SLOs {
		one := &c.Latency.SLOs[i]
		name := names.CleanLabel(one.Name)
		described[name] = describe(one)
		if !slices.ContainsFunc(c.SLI.SLOObjectives(), func(o slo.Objective) bool { return o.SLO == name }) {
			without = append(without, name)
		}
	}
	for _, o := range c.SLI.SLOObjectives() {
		description, ok := described[o.SLO]
		if !ok {
			description = "an SLO of token_latency"
			if len(c.Latency.SLOs) > 0 {
				e.notef("objective of SLO %q, which `slos` does not define: check its name", o.SLO)
			}
		}
		all = append(all, budget{o, description})
	}
	if len(without) > 0 {
		e.notef("without an objective, and so left out: %s; add entries such as {slo: %q, objective: 0.95} to `objectives`", strings.Join(without, ", "), without[0])
	}
	if len(all) == 0 {
		return nil, errors.New("no SLO has an objective; add `objectives` of token_sli to the file, with entries such as {slo: all, objective: 0.95}")
	}
	return all, nil
}
