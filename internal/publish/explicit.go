// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/tokenpulse/tokenpulse/internal/keeper"
)

// explicit adds a histogram with explicit buckets, as the SDKs of OpenTelemetry send the metrics of conventions. So
// Prometheus stores the series `_bucket`, `_count` and `_sum` that dashboards of the conventions query.
func (b *batch) explicit(l labels, h *keeper.Histogram) {
	m, added := b.metric(h.Metric)
	if added {
		m.SetEmptyHistogram().SetAggregationTemporality(b.temporality())
	}
	id := stream{m.Name(), l.values}
	before, points := l.before[id], m.Histogram().DataPoints()
	if b.delta {
		count := float64(h.Sketch.Count())
		l.sending[id] = before
		if count > before.total {
			l.sending[id] = sentPoint{total: count, sum: h.Sketch.Sum(), buckets: append([]uint64(nil), h.Classic...)}
			b.fillExplicit(explicitPoint(points, b.since, b.now, l, h), &before, h)
		}
		return
	}
	start := before.start
	if start == 0 {
		start = b.startOf(h.Began)
		explicitPoint(points, start, start, l, h).BucketCounts().FromRaw(make([]uint64, len(h.Classic)))
	}
	l.sending[id] = sentPoint{start: start}
	point := explicitPoint(points, start, b.now, l, h)
	point.SetMin(h.Sketch.Min())
	point.SetMax(h.Sketch.Max())
	b.fillExplicit(point, &sentPoint{}, h)
}

// explicitPoint adds a data point of a histogram with explicit buckets.
func explicitPoint(into pmetric.HistogramDataPointSlice, start, now pcommon.Timestamp, l labels, h *keeper.Histogram) pmetric.HistogramDataPoint {
	point := into.AppendEmpty()
	point.SetStartTimestamp(start)
	point.SetTimestamp(now)
	point.SetSum(0)
	point.ExplicitBounds().FromRaw(h.Bounds)
	l.attributes.CopyTo(point.Attributes())
	return point
}

// fillExplicit sets the values that the distribution has in addition to those before.
func (b *batch) fillExplicit(point pmetric.HistogramDataPoint, before *sentPoint, h *keeper.Histogram) {
	point.SetCount(h.Sketch.Count() - uint64(before.total))
	point.SetSum(h.Sketch.Sum() - before.sum)
	b.counts = append(b.counts[:0], h.Classic...)
	for i, n := range before.buckets {
		b.counts[i] -= n
	}
	point.BucketCounts().FromRaw(b.counts)
	b.exemplars(point.Exemplars(), h.Exemplars)
}
