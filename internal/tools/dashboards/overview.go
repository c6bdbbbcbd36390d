// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package main

import "slices"

var overview = board{
	file: "overview", title: "overview",
	about:     "Latency of LLM requests: now, by model, over time, as heatmaps, by phase, and beside the load.",
	variables: slices.Concat(filters, []variable{outcome, percentile, splitBy(byModel)}),
	rows: []row{
		{"Now", nowTiles()},
		{"Models", []panel{modelTable()}},
		{"Latency", latencyLines()},
		{"Latency by ${by:text}", splitLines()},
		{"Distribution", latencyHeatmaps()},
		{"Where the time goes", phasePanels(ofOutcome)},
		{"Load", loadPanels()},
		{"Traffic", trafficPanels()},
		{"Agents", []panel{timeToAnswer()}},
		{"Measurement", measurementPanels()},
	},
}

// latency describes a histogram of latencies wherever it is shown.
type latency struct {
	histogram, name, short, about string
}

var latencies = []latency{
	{ttft, "Time to first token", "TTFT", "Time from the request's start to its first token, on any channel."},
	{tpot, "Time per output token", "TPOT", "Mean time per output token of a request, after its first token. One value per request."},
	{itl, "Inter-token latency", "ITL", "Time between tokens, one value per token: single slow gaps show up here, not in TPOT."},
	{duration, "Request duration", "Duration", "Time from the request's start to its end."},
}

const (
	numbersOfOneRequest = "definitions.md#numbers-of-one-request"
	quantiles           = "definitions.md#histograms-and-quantiles"
	inFlight            = "queries.md#how-many-requests-are-in-flight"
	coverage            = "definitions.md#missing-latencies"
)

func nowTiles() []panel {
	tiles := []panel{
		{
			title: "Requests per second", about: "Finished requests per second, with any outcome.",
			docs: "metrics.md#counters", unit: requestsPerSecond, kind: tile("no requests"),
			targets: []target{{expression: everyRequest.sum(requests)}},
		},
		{
			title: "Output tokens per second", about: "Output tokens of all requests together, reasoning included.",
			docs: "definitions.md#counters-and-throughput", unit: tokensPerSecond, kind: tile("no requests"),
			targets: []target{{expression: everyRequest.where(`type="output"`).sum(tokens)}},
		},
		{
			title: "Requests in flight", about: "Mean number of requests in flight, by Little's law: the seconds that requests took, per second. Counted when they end.",
			docs: inFlight, unit: number, kind: tile("no requests"),
			targets: []target{{expression: everyRequest.total(duration)}},
		},
		{
			title: "Failed requests", about: "Share of requests with the outcome error or incomplete. Cancelled requests do not count as failed.",
			docs: "definitions.md#outcomes", unit: ratio, kind: tile("no requests", lowest("green"), step(0.001, "orange"), step(0.01, "red")),
			targets: []target{{expression: everyRequest.failed()}},
		},
		{
			title: "Goodput share", about: "Share of judged requests that are good for every SLO that applies to them, and did not fail. Needs SLOs in token_latency.",
			docs: "definitions.md#shares-and-rates", unit: ratio, kind: tile("no SLO", lowest("red"), step(0.95, "orange"), step(0.99, "green")),
			targets: []target{{expression: everyRequest.where(`slo="all"`).attained()}},
		},
	}
	for _, l := range latencies[:3] {
		tiles = append(tiles, panel{
			title: l.name + ", ${percentile:text}", about: l.about + " Percentile of the last interval.", docs: numbersOfOneRequest,
			unit: seconds, kind: tile("no requests"),
			targets: []target{{expression: ofOutcome.quantile("$percentile", l.histogram)}},
		})
	}
	for i := range tiles {
		tiles[i].width, tiles[i].height = 3, 4
	}
	return tiles
}

func modelTable() panel {
	every, some := everyRequest.by("gen_ai_request_model").over(perRange), ofOutcome.by("gen_ai_request_model").over(perRange)
	columns := []column{
		{"Requests/s", requestsPerSecond, every.sum(requests)},
		{"Output tokens/s", tokensPerSecond, every.where(`type="output"`).sum(tokens)},
		{"In flight", number, every.total(duration)},
	}
	for _, l := range latencies {
		columns = append(columns, column{l.short, seconds, some.quantile("$percentile", l.histogram)})
	}
	columns = append(columns,
		column{"Failed", ratio, every.failed()},
		column{"Good for all SLOs", ratio, every.where(`slo="all"`).attained()},
		column{"Prompt length", tokenCount, every.perRequest("input")},
		column{"Output length", tokenCount, every.perRequest("output")},
	)
	kind, targets := rows(columns...)
	return panel{
		title: "Models, latencies at ${percentile:text}", docs: "queries.md#which-model", unit: number, width: 24, height: 8, kind: kind, targets: targets,
		about: "Each model over the selected time range. Lengths are means over all requests, failed ones included.",
	}
}

