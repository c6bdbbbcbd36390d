// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

var serviceLevels = board{
	file: "slo", title: "SLOs",
	about: "Attainment, burn rates and error budgets of the SLOs that token_latency judges. Burn rates and budgets need objectives in token_sli.",
	variables: slices.Concat(filters, []variable{
		anyOf("slo", "SLO", "SLOs of token_latency, and all: every SLO that applies", "label_values("+verdicts+", slo)", allValues),
		splitBy(byModel),
	}),
	rows: []row{
		{"Now", 6, 5, sloTiles()},
		{"SLOs", 24, 8, []panel{sloTable()}},
		{"Attainment and goodput", 12, 9, attainmentPanels()},
		{"Error budget", 12, 9, budgetPanels()},
		{"Bad requests", 12, 9, badPanels()},
		{"Alerts", 24, 7, []panel{alertTable()}},
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
		show(tile("no SLO", good...), "Attainment", ratio, sharesAndRates,
			"Share of judged requests that are good, over the selected time range.",
			now(judged.over(perRange).attained(), "{{slo}}")),
		show(tile("no objective", lowest("red"), step(0, "orange"), step(0.25, "green")), "Error budget left", ratio, "runbook.md#tokenslobudgetexhausted",
			"Share of the budget that is left in the objective's window, on the Collector with the least. Negative: the objective is missed.",
			line(judged.left(), "{{slo}}")),
		show(tile("no objective", lowest("green"), step(1, "orange"), step(14.4, "red")), "Burn rate, 1 hour", number, "runbook.md#tokenslofastburn",
			burnRateText,
			line(judged.burn("1h"), "{{slo}}")),
		show(tile("no SLO"), "Goodput", requestsPerSecond, sharesAndRates,
			"Requests per second that are good for every SLO that applies to them, and did not fail.",
			line(everyRequest.where(`slo="all"`, `verdict="good"`).sum(verdicts), "goodput")),
	}
	return tiles
}

func sloTable() panel {
	s := judged.by("gen_ai_request_model")
	return rowsOf("SLOs by model", number, "queries.md#which-model",
		"The model with the highest burn rate first. Attainment and shares cover the selected time range.",
		column{"Burn rate, 1 h", number, s.burn("1h")},
		column{"Burn rate, 5 min", number, s.burn("5m")},
		column{"Budget left", ratio, s.left()},
		column{"Attainment", ratio, s.over(perRange).attained()},
		column{"Judged/s", requestsPerSecond, s.where(`verdict=~"good|bad"`).over(perRange).sum(verdicts)},
		column{"Judged share", ratio, share(s.where(`verdict=~"good|bad"`).over(perRange), s.over(perRange), verdicts)})
}

func attainmentPanels() []panel {
	return []panel{
		show(lines().Max(1).OverrideByQuery("B", dashed), "Attainment over time", ratio, sharesAndRates,
			"Share of judged requests that are good, beside the objective (dashed).",
			line(judged.attained(), "{{slo}}"), line(objectives, "{{slo}}: objective")),
		show(lines().Max(1), "Attainment by ${by:text}", ratio, "queries.md#which-engine",
			"Share of judged requests that are good, for each value of the chosen label.",
			line(judged.by("$by").attained(), "{{slo}}: {{$by}}")),
		show(lines(), "Goodput over time", requestsPerSecond, sharesAndRates,
			"Requests per second that are good for every SLO that applies to them, beside all finished requests.",
			line(everyRequest.where(`slo="all"`, `verdict="good"`).sum(verdicts), "good"), line(everyRequest.sum(requests), "all")),
		show(lines().Max(1), "Judged share", ratio, "queries.md#which-requests-cannot-be-judged",
			"Share of requests that an SLO can judge. When it falls, burn rates are blind to the rest: see TokenCoverageLost.",
			line(share(judged.where(`verdict=~"good|bad"`), judged, verdicts), "{{slo}}")),
	}
}

func budgetPanels() []panel {
	var burns []target
	for _, window := range burnWindows {
		burns = append(burns, target{expression: judged.burn(window), legend: "{{slo}}: " + window})
	}
	limits := lines().Thresholds(thresholds(lowest("transparent"), step(1, "yellow"), step(6, "orange"), step(14.4, "red"))).
		ThresholdsStyle(common.NewGraphThresholdsStyleConfigBuilder().Mode(common.GraphThresholdsStyleModeLine))
	return []panel{
		show(limits, "Burn rates by window", number, "definitions.md#burn-rate-alerts",
			burnRateText+" The alerts compare 5m with 1h, and 6h with 3d. Lines: 1, 6 and 14.4.",
			burns...),
		show(lines(), "Burn rate, 1 hour, by ${by:text}", number, "runbook.md#tokenslofastburn",
			burnRateText,
			line(judged.by("$by").burn("1h"), "{{slo}}: {{$by}}")),
		show(lines().Min(-1).Max(1), "Error budget left over time", ratio, "runbook.md#tokenslobudgetexhausted",
			"Share of the budget that is left in the objective's window, on the Collector with the least. Negative: the objective is missed.",
			line(judged.by("$by").left(), "{{slo}}: {{$by}}")).sized(24, 9),
	}
}

func badPanels() []panel {
	bad := judged.where(`verdict="bad"`)
	return []panel{
		show(lines(), "Bad requests by SLO", requestsPerSecond, "definitions.md#verdict-on-one-request",
			"Requests per second that missed an SLO.",
			line(bad.sum(verdicts), "{{slo}}")),
		show(lines(), "Bad requests by ${by:text}", requestsPerSecond, "runbook.md#from-page-to-trace",
			"Requests per second that missed an SLO, for each value of the chosen label. If all values suffer alike, the cause is behind them.",
			line(bad.by("$by").sum(verdicts), "{{slo}}: {{$by}}")),
	}
}

func alertTable() panel {
	kind, _ := rows(column{title: "Value", unit: number})
	return show(kind.NoValue("no alert"), "Pending and firing alerts", number, "runbook.md",
		"Alerts of examples/prometheus/rules.yaml, at the end of the time range. The runbook has an entry for each.",
		intoTable(`ALERTS{alertname=~"Token.*"}`))
}
