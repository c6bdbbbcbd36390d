// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package main

import "fmt"

const (
	scrapeSLI      = "`token_sli`, native and classic buckets, protobuf"
	scrapeSLIText  = "`token_sli`, classic buckets, text"
	scrapePeer     = "`prometheus` exporter, native buckets, protobuf"
	scrapePeerText = "`prometheus` exporter, classic buckets, text"

	// histogramsPerModel is how many histograms token_sli publishes for the spans of one
	// model: time to first token, time per output token, duration, three phases.
	histogramsPerModel = 6
	scrapedModels      = 84
	scrapedHistograms  = scrapedModels * histogramsPerModel // about 500

	spansPerHistogram = 32
)

// scrapes is the load of the paths that publish.
const scrapes = "scrapes"

// scrapePaths returns the paths of a scrape of about 500 histograms. spanmetrics has
// one histogram per model, so it gets more models.
func scrapePaths(o options) []*path {
	scraping := func(kind, binary, config, format string, modelCount int, counter string) *path {
		return &path{
			key: key{scrapes, kind}, arguments: collectorWith(binary, config), units: scrapedHistograms,
			newAction: func() action { return scrape(format) },
			prepare:   func(c *collectorProcess) error { return fill(c, modelCount, counter) },
		}
	}
	const sliCounter, peerCounter = "tokenpulse_requests_total", "traces_span_metrics_calls_total"
	return []*path{
		scraping(scrapeSLI, o.collector, spanConfig("otlp", histogramsOnly), protobufFormat, scrapedModels, sliCounter),
		scraping(scrapeSLIText, o.collector, spanConfig("otlp", histogramsOnly), textFormat, scrapedModels, sliCounter),
		scraping(scrapePeer, o.peers, spanmetricsConfig(exponential), protobufFormat, scrapedHistograms, peerCounter),
		scraping(scrapePeerText, o.peers, spanmetricsConfig(classic), textFormat, scrapedHistograms, peerCounter),
	}
}

// fill sends spans of a number of models and waits until a scrape shows them.
func fill(c *collectorProcess, modelCount int, counter string) error {
	requests := (modelCount*spansPerHistogram + spansPerRequest - 1) / spansPerRequest
	for i := range requests {
		if err := call(otlpMethod)(c, 0, engineSpans(i*spansPerRequest, modelCount)); err != nil {
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
