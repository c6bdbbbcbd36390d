// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

// comparison shows two values of a label beside each other, such as two versions.
var comparison = board{
	file: "compare", title: "baseline and candidate",
	about: "Two values of a label beside each other: versions, models, providers, engines.",
	variables: slices.Concat(filters, []variable{
		outcome, percentile, splitBy(byModel),
		oneOf("baseline", "Baseline", "Value to compare with", "label_values("+requests+", $by)", dashboard.VariableSortAlphabeticalAsc),
		oneOf("candidate", "Candidate", "Value to compare", "label_values("+requests+", $by)", dashboard.VariableSortAlphabeticalDesc),
	}),
	rows: []row{
		{"Change from $baseline to $candidate", 4, 5, changeTiles()},
		{"Percentiles over the time range", 6, 8, each(latencies, percentileTable)},
		{"Over time", 12, 9, each(latencies, overlay)},
		{"Is the comparison fair", 4, 8, fairnessPanels()},
		{"Distribution: $baseline left, $candidate right", 12, 9, pairedHeatmaps()},
	},
}

// side adds the chosen value of the chosen label: $baseline or $candidate.
func side(variable string, s selection) selection { return s.where(`$by="$` + variable + `"`) }

func changeTiles() (tiles []panel) {
	change := func(of func(side string) string) string {
		return fmt.Sprintf("(%s)\n/ (%s)\n- 1", of("candidate"), of("baseline"))
	}
	add := func(title, about, docs string, of func(side string) string) {
		kind := tile("no requests", lowest("green"), step(0.02, "orange"), step(0.1, "red"))
		tiles = append(tiles, show(kind, title, ratio, docs, about, now(change(of), title)))
	}
	for _, l := range latencies {
		add(l.short+", ${percentile:text}", "Candidate by baseline, minus 1, over the selected time range: 10% is a tenth slower. "+l.about, quantiles,
			func(variable string) string {
				return side(variable, ofOutcome).over(perRange).quantile("$percentile", l.histogram)
			})
	}
	for _, kind := range [][2]string{{"Prompt length", "input"}, {"Output length", "output"}} {
		add(kind[0], "Candidate by baseline, minus 1. A large change makes latencies hard to compare.", "metrics.md#counters",
			func(variable string) string { return side(variable, everyRequest).over(perRange).perRequest(kind[1]) })
	}
	return tiles
}

func percentileTable(l latency) panel {
	of := func(variable string) string {
		var all []string
		for _, q := range [][2]string{{"p50", "0.5"}, {"p75", "0.75"}, {"p90", "0.9"}, {"p95", "0.95"}, {"p99", "0.99"}} {
			value := side(variable, ofOutcome).over(perRange).quantile(q[1], l.histogram)
			all = append(all, fmt.Sprintf("label_replace(\n%s,\n\"percentile\", %q, \"\", \"\")", value, q[0]))
		}
		return strings.Join(all, "\nor\n")
	}
	kind, targets := rows(column{"Baseline", seconds, of("baseline")}, column{"Candidate", seconds, of("candidate")})
	kind.SortBy([]cog.Builder[common.TableSortByFieldState]{common.NewTableSortByFieldStateBuilder().DisplayName("Percentile")})
	return show(kind, l.name+", percentiles", seconds, quantiles, l.about, targets...)
}

func overlay(l latency) panel {
	var targets []target
	for _, quantile := range [][2]string{{"0.5", "p50"}, {"$percentile", "${percentile:text}"}} {
		for _, variable := range []string{"baseline", "candidate"} {
			targets = append(targets, line(side(variable, ofOutcome).quantile(quantile[0], l.histogram), "$"+variable+" "+quantile[1]))
		}
	}
	return show(lines(), l.name+", both", seconds, numbersOfOneRequest, l.about+" Median and chosen percentile of both.", targets...)
}

func fairnessPanels() []panel {
	both := func(of func(s selection) string) []target {
		return []target{
			{expression: of(side("baseline", everyRequest)), legend: "$baseline"},
			{expression: of(side("candidate", everyRequest)), legend: "$candidate"},
		}
	}
	panels := []panel{
		show(lines(), "Requests in flight, both", number, inFlight,
			"Mean number, by Little's law. More requests in flight make each of them slower.",
			both(func(s selection) string { return s.total(duration) })...),
		show(lines(), "Requests per second, both", requestsPerSecond, "metrics.md#counters",
			"Finished requests per second, with any outcome.",
			both(func(s selection) string { return s.sum(requests) })...),
		show(lines(), "Prompt length, both", tokenCount, "metrics.md#counters",
			"Mean input tokens per request. Longer prompts take longer to prefill.",
			both(func(s selection) string { return s.perRequest("input") })...),
		show(lines(), "Output length, both", tokenCount, "metrics.md#counters",
			"Mean output tokens per request. Longer outputs make requests longer.",
			both(func(s selection) string { return s.perRequest("output") })...),
		show(lines(), "Failed requests, both", ratio, "definitions.md#outcomes",
			"Share of requests with the outcome error or incomplete. Failed requests lack latencies.",
			both(selection.failed)...),
		show(lines(), "Goodput share, both", ratio, sharesAndRates,
			"Share of judged requests that are good for every SLO that applies to them.",
			both(func(s selection) string { return s.where(`slo="all"`).attained() })...),
	}
	for _, variable := range []string{"baseline", "candidate"} {
		panels = append(panels, show(stacked(), "Mean time by phase, $"+variable, seconds, "queries.md#queue-prefill-decode-or-network",
			"Seconds that a request spent in each phase, on average.",
			line(side(variable, ofOutcome).by("phase").mean(phase), "{{phase}}")).sized(12, 8))
	}
	return panels
}

func pairedHeatmaps() (panels []panel) {
	for _, l := range latencies {
		for _, variable := range []string{"baseline", "candidate"} {
			panels = append(panels, side(variable, ofOutcome).heatmap(l, l.name+", $"+variable))
		}
	}
	return panels
}
