// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package exposition

import (
	"fmt"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
)

// SelfMetrics are the metrics that a Collector reports about itself.
type SelfMetrics map[string]*dto.MetricFamily

// Of returns the sum over the time series of otelcol_<name> that have all of the labels,
// given as name=value.
func (m SelfMetrics) Of(name string, labels ...string) (sum int64) {
	for _, metric := range m["otelcol_"+name].GetMetric() {
		matches := true
		for _, wanted := range labels {
			key, value, _ := strings.Cut(wanted, "=")
			matches = matches && Label(metric, key) == value
		}
		if matches {
			sum += int64(metric.GetCounter().GetValue() + metric.GetGauge().GetValue())
		}
	}
	return sum
}

// ScrapeSelf returns what a Collector reports about itself at an address.
func ScrapeSelf(t *testing.T, address string) SelfMetrics {
	t.Helper()
	return ScrapeURL(t, fmt.Sprintf("http://%s/metrics", address))
}

// Remainders returns the events and spans that the self-metrics do not account for. It is
// the arithmetic of docs/self-metrics.md.
func (m SelfMetrics) Remainders() (events, spans int64) {
	events = m.Of("receiver_token_stream_events_accepted") -
		m.Of("receiver_token_stream_events_finished") -
		m.Of("receiver_token_stream_events_open") -
		m.Of("receiver_token_stream_events_lost")
	spans = m.Emitted() -
		m.Of("token_sli_requests") -
		m.Of("token_sli_requests_duplicate") -
		m.Of("token_sli_requests_aggregated") -
		m.Of("token_sli_spans_ignored") -
		m.Of("processor_memory_limiter_refused_spans") +
		m.ofSeries()
	return events, spans
}

// ofSeries returns the requests that a receiver counts itself, repeats included.
func (m SelfMetrics) ofSeries() int64 {
	const receiver = "component=receiver/token_stream"
	return m.Of("token_sli_requests", receiver) + m.Of("token_sli_requests_duplicate", receiver)
}

// Emitted returns the spans that the receiver presented to the pipeline.
func (m SelfMetrics) Emitted() int64 {
	return m.Of("receiver_accepted_spans") + m.Of("receiver_refused_spans") + m.Of("receiver_failed_spans")
}

// Mebi returns bytes in MiB.
func Mebi(bytes int64) float64 { return float64(bytes) / (1 << 20) }
