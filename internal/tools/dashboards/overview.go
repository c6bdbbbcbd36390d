// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package main

import "slices"

var overview = board{
	file: "overview", title: "overview",
	about:     "Latency of LLM requests: now, by model, over time, as heatmaps, by phase, and beside the load.",
	variables: slices.Concat(filters, []variable{outcome, percentile, splitBy(byModel)}),
	rows: []row{
		{"Now", 3, 4, nowTiles()},
		{"Models", 24, 8, []panel{modelTable()}},
		{"Latency", 12, 9, each(latencies, latencyLines)},
		{"Latency by ${by:text}", 12, 9, each(latencies, splitLines)},
		{"Distribution", 12, 9, each(latencies, latencyHeatmap)},
		{"Where the time goes", 8, 9, phasePanels(ofOutcome)},
		{"Load", 12, 9, loadPanels()},
		{"Traffic", 8, 9, trafficPanels()},
		{"Agents", 24, 9, []panel{timeToAnswer()}},
		{"Measurement", 6, 9, measurementPanels()},
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

// each returns a panel for each latency.
func each(all []latency, show func(latency) panel) (panels []panel) {
	for _, l := range all {
		panels = append(panels, show(l))
	}
	return panels
}

const (
	numbersOfOneRequest = "definitions.md#numbers-of-one-request"
	quantiles           = "definitions.md#histograms-and-quantiles"
	inFlight            = "queries.md#how-many-requests-are-in-flight"
	coverage            = "definitions.md#missing-latencies"
)

func nowTiles() []panel {
	tiles := []panel{
		show(tile("no requests"), "Requests per second", requestsPerSecond, "metrics.md#counters",
			"Finished requests per second, with any outcome.",
			line(everyRequest.sum(requests), "")),
		show(tile("no requests"), "Output tokens per second", tokensPerSecond, "definitions.md#counters-and-throughput",
			"Output tokens of all requests together, reasoning included.",
			line(everyRequest.where(`type="output"`).sum(tokens), "")),
		show(tile("no requests"), "Requests in flight", number, inFlight,
			"Mean number of requests in flight, by Little's law: the seconds that requests took, per second. Counted when they end.",
			line(everyRequest.total(duration), "")),
		show(tile("no requests", lowest("green"), step(0.001, "orange"), step(0.01, "red")), "Failed requests", ratio, "definitions.md#outcomes",
			"Share of requests with the outcome error or incomplete. Cancelled requests do not count as failed.",
			line(everyRequest.failed(), "")),
		show(tile("no SLO", lowest("red"), step(0.95, "orange"), step(0.99, "green")), "Goodput share", ratio, "definitions.md#shares-and-rates",
			"Share of judged requests that are good for every SLO that applies to them, and did not fail. Needs SLOs in token_latency.",
			line(everyRequest.where(`slo="all"`).attained(), "")),
	}
	return append(tiles, each(latencies[:3], func(l latency) panel {
		return show(tile("no requests"), l.name+", ${percentile:text}", seconds, numbersOfOneRequest,
			l.about+" Percentile of the last interval.",
			line(ofOutcome.quantile("$percentile", l.histogram), ""))
	})...)
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
	return rowsOf("Models, latencies at ${percentile:text}", number, "queries.md#which-model",
		"Each model over the selected time range. Lengths are means over all requests, failed ones included.",
		columns...)
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

func latencyLines(l latency) panel {
	return show(lines(), l.name, seconds, numbersOfOneRequest, l.about, ofOutcome.percentiles(l.histogram, false)...)
}

func splitLines(l latency) panel {
	return show(lines(), l.short+" at ${percentile:text}, by ${by:text}", seconds, quantiles,
		l.about+" One line for each value of the chosen label.",
		line(ofOutcome.by("$by").quantile("$percentile", l.histogram), "{{$by}}"))
}

func latencyHeatmap(l latency) panel { return ofOutcome.heatmap(l, l.name+", heatmap") }

func (s selection) heatmap(l latency, title string) panel {
	return show(cells(seconds), title, seconds, "metrics.md#buckets",
		l.about+" Values per second in each bucket: several bands are several kinds of requests, or stalls.",
		line(s.buckets(l.histogram), "{{le}}").asHeatmap())
}

func phasePanels(s selection) []panel {
	s = s.by("phase")
	about := " Engines and token_stream report phases; clients know them with join."
	const page = "queries.md#queue-prefill-decode-or-network"
	return []panel{
		show(stacked(), "Mean time by phase", seconds, page,
			"Seconds that a request spent in each phase, on average. They add up."+about,
			line(s.mean(phase), "{{phase}}")),
		show(lines(), "Phases at ${percentile:text}", seconds, page,
			"Percentile of each phase. Percentiles of phases do not add up."+about,
			line(s.quantile("$percentile", phase), "{{phase}}")),
		show(stacked().Max(1), "Share of time by phase", ratio, page,
			"Share of each phase in the time that requests spent in phases."+about,
			line(s.total(phase)+"\n/ ignoring (phase) group_left ()\nsum without (phase) ("+s.total(phase)+")", "{{phase}}")),
	}
}

func loadPanels() []panel {
	return append(
		each(latencies[:2], func(l latency) panel {
			return show(onRightAxis(lines(), "B", number), l.short+" beside requests in flight", seconds, "queries.md#how-much-headroom",
				"Does latency grow with the load? Latency on the left axis, mean requests in flight on the right.",
				line(ofOutcome.quantile("$percentile", l.histogram), l.short+" ${percentile:text}"),
				line(everyRequest.total(duration), "in flight"))
		}),
		show(stacked(), "Requests in flight, by ${by:text}", number, inFlight,
			"Mean number over each interval, by Little's law. A request counts when it ends.",
			line(everyRequest.by("$by").total(duration), "{{$by}}")),
		show(lines(), "Load against an hour before", number, "queries.md#load-or-a-bad-deploy",
			"Requests per second now and an hour before. Latency that grew without load points to a deployment.",
			line(everyRequest.sum(requests), "now"),
			line("sum (rate("+everyRequest.series(requests)+"[$__rate_interval] offset 1h))", "an hour before")))
}

func trafficPanels() []panel {
	return []panel{
		show(stacked(), "Requests by outcome", requestsPerSecond, "definitions.md#outcomes",
			"Finished requests per second. Error and incomplete are failures.",
			line(everyRequest.by("outcome").sum(requests), "{{outcome}}")),
		show(stacked(), "Requests by ${by:text}", requestsPerSecond, "metrics.md#counters",
			"Finished requests per second.",
			line(everyRequest.by("$by").sum(requests), "{{$by}}")),
		show(lines(), "Failed requests by ${by:text}", ratio, "queries.md#slow-or-failing",
			"Share of requests with the outcome error or incomplete.",
			line(everyRequest.by("$by").failed(), "{{$by}}")),
		show(lines(), "Tokens per second by type", tokensPerSecond, "definitions.md#counters-and-throughput",
			"Tokens of all requests together. Output includes reasoning, input includes cached input.",
			line(everyRequest.by("type").sum(tokens), "{{type}}")),
		show(stacked(), "Output tokens per second by ${by:text}", tokensPerSecond, "definitions.md#counters-and-throughput",
			"Output tokens of all requests together, reasoning included.",
			line(everyRequest.by("$by").where(`type="output"`).sum(tokens), "{{$by}}")),
		show(lines(), "Tokens per request", tokenCount, "metrics.md#counters",
			"Mean lengths of prompts and outputs over all requests, failed ones included. Longer prompts take longer to prefill.",
			line(everyRequest.perRequest("input"), "prompt"), line(everyRequest.perRequest("output"), "output")),
	}
}

func measurementPanels() []panel {
	return []panel{
		show(lines(), "Stalls per request", number, numbersOfOneRequest,
			"Gaps between chunks that exceed stall_threshold of token_latency, by default 500 ms.",
			line(everyRequest.sum(stalls)+"\n/ ("+everyRequest.sum(requests)+" > 0)", "stalls")),
		show(lines(), "Share of time in stalls", ratio, numbersOfOneRequest,
			"Seconds in stalls, as a share of the seconds that requests took.",
			line(everyRequest.sum(stalled)+"\n/ ("+everyRequest.total(duration)+" > 0)", "stalled")),
		show(lines(), "Cached share of prompts", ratio, "metrics.md#counters",
			"Share of input tokens that the engine took from its prefix cache, where it is reported. A fall makes prefill slower.",
			line(everyRequest.where(`type="cached_input"`).sum(tokens)+"\n/ ("+everyRequest.where(`type="input"`).sum(tokens)+" > 0)", "cached")),
		show(lines(), "Requests that cannot be measured", ratio, coverage,
			"Share of requests without an indicator, by the reason for its absence. SLOs on it are blind to these requests.",
			line(everyRequest.by("indicator", "reason").sum(unmeasured)+
				"\n/ ignoring (indicator, reason) group_left ()\n("+everyRequest.sum(requests)+" > 0)", "{{indicator}}: {{reason}}")),
	}
}

// timeToAnswer selects by service and outcome only: a root span that is no model call
// has neither model nor vantage.
func timeToAnswer() panel {
	traces := selection{matchers: []string{`service_name=~"$service"`, `outcome=~"$outcome"`}, window: perInterval}
	return show(lines(), "Time to answer", seconds, "definitions.md#numbers-of-a-trace",
		"Time from the start of a trace to the first output token of its last model call: what the user of an agent waits for. Needs roll_up.",
		traces.percentiles(answer, false)...)
}
