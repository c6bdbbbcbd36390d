// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package main

import "slices"

// slowRequests leads from a percentile to single requests. Its histograms and counters
// have exemplars: points that link to traces.
var slowRequests = board{
	file: "requests", title: "slow requests",
	about: "From percentiles to traces: each point beside a line is one request, with its trace ID. " +
		"Needs --enable-feature=exemplar-storage in Prometheus, and a trace data source in Grafana's Prometheus data source.",
	variables: slices.Concat(filters, []variable{outcome}),
	rows: []row{
		{"Latency", exemplarLines()},
		{"Requests that missed an SLO", missedPanels()},
		{"Distribution", exemplarHeatmaps()},
		{"Why slow", []panel{whyTable()}},
	},
}

const whichRequests = "queries.md#which-requests"

func exemplarLines() (panels []panel) {
	for _, l := range latencies {
		panels = append(panels, panel{
			title: l.name + ", with requests", about: l.about + " A point above the lines is a slow request: its link opens the trace.",
			docs: whichRequests, unit: seconds, width: 12, height: 10, kind: lines(),
			targets: ofOutcome.percentiles(l.histogram, true),
		})
	}
	return panels
}

func exemplarHeatmaps() (panels []panel) {
	for _, l := range latencies[:2] {
		p := ofOutcome.heatmap(l, l.name+", heatmap with requests")
		p.docs, p.targets[0].exemplars = whichRequests, true
		panels = append(panels, p)
	}
	return panels
}

func missedPanels() []panel {
	return []panel{{
		title: "Bad requests by SLO, with requests", docs: whichRequests, unit: requestsPerSecond, width: 24, height: 10, kind: lines(),
		about:   "Requests per second that missed an SLO. The points are the latest bad requests: their links open the traces.",
		targets: []target{{expression: everyRequest.where(`verdict="bad"`).by("slo").sum(verdicts), legend: "{{slo}}", exemplars: true}},
	}}
}

func whyTable() panel {
	s := ofOutcome.by("phase").over(perRange)
	kind, targets := rows(
		column{"p99", seconds, s.quantile("0.99", phase)},
		column{"p95", seconds, s.quantile("0.95", phase)},
		column{"p50", seconds, s.quantile("0.5", phase)},
		column{"Mean", seconds, s.mean(phase)},
	)
	return panel{
		title: "Phases over the time range", docs: "runbook.md#from-page-to-trace", unit: seconds, width: 24, height: 7,
		kind: kind, targets: targets,
		about: "A phase whose p99 is far above its p50 makes single requests slow. In a trace, tokenpulse.queue.duration and the like have the values of one request.",
	}
}
