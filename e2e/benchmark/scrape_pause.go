package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
)

const seriesScraped = 2_000

// pauseTable tells how long requests take while the series are scraped, one scrape
// after the other, beside how long they take while nobody scrapes.
func pauseTable(collector string) (string, error) {
	c, err := start(collector, roomForLoads)
	if err != nil {
		return "", err
	}
	defer c.stop()
	for connection, bodies := range ofSeries(seriesScraped) {
		for _, body := range bodies {
			if err := post("/v1/tokens", protobufType, same(body))(c, connection); err != nil {
				return "", err
			}
		}
	}
	quiet, err := answerTimes(c, answersTimed)
	if err != nil {
		return "", err
	}
	scrapes, stop := scrapeOnAndOn(c)
	during, err := answerTimes(c, answersTimed)
	close(stop)
	if err := errors.Join(err, <-scrapes); err != nil {
		return "", err
	}
	rows := answerRows("scraped on and on: ", during, goal{atMost: 5})
	rows = append(rows, answerRows("not scraped: ", quiet, goal{})...)
	return table([]string{fmt.Sprintf("%d series", seriesScraped), "measured", "goal", "met"}, rows), nil
}

// scrapeOnAndOn scrapes until stop is closed, and then tells what failed. It keeps
// nothing of what it gets: with its own garbage, the driver would slow itself down.
func scrapeOnAndOn(c *collectorProcess) (failed <-chan error, stop chan struct{}) {
	stopped, result := make(chan struct{}), make(chan error, 1)
	go func() {
		for {
			select {
			case <-stopped:
				result <- nil
				return
			default:
			}
			response, err := c.open(c.scrape, protobufFormat)
			if err == nil {
				_, err = io.Copy(io.Discard, response.Body)
				err = errors.Join(err, response.Body.Close())
			}
			if err == nil && response.StatusCode != http.StatusOK {
				err = errors.New(response.Status)
			}
			if err != nil {
				result <- err
				return
			}
		}
	}()
	return result, stopped
}