// percentiles are the lines of a histogram over time.
func (s selection) percentiles(histogram string, exemplars bool) []target {
	return []target{
		{expression: s.quantile("0.5", histogram), legend: "p50"},
		{expression: s.quantile("0.95", histogram), legend: "p95"},
		{expression: s.quantile("0.99", histogram), legend: "p99", exemplars: exemplars},
		{expression: s.mean(histogram), legend: "mean"},
	}
}

func latencyLines() (panels []panel) {
	for _, l := range latencies {
		panels = append(panels, panel{
			title: l.name, about: l.about, docs: numbersOfOneRequest, unit: seconds, width: 12, height: 9, kind: lines(),
			targets: ofOutcome.percentiles(l.histogram, false),
		})
	}
	return panels
}

func splitLines() (panels []panel) {
	for _, l := range latencies {
		panels = append(panels, panel{
			title: l.short + " at ${percentile:text}, by ${by:text}", about: l.about + " One line for each value of the chosen label.",
			docs: quantiles, unit: seconds, width: 12, height: 9, kind: lines(),
			targets: []target{{expression: ofOutcome.by("$by").quantile("$percentile", l.histogram), legend: "{{$by}}"}},
		})
	}
	return panels
}

func latencyHeatmaps() (panels []panel) {
	for _, l := range latencies {
		panels = append(panels, ofOutcome.heatmap(l, l.name+", heatmap"))
	}
	return panels
}

func (s selection) heatmap(l latency, title string) panel {
	return panel{
		title: title, docs: "metrics.md#buckets", unit: seconds, width: 12, height: 9, kind: cells(seconds),
		about:   l.about + " Values per second in each bucket: several bands are several kinds of requests, or stalls.",
		targets: []target{{expression: s.buckets(l.histogram), legend: "{{le}}", format: "heatmap"}},
	}
}

func phasePanels(s selection) []panel {
	s = s.by("phase")
	about := " Engines and token_stream report phases; clients know them with join."
	const page = "queries.md#queue-prefill-decode-or-network"
	return []panel{
		{
			title: "Mean time by phase", about: "Seconds that a request spent in each phase, on average. They add up." + about,
			docs: page, unit: seconds, width: 8, height: 9, kind: stacked(),
			targets: []target{{expression: s.mean(phase), legend: "{{phase}}"}},
		},
		{
			title: "Phases at ${percentile:text}", about: "Percentile of each phase. Percentiles of phases do not add up." + about,
			docs: page, unit: seconds, width: 8, height: 9, kind: lines(),
			targets: []target{{expression: s.quantile("$percentile", phase), legend: "{{phase}}"}},
		},
		{
			title: "Share of time by phase", about: "Share of each phase in the time that requests spent in phases." + about,
			docs: page, unit: ratio, width: 8, height: 9, kind: stacked().Max(1),
			targets: []target{{
				expression: s.total(phase) + "\n/ ignoring (phase) group_left ()\nsum without (phase) (" + s.total(phase) + ")", legend: "{{phase}}",
			}},
		},
	}
}

func loadPanels() []panel {
	var panels []panel
	for _, l := range latencies[:2] {
		panels = append(panels, panel{
			title: l.short + " beside requests in flight", docs: "queries.md#how-much-headroom", unit: seconds, width: 12, height: 9,
			about: "Does latency grow with the load? Latency on the left axis, mean requests in flight on the right.",
			kind:  onRightAxis(lines(), "B", number),
			targets: []target{
				{expression: ofOutcome.quantile("$percentile", l.histogram), legend: l.short + " ${percentile:text}"},
				{expression: everyRequest.total(duration), legend: "in flight"},
			},
		})
	}
	return append(panels, panel{
		title: "Requests in flight, by ${by:text}", about: "Mean number over each interval, by Little's law. A request counts when it ends.",
		docs: inFlight, unit: number, width: 12, height: 9, kind: stacked(),
		targets: []target{{expression: everyRequest.by("$by").total(duration), legend: "{{$by}}"}},
	}, panel{
		title: "Load against an hour before", docs: "queries.md#load-or-a-bad-deploy", unit: number, width: 12, height: 9, kind: lines(),
		about: "Requests per second now and an hour before. Latency that grew without load points to a deployment.",
		targets: []target{
			{expression: everyRequest.sum(requests), legend: "now"},
			{expression: "sum (rate(" + everyRequest.series(requests) + "[$__rate_interval] offset 1h))", legend: "an hour before"},
		},
	})
}

