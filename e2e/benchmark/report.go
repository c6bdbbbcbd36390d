// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package main

func ratioTable(measured map[string][]measurement) string {
	var rows [][]string
	for _, c := range comparisons {
		if ratios := c.ratios(measured); ratios != nil {
			rows = append(rows, c.goal.ratioRow(c.name, ratios))
		}
	}
	return table([]string{"ratio of CPU times", "median", "min .. max", "goal", "met"}, rows)
}

// wireTable shows the sizes of the encodings. They are the same in each round.
func wireTable() string {
	whole := len(tokenStreams(plan("first", tokensPerStream)))
	half := len(tokenStreams(plan("first", tokensPerStream/2)))
	events := len(must(spanEvents(plan("first", tokensPerStream)).MarshalProto()))
	rows := [][]string{
		goal{atMost: 3.2}.row("tokenpulse as protobuf, whole request", float64(whole)/tokensPerRequest),
		goal{}.row("tokenpulse as protobuf, each additional chunk", float64(whole-half)/(tokensPerRequest/2)),
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
