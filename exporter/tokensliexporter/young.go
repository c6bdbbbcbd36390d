// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokensliexporter

import (
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/proto"
)

// scraperHeader is the header by which Prometheus, and what scrapes like it, is known.
const scraperHeader = "X-Prometheus-Scrape-Timeout-Seconds"

// young are the samples of one gather that began less than Config.ZeroFor ago, by the name of their family. Prometheus sees them
// at 0. In rate and increase, a counter that appears with 1 has no increase: the first error of its kind would
// be lost. A sample is 0 by its age alone, not by who asked before, so that any number of scrapers see the same.
type young map[string][]youngSample

type youngSample struct {
	index int // in the family
	zero  *dto.Metric
}

// note keeps the zero form of the sample that was added last to a family.
func (s *scrape) note(metric string, m *dto.Metric, began time.Time) {
	if s.now.Sub(began) >= s.zeroFor || s.err != nil {
		return
	}
	zero := &dto.Metric{Label: m.Label}
	if m.Counter != nil {
		zero.Counter = &dto.Counter{Value: proto.Float64(0), CreatedTimestamp: m.Counter.CreatedTimestamp}
	} else {
		zero.Histogram = emptied(m.Histogram)
	}
	family := s.families[metric]
	s.young[family.GetName()] = append(s.young[family.GetName()], youngSample{len(family.Metric) - 1, zero})
}

// emptied returns the histogram without values.
func emptied(h *dto.Histogram) *dto.Histogram {
	empty := &dto.Histogram{
		SampleCount: proto.Uint64(0), SampleSum: proto.Float64(0), CreatedTimestamp: h.CreatedTimestamp,
		Schema: h.Schema, ZeroThreshold: h.ZeroThreshold, ZeroCount: proto.Uint64(0),
	}
	for _, bucket := range h.Bucket {
		empty.Bucket = append(empty.Bucket, &dto.Bucket{CumulativeCount: proto.Uint64(0), UpperBound: bucket.UpperBound})
	}
	return empty
}

// zeroed returns the families with the zero form of young samples.
func (y young) zeroed(families []*dto.MetricFamily) []*dto.MetricFamily {
	all := slices.Clone(families)
	for i, family := range all {
		samples := y[family.GetName()]
		if len(samples) == 0 {
			continue
		}
		changed := &dto.MetricFamily{Name: family.Name, Help: family.Help, Type: family.Type, Unit: family.Unit, Metric: slices.Clone(family.Metric)}
		for _, sample := range samples {
			changed.Metric[sample.index] = sample.zero
		}
		all[i] = changed
	}
	return all
}

// forPrometheus gathers what Prometheus sees of a shared result.
type forPrometheus struct{ *sharedGatherer }

var _ prometheus.TransactionalGatherer = forPrometheus{}

// Gather implements prometheus.TransactionalGatherer.
func (g forPrometheus) Gather() (families []*dto.MetricFamily, done func(), err error) {
	result := g.use()
	return result.young.zeroed(result.families), func() { g.leave(result) }, result.err
}
