// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"io"
	"net/http"
)

const scrapedSeries = 2_000

// pauseRows measures the response times during continuous scrapes and without scrapes.
func pauseRows(o options) (rows [][]string, err error) {
	c, err := start(collectorWith(o.collector, spanConfig("token_stream", "")))
	if err != nil {
		return nil, err
	}
	defer c.stop()
	bodies := fixed("", 50, 10).ofSeries(scrapedSeries).bodies(tokenStreams)
	if err := bodies.inTurn(postTokens).repeat(c, connections*len(bodies[0])); err != nil {
		return nil, err
	}
	without, err := responseTimes(c)
	if err != nil {
		return nil, err
	}
	scrapes, stop := scrapeContinuously(c)
	during, err := responseTimes(c)
	close(stop)
	if err := errors.Join(err, <-scrapes); err != nil {
		return nil, err
	}
	for _, row := range []struct {
		situation string
		times     []float64
	}{{"2,000 series", without}, {"2,000 series, during continuous scrapes", during}} {
		cells, err := responseRow(row.situation, row.times, c)
		if err != nil {
			return nil, err
		}
		rows = append(rows, cells)
	}
	return rows, nil
}

// scrapeContinuously scrapes until stop is closed and then sends the error, or nil. It
// discards the metrics, because garbage would slow the driver down.
func scrapeContinuously(c *collectorProcess) (result <-chan error, stop chan struct{}) {
	stopped, failed := make(chan struct{}), make(chan error, 1)
	go func() {
		for {
			select {
			case <-stopped:
				failed <- nil
				return
			default:
			}
			response, err := c.open(c.scrape, "/metrics", protobufFormat)
			if err == nil {
				_, err = io.Copy(io.Discard, response.Body)
				err = errors.Join(err, response.Body.Close())
			}
			if err == nil && response.StatusCode != http.StatusOK {
				err = errors.New(response.Status)
			}
			if err != nil {
				failed <- err
				return
			}
		}
	}()
	return failed, stopped
}
