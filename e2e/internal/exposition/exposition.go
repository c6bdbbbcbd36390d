// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Package exposition reads what a Collector serves at /metrics.
package exposition

import (
	"bytes"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/e2e/internal/collector"
)

// Scrape reads /metrics as Prometheus does, in protobuf.
func Scrape(t *testing.T, c *collector.Collector) map[string]*dto.MetricFamily {
	t.Helper()
	return ScrapeURL(t, c.MetricsURL())
}

// ScrapeURL returns the metrics at an address by name. There must be some.
func ScrapeURL(t *testing.T, url string) map[string]*dto.MetricFamily {
	t.Helper()
	families := ScrapeAny(t, url)
	require.NotEmpty(t, families)
	return families
}

// ScrapeAny is ScrapeURL where no metric is an answer, too.
func ScrapeAny(t *testing.T, url string) map[string]*dto.MetricFamily {
	t.Helper()
	format := expfmt.NewFormat(expfmt.TypeProtoDelim)
	decoder := expfmt.NewDecoder(bytes.NewReader(collector.Get(t, url, string(format))), format)
	families := map[string]*dto.MetricFamily{}
	for {
		family := &dto.MetricFamily{}
		if decoder.Decode(family) != nil {
			break
		}
		families[family.GetName()] = family
	}
	return families
}

// Find returns the only metric of a family that has all of the labels.
func Find(t *testing.T, family *dto.MetricFamily, labels map[string]string) *dto.Metric {
	t.Helper()
	var found []*dto.Metric
	for _, metric := range family.GetMetric() {
		matches := true
		for name, value := range labels {
			matches = matches && Label(metric, name) == value
		}
		if matches {
			found = append(found, metric)
		}
	}
	require.Len(t, found, 1, "%s with %v", family.GetName(), labels)
	return found[0]
}

// Label returns the value of a metric's label, or nothing if it has no such label.
func Label(metric *dto.Metric, name string) string {
	for _, pair := range metric.GetLabel() {
		if pair.GetName() == name {
			return pair.GetValue()
		}
	}
	return ""
}

// RequestCount returns the sum of all request counters.
func RequestCount(families map[string]*dto.MetricFamily) (total int) {
	for _, m := range families["tokenpulse_requests_total"].GetMetric() {
		total += int(m.GetCounter().GetValue())
	}
	return total
}

// SumOf adds up the samples of a counter or gauge that have all of the labels.
func SumOf(t *testing.T, families map[string]*dto.MetricFamily, name string, labels map[string]string) (sum float64) {
	t.Helper()
	require.Contains(t, families, name)
	found := false
	for _, metric := range families[name].GetMetric() {
		matching := 0
		for _, label := range metric.GetLabel() {
			if value, ok := labels[label.GetName()]; ok && value == label.GetValue() {
				matching++
			}
		}
		if matching == len(labels) {
			found = true
			sum += metric.GetGauge().GetValue() + metric.GetCounter().GetValue()
		}
	}
	require.True(t, found, "no sample of %s with %v", name, labels)
	return sum
}

// WaitForRequests returns the scrape that counts a number of requests.
func WaitForRequests(t *testing.T, c *collector.Collector, want int) (scraped map[string]*dto.MetricFamily) {
	t.Helper()
	require.Eventually(t, func() bool {
		scraped = ScrapeAny(t, c.MetricsURL()) // empty before the first request
		counted := 0.
		for _, series := range scraped["tokenpulse_requests_total"].GetMetric() {
			counted += series.GetCounter().GetValue()
		}
		return int(counted) == want
	}, collector.Patience, 5*time.Millisecond, "the Collector has not counted %d requests", want)
	return scraped
}
