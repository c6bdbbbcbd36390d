// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/series"
	"github.com/tokenpulse/tokenpulse/internal/sketch"
)

// histogram is an exponential histogram of a batch.
type histogram struct {
	*batch
	points pmetric.ExponentialHistogramDataPointSlice
}

func (b *batch) histogram(q numbers.ID) histogram {
	m, added := b.metric(q.Row().Metric)
	if added {
		m.SetEmptyExponentialHistogram().SetAggregationTemporality(b.temporality())
	}
	return histogram{b, m.ExponentialHistogram().DataPoints()}
}

// add adds the data points of one stream. It returns what the next consumer has of it
// afterwards.
func (h histogram) add(before sentHistogram, d *series.DistributionSnapshot, began time.Time, attributes pcommon.Map) sentHistogram {
	if h.delta {
		return h.addDelta(before, d, attributes)
	}
	start := before.start
	if start == 0 {
		start = h.startOf(began)
		h.point(start, start, attributes)
	}
	point := h.point(start, h.now, attributes)
	point.SetMin(d.Sketch.Min())
	point.SetMax(d.Sketch.Max())
	h.fill(point, d, &sketch.Sketch{})
	return sentHistogram{start: start}
}

// addDelta adds the values since the last flush. Their minimum and maximum are unknown:
// the series has those of all values only.
func (h histogram) addDelta(before sentHistogram, d *series.DistributionSnapshot, attributes pcommon.Map) sentHistogram {
	if d.Sketch.Count() == before.count {
		return before
	}
	h.before.Reset()
	if before.count > 0 {
		// This fails only if a count overflows.
		_ = h.before.MergeBinary(before.sketch)
	}
	h.fill(h.point(h.since, h.now, attributes), d, &h.before)
	return sentHistogram{count: d.Sketch.Count(), sketch: d.Sketch.AppendBinary(nil)}
}

func (h histogram) point(start, now pcommon.Timestamp, attributes pcommon.Map) pmetric.ExponentialHistogramDataPoint {
	point := h.points.AppendEmpty()
	point.SetStartTimestamp(start)
	point.SetTimestamp(now)
	point.SetScale(sketch.Scale)
	point.SetZeroThreshold(sketch.ZeroThreshold)
	point.SetSum(0)
	attributes.CopyTo(point.Attributes())
	return point
}

// fill sets the values that the distribution has in addition to before.
func (h histogram) fill(point pmetric.ExponentialHistogramDataPoint, d *series.DistributionSnapshot, before *sketch.Sketch) {
	values := &d.Sketch
	point.SetCount(values.Count() - before.Count())
	point.SetSum(values.Sum() - before.Sum())
	point.SetZeroCount(values.Zeros() - before.Zeros())
	offset, counts := h.buckets(values, before)
	point.Positive().SetOffset(int32(offset))
	point.Positive().BucketCounts().FromRaw(counts)
	h.exemplars(point.Exemplars(), d.Exemplars)
}

// buckets returns the counts of adjacent buckets, starting at an offset, without empty
// ones at either end. They are valid until the next call.
func (h histogram) buckets(values, before *sketch.Sketch) (offset int, counts []uint64) {
	counts = h.counts[:0]
	for index, n := range values.Buckets() {
		if len(counts) == 0 {
			offset = index
		}
		for offset+len(counts) < index {
			counts = append(counts, 0)
		}
		counts = append(counts, n)
	}
	h.counts = counts
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
func (h histogram) exemplars(into pmetric.ExemplarSlice, all []series.Exemplar) {
	var chosen []*series.Exemplar
	for i := len(all) - 1; i >= 0 && len(chosen) < maxExemplars; i-- {
		if e := &all[i]; h.isNew(e) {
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
