// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"time"
)

// timedRequests is how many requests are timed.
const timedRequests = 5_000

// responseTimes sends requests of one whole stream, one after the other, and returns
// the sorted times until each response in milliseconds.
func responseTimes(c *collectorProcess) (times []float64, err error) {
	do := fixed("", 1, 500).bodies(tokenStreams).inTurn(postTokens)
	for range timedRequests {
		begin := time.Now()
		if err := do(c, 0); err != nil {
			return nil, err
		}
		times = append(times, float64(time.Since(begin))/float64(time.Millisecond))
	}
	slices.Sort(times)
	return times, nil
}

// responseRow returns the cells of a situation. The percentiles show whether the longest
// time is an outlier.
func responseRow(situation string, times []float64, c *collectorProcess) ([]string, error) {
	memory, err := c.peakMemory()
	return []string{
		situation, number(median(times)), number(times[len(times)*999/1000]), number(times[len(times)-1]), number(memory / (1 << 20)),
	}, err
}

// responseTable measures the response times in each situation.
func responseTable(o options) (string, error) {
	rows, err := pauseRows(o)
	if err != nil {
		return "", err
	}
	open, err := openRow(o)
	if err != nil {
		return "", err
	}
	return table([]string{"response to one stream of 500 tokens, ms", "median", "p99.9", "longest of 5,000", "peak RSS, MiB"}, append(rows, open)), nil
}
