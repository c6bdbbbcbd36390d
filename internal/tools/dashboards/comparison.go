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
		{"Change from $baseline to $candidate", changeTiles()},
		{"Percentiles over the time range", percentileTables()},
		{"Over time", overlays()},
		{"Is the comparison fair", fairnessPanels()},
		{"Distribution: $baseline left, $candidate right", pairedHeatmaps()},
	},
}

// side adds the chosen value of the chosen label: $baseline or $candidate.
func side(variable string, s selection) selection { return s.where(`$by="$` + variable + `"`) }

func changeTiles() (tiles []panel) {
	change := func(of func(side string) string) string {
		return fmt.Sprintf("(%s)\n/ (%s)\n- 1", of("candidate"), of("baseline"))
	}
	add := func(title, about, docs string, of func(side string) string) {
		tiles = append(tiles, panel{
			title: title, about: about, docs: docs, unit: ratio, width: 4, height: 5,
			kind:    tile("no requests", lowest("green"), step(0.02, "orange"), step(0.1, "red")),
			targets: []target{{expression: change(of), legend: title, instant: true}},
		})
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

func percentileTables() (panels []panel) {
	for _, l := range latencies {
		of := func(variable string) string {
			var all []string
			for _, q := range [][2]string{{"p50", "0.5"}, {"p75", "0.75"}, {"p90", "0.9"}, {"p95", "0.95"}, {"p99", "0.99"}} {
				all = append(all, fmt.Sprintf("label_replace(\n%s,\n\"percentile\", %q, \"\", \"\")", side(variable, ofOutcome).over(perRange).quantile(q[1], l.histogram), q[0]))
			}
			return strings.Join(all, "\nor\n")
		}
		kind, targets := rows(column{"Baseline", seconds, of("baseline")}, column{"Candidate", seconds, of("candidate")})
		kind.SortBy([]cog.Builder[common.TableSortByFieldState]{common.NewTableSortByFieldStateBuilder().DisplayName("Percentile")})
		panels = append(panels, panel{
			title: l.name + ", percentiles", about: l.about, docs: quantiles, unit: seconds, width: 6, height: 8, kind: kind, targets: targets,
		})
	}
	return panels
}

func overlays() (panels []panel) {
	for _, l := range latencies {
		panels = append(panels, panel{
			title: l.name + ", both", about: l.about + " Median and chosen percentile of both.", docs: numbersOfOneRequest,
			unit: seconds, width: 12, height: 9, kind: lines(),
			targets: []target{
				{expression: side("baseline", ofOutcome).quantile("0.5", l.histogram), legend: "$baseline p50"},
				{expression: side("candidate", ofOutcome).quantile("0.5", l.histogram), legend: "$candidate p50"},
				{expression: side("baseline", ofOutcome).quantile("$percentile", l.histogram), legend: "$baseline ${percentile:text}"},
				{expression: side("candidate", ofOutcome).quantile("$percentile", l.histogram), legend: "$candidate ${percentile:text}"},
			},
		})
	}
	return panels
}

func fairnessPanels() []panel {
	both := func(of func(s selection) string) []target {
		return []target{
			{expression: of(side("baseline", everyRequest)), legend: "$baseline"},
			{expression: of(side("candidate", everyRequest)), legend: "$candidate"},
		}
	}
	panels := []panel{
		{
			title: "Requests in flight, both", about: "Mean number, by Little's law. More requests in flight make each of them slower.",
			docs: inFlight, unit: number, targets: both(func(s selection) string { return s.total(duration) }),
		},
		{
			title: "Requests per second, both", about: "Finished requests per second, with any outcome.", docs: "metrics.md#counters",
			unit: requestsPerSecond, targets: both(func(s selection) string { return s.sum(requests) }),
		},
		{
			title: "Prompt length, both", about: "Mean input tokens per request. Longer prompts take longer to prefill.", docs: "metrics.md#counters",
			unit: tokenCount, targets: both(func(s selection) string { return s.perRequest("input") }),
		},
		{
			title: "Output length, both", about: "Mean output tokens per request. Longer outputs make requests longer.", docs: "metrics.md#counters",
			unit: tokenCount, targets: both(func(s selection) string { return s.perRequest("output") }),
		},
		{
			title: "Failed requests, both", about: "Share of requests with the outcome error or incomplete. Failed requests lack latencies.",
			docs: "definitions.md#outcomes", unit: ratio, targets: both(selection.failed),
		},
		{
			title: "Goodput share, both", about: "Share of judged requests that are good for every SLO that applies to them.",
			docs: sharesAndRates, unit: ratio, targets: both(func(s selection) string { return s.where(`slo="all"`).attained() }),
		},
	}
	for i := range panels {
		panels[i].width, panels[i].height, panels[i].kind = 4, 8, lines()
	}
	for _, variable := range []string{"baseline", "candidate"} {
		panels = append(panels, panel{
			title: "Mean time by phase, $" + variable, about: "Seconds that a request spent in each phase, on average.",
			docs: "queries.md#queue-prefill-decode-or-network", unit: seconds, width: 12, height: 8, kind: stacked(),
			targets: []target{{expression: side(variable, ofOutcome).by("phase").mean(phase), legend: "{{phase}}"}},
		})
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
