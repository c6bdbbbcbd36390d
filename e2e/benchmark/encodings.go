// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	"google.golang.org/protobuf/proto"

	tokenpulsev1 "github.com/tokenpulse/tokenpulse/proto/tokenpulse/v1"
)

// tokenStreams encodes a request with one part of each stream. The first part has the
// start, the last has the end. Chunk times are deltas in microseconds.
func tokenStreams(streams []stream, part, parts int) []byte {
	resource := &tokenpulsev1.ResourceTokenStreams{
		Resource: &resourcepb.Resource{Attributes: []*commonpb.KeyValue{attribute("service.name", "benchmark")}},
	}
	for _, s := range streams {
		chunks := s.chunks[part*len(s.chunks)/parts : (part+1)*len(s.chunks)/parts]
		run := &tokenpulsev1.ChunkRun{TimeUnixNano: uint64(chunks[0]), DeltaUnitNanos: 1000, TimeDeltas: make([]int64, len(chunks))}
		for i := 1; i < len(chunks); i++ {
			run.TimeDeltas[i] = (chunks[i] - chunks[i-1]) / 1000
		}
		encoded := &tokenpulsev1.TokenStream{StreamId: s.id, ChunkRuns: []*tokenpulsev1.ChunkRun{run}}
		if part == 0 {
			encoded.Start = &tokenpulsev1.StreamStart{TimeUnixNano: uint64(s.start), Attributes: []*commonpb.KeyValue{
				attribute("gen_ai.operation.name", "chat"), attribute("gen_ai.provider.name", "vllm"), attribute("gen_ai.request.model", s.model),
			}}
			if s.unique != "" {
				encoded.Start.Attributes = append(encoded.Start.Attributes, attribute("gen_ai.response.id", s.unique))
			}
		}
		if part == parts-1 {
			encoded.End = &tokenpulsev1.StreamEnd{
				TimeUnixNano: uint64(s.end()),
				Usage:        &tokenpulsev1.Usage{InputTokens: new(uint64(550)), OutputTokens: new(uint64(len(s.chunks)))},
			}
		}
		resource.TokenStreams = append(resource.TokenStreams, encoded)
	}
	return must(proto.Marshal(&tokenpulsev1.ExportTokenStreamsRequest{ResourceTokenStreams: []*tokenpulsev1.ResourceTokenStreams{resource}}))
}

func attribute(key, value string) *commonpb.KeyValue {
	return &commonpb.KeyValue{Key: key, Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: value}}}
}

// tokenEvents encodes whole streams as NDJSON: one event per token, in the order of time.
func tokenEvents(streams []stream, _, _ int) []byte {
	type event struct {
		at   int64
		line string
	}
	var events []event
	for _, s := range streams {
		add := func(at int64, name, rest string) {
			events = append(events, event{at, fmt.Sprintf(`{"event":%q,"stream_id":%q,"time_unix_nano":"%d",%s}`+"\n", name, s.id, at, rest)})
		}
		add(s.start, "start", fmt.Sprintf(`"resource":{"service.name":"benchmark"},`+
			`"attributes":{"gen_ai.operation.name":"chat","gen_ai.provider.name":"vllm","gen_ai.request.model":%q}`, s.model))
		for _, at := range s.chunks {
			add(at, "chunk", `"tokens":1,"channel":"content"`)
		}
		add(s.end(), "end", fmt.Sprintf(`"usage":{"input_tokens":550,"output_tokens":%d}`, len(s.chunks)))
	}
	slices.SortStableFunc(events, func(a, b event) int { return int(a.at - b.at) })
	var body strings.Builder
	for _, e := range events {
		body.WriteString(e.line)
	}
	return []byte(body.String())
}

// spanEvents encodes the streams as spans with one event per chunk, under the event name
// of OpenLLMetry. A span cannot be sent in parts.
func spanEvents(streams []stream, _, _ int) []byte {
	traces, spans := newSpans()
	for i, s := range streams {
		span := spans.AppendEmpty()
		identify(span, i)
		span.SetName("chat " + s.model)
		span.SetStartTimestamp(pcommon.Timestamp(s.start))
		span.SetEndTimestamp(pcommon.Timestamp(s.end()))
		span.Attributes().PutStr("gen_ai.operation.name", "chat")
		span.Attributes().PutStr("gen_ai.provider.name", "vllm")
		span.Attributes().PutStr("gen_ai.request.model", s.model)
		span.Attributes().PutInt("gen_ai.usage.input_tokens", 550)
		span.Attributes().PutInt("gen_ai.usage.output_tokens", int64(len(s.chunks)))
		if s.unique != "" {
			span.Attributes().PutStr("gen_ai.response.id", s.unique)
		}
		for _, at := range s.chunks {
			event := span.Events().AppendEmpty()
			event.SetName("gen_ai.content.completion.chunk")
			event.SetTimestamp(pcommon.Timestamp(at))
		}
	}
	return must(ptraceotlp.NewExportRequestFromTraces(traces).MarshalProto())
}

func newSpans() (ptrace.Traces, ptrace.SpanSlice) {
	traces := ptrace.NewTraces()
	resource := traces.ResourceSpans().AppendEmpty()
	resource.Resource().Attributes().PutStr("service.name", "benchmark")
	return traces, resource.ScopeSpans().AppendEmpty().Spans()
}

func identify(span ptrace.Span, i int) {
	trace := pcommon.TraceID{byte(i), byte(i >> 8), byte(i >> 16), 1}
	copy(trace[len(trace)-len(idMark):], idMark)
	span.SetTraceID(trace)
	span.SetSpanID(pcommon.SpanID{byte(i), byte(i >> 8), byte(i >> 16), 1})
}
