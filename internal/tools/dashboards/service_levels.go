// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
)

var serviceLevels = board{
	file: "slo", title: "SLOs",
	about: "Attainment, burn rates and error budgets of the SLOs that token_latency judges. Burn rates and budgets need objectives in token_sli.",
	variables: slices.Concat(filters, []variable{
		anyOf("slo", "SLO", "SLOs of token_latency, and all: every SLO that applies", "label_values("+verdicts+", slo)", allValues),
		splitBy(byModel),
	}),
	rows: []row{
		{"Now", sloTiles()},
		{"SLOs", []panel{sloTable()}},
		{"Attainment and goodput", attainmentPanels()},
		{"Error budget", budgetPanels()},
		{"Bad requests", badPanels()},
		{"Alerts", []panel{alertTable()}},
	},
}

var (
	judged = everyRequest.where(`slo=~"$slo"`).by("slo")
	// objectives has one value per SLO, as the rules do: the strictest.
	objectives   = `max by (slo) (` + objective + `{slo=~"$slo"})`
	burnWindows  = []string{"5m", "1h", "6h", "3d"}
	burnRateText = "Burn rate: share of bad requests by the share that the objective allows. 1 spends exactly the budget."
)

const sharesAndRates = "definitions.md#shares-and-rates"

// burn is computed from counters, so that it is right for several Collectors together.
func (s selection) burn(window string) string {
	s = s.over(window)
	return fmt.Sprintf("(1 - %s)\n/ on (slo) group_left ()\n(1 - %s)", s.attained(), objectives)
}

func (s selection) left() string {
	return "min by (" + strings.Join(s.labels, ", ") + ") (" + s.series(budgetLeft) + ")"
}

func sloTiles() []panel {
	good := []dashboard.Threshold{lowest("red"), step(0.9, "orange"), step(0.95, "green")}
	tiles := []panel{
		{
			title: "Attainment", about: "Share of judged requests that are good, over the selected time range.",
			docs: sharesAndRates, unit: ratio, kind: tile("no SLO", good...),
			targets: []target{{expression: judged.over(perRange).attained(), legend: "{{slo}}", instant: true}},
		},
		{
			title: "Error budget left", docs: "runbook.md#tokenslobudgetexhausted", unit: ratio,
			about:   "Share of the budget that is left in the objective's window, on the Collector with the least. Negative: the objective is missed.",
			kind:    tile("no objective", lowest("red"), step(0, "orange"), step(0.25, "green")),
			targets: []target{{expression: judged.left(), legend: "{{slo}}"}},
		},
		{
			title: "Burn rate, 1 hour", docs: "runbook.md#tokenslofastburn", unit: number, about: burnRateText,
			kind:    tile("no objective", lowest("green"), step(1, "orange"), step(14.4, "red")),
			targets: []target{{expression: judged.burn("1h"), legend: "{{slo}}"}},
		},
		{
			title: "Goodput", about: "Requests per second that are good for every SLO that applies to them, and did not fail.",
			docs: sharesAndRates, unit: requestsPerSecond, kind: tile("no SLO"),
			targets: []target{{expression: everyRequest.where(`slo="all"`, `verdict="good"`).sum(verdicts), legend: "goodput"}},
		},
	}
	for i := range tiles {
		tiles[i].width, tiles[i].height = 6, 5
	}
	return tiles
}

func sloTable() panel {
	s := judged.by("gen_ai_request_model")
	kind, targets := rows(
		column{"Burn rate, 1 h", number, s.burn("1h")},
		column{"Burn rate, 5 min", number, s.burn("5m")},
		column{"Budget left", ratio, s.left()},
		column{"Attainment", ratio, s.over(perRange).attained()},
		column{"Judged/s", requestsPerSecond, s.where(`verdict=~"good|bad"`).over(perRange).sum(verdicts)},
		column{"Judged share", ratio, share(s.where(`verdict=~"good|bad"`).over(perRange), s.over(perRange), verdicts)},
	)
	return panel{
		title: "SLOs by model", about: "The model with the highest burn rate first. Attainment and shares cover the selected time range.",
		docs: "queries.md#which-model", unit: number, width: 24, height: 8, kind: kind, targets: targets,
	}
}

