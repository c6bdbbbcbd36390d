package main

import (
	"fmt"
	"slices"
)

// comparison is one number that says how paths compare.
type comparison struct {
	name  string
	paths []string
	ratio func(nanos []float64) float64 // of one round, in the order of the paths
	goal  goal
}

// goal is what a number has to reach. The zero goal is none.
type goal struct {
	atLeast, atMost float64
}

func (g goal) String() string {
	switch {
	case g.atLeast != 0:
		return fmt.Sprintf("at least %g", g.atLeast)
	case g.atMost != 0:
		return fmt.Sprintf("at most %g", g.atMost)
	default:
		return ""
	}
}

func (g goal) verdict(value float64) string {
	switch {
	case g == goal{}:
		return ""
	case g.atLeast != 0 && value < g.atLeast, g.atMost != 0 && value > g.atMost:
		return "no"
	default:
		return "yes"
	}
}

// row shows a number beside its goal.
func (g goal) row(name string, value float64) []string {
	return []string{name, number(value), g.String(), g.verdict(value)}
}

// againstNop is the comparison that -min-ratio is about.
var againstNop = comparison{"OTLP span events → nop / ours, protobuf over HTTP", []string{eventsHTTP, oursHTTP}, quotient, goal{atLeast: 25}}

// flat is the goal of costs that are not to depend on the load.
var flat = goal{atMost: 1.2}

var comparisons = []comparison{
	againstNop,
	{"OTLP span events → nop / ours, protobuf over gRPC", []string{eventsGRPC, oursGRPC}, quotient, goal{atLeast: 25}},
	{"OTLP span events → spanmetrics / ours, protobuf over HTTP", []string{eventsCounted, oursHTTP}, quotient, goal{atLeast: 85}},
	{"OTLP span events as JSON → nop / ours as NDJSON", []string{eventsJSON, oursNDJSON}, quotient, goal{atLeast: 3}},
	{"ours as NDJSON / OTLP span events as protobuf → nop", []string{oursNDJSON, eventsHTTP}, quotient, goal{atMost: 1.5}},
	{"spans without events: ours / spanmetrics, both without what nop takes", []string{spansOurs, spansNop, spansCounted, spansPeerNop}, aboveTheReceiver, goal{atMost: 1}},
	{"spans without events: ours / spanmetrics, whole process", []string{spansOurs, spansCounted}, quotient, goal{}},
	{"10 tokens a stream / 500, per token", []string{loadShort, loadUsual}, quotient, flat},
	{"10,000 tokens a stream / 500, per token", []string{loadLong, loadUsual}, quotient, flat},
	{"100,000 tokens a stream / 500, per token", []string{loadVeryLong, loadUsual}, quotient, flat},
	{"10,000 series / 4 series, per token", []string{loadSeries, loadUsual}, quotient, flat},
	{"10,000 streams open at a time / 100, per token", []string{loadManyParts, loadParts}, quotient, flat},
	{"scrape as protobuf: ours / prometheus exporter", []string{scrapeOurs, scrapePeer}, quotient, goal{atMost: 0.5}},
	{"scrape as text: ours / prometheus exporter", []string{scrapeOursText, scrapePeerText}, quotient, goal{atMost: 0.5}},
}

func quotient(nanos []float64) float64 { return nanos[0] / nanos[1] }

// aboveTheReceiver takes from each what its own build needs to receive spans and
// throw them away.
func aboveTheReceiver(nanos []float64) float64 { return (nanos[0] - nanos[1]) / (nanos[2] - nanos[3]) }

// of gives the ratio of each round, or none when a path was left out.
func (c comparison) of(measured map[string][]measurement) (ratios []float64) {
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

// median of an even number of values is the mean of the middle two.
func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 0 {
		return (sorted[middle-1] + sorted[middle]) / 2
	}
	return sorted[middle]
}
