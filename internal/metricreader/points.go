// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package metricreader

import (
	"math"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/tokenpulse/tokenpulse/internal/series"
	"github.com/tokenpulse/tokenpulse/internal/sketch"
)

// header is what the data points of sums and histograms have in common.
type header struct {
	attributes  pcommon.Map
	temporality pmetric.AggregationTemporality
	start, time pcommon.Timestamp
	flags       pmetric.DataPointFlags
}

// begin reads a header. known is the period that the data point goes on with, or nil.
func (r *Reader) begin(name string, p *header) (id uint64, known *period, reason Reason) {
	switch {
	case !p.isDelta() && p.temporality != pmetric.AggregationTemporalityCumulative:
		return 0, nil, UnknownTemporality
	case p.flags.NoRecordedValue():
		return 0, nil, NoValue
	case p.start == 0:
		return 0, nil, NoStart
	case p.time < p.start:
		return 0, nil, Malformed
	}
	id, l := r.read(name, p.attributes)
	if !r.place(name, &l) {
		return 0, nil, UnknownLabel
	}
	if p.isDelta() {
		id = ^id
	}
	known = r.streams.find(id, p.start)
	if known != nil && p.time <= known.last {
		return 0, nil, Repeated
	}
	return id, known, accepted
}

func (p *header) isDelta() bool { return p.temporality == pmetric.AggregationTemporalityDelta }

// next returns the period that a valid data point goes on with or begins. With BeganBefore,
// the data point only shows how far its stream has counted.
func (r *Reader) next(id uint64, known *period, p *header) (next *period, reason Reason) {
	next = known
	if next == nil {
		next, reason = r.streams.open(id, period{start: p.start, delta: p.isDelta()})
		if reason != accepted {
			return nil, reason
		}
		if !p.isDelta() && p.start < r.streams.since {
			reason = BeganBefore
		}
	}
	next.last, next.seen = p.time, r.increment.Arrival
	r.increment.Time = p.time.AsTime()
	return next, reason
}

// largestCount limits sums: whole numbers up to it are exact.
const largestCount = 1 << 53

// number reads a data point of a sum. A sum that falls was reset: it began again at zero.
func (r *Reader) number(name string, temporality pmetric.AggregationTemporality, p pmetric.NumberDataPoint) Reason {
	common := header{p.Attributes(), temporality, p.StartTimestamp(), p.Timestamp(), p.Flags()}
	id, known, reason := r.begin(name, &common)
	if reason != accepted {
		return reason
	}
	i, v := &r.increment, p.DoubleValue()
	if p.ValueType() == pmetric.NumberDataPointValueTypeInt {
		v = float64(p.IntValue())
	}
	whole := i.Part != series.PartCount || series.Counters[i.Count].Whole
	if !(v >= 0 && v <= largestCount) || whole && v != math.Trunc(v) {
		return Malformed
	}
	now, reason := r.next(id, known, &common)
	if now == nil {
		return reason
	}
	more := v - now.count
	if more < 0 {
		more = v
	}
	now.count = v
	// A counter of tokens or stalls appears in its series even if it is 0.
	if reason != accepted || more == 0 && (known != nil || i.Part != series.PartCount) {
		return reason
	}
	i.Requests, i.Sum = uint64(more), more
	r.exemplars(p.Exemplars())
	r.emit()
	return accepted
}

// histogram reads a data point of an exponential histogram. If a bucket falls, all were
// reset.
func (r *Reader) histogram(name string, temporality pmetric.AggregationTemporality, p pmetric.ExponentialHistogramDataPoint) Reason {
	common := header{p.Attributes(), temporality, p.StartTimestamp(), p.Timestamp(), p.Flags()}
	id, known, reason := r.begin(name, &common)
	count := float64(p.Count())
	switch {
	case reason != accepted:
		return reason
	case p.Scale() != sketch.Scale || p.ZeroThreshold() > sketch.ZeroThreshold:
		return WrongScale
	case known != nil && known.count == count: // nothing was added
		_, reason = r.next(id, known, &common)
		return reason
	case !r.load(p):
		return Malformed
	}
	now, reason := r.next(id, known, &common)
	if now == nil {
		return reason
	}
	r.before.Reset()
	if len(now.values) > 0 {
		_ = r.before.MergeBinary(now.values) // it was encoded below
	}
	now.count, now.values = count, r.current.AppendBinary(now.values[:0])
	if reason != accepted || r.current.Count() == 0 {
		return reason
	}
	_ = r.current.Subtract(&r.before) // fails after a reset: then all values are new
	r.increment.Values = &r.current
	r.exemplars(p.Exemplars())
	r.emit()
	return accepted
}

// load reads the values of a histogram. It returns false if they cannot be those of a
// sketch.
func (r *Reader) load(p pmetric.ExponentialHistogramDataPoint) bool {
	for _, n := range p.Negative().BucketCounts().All() {
		if n > 0 {
			return false
		}
	}
	parts := sketch.Parts{
		Zeros: p.ZeroCount(), Offset: p.Positive().Offset(), Counts: p.Positive().BucketCounts().All(),
		Sum: p.Sum(), Min: math.NaN(), Max: math.NaN(),
	}
	if p.HasMin() {
		parts.Min = p.Min()
	}
	if p.HasMax() {
		parts.Max = p.Max()
	}
	return r.current.Load(&parts) == nil && r.current.Count() == p.Count()
}
