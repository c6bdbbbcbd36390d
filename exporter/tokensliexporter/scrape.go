// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokensliexporter

import (
	"runtime"
	"slices"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/tokenpulse/tokenpulse/exporter/tokensliexporter/internal/exposition"
	"github.com/tokenpulse/tokenpulse/internal/keeper"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/series"
)

// scrape renders one variant. It is a keeper.Sink. Labels are sorted by name, as Prometheus
// requires.
type scrape struct {
	*gatherer
	variant
	unused  func() bool
	builder *exposition.Builder
	headers map[string]*dto.MetricFamily // by the name of the metric
	pairs   map[[2]string]*dto.LabelPair // by name and value; messages share them
	now     time.Time
	err     error
	// untilHalf is the number of series until half of them are rendered.
	untilHalf int

	// The messages of the sample that is added are used again: those of many series take gigabytes.
	sample    dto.Metric
	created   timestamppb.Timestamp
	counter   dto.Counter
	exemplar  exemplarMessage
	gauge     dto.Gauge
	histogram histogramMessage
}

// Series implements keeper.Sink.
func (s *scrape) Series(key string, _ time.Time) []*dto.LabelPair {
	if s.untilHalf--; s.untilHalf == 0 && time.Since(s.now) > collectAfter {
		runtime.GC()
	}
	return s.labels(key, s.dimensions)
}

// Standard implements keeper.Sink.
func (s *scrape) Standard(key string, _ time.Time) []*dto.LabelPair { return s.labels(key, s.standard) }

// NoSeries implements keeper.Sink.
func (*scrape) NoSeries() []*dto.LabelPair { return nil }

func (s *scrape) labels(key string, dimensions []string) []*dto.LabelPair {
	of := series.LabelsOf(key)
	if of.Overflow {
		return s.With(nil, names.LabelOverflow, "true")
	}
	labels := make([]*dto.LabelPair, 0, len(dimensions)+1)
	labels = s.insert(labels, names.LabelVantage, of.Vantage)
	for i, value := range of.Dimensions {
		labels = s.insert(labels, dimensions[i], value)
	}
	return labels
}

// With implements keeper.Sink.
func (s *scrape) With(labels []*dto.LabelPair, name, value string) []*dto.LabelPair {
	return s.insert(slices.Clip(labels), name, value) // into a copy
}

// insert inserts a label, unless its value is empty.
func (s *scrape) insert(labels []*dto.LabelPair, name, value string) []*dto.LabelPair {
	if value == "" {
		return labels
	}
	name = strings.ReplaceAll(name, ".", "_") // as Prometheus has it
	pair := s.pairs[[2]string{name, value}]
	if pair == nil {
		pair = &dto.LabelPair{Name: proto.String(name), Value: proto.String(value)}
		s.pairs[[2]string{name, value}] = pair
	}
	at, _ := slices.BinarySearchFunc(labels, name, func(p *dto.LabelPair, name string) int { return strings.Compare(*p.Name, name) })
	return slices.Insert(labels, at, pair)
}

// add adds the sample to the family of its metric.
func (s *scrape) add(metric *numbers.Metric, kind dto.MetricType) {
	header := s.headers[metric.Name]
	if header == nil {
		var err error
		if header, err = newFamily(metric, kind); err != nil {
			s.err = err
			return
		}
		s.headers[metric.Name] = header
	}
	s.builder.Add(header, &s.sample)
}

// Counter implements keeper.Sink.
func (s *scrape) Counter(labels []*dto.LabelPair, c *keeper.Counter) {
	if s.unused() {
		return
	}
	s.counter.Value, s.counter.CreatedTimestamp, s.counter.Exemplar = &c.Value, s.createdAt(c.First), nil
	if s.isZero(c.First) {
		s.counter.Value = proto.Float64(0)
	} else if c.Exemplar.Set() && s.hasExemplars() {
		s.counter.Exemplar = s.exemplar.set(&c.Exemplar)
	}
	s.sample.Label, s.sample.Counter, s.sample.Gauge, s.sample.Histogram = labels, &s.counter, nil, nil
	s.add(c.Metric, dto.MetricType_COUNTER)
}

// Gauge implements keeper.Sink.
func (s *scrape) Gauge(labels []*dto.LabelPair, metric *numbers.Metric, v float64) {
	s.gauge.Value = &v
	s.sample.Label, s.sample.Counter, s.sample.Gauge, s.sample.Histogram = labels, nil, &s.gauge, nil
	s.add(metric, dto.MetricType_GAUGE)
}

// Histogram implements keeper.Sink. It adds the percentile gauges, too.
func (s *scrape) Histogram(labels []*dto.LabelPair, h *keeper.Histogram) {
	if s.unused() {
		return
	}
	if h.Sketch.Count() > 0 {
		s.histogram.set(h.DistributionSnapshot, s.hasExemplars())
		s.histogram.CreatedTimestamp = s.createdAt(h.Start)
		if s.Type == expfmt.TypeProtoDelim { // no other format has native buckets
			s.histogram.native(&h.Sketch)
		}
		if s.isZero(h.Start) {
			s.histogram.empty()
		}
		s.sample.Label, s.sample.Counter, s.sample.Gauge, s.sample.Histogram = labels, nil, nil, &s.histogram.Histogram
		s.add(h.Metric, dto.MetricType_HISTOGRAM)
	}
	for _, q := range h.Quantiles {
		labels := s.With(s.With(labels, names.LabelPercentile, s.percentiles[q.Quantile]), names.LabelWindow, s.windows[q.Window])
		s.Gauge(labels, percentileMetrics[h.Metric.Name], q.Value)
	}
}

// createdAt returns the time at which the sample began.
func (s *scrape) createdAt(at time.Time) *timestamppb.Timestamp {
	s.created.Seconds, s.created.Nanos = at.Unix(), int32(at.Nanosecond())
	return &s.created
}

// hasExemplars reports whether the format has exemplars.
func (s *scrape) hasExemplars() bool { return s.Type != expfmt.TypeTextPlain }

// isZero reports whether the variant shows a sample that began at a time as 0. In rate and increase, a counter
// that appears with 1 has no increase: the first error of its kind would be lost. A sample is 0 by its age
// alone, not by who asked before, so that any number of scrapers see the same.
func (s *scrape) isZero(began time.Time) bool { return s.zero && s.now.Sub(began) < s.zeroFor }
