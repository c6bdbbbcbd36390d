// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"
)

const (
	timedRequests = 5_000 // whose response times are measured
	scrapedSeries = 2_000 // during continuous scrapes
	// idleTime is how long an idle Collector is watched. The kernel counts in steps of 10 ms.
	idleTime = 20 * time.Second

	openStreams  = 1_000_000 // each with openTokens tokens
	openTokens   = 100
	openRequests = 10_000 // that open them
)

// idleCores returns how many cores a Collector takes after the requests of one turn, while
// it receives no more.
func idleCores(o options, l load, series string) float64 {
	c := start(collectorWith(o.collector, wireConfig("", series, "")))
	defer c.stop()
	c.turn(l)
	before := c.cpuTime()
	time.Sleep(idleTime)
	return float64(c.cpuTime()-before) / float64(idleTime)
}

// turn sends all requests of a load once.
func (c *collectorProcess) turn(l load) {
	bodies := l.bodies(tokenStreams)
	bodies.inTurn(postTokens).repeat(c, connections*len(bodies[0]))
}

// responseTable measures the response times in each situation: with many series, during
// continuous scrapes, and while streams without an end are open.
func responseTable(o options) string {
	var rows [][]string
	func() {
		c := start(collectorWith(o.collector, spanConfig("token_stream", "")))
		defer c.stop()
		c.turn(fixed("", 50, 10).ofSeries(scrapedSeries))
		without := responseTimes(c)
		stop, failed := make(chan struct{}), make(chan error, 1)
		go func() { failed <- caught(func() { scrapeUntil(c, stop) }) }()
		during := responseTimes(c)
		close(stop)
		try(<-failed)
		rows = append(rows, responseRow("2,000 series", without, c), responseRow("2,000 series, during continuous scrapes", during, c))
	}()
	c := start(collectorWith(o.collector, wireConfig("max_streams: 2000000, max_memory_mib: 4096, idle_timeout: 1h, ", everySecond, "")))
	defer c.kill() // a shutdown would finish a million streams
	l := fixed("", openStreams/openRequests, 2*openTokens)
	for i := range openRequests {
		// The first of two parts has no end.
		postTokens(c, 0, tokenStreams(l.streams(fmt.Sprint("open-", i), 0), 0, 2))
	}
	rows = append(rows, responseRow("1,000,000 open streams of 100 tokens", responseTimes(c), c))
	return table([]string{"response to one stream of 500 tokens, ms", "median", "p99.9", "longest of 5,000", "peak RSS, MiB"}, rows)
}

// responseTimes sends requests of one whole stream, one after the other, and returns
// the sorted times until each response in milliseconds.
func responseTimes(c *collectorProcess) (times []float64) {
	do := fixed("", 1, 500).bodies(tokenStreams).inTurn(postTokens)
	for range timedRequests {
		begin := time.Now()
		do(c, 0)
		times = append(times, float64(time.Since(begin))/float64(time.Millisecond))
	}
	slices.Sort(times)
	return times
}

// responseRow returns the cells of a situation. The percentiles show whether the longest
// time is an outlier.
func responseRow(situation string, times []float64, c *collectorProcess) []string {
	return []string{
		situation, number(median(times)), number(times[len(times)*999/1000]), number(times[len(times)-1]), number(c.peakMemory() / (1 << 20)),
	}
}

// scrapeUntil scrapes until stop is closed. It discards the metrics, because garbage would
// slow the driver down.
func scrapeUntil(c *collectorProcess, stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		default:
		}
		response := c.open(c.scrape, "/metrics", protobufFormat)
		_ = must(io.Copy(io.Discard, response.Body))
		if response.StatusCode != http.StatusOK {
			try(errors.New(response.Status))
		}
		try(response.Body.Close())
	}
}
