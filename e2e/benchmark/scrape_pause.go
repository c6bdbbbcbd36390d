// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
)

const scrapedSeries = 2_000

// pauseTable measures the response times during continuous scrapes and without scrapes.
func pauseTable(collector string) (string, error) {
	c, err := start(collector, loadConfig)
	if err != nil {
		return "", err
	}
	defer c.stop()
	for _, bodies := range oneStreamPerSeries(scrapedSeries) {
		for _, body := range bodies {
			if err := postBody(c, "/v1/tokens", protobufType, body.next()); err != nil {
				return "", err
			}
		}
	}
	without, err := responseTimes(c)
	if err != nil {
		return "", err
	}
	scrapes, stop := scrapeContinuously(c)
	during, err := responseTimes(c)
	close(stop)
	if err := errors.Join(err, <-scrapes); err != nil {
		return "", err
	}
	rows := responseRows("during scrapes: ", during, goal{atMost: 5})
	rows = append(rows, responseRows("without scrapes: ", without, goal{})...)
	return table([]string{fmt.Sprintf("%d series", scrapedSeries), "measured", "goal", "met"}, rows), nil
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
			response, err := c.openMetrics(c.scrape, protobufFormat)
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
