// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
)

// ratio is the CPU time of the path than, divided by that of the path kind, with the same load.
type ratio struct{ load, kind, than string }

func (r ratio) String() string { return r.load + ": " + r.than + " / " + r.kind }

// ratiosOf returns the ratios between the paths of tokenpulse and others of their group.
func ratiosOf(group []*path) (ratios []ratio) {
	for _, p := range group {
		var others []string
		switch p.kind {
		case wire:
			others = []string{nop, spanmetrics, floor}
		case wireSpans, everySpan, foreign:
			others = []string{nop, spanmetrics}
		case foreignBreached:
			others = []string{nop}
		case wireSLOs, wireSeries, wireNDJSON:
			others = []string{nop}
		case wireGRPC, wireStream:
			others = []string{nopGRPC}
		}
		for _, than := range others {
			if slices.ContainsFunc(group, func(p *path) bool { return p.kind == than }) {
				ratios = append(ratios, ratio{p.load, p.kind, than})
			}
		}
	}
	return ratios
}

// each returns the ratio in each round.
func (r ratio) each(measured results) (values []float64) {
	others := measured.nanos(key{r.load, r.than})
	for round, nanos := range measured.nanos(key{r.load, r.kind}) {
		values = append(values, others[round]/nanos)
	}
	return values
}

// tolerated is the part of a ratio that must remain. Machines differ, and noisy ones
// differ from themselves.
const tolerated = 2.0 / 3

// attempts is how often a ratio is measured before it counts as too low.
const attempts = 4

// checkRatios compares the ratios with those of the last full run. A ratio that is too
// low is measured again, alone, because a noisy machine affects some paths more than others.
func checkRatios(file string, groups [][]*path, measured results, again func(group []*path) results) error {
	before := readRatios(file)
	var failures []error
	for _, group := range groups {
		for _, r := range ratiosOf(group) {
			values := []float64{median(r.each(measured))}
			failures = append(failures, r.check(before, values, tolerated, func() float64 {
				pair := slices.DeleteFunc(slices.Clone(group), func(p *path) bool { return p.kind != r.kind && p.kind != r.than })
				return median(r.each(again(pair)))
			}, fmt.Sprintf("make bench-e2e ARGS='-check -only %q'", r.load), "make suite-bench-peers"))
		}
	}
	return errors.Join(failures...)
}

// check returns an error if less than the tolerated part of the ratio remains. values are those measured so far; it measures again while all are too
// low. again and full are the commands that do so, and that write the ratios before.
func (r ratio) check(before map[string]float64, values []float64, tolerated float64, measure func() float64, again, full string) error {
	expected, ok := before[r.String()]
	if !ok {
		return fmt.Errorf("no ratio %q was recorded; write it with a full run: %s", r, full)
	}
	for len(values) == 0 || len(values) < attempts && slices.Max(values) < expected*tolerated {
		values = append(values, measure())
	}
	if slices.Max(values) >= expected*tolerated {
		return nil
	}
	var now []string
	for _, value := range values {
		now = append(now, number(value))
	}
	return fmt.Errorf("%s\n  now %s (measured %d times), before %s, limit %s: %.0f%% of before\n"+
		"  run again: %s\n  if the change is intended, a full run writes new values: %s",
		r, strings.Join(now, ", "), len(values), number(expected), number(expected*tolerated), 100*tolerated, again, full)
}

// medians returns the median of each ratio.
func (measured results) medians(groups [][]*path) map[string]float64 {
	ratios := map[string]float64{}
	for _, group := range groups {
		for _, r := range ratiosOf(group) {
			ratios[r.String()] = median(r.each(measured))
		}
	}
	return ratios
}

func readRatios(file string) (ratios map[string]float64) {
	try(json.Unmarshal(must(os.ReadFile(file)), &ratios))
	return ratios
}

// writeRatios writes ratios for later checks. Those that another run measures stay.
func writeRatios(file string, ratios map[string]float64) {
	all := readRatios(file)
	for name, value := range ratios {
		all[name] = math.Round(100*value) / 100
	}
	try(os.WriteFile(file, append(must(json.MarshalIndent(all, "", "  ")), '\n'), 0o600))
}
