// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package stream

import (
	"maps"
	"slices"
	"time"

	commonv1 "go.opentelemetry.io/proto/otlp/common/v1"
	resourcev1 "go.opentelemetry.io/proto/otlp/resource/v1"

	tokenpulsev1 "github.com/tokenpulse/tokenpulse/proto/tokenpulse/v1"
)

// ToProto returns the parts as one request of the wire schema. It joins the parts
// of each stream and groups the streams by resource.
func ToProto(parts []Part) *tokenpulsev1.ExportTokenStreamsRequest {
	request := &tokenpulsev1.ExportTokenStreamsRequest{}
	groups := map[*Resource]*tokenpulsev1.ResourceTokenStreams{}
	for _, p := range Join(parts) {
		group, ok := groups[p.Stream.Resource]
		if !ok {
			group = &tokenpulsev1.ResourceTokenStreams{
				Resource: &resourcev1.Resource{Attributes: keyValues(p.Stream.ResourceAttributes())},
			}
			groups[p.Stream.Resource] = group
			request.ResourceTokenStreams = append(request.ResourceTokenStreams, group)
		}
		group.TokenStreams = append(group.TokenStreams, p.toProto())
	}
	return request
}

func (p Part) toProto() *tokenpulsev1.TokenStream {
	s := p.Stream
	out := &tokenpulsev1.TokenStream{StreamId: s.ID, ChunkRuns: chunkRuns(p.Chunks())}
	if p.Start {
		out.Start = &tokenpulsev1.StreamStart{
			TimeUnixNano: uint64(s.Start),
			TraceId:      s.TraceID, SpanId: s.SpanID, ParentSpanId: s.ParentSpanID,
			Vantage:    tokenpulsev1.Vantage(s.Vantage),
			Attributes: keyValues(s.Attributes),
		}
	}
	if p.Scheduled {
		out.ScheduledTimeUnixNano = uint64(s.Scheduled)
	}
	if p.End {
		out.End = &tokenpulsev1.StreamEnd{
			TimeUnixNano: uint64(s.End.Time),
			Usage:        s.End.Usage,
			FinishReason: s.End.FinishReason,
			Error:        s.End.Error,
			Cancelled:    s.End.Cancelled,
			Interrupted:  s.End.Interrupted,
			Attributes:   keyValues(s.End.Attributes),
		}
	}
	return out
}

func chunkRuns(chunks []Chunk) []*tokenpulsev1.ChunkRun {
	var runs []*tokenpulsev1.ChunkRun
	for len(chunks) > 0 {
		n := runLength(chunks)
		runs = append(runs, chunkRun(chunks[:n]))
		chunks = chunks[n:]
	}
	return runs
}

// runLength returns how many of the first chunks fit into one run: chunks of one
// channel whose sequence numbers are consecutive, or that all have none.
func runLength(chunks []Chunk) int {
	n := 1
	for n < len(chunks) {
		last, c := chunks[n-1], chunks[n]
		if c.Channel != last.Channel || c.Sequenced != last.Sequenced || c.Sequenced && c.Sequence != last.Sequence+1 {
			break
		}
		n++
	}
	return n
}

func chunkRun(chunks []Chunk) *tokenpulsev1.ChunkRun {
	first := chunks[0]
	unit := deltaUnit(chunks)
	run := &tokenpulsev1.ChunkRun{
		Channel:        tokenpulsev1.Channel(first.Channel),
		TimeUnixNano:   uint64(first.Time),
		DeltaUnitNanos: uint64(unit),
		TimeDeltas:     make([]int64, len(chunks)),
	}
	if first.Sequenced {
		run.FirstSequenceNumber = &first.Sequence
	}
	if slices.ContainsFunc(chunks, func(c Chunk) bool { return c.Tokens != 1 }) {
		run.Tokens = make([]uint32, len(chunks))
	}
	last := first.Time
	for i, c := range chunks {
		run.TimeDeltas[i] = (c.Time - last) / unit
		last = c.Time
		if run.Tokens != nil {
			run.Tokens[i] = c.Tokens
		}
	}
	return run
}

// deltaUnit returns the coarsest unit that is lossless: microseconds for generated
// streams, nanoseconds for most recordings.
func deltaUnit(chunks []Chunk) int64 {
	for _, c := range chunks {
		if (c.Time-chunks[0].Time)%int64(time.Microsecond) != 0 {
			return int64(time.Nanosecond)
		}
	}
	return int64(time.Microsecond)
}

func keyValues(attributes Attributes) []*commonv1.KeyValue {
	out := make([]*commonv1.KeyValue, 0, len(attributes))
	for _, key := range slices.Sorted(maps.Keys(attributes)) {
		out = append(out, &commonv1.KeyValue{Key: key, Value: anyValue(attributes[key])})
	}
	return out
}

// anyValue returns an empty value for a JSON null and unsupported types.
func anyValue(v any) *commonv1.AnyValue {
	switch v := v.(type) {
	case string:
		return &commonv1.AnyValue{Value: &commonv1.AnyValue_StringValue{StringValue: v}}
	case bool:
		return &commonv1.AnyValue{Value: &commonv1.AnyValue_BoolValue{BoolValue: v}}
	case int64:
		return &commonv1.AnyValue{Value: &commonv1.AnyValue_IntValue{IntValue: v}}
	case float64:
		return &commonv1.AnyValue{Value: &commonv1.AnyValue_DoubleValue{DoubleValue: v}}
	case []any:
		list := &commonv1.ArrayValue{}
		for _, element := range v {
			list.Values = append(list.Values, anyValue(element))
		}
		return &commonv1.AnyValue{Value: &commonv1.AnyValue_ArrayValue{ArrayValue: list}}
	case map[string]any:
		return &commonv1.AnyValue{Value: &commonv1.AnyValue_KvlistValue{KvlistValue: &commonv1.KeyValueList{Values: keyValues(v)}}}
	default:
		return &commonv1.AnyValue{}
	}
}
