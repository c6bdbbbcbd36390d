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
		{"Latency", 12, 10, each(latencies, exemplarLines)},
		{"Requests that missed an SLO", 24, 10, []panel{missed()}},
		{"Distribution", 12, 9, each(latencies[:2], exemplarHeatmap)},
		{"Why slow", 24, 7, []panel{whyTable()}},
	},
}

const whichRequests = "queries.md#which-requests"

func exemplarLines(l latency) panel {
	return show(lines(), l.name+", with requests", seconds, whichRequests,
		l.about+" A point above the lines is a slow request: its link opens the trace.",
		ofOutcome.percentiles(l.histogram, true)...)
}

func exemplarHeatmap(l latency) panel {
	p := ofOutcome.heatmap(l, l.name+", heatmap with requests")
	p.docs, p.targets[0].exemplars = whichRequests, true
	return p
}

func missed() panel {
	return show(lines(), "Bad requests by SLO, with requests", requestsPerSecond, whichRequests,
		"Requests per second that missed an SLO. The points are the latest bad requests: their links open the traces.",
		target{expression: everyRequest.where(`verdict="bad"`).by("slo").sum(verdicts), legend: "{{slo}}", exemplars: true})
}

func whyTable() panel {
	s := ofOutcome.by("phase").over(perRange)
	return rowsOf("Phases over the time range", seconds, "runbook.md#from-page-to-trace",
		"A phase whose p99 is far above its p50 makes single requests slow. "+
			"In a trace, tokenpulse.queue.duration and the like have the values of one request.",
		column{"p99", seconds, s.quantile("0.99", phase)},
		column{"p95", seconds, s.quantile("0.95", phase)},
		column{"p50", seconds, s.quantile("0.5", phase)},
		column{"Mean", seconds, s.mean(phase)})
}
