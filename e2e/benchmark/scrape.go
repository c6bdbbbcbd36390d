package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/encoding/protodelim"
)

const (
	// histogramsPerModel is what token_sli makes of the spans of one model: time to
	// first token, time per output token, duration, rate and three phases.
	histogramsPerModel = 7
	modelsScraped      = 286
	histogramsScraped  = modelsScraped * histogramsPerModel // about 2,000

	spansPerHistogram = 32
)

// forScrapes are the paths of a scrape of about 2,000 histograms: a series of
// spanmetrics has one, and so it gets more models.
func forScrapes(collector, peers string) []*path {
	scraping := func(name, binary, config, format string, modelCount int, counter string) *path {
		return &path{
			name: name, unit: "histogram", binary: binary, config: config, do: scrape(format), units: histogramsScraped,
			prepare: func(c *collectorProcess) error { return fill(c, modelCount, counter) },
		}
	}
	const ourCounter, peerCounter = "tokenpulse_requests_total", "traces_span_metrics_calls_total"
	return []*path{
		scraping(scrapeOurs, collector, otlpToSLI(histogramsOnly), protobufFormat, modelsScraped, ourCounter),
		scraping(scrapeOursText, collector, otlpToSLI(histogramsOnly), textFormat, modelsScraped, ourCounter),
		scraping(scrapePeer, peers, otlpToSpanmetrics(exponential), protobufFormat, histogramsScraped, peerCounter),
		scraping(scrapePeerText, peers, otlpToSpanmetrics(explicit), textFormat, histogramsScraped, peerCounter),
	}
}

// fill sends spans of so many models, and waits until a scrape shows them.
func fill(c *collectorProcess, modelCount int, counter string) error {
	requests := (modelCount*spansPerHistogram + spansPerRequest - 1) / spansPerRequest
	for i := range requests {
		if err := call(otlpMethod, same(engineSpans(i*spansPerRequest, modelCount)))(c, 0); err != nil {
			return err
		}
	}
	if err := scraped(counter, spansPerRequest).await(c, requests); err != nil {
		return err
	}
	exposition, err := c.get(c.scrape, protobufFormat)
	if err != nil {
		return err
	}
	histograms, err := countHistograms(exposition)
	if err == nil && histograms != histogramsScraped {
		err = fmt.Errorf("a scrape has %d histograms and not %d", histograms, histogramsScraped)
	}
	return err
}

func countHistograms(exposition []byte) (count int, err error) {
	for reader := bufio.NewReader(bytes.NewReader(exposition)); ; {
		var family dto.MetricFamily
		err := protodelim.UnmarshalFrom(reader, &family)
		if errors.Is(err, io.EOF) {
			return count, nil
		}
		if err != nil {
			return count, err
		}
		for _, metric := range family.Metric {
			if metric.Histogram != nil {
				count++
			}
		}
	}
}
