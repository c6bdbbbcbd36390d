// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"time"
)

// timedRequests is how many requests are timed.
const timedRequests = 5_000

// responseTimes sends requests of one whole stream, one after the other, and returns
// the time until each response in milliseconds.
func responseTimes(c *collectorProcess) (times []float64, err error) {
	whole := post("/v1/tokens", protobufType, same(tokenStreams(planOf("whole", 1, tokensPerStream, models))))
	for range timedRequests {
		begin := time.Now()
		if err := whole(c, 0); err != nil {
			return nil, err
		}
		times = append(times, float64(time.Since(begin))/float64(time.Millisecond))
	}
	return times, nil
}

// responseRows compares the longest time with the goal. The percentiles show whether it
// is an outlier.
func responseRows(prefix string, times []float64, g goal) [][]string {
	sorted := slices.Sorted(slices.Values(times))
	return [][]string{
		g.row(fmt.Sprintf("%slongest of %d responses, ms", prefix, len(times)), sorted[len(sorted)-1]),
		goal{}.row(prefix+"p99.9 of responses, ms", sorted[len(sorted)*999/1000]),
		goal{}.row(prefix+"median response, ms", median(times)),
	}
}
