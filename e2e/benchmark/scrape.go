// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package main

import "fmt"

const (
	// histogramsPerModel is how many histograms token_sli publishes for the spans of one
	// model: time to first token, time per output token, duration, three phases.
	histogramsPerModel = 6
	scrapedModels      = 334
	scrapedHistograms  = scrapedModels * histogramsPerModel // about 2,000

	spansPerHistogram = 32
)

// scrapePaths returns the paths of a scrape of about 2,000 histograms. spanmetrics has
// one histogram per model, so it gets more models.
func scrapePaths(collector, peers string) []*path {
	scraping := func(name, binary, config, format string, modelCount int, counter string) *path {
		return &path{
			name: name, unit: "histogram", binary: binary, config: config, do: scrape(format), units: scrapedHistograms,
			prepare: func(c *collectorProcess) error { return fill(c, modelCount, counter) },
		}
	}
	const sliCounter, peerCounter = "tokenpulse_requests_total", "traces_span_metrics_calls_total"
	return []*path{
		scraping(scrapeSLI, collector, sliConfig("otlp", "", histogramsOnly), protobufFormat, scrapedModels, sliCounter),
		scraping(scrapeSLIText, collector, sliConfig("otlp", "", histogramsOnly), textFormat, scrapedModels, sliCounter),
		scraping(scrapePeer, peers, spanmetricsConfig(exponential), protobufFormat, scrapedHistograms, peerCounter),
		scraping(scrapePeerText, peers, spanmetricsConfig(classic), textFormat, scrapedHistograms, peerCounter),
	}
}

// fill sends spans of a number of models and waits until a scrape shows them.
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
	exposition, err := c.metrics(c.scrape, protobufFormat)
	if err != nil {
		return err
	}
	histograms, err := countHistograms(exposition)
	if err == nil && histograms != scrapedHistograms {
		err = fmt.Errorf("a scrape has %d histograms, expected %d", histograms, scrapedHistograms)
	}
	return err
}
