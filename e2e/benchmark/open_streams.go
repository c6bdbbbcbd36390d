// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package main

import "fmt"

// openStreams streams are open at once, each with openTokens tokens.
const (
	openStreams = 1_000_000
	openTokens  = 100
)

// openTable measures the memory of streams without an end, and the response times
// while they are open.
func openTable(collector string) (string, error) {
	c, err := start(collector, sliConfig("token_stream", "max_streams: 2000000, max_memory_mib: 4096, idle_timeout: 1h, ", ""))
	if err != nil {
		return "", err
	}
	defer c.kill() // a shutdown would emit a million spans
	for group := range openStreams / streamsPerRequest {
		// The first of two parts has no end.
		body := tokenStreamParts(plan(fmt.Sprint("open-", group), 2*openTokens), 0, 2)
		if err := post("/v1/tokens", protobufType, same(body))(c, 0); err != nil {
			return "", err
		}
	}
	memory, err := c.peakMemory()
	if err != nil {
		return "", err
	}
	times, err := responseTimes(c)
	if err != nil {
		return "", err
	}
	rows := [][]string{goal{atMost: 1.5}.row("peak RSS, GiB", float64(memory)/(1<<30))}
	rows = append(rows, responseRows("", times, goal{atMost: 50})...)
	return table([]string{"1,000,000 open streams of 100 tokens", "measured", "goal", "met"}, rows), nil
}
