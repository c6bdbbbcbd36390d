// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package main

// comparison is a ratio between the costs of paths.
type comparison struct {
	name  string
	paths []string
	ratio func(nanos []float64) float64 // of one round, in the order of paths
	goal  goal
}

// againstNop is the comparison that -min-ratio checks.
var againstNop = comparison{"OTLP span events → nop / tokenpulse, protobuf over HTTP", []string{eventsHTTP, tokensHTTP}, quotient, goal{atLeast: 25}}

// flat is the goal for costs that should not depend on the load.
var flat = goal{atMost: 1.2}

var comparisons = []comparison{
	againstNop,
	{"OTLP span events → nop / tokenpulse, protobuf over gRPC", []string{eventsGRPC, tokensGRPC}, quotient, goal{atLeast: 25}},
	{"OTLP span events → spanmetrics / tokenpulse, protobuf over HTTP", []string{eventsSpanmetrics, tokensHTTP}, quotient, goal{atLeast: 85}},
	{"OTLP span events as JSON → nop / tokenpulse as NDJSON", []string{eventsJSON, tokensNDJSON}, quotient, goal{atLeast: 3}},
	{"tokenpulse as NDJSON / OTLP span events as protobuf → nop", []string{tokensNDJSON, eventsHTTP}, quotient, goal{atMost: 1.5}},
	{"tokenpulse with deduplication / without, per token", []string{tokensHTTP, tokensRepeatable}, quotient, goal{}},
	{"tokenpulse with deduplication / without, per span", []string{spansSLI, spansRepeatable}, quotient, goal{}},
	{"spans without events: tokenpulse / spanmetrics, both minus nop", []string{spansSLI, spansNop, spansSpanmetrics, spansPeerNop}, quotientMinusNop, goal{atMost: 1}},
	{"spans without events: tokenpulse / spanmetrics, whole process", []string{spansSLI, spansSpanmetrics}, quotient, goal{}},
	{"10 tokens per stream / 500, per token", []string{loadShort, loadUsual}, quotient, flat},
	{"10,000 tokens per stream / 500, per token", []string{loadLong, loadUsual}, quotient, flat},
	{"100,000 tokens per stream / 500, per token", []string{loadVeryLong, loadUsual}, quotient, flat},
	{"10,000 series / 4 series, per token", []string{loadSeries, loadUsual}, quotient, flat},
	{"10,000 open streams / 100, per token", []string{loadManyParts, loadParts}, quotient, flat},
	{"scrape as protobuf: tokenpulse / prometheus exporter", []string{scrapeSLI, scrapePeer}, quotient, goal{atMost: 0.5}},
	{"scrape as text: tokenpulse / prometheus exporter", []string{scrapeSLIText, scrapePeerText}, quotient, goal{atMost: 0.5}},
}

func quotient(nanos []float64) float64 { return nanos[0] / nanos[1] }

// quotientMinusNop subtracts from each side the cost of receiving and dropping spans in
// the same build.
func quotientMinusNop(nanos []float64) float64 { return (nanos[0] - nanos[1]) / (nanos[2] - nanos[3]) }

// ratios returns the ratio of each round, or nil if a path was not measured.
func (c comparison) ratios(measured map[string][]measurement) (ratios []float64) {
	for round := range measured[c.paths[0]] {
		var nanos []float64
		for _, path := range c.paths {
			if len(measured[path]) <= round {
				return nil
			}
			nanos = append(nanos, measured[path][round].nanos)
		}
		ratios = append(ratios, c.ratio(nanos))
	}
	return ratios
}
