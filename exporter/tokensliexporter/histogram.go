// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokensliexporter

import (
	"encoding/hex"
	"math"
	"slices"

	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/tokenpulse/tokenpulse/internal/series"
	"github.com/tokenpulse/tokenpulse/internal/sketch"
)

var (
	schema        int32 = sketch.Scale
	zeroThreshold       = sketch.ZeroThreshold
	infinity            = math.Inf(1)
)

// histogramMessage is a message that is used again for each histogram of a rendering.
type histogramMessage struct {
	dto.Histogram
	buckets   []dto.Bucket      // those of dto.Histogram.Bucket
	counts    []uint64          // those of buckets
	exemplars []exemplarMessage // those of buckets
}

// set sets the message to a distribution with classic buckets.
func (h *histogramMessage) set(d *series.DistributionSnapshot, exemplars bool) {
	h.SampleCount, h.SampleSum = proto.Uint64(d.Sketch.Count()), proto.Float64(d.Sketch.Sum())
	h.Schema, h.ZeroThreshold, h.ZeroCount = nil, nil, nil
	h.PositiveSpan, h.PositiveDelta = h.PositiveSpan[:0], h.PositiveDelta[:0]
	h.classic(d, exemplars)
}

// classic sets the classic buckets.
func (h *histogramMessage) classic(d *series.DistributionSnapshot, exemplars bool) {
	if len(h.buckets) < len(d.Classic) {
		h.buckets = make([]dto.Bucket, len(d.Classic))
		h.counts = make([]uint64, len(d.Classic))
		h.exemplars = make([]exemplarMessage, len(d.Classic))
	}
	h.Bucket, h.Exemplars = h.Bucket[:0], h.Exemplars[:0]
	cumulative := uint64(0)
	for i, n := range d.Classic {
		cumulative += n
		h.counts[i] = cumulative
		bucket := &h.buckets[i]
		bucket.CumulativeCount, bucket.UpperBound, bucket.Exemplar = &h.counts[i], &infinity, nil
		if i < len(d.Bounds) {
			bucket.UpperBound = &d.Bounds[i]
		}
		if exemplars && i < len(d.Exemplars) && d.Exemplars[i].Set() {
			bucket.Exemplar = h.exemplars[i].set(&d.Exemplars[i])
			h.Exemplars = append(h.Exemplars, bucket.Exemplar)
		}
		h.Bucket = append(h.Bucket, bucket)
	}
	h.Exemplars = latest(h.Exemplars)
}

// maxNativeExemplars limits the exemplars of a native histogram to the latest of its
// classic buckets.
const maxNativeExemplars = 10

// latest returns the latest exemplars in the order of time, as Prometheus requires.
func latest(exemplars []*dto.Exemplar) []*dto.Exemplar {
	slices.SortStableFunc(exemplars, func(a, b *dto.Exemplar) int {
		return a.Timestamp.AsTime().Compare(b.Timestamp.AsTime())
	})
	return exemplars[max(0, len(exemplars)-maxNativeExemplars):]
}

// exemplarMessage is a message that is used again for each exemplar of a rendering.
type exemplarMessage struct {
	dto.Exemplar
	span, trace dto.LabelPair
	at          timestamppb.Timestamp
}

var spanIDLabel, traceIDLabel = "span_id", "trace_id"

// set sets the message to an exemplar, and returns it.
func (m *exemplarMessage) set(e *series.Exemplar) *dto.Exemplar {
	m.at.Seconds, m.at.Nanos = e.Time().Unix(), int32(e.Time().Nanosecond())
	m.Value, m.Timestamp, m.Label = &e.Value, &m.at, m.Label[:0]
	if e.SpanID != [8]byte{} {
		m.span.Name, m.span.Value = &spanIDLabel, proto.String(hex.EncodeToString(e.SpanID[:]))
		m.Label = append(m.Label, &m.span)
	}
	m.trace.Name, m.trace.Value = &traceIDLabel, proto.String(hex.EncodeToString(e.TraceID[:]))
	m.Label = append(m.Label, &m.trace)
	return &m.Exemplar
}

// largestGap is the number of empty buckets that are written rather than skipped: a new
// span costs as much as they do.
const largestGap = 2

// native adds a sketch as native buckets of schema 6: spans of adjacent buckets, and
// each bucket's count as the difference to the bucket before. Prometheus numbers buckets
// by their upper bound, the sketch by their lower bound, so the index grows by one.
func (h *histogramMessage) native(values *sketch.Sketch) {
	h.Schema = &schema
	h.ZeroThreshold = &zeroThreshold
	h.ZeroCount = proto.Uint64(values.Zeros())
	next, before := 0, int64(0) // index after the last bucket, and the count of the last bucket
	for index, n := range values.Buckets() {
		index++
		gap := index - next
		if len(h.PositiveSpan) == 0 || gap > largestGap {
			h.PositiveSpan = append(h.PositiveSpan, &dto.BucketSpan{Offset: proto.Int32(int32(gap)), Length: proto.Uint32(0)})
			gap = 0
		}
		span := h.PositiveSpan[len(h.PositiveSpan)-1]
		for ; gap > 0; gap-- {
			h.PositiveDelta = append(h.PositiveDelta, -before)
			before = 0
			*span.Length++
		}
		h.PositiveDelta = append(h.PositiveDelta, int64(n)-before)
		before = int64(n)
		*span.Length++
		next = index + 1
	}
}

// empty removes the values.
func (h *histogramMessage) empty() {
	h.SampleCount, h.SampleSum, h.Exemplars = proto.Uint64(0), proto.Float64(0), nil
	h.PositiveSpan, h.PositiveDelta = nil, nil
	if h.ZeroCount != nil {
		h.ZeroCount = proto.Uint64(0)
	}
	for i, bucket := range h.Bucket {
		h.counts[i], bucket.Exemplar = 0, nil
	}
}
