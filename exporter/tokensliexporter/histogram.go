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

// histogram returns a message with native and classic buckets. The scraper uses those
// that it supports.
func histogram(d *series.DistributionSnapshot, start *timestamppb.Timestamp) *dto.Histogram {
	h := &dto.Histogram{SampleCount: proto.Uint64(d.Sketch.Count()), SampleSum: proto.Float64(d.Sketch.Sum()), CreatedTimestamp: start}
	classic(h, d)
	native(h, &d.Sketch)
	return h
}

func classic(h *dto.Histogram, d *series.DistributionSnapshot) {
	buckets := make([]dto.Bucket, len(d.Classic))
	cumulative := uint64(0)
	for i, n := range d.Classic {
		cumulative += n
		buckets[i].CumulativeCount = proto.Uint64(cumulative)
		buckets[i].UpperBound = &infinity
		if i < len(d.Bounds) {
			buckets[i].UpperBound = &d.Bounds[i]
		}
		if i < len(d.Exemplars) && d.Exemplars[i].Set() {
			buckets[i].Exemplar = exemplar(&d.Exemplars[i])
			h.Exemplars = append(h.Exemplars, buckets[i].Exemplar)
		}
		h.Bucket = append(h.Bucket, &buckets[i])
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

func exemplar(e *series.Exemplar) *dto.Exemplar {
	d := &dto.Exemplar{Value: proto.Float64(e.Value), Timestamp: timestamppb.New(e.Time())}
	if e.SpanID != [8]byte{} {
		d.Label = append(d.Label, &dto.LabelPair{Name: proto.String("span_id"), Value: proto.String(hex.EncodeToString(e.SpanID[:]))})
	}
	d.Label = append(d.Label, &dto.LabelPair{Name: proto.String("trace_id"), Value: proto.String(hex.EncodeToString(e.TraceID[:]))})
	return d
}

// largestGap is the number of empty buckets that are written rather than skipped: a new
// span costs as much as they do.
const largestGap = 2

// native writes a sketch as native buckets of schema 6: spans of adjacent buckets, and
// each bucket's count as the difference to the bucket before. Prometheus numbers buckets
// by their upper bound, the sketch by their lower bound, so the index grows by one.
func native(h *dto.Histogram, values *sketch.Sketch) {
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
