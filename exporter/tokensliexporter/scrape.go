// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokensliexporter

import (
	"slices"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/tokenpulse/tokenpulse/internal/keeper"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/series"
)

// scrape builds one response. It is a keeper.Sink. Labels are sorted by name, as Prometheus
// requires.
type scrape struct {
	*gatherer
	families map[string]*dto.MetricFamily // by the name of the metric
	pairs    map[[2]string]*dto.LabelPair // by name and value; messages share them
	now      time.Time
	young    young
	err      error
}

// Series implements keeper.Sink.
func (s *scrape) Series(key string, _ time.Time) []*dto.LabelPair { return s.labels(key, s.dimensions) }

// Standard implements keeper.Sink.
func (s *scrape) Standard(key string, _ time.Time) []*dto.LabelPair { return s.labels(key, s.standard) }

func (s *scrape) labels(key string, dimensions []string) []*dto.LabelPair {
	of := series.LabelsOf(key)
	if of.Overflow {
		return s.With(nil, names.LabelOverflow, "true")
	}
	labels := s.With(nil, names.LabelVantage, of.Vantage)
	for i, value := range of.Dimensions {
		labels = s.With(labels, dimensions[i], value)
	}
	return labels
}

// With implements keeper.Sink.
func (s *scrape) With(labels []*dto.LabelPair, name, value string) []*dto.LabelPair {
	if value == "" {
		return labels
	}
	name = strings.ReplaceAll(name, ".", "_") // as Prometheus has it
	pair := s.pairs[[2]string{name, value}]
	if pair == nil {
		pair = &dto.LabelPair{Name: &name, Value: &value}
		s.pairs[[2]string{name, value}] = pair
	}
	at, _ := slices.BinarySearchFunc(labels, name, func(p *dto.LabelPair, name string) int { return strings.Compare(*p.Name, name) })
	return slices.Insert(slices.Clip(labels), at, pair) // a copy
}

// add adds a sample to the family of its metric.
func (s *scrape) add(labels []*dto.LabelPair, metric *numbers.Metric, kind dto.MetricType) *dto.Metric {
	family := s.families[metric.Name]
	if family == nil {
		if family, s.err = newFamily(metric, kind); s.err != nil {
			return new(dto.Metric)
		}
		s.families[metric.Name] = family
	}
	m := &dto.Metric{Label: labels}
	family.Metric = append(family.Metric, m)
	return m
}

// Counter implements keeper.Sink.
func (s *scrape) Counter(labels []*dto.LabelPair, c *keeper.Counter) {
	counter := &dto.Counter{Value: &c.Value, CreatedTimestamp: timestamppb.New(c.First)}
	if c.Exemplar.Set() {
		counter.Exemplar = exemplar(&c.Exemplar)
	}
	m := s.add(labels, c.Metric, dto.MetricType_COUNTER)
	m.Counter = counter
	s.note(c.Metric.Name, m, c.First)
}

// Gauge implements keeper.Sink.
func (s *scrape) Gauge(labels []*dto.LabelPair, metric *numbers.Metric, v float64) {
	s.add(labels, metric, dto.MetricType_GAUGE).Gauge = &dto.Gauge{Value: &v}
}

// Histogram implements keeper.Sink. It adds the percentile gauges, too.
func (s *scrape) Histogram(labels []*dto.LabelPair, h *keeper.Histogram) {
	if h.Sketch.Count() > 0 {
		m := s.add(labels, h.Metric, dto.MetricType_HISTOGRAM)
		m.Histogram = histogram(h.DistributionSnapshot, timestamppb.New(h.Start))
		s.note(h.Metric.Name, m, h.Start)
	}
	for _, q := range h.Quantiles {
		labels := s.With(s.With(labels, names.LabelPercentile, s.percentiles[q.Quantile]), names.LabelWindow, s.windows[q.Window])
		s.Gauge(labels, percentileMetrics[h.Metric.Name], q.Value)
	}
}
