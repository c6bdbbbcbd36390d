// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/tokenpulse/tokenpulse/internal/keeper"
	"github.com/tokenpulse/tokenpulse/internal/numbers"
)

// Counter implements keeper.Sink.
func (b *batch) Counter(l labels, c *keeper.Counter) {
	m, added := b.metric(c.Metric)
	if added {
		m.SetEmptySum().SetIsMonotonic(true)
		m.Sum().SetAggregationTemporality(b.temporality())
	}
	id := stream{c.Metric.Name, l.values}
	before, points := l.before[id], m.Sum().DataPoints()
	if b.delta {
		l.sending[id] = sentPoint{total: c.Value}
		if c.Value <= before.total {
			return
		}
		b.sum(points, b.since, b.now, l, c, c.Value-before.total)
	} else {
		start := before.start
		if start == 0 {
			start = b.startOf(c.Began)
			b.sum(points, start, start, l, c, 0)
		}
		l.sending[id] = sentPoint{start: start}
		b.sum(points, start, b.now, l, c, c.Value)
	}
	if b.isNew(&c.Exemplar) {
		putExemplar(points.At(points.Len()-1).Exemplars(), &c.Exemplar).SetIntValue(1)
	}
}

// sum adds a data point of a counter.
func (*batch) sum(into pmetric.NumberDataPointSlice, start, now pcommon.Timestamp, l labels, c *keeper.Counter, n float64) {
	point := into.AppendEmpty()
	point.SetStartTimestamp(start)
	point.SetTimestamp(now)
	l.attributes.CopyTo(point.Attributes())
	if c.Whole {
		point.SetIntValue(int64(n))
	} else {
		point.SetDoubleValue(n)
	}
}

// Gauge implements keeper.Sink.
func (b *batch) Gauge(l labels, metric *numbers.Metric, v float64) {
	m, added := b.metric(metric)
	if added {
		m.SetEmptyGauge()
	}
	point := m.Gauge().DataPoints().AppendEmpty()
	point.SetTimestamp(b.now)
	point.SetDoubleValue(v)
	l.attributes.CopyTo(point.Attributes())
}
