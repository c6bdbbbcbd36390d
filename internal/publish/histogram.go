// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/tokenpulse/tokenpulse/internal/keeper"
	"github.com/tokenpulse/tokenpulse/internal/series"
	"github.com/tokenpulse/tokenpulse/internal/sketch"
)

// Histogram implements keeper.Sink. Delta points have no minimum and maximum: the series has those of
// all values only.
func (b *batch) Histogram(l labels, h *keeper.Histogram) {
	if h.Explicit {
		b.explicit(l, h)
		return
	}
	d := h.DistributionSnapshot
	m, added := b.metric(h.Metric)
	if added {
		m.SetEmptyExponentialHistogram().SetAggregationTemporality(b.temporality())
	}
	id := stream{m.Name(), l.values}
	before, points := l.before[id], m.ExponentialHistogram().DataPoints()
	b.before.Reset()
	if b.delta {
		count := float64(d.Sketch.Count())
		l.sending[id] = before
		if count == before.total {
			return
		}
		if before.total > 0 {
			// This fails only if a count overflows.
			_ = b.before.MergeBinary(before.sketch)
		}
		l.sending[id] = sentPoint{total: count, sketch: d.Sketch.AppendBinary(nil)}
		b.fill(b.histogram(points, b.since, b.now, l), d)
		return
	}
	start := before.start
	if start == 0 {
		start = b.startOf(h.Began)
		b.histogram(points, start, start, l)
	}
	l.sending[id] = sentPoint{start: start}
	point := b.histogram(points, start, b.now, l)
	point.SetMin(d.Sketch.Min())
	point.SetMax(d.Sketch.Max())
	b.fill(point, d)
}

// histogram adds a data point of an exponential histogram.
func (*batch) histogram(into pmetric.ExponentialHistogramDataPointSlice, start, now pcommon.Timestamp, l labels) pmetric.ExponentialHistogramDataPoint {
	point := into.AppendEmpty()
	point.SetStartTimestamp(start)
	point.SetTimestamp(now)
	point.SetScale(sketch.Scale)
	point.SetZeroThreshold(sketch.ZeroThreshold)
	point.SetSum(0)
	l.attributes.CopyTo(point.Attributes())
	return point
}

// fill sets the values that the distribution has in addition to b.before.
func (b *batch) fill(point pmetric.ExponentialHistogramDataPoint, d *series.DistributionSnapshot) {
	values, before := &d.Sketch, &b.before
	point.SetCount(values.Count() - before.Count())
	point.SetSum(values.Sum() - before.Sum())
	point.SetZeroCount(values.Zeros() - before.Zeros())
	offset, counts := b.buckets(values, before)
	point.Positive().SetOffset(int32(offset))
	point.Positive().BucketCounts().FromRaw(counts)
	b.exemplars(point.Exemplars(), d.Exemplars)
}

// buckets returns the counts of adjacent buckets, starting at an offset, without empty
// ones at either end. They are valid until the next call.
func (b *batch) buckets(values, before *sketch.Sketch) (offset int, counts []uint64) {
	counts = b.counts[:0]
	for index, n := range values.Buckets() {
		if len(counts) == 0 {
			offset = index
		}
		for offset+len(counts) < index {
			counts = append(counts, 0)
		}
		counts = append(counts, n)
	}
	b.counts = counts
	for index, n := range before.Buckets() {
		counts[index-offset] -= n
	}
	for len(counts) > 0 && counts[len(counts)-1] == 0 {
		counts = counts[:len(counts)-1]
	}
	for len(counts) > 0 && counts[0] == 0 {
		offset, counts = offset+1, counts[1:]
	}
	if len(counts) == 0 {
		offset = 0
	}
	return offset, counts
}

// maxExemplars limits the exemplars of a data point to those of the largest values,
// because users look for slow requests.
const maxExemplars = 5

// exemplars adds the exemplars since the last flush, in the order of time.
func (b *batch) exemplars(into pmetric.ExemplarSlice, all []series.Exemplar) {
	var chosen []*series.Exemplar
	for i := len(all) - 1; i >= 0 && len(chosen) < maxExemplars; i-- {
		if e := &all[i]; b.isNew(e) {
			chosen = append(chosen, e)
		}
	}
	slices.SortStableFunc(chosen, func(a, b *series.Exemplar) int { return a.Time().Compare(b.Time()) })
	for _, e := range chosen {
		putExemplar(into, e).SetDoubleValue(e.Value)
	}
}

// isNew reports whether an exemplar is of a request since the last flush.
func (b *batch) isNew(e *series.Exemplar) bool {
	return e.Set() && pcommon.NewTimestampFromTime(e.Time()) > b.since
}

// putExemplar adds an exemplar without its value.
func putExemplar(into pmetric.ExemplarSlice, e *series.Exemplar) pmetric.Exemplar {
	exemplar := into.AppendEmpty()
	exemplar.SetTraceID(e.TraceID)
	exemplar.SetSpanID(e.SpanID)
	exemplar.SetTimestamp(pcommon.NewTimestampFromTime(e.Time()))
	return exemplar
}