func trafficPanels() []panel {
	return []panel{
		{
			title: "Requests by outcome", about: "Finished requests per second. Error and incomplete are failures.", docs: "definitions.md#outcomes",
			unit: requestsPerSecond, width: 8, height: 9, kind: stacked(),
			targets: []target{{expression: everyRequest.by("outcome").sum(requests), legend: "{{outcome}}"}},
		},
		{
			title: "Requests by ${by:text}", about: "Finished requests per second.", docs: "metrics.md#counters",
			unit: requestsPerSecond, width: 8, height: 9, kind: stacked(),
			targets: []target{{expression: everyRequest.by("$by").sum(requests), legend: "{{$by}}"}},
		},
		{
			title: "Failed requests by ${by:text}", about: "Share of requests with the outcome error or incomplete.", docs: "queries.md#slow-or-failing",
			unit: ratio, width: 8, height: 9, kind: lines(),
			targets: []target{{expression: everyRequest.by("$by").failed(), legend: "{{$by}}"}},
		},
		{
			title: "Tokens per second by type", about: "Tokens of all requests together. Output includes reasoning, input includes cached input.",
			docs: "definitions.md#counters-and-throughput", unit: tokensPerSecond, width: 8, height: 9, kind: lines(),
			targets: []target{{expression: everyRequest.by("type").sum(tokens), legend: "{{type}}"}},
		},
		{
			title: "Output tokens per second by ${by:text}", about: "Output tokens of all requests together, reasoning included.",
			docs: "definitions.md#counters-and-throughput", unit: tokensPerSecond, width: 8, height: 9, kind: stacked(),
			targets: []target{{expression: everyRequest.by("$by").where(`type="output"`).sum(tokens), legend: "{{$by}}"}},
		},
		{
			title: "Tokens per request", docs: "metrics.md#counters", unit: tokenCount, width: 8, height: 9, kind: lines(),
			about: "Mean lengths of prompts and outputs over all requests, failed ones included. Longer prompts take longer to prefill.",
			targets: []target{
				{expression: everyRequest.perRequest("input"), legend: "prompt"},
				{expression: everyRequest.perRequest("output"), legend: "output"},
			},
		},
	}
}

func measurementPanels() []panel {
	return []panel{
		{
			title: "Stalls per request", docs: numbersOfOneRequest, unit: number, width: 6, height: 9, kind: lines(),
			about:   "Gaps between chunks that exceed stall_threshold of token_latency, by default 500 ms.",
			targets: []target{{expression: everyRequest.sum(stalls) + "\n/ (" + everyRequest.sum(requests) + " > 0)", legend: "stalls"}},
		},
		{
			title: "Share of time in stalls", about: "Seconds in stalls, as a share of the seconds that requests took.",
			docs: numbersOfOneRequest, unit: ratio, width: 6, height: 9, kind: lines(),
			targets: []target{{expression: everyRequest.sum(stalled) + "\n/ (" + everyRequest.total(duration) + " > 0)", legend: "stalled"}},
		},
		{
			title: "Cached share of prompts", docs: "metrics.md#counters", unit: ratio, width: 6, height: 9, kind: lines(),
			about: "Share of input tokens that the engine took from its prefix cache, where it is reported. A fall makes prefill slower.",
			targets: []target{{
				expression: everyRequest.where(`type="cached_input"`).sum(tokens) + "\n/ (" + everyRequest.where(`type="input"`).sum(tokens) + " > 0)",
				legend:     "cached",
			}},
		},
		{
			title: "Requests that cannot be measured", docs: coverage, unit: ratio, width: 6, height: 9, kind: lines(),
			about: "Share of requests without an indicator, by the reason for its absence. SLOs on it are blind to these requests.",
			targets: []target{{
				expression: everyRequest.by("indicator", "reason").sum(unmeasured) + "\n/ ignoring (indicator, reason) group_left ()\n(" + everyRequest.sum(requests) + " > 0)",
				legend:     "{{indicator}}: {{reason}}",
			}},
		},
	}
}

// timeToAnswer selects by service and outcome only: a root span that is no model call
// has neither model nor vantage.
func timeToAnswer() panel {
	traces := selection{matchers: []string{`service_name=~"$service"`, `outcome=~"$outcome"`}, window: perInterval}
	return panel{
		title: "Time to answer", docs: "definitions.md#numbers-of-a-trace", unit: seconds, width: 24, height: 9, kind: lines(),
		about:   "Time from the start of a trace to the first output token of its last model call: what the user of an agent waits for. Needs roll_up.",
		targets: traces.percentiles(answer, false),
	}
}