func attainmentPanels() []panel {
	return []panel{
		{
			title: "Attainment over time", about: "Share of judged requests that are good, beside the objective (dashed).",
			docs: sharesAndRates, unit: ratio, width: 12, height: 9,
			kind: lines().Max(1).OverrideByQuery("B", dashed),
			targets: []target{
				{expression: judged.attained(), legend: "{{slo}}"},
				{expression: objectives, legend: "{{slo}}: objective"},
			},
		},
		{
			title: "Attainment by ${by:text}", about: "Share of judged requests that are good, for each value of the chosen label.",
			docs: "queries.md#which-engine", unit: ratio, width: 12, height: 9, kind: lines().Max(1),
			targets: []target{{expression: judged.by("$by").attained(), legend: "{{slo}}: {{$by}}"}},
		},
		{
			title: "Goodput over time", about: "Requests per second that are good for every SLO that applies to them, beside all finished requests.",
			docs: sharesAndRates, unit: requestsPerSecond, width: 12, height: 9, kind: lines(),
			targets: []target{
				{expression: everyRequest.where(`slo="all"`, `verdict="good"`).sum(verdicts), legend: "good"},
				{expression: everyRequest.sum(requests), legend: "all"},
			},
		},
		{
			title: "Judged share", docs: "queries.md#which-requests-cannot-be-judged", unit: ratio, width: 12, height: 9, kind: lines().Max(1),
			about:   "Share of requests that an SLO can judge. When it falls, burn rates are blind to the rest: see TokenCoverageLost.",
			targets: []target{{expression: share(judged.where(`verdict=~"good|bad"`), judged, verdicts), legend: "{{slo}}"}},
		},
	}
}

func budgetPanels() []panel {
	var burns []target
	for _, window := range burnWindows {
		burns = append(burns, target{expression: judged.burn(window), legend: "{{slo}}: " + window})
	}
	return []panel{
		{
			title: "Burn rates by window", about: burnRateText + " The alerts compare 5m with 1h, and 6h with 3d. Lines: 1, 6 and 14.4.",
			docs: "definitions.md#burn-rate-alerts", unit: number, width: 12, height: 9, targets: burns,
			kind: lines().Thresholds(thresholds(lowest("transparent"), step(1, "yellow"), step(6, "orange"), step(14.4, "red"))).
				ThresholdsStyle(common.NewGraphThresholdsStyleConfigBuilder().Mode(common.GraphThresholdsStyleModeLine)),
		},
		{
			title: "Burn rate, 1 hour, by ${by:text}", about: burnRateText, docs: "runbook.md#tokenslofastburn", unit: number, width: 12, height: 9, kind: lines(),
			targets: []target{{expression: judged.by("$by").burn("1h"), legend: "{{slo}}: {{$by}}"}},
		},
		{
			title: "Error budget left over time", docs: "runbook.md#tokenslobudgetexhausted", unit: ratio, width: 24, height: 9,
			about:   "Share of the budget that is left in the objective's window, on the Collector with the least. Negative: the objective is missed.",
			kind:    lines().Min(-1).Max(1),
			targets: []target{{expression: judged.by("$by").left(), legend: "{{slo}}: {{$by}}"}},
		},
	}
}

func badPanels() []panel {
	bad := judged.where(`verdict="bad"`)
	return []panel{
		{
			title: "Bad requests by SLO", about: "Requests per second that missed an SLO.", docs: "definitions.md#verdict-on-one-request",
			unit: requestsPerSecond, width: 12, height: 9, kind: lines(),
			targets: []target{{expression: bad.sum(verdicts), legend: "{{slo}}"}},
		},
		{
			title: "Bad requests by ${by:text}", about: "Requests per second that missed an SLO, for each value of the chosen label. If all values suffer alike, the cause is behind them.",
			docs: "runbook.md#from-page-to-trace", unit: requestsPerSecond, width: 12, height: 9, kind: lines(),
			targets: []target{{expression: bad.by("$by").sum(verdicts), legend: "{{slo}}: {{$by}}"}},
		},
	}
}

func alertTable() panel {
	kind, _ := rows(column{title: "Value", unit: number})
	return panel{
		title: "Pending and firing alerts", docs: "runbook.md", unit: number, width: 24, height: 7, kind: kind.NoValue("no alert"),
		about:   "Alerts of examples/prometheus/rules.yaml, at the end of the time range. The runbook has an entry for each.",
		targets: []target{{expression: `ALERTS{alertname=~"Token.*"}`, instant: true, format: prometheus.PromQueryFormatTable}},
	}
}
