// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/series"
	"github.com/tokenpulse/tokenpulse/internal/sketch"
)

// batch builds the metrics of one flush. It is a keeper.Sink.
type batch struct {
	dimensions []string
	standard   []string // attributes of the metrics of conventions
	delta      bool

	sent    sent              // what the next consumer has
	sending sent              // what it has after it accepts this batch
	since   pcommon.Timestamp // when it accepted the last batch
	now     pcommon.Timestamp

	metrics pmetric.Metrics
	into    pmetric.MetricSlice
	index   map[string]int // into the metrics, by name

	counts []uint64
	before sketch.Sketch
}

func newBatch(set *Settings, alreadySent sent, since, now pcommon.Timestamp) *batch {
	config := set.Config
	b := &batch{
		dimensions: config.Shared.Series.Dimensions.Names(),
		standard:   config.Shared.Conventions.Labels(),
		delta:      config.Temporality == Delta,
		sent:       alreadySent,
		sending:    make(sent, len(alreadySent)),
		since:      since,
		now:        now,
		metrics:    pmetric.NewMetrics(),
		index:      map[string]int{},
	}
	scope := b.metrics.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty()
	scope.Scope().SetName(set.Scope)
	b.into = scope.Metrics()
	return b
}

// SeriesAttributes returns the attributes of a series, with the vantage under the given
// name. Dimensions without a value are left out.
func SeriesAttributes(dimensions []string, vantage string, of *series.Labels) pcommon.Map {
	attributes := pcommon.NewMap()
	attributes.EnsureCapacity(len(dimensions) + 3)
	if of.Overflow {
		attributes.PutBool(names.LabelOverflow, true)
		return attributes
	}
	for i, v := range of.Dimensions {
		if v != "" {
			attributes.PutStr(dimensions[i], v)
		}
	}
	if of.Vantage != "" {
		attributes.PutStr(vantage, of.Vantage)
	}
	return attributes
}

// startOf returns the start of a cumulative stream that is sent for the first time: the
// last moment at which it was known to be zero. That is the last flush or, if the first
// request came later, one millisecond before the request. So the zero point has a time of
// its own even in backends with millisecond timestamps.
func (b *batch) startOf(began time.Time) pcommon.Timestamp {
	first := min(pcommon.NewTimestampFromTime(began), b.now)
	return max(b.since, first-pcommon.Timestamp(time.Millisecond))
}

// metric returns a metric of the batch. added is true if the batch did not have it.
func (b *batch) metric(metric *numbers.Metric) (m pmetric.Metric, added bool) {
	if i, ok := b.index[metric.Name]; ok {
		return b.into.At(i), false
	}
	b.index[metric.Name] = b.into.Len()
	m = b.into.AppendEmpty()
	m.SetName(metric.Name)
	m.SetUnit(metric.Unit)
	m.SetDescription(metric.Description)
	return m, true
}

// prune removes the metrics without data points, which delta temporality produces.
func (b *batch) prune() {
	b.into.RemoveIf(func(m pmetric.Metric) bool {
		switch m.Type() {
		case pmetric.MetricTypeSum:
			return m.Sum().DataPoints().Len() == 0
		case pmetric.MetricTypeExponentialHistogram:
			return m.ExponentialHistogram().DataPoints().Len() == 0
		case pmetric.MetricTypeHistogram:
			return m.Histogram().DataPoints().Len() == 0
		default:
			return false
		}
	})
}

func (b *batch) temporality() pmetric.AggregationTemporality {
	if b.delta {
		return pmetric.AggregationTemporalityDelta
	}
	return pmetric.AggregationTemporalityCumulative
}
