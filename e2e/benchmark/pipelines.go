// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"embed"
	"strings"
)

//go:embed configs
var configs embed.FS

// config returns a file of the folder configs with some words replaced by their values. The metrics
// of the Collectors about themselves are on, as by default, and the checks read them.
func config(name string, wordsAndValues ...string) string {
	return strings.NewReplacer(wordsAndValues...).Replace(string(must(configs.ReadFile("configs/" + name))))
}

// collectorWith returns the arguments of a Collector with a config.
func collectorWith(binary, config string) []string {
	return []string{binary, "--config", "yaml:" + config}
}

// wireConfig makes series in the receiver, whose settings end with a comma. Further pipelines begin
// with one.
func wireConfig(receiver, series, pipelines string) string {
	return config("wire.yaml", "RECEIVER", receiver, "SERIES", series, "PIPELINES", pipelines)
}

// spanConfig makes series of spans. Those of token_stream come annotated.
func spanConfig(receiver, series string) string {
	if receiver == "token_stream" {
		return config("spans.yaml", "RECEIVER", receiver, "LATENCY", "latency: {},", "PROCESSORS", "", "SERIES", series)
	}
	return config("spans.yaml", "RECEIVER", receiver, "LATENCY", "", "PROCESSORS", "token_latency", "SERIES", series)
}

func spanmetricsConfig(settings string) string {
	return config("spanmetrics.yaml", "SETTINGS", settings)
}

const (
	// spanmetrics requires an additional dimension for event counts. No event has this
	// one, which is the cheapest case.
	countEvents = `, histogram: {exponential: {max_size: 160}}, events: {enabled: true, dimensions: [{name: gen_ai.token.type}]}, metrics_flush_interval: 1s`
	exponential = `, histogram: {exponential: {max_size: 160}}, metrics_flush_interval: 5s`
	// classic has as many buckets as the histograms of token_sli on average.
	classic = `, histogram: {unit: s, explicit: {buckets: [
      1ms, 50ms, 100ms, 250ms, 500ms, 1s, 2s, 5s, 10s, 30s, 120s, 600s]}}, metrics_flush_interval: 5s`

	// The prometheus exporter has no percentiles, so token_sli leaves them out.
	histogramsOnly = `, windows: [], percentiles: []`

	// The default is 15 s. The checks need not wait as long; spanmetrics has the same.
	everySecond = `metrics_flush_interval: 1s`

	spansOfOnePercent = `spans: {share: 0.01}, `
	toNop             = `, traces: {receivers: [token_stream], exporters: [nop]}`

	threeSLOs = `latency: {slos: [
    {name: ttft, indicator: time_to_first_token, threshold: 500ms},
    {name: tpot, indicator: time_per_output_token, threshold: 50ms},
    {name: duration, indicator: request.duration, threshold: 30s}]}, `
)

// foreignConfig makes series of the spans of others, and judges them by three SLOs with a threshold unless it is
// empty.
func foreignConfig(threshold string) string {
	if threshold == "" {
		return config("foreign.yaml", "SLOS", "")
	}
	return config("foreign.yaml", "SLOS", strings.ReplaceAll(`slos: [
    {name: chat-ttft, indicator: time_to_first_token, threshold: LIMIT},
    {name: chat-tpot, indicator: time_per_output_token, threshold: LIMIT},
    {name: chat-duration, indicator: request.duration, threshold: LIMIT}]`, "LIMIT", threshold))
}
