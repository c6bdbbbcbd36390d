// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"
	commonv1 "go.opentelemetry.io/proto/otlp/common/v1"
	resourcev1 "go.opentelemetry.io/proto/otlp/resource/v1"
	tracev1 "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/stream"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
	tokenpulsev1 "github.com/tokenpulse/tokenpulse/proto/tokenpulse/v1"
)

// accept decodes a message as the comments of the wire schema define it.
func (r *fakeReceiver) accept(message *tokenpulsev1.ExportTokenStreamsRequest) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, group := range message.GetResourceTokenStreams() {
		for _, part := range group.GetTokenStreams() {
			if err := r.acceptPart(group, part); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *fakeReceiver) acceptPart(group *tokenpulsev1.ResourceTokenStreams, part *tokenpulsev1.TokenStream) error {
	s, ok := r.streams[part.GetStreamId()]
	if start := part.GetStart(); start != nil {
		if ok {
			return fmt.Errorf("stream %q starts a second time", part.GetStreamId())
		}
		s = &stream.Stream{
			ID: part.GetStreamId(), Start: int64(start.GetTimeUnixNano()),
			TraceID: start.GetTraceId(), SpanID: start.GetSpanId(), ParentSpanID: start.GetParentSpanId(),
			Vantage: timeline.Vantage(start.GetVantage()), Attributes: r.attributesOf(start.GetAttributes()),
			Resource: &stream.Resource{Attributes: r.attributesOf(group.GetResource().GetAttributes())},
		}
		r.streams[s.ID] = s
		r.order = append(r.order, s)
	} else if !ok {
		return fmt.Errorf("stream %q has not started", part.GetStreamId())
	}
	if at := part.GetScheduledTimeUnixNano(); at != 0 {
		s.Scheduled = int64(at)
	}
	for _, run := range part.GetChunkRuns() {
		s.Chunks = append(s.Chunks, chunksOf(run)...)
	}
	if end := part.GetEnd(); end != nil {
		s.End = &stream.End{
			Time: int64(end.GetTimeUnixNano()), FinishReason: end.GetFinishReason(), Error: end.GetError(),
			Cancelled: end.GetCancelled(), Attributes: r.attributesOf(end.GetAttributes()),
		}
		if u := end.GetUsage(); u != nil {
			s.End.Usage = &stream.Usage{
				InputTokens: u.InputTokens, OutputTokens: u.OutputTokens,
				ReasoningTokens: u.ReasoningTokens, CachedInputTokens: u.CachedInputTokens, CacheWriteInputTokens: u.CacheWriteInputTokens,
			}
		}
	}
	return nil
}

func chunksOf(run *tokenpulsev1.ChunkRun) []stream.Chunk {
	unit := max(int64(run.GetDeltaUnitNanos()), 1)
	at := int64(run.GetTimeUnixNano())
	var out []stream.Chunk
	for i, delta := range run.GetTimeDeltas() {
		at += delta * unit
		c := stream.Chunk{Time: at, Tokens: 1, Channel: timeline.Channel(run.GetChannel())}
		if len(run.GetTokens()) > 0 {
			c.Tokens = run.GetTokens()[i]
		}
		if run.FirstSequenceNumber != nil {
			c.Sequence, c.Sequenced = run.GetFirstSequenceNumber()+uint64(i), true
		}
		out = append(out, c)
	}
	return out
}

// attributesOf decodes attributes with the Collector's library.
func (r *fakeReceiver) attributesOf(pairs []*commonv1.KeyValue) stream.Attributes {
	if len(pairs) == 0 {
		return nil
	}
	encoded, err := proto.Marshal(&tracev1.TracesData{ResourceSpans: []*tracev1.ResourceSpans{{Resource: &resourcev1.Resource{Attributes: pairs}}}})
	require.NoError(r.t, err)
	traces, err := new(ptrace.ProtoUnmarshaler).UnmarshalTraces(encoded)
	require.NoError(r.t, err)
	return traces.ResourceSpans().At(0).Resource().Attributes().AsRaw()
}
