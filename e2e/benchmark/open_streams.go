// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package main

import "fmt"

const (
	openStreams  = 1_000_000 // each with openTokens tokens
	openTokens   = 100
	openRequests = 10_000 // that open them
)

// openRow measures the response times and the memory while streams without an end are open.
func openRow(o options) ([]string, error) {
	c, err := start(collectorWith(o.collector, wireConfig("max_streams: 2000000, max_memory_mib: 4096, idle_timeout: 1h, ", everySecond, "")))
	if err != nil {
		return nil, err
	}
	defer c.kill() // a shutdown would finish a million streams
	l := fixed("", openStreams/openRequests, 2*openTokens)
	for i := range openRequests {
		// The first of two parts has no end.
		if err := postTokens(c, 0, tokenStreams(l.streams(fmt.Sprint("open-", i), 0), 0, 2)); err != nil {
			return nil, err
		}
	}
	times, err := responseTimes(c)
	if err != nil {
		return nil, err
	}
	return responseRow("1,000,000 open streams of 100 tokens", times, c)
}
