// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokensliexporter

import (
	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// scrape builds one response.
type scrape struct {
	*gatherer
	metrics [][]*dto.Metric // by family

	messages   slab[dto.Metric]
	histograms slab[dto.Histogram]
	gauges     slab[dto.Gauge]
	buckets    slab[dto.Bucket]
	bucketRefs slab[*dto.Bucket]
	labelRefs  slab[*dto.LabelPair]
	numbers    slab[float64]
	counts     slab[uint64]
}

func (s *scrape) add(family int, labels []*dto.LabelPair) *dto.Metric {
	m := s.messages.one()
	m.Label = labels
	s.metrics[family] = append(s.metrics[family], m)
	return m
}

// with returns the labels and those of more that are not nil.
func (s *scrape) with(labels []*dto.LabelPair, more ...*dto.LabelPair) []*dto.LabelPair {
	all := s.labelRefs.take(len(labels) + len(more))
	all = all[:copy(all, labels)]
	return sorted(appendPresent(all, more...))
}

func (s *scrape) counter(family int, labels []*dto.LabelPair, n float64, start *timestamppb.Timestamp) *dto.Counter {
	counter := &dto.Counter{Value: &n, CreatedTimestamp: start}
	s.add(family, labels).Counter = counter
	return counter
}

func (s *scrape) gauge(family int, labels []*dto.LabelPair, v float64) {
	gauge := s.gauges.one()
	gauge.Value = s.numbers.of(v)
	s.add(family, labels).Gauge = gauge
}
