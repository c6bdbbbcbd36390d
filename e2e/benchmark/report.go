package main

import (
	"fmt"
	"slices"
)

func ratioTable(measured map[string][]measurement) string {
	var rows [][]string
	for _, c := range comparisons {
		if ratios := c.of(measured); ratios != nil {
			middle := median(ratios)
			rows = append(rows, []string{c.name, number(middle), spread(ratios), c.goal.String(), c.goal.verdict(middle)})
		}
	}
	return table([]string{"ratio of CPU time", "median", "min .. max", "goal", "met"}, rows)
}

// wireTable is about what is sent: it is the same in each round.
func wireTable() string {
	whole := len(tokenStreams(plan("first", tokensPerStream)))
	half := len(tokenStreams(plan("first", tokensPerStream/2)))
	events := len(protobufOf(spanEvents(plan("first", tokensPerStream))))
	rows := [][]string{
		goal{atMost: 3.2}.row("ours as protobuf, whole request", float64(whole)/tokensPerRequest),
		goal{}.row("ours as protobuf, each chunk more", float64(whole-half)/(tokensPerRequest/2)),
		goal{}.row("OTLP span events as protobuf, whole request", float64(events)/tokensPerRequest),
	}
	return table([]string{"bytes per one-token chunk, uncompressed", "bytes", "goal", "met"}, rows)
}

func costTable(paths []*path, measured map[string][]measurement) string {
	unit := paths[0].unit
	var rows [][]string
	for _, p := range paths {
		var nanos, memory []float64
		for _, m := range measured[p.name] {
			nanos, memory = append(nanos, m.nanos), append(memory, float64(m.memory)/(1<<20))
		}
		rows = append(rows, []string{p.name, number(median(nanos)), spread(nanos), number(median(memory))})
	}
	return table([]string{"path", "CPU ns per " + unit, "min .. max", "peak RSS, MiB"}, rows)
}

func spread(values []float64) string {
	return number(slices.Min(values)) + " .. " + number(slices.Max(values))
}

// number has the digits that mean something.
func number(value float64) string {
	switch {
	case value < 10:
		return fmt.Sprintf("%.2f", value)
	case value < 100:
		return fmt.Sprintf("%.1f", value)
	default:
		return fmt.Sprintf("%.0f", value)
	}
}
