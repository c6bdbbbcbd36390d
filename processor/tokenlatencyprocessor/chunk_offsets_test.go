// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokenlatencyprocessor

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor/processortest"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/tokenpulse/tokenpulse/internal/annotate"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
	"github.com/tokenpulse/tokenpulse/processor/tokenlatencyprocessor/internal/metadatatest"
)

// offsetsOf writes a stream, of four bytes a chunk, as plain attributes, and the same stream as a packed
// timeline on another span.
func offsetsOf(stream []byte, plain, packed pcommon.Map) {
	offsets, tokens, channels := plain.PutEmptySlice(names.ChunkOffsets), plain.PutEmptySlice(names.ChunkTokens), plain.PutEmptySlice(names.ChunkChannels)
	var line timeline.Timeline
	microseconds := int64(0)
	for ; len(stream) >= 4; stream = stream[4:] {
		microseconds += int64(stream[0]) << (stream[1] % 16) // up to 8 s
		n, channel := uint32(stream[2]), timeline.Channel(stream[3]%3)
		offsets.AppendEmpty().SetInt(microseconds)
		tokens.AppendEmpty().SetInt(int64(n))
		channels.AppendEmpty().SetStr(channel.String())
		if n > 0 { // token_stream does not record others either
			line.Append(epoch+microseconds*1000, n, channel)
		}
	}
	packed.PutEmptyBytes(names.Timeline).FromRaw(line.AppendBinary(nil, epoch))
}

// One stream gives the same numbers, whether its arrivals come packed or as plain attributes.
func FuzzChunkOffsets_GiveTheSameAsATimeline(f *testing.F) {
	f.Add([]byte{}, uint32(1), int64(-1), int64(0))
	f.Add([]byte("one token"), uint32(1), int64(1), int64(0))
	f.Add([]byte{180, 10, 1, 1, 20, 10, 1, 0, 90, 10, 3, 0, 255, 15, 1, 0, 0, 0, 1, 2, 20, 10, 0, 0}, uint32(12_000_000), int64(8), int64(2))
	f.Add([]byte{255, 15, 255, 2, 255, 15, 255, 1, 1, 0, 16, 0}, uint32(100), int64(0), int64(-5))
	cfg := annotate.DefaultConfig()
	cfg.Detail = annotate.DetailFull
	cfg.Fluidity = configoptional.Some(FluidityConfig{TimeToFirstToken: 100 * time.Millisecond, TimePerOutputToken: 20 * time.Millisecond})
	p, sink := newProcessor(f, processortest.NewNopSettings(typ), cfg)
	f.Fuzz(func(t *testing.T, stream []byte, duration uint32, output, dropped int64) {
		traces, spans := newSpans()
		for range 2 {
			span := spans.AppendEmpty()
			span.SetKind(ptrace.SpanKindServer)
			span.SetStartTimestamp(epoch)
			span.SetEndTimestamp(epoch + pcommon.Timestamp(duration)*1000)
			span.Attributes().PutStr(names.Outcome, names.OutcomeSuccess)
			span.Attributes().PutInt(names.ChunksDropped, dropped)
			if output >= 0 {
				span.Attributes().PutInt(names.GenAIOutputTokens, output)
			}
		}
		offsetsOf(stream, spans.At(0).Attributes(), spans.At(1).Attributes())
		sink.Reset()
		require.NoError(t, p.ConsumeTraces(t.Context(), traces))
		plain, packed := spans.At(0).Attributes().AsRaw(), spans.At(1).Attributes().AsRaw()
		require.Equal(t, "chunk_offsets", plain[names.Source])
		require.Equal(t, "token_stream", packed[names.Source])
		plain[names.Source] = packed[names.Source]
		require.Equal(t, packed, plain)
	})
}

func TestChunkOffsets_KeptOrDroppedWithTheTimeline(t *testing.T) {
	for _, setting := range []string{annotate.TimelineKeep, annotate.TimelineDrop} {
		t.Run(setting, func(t *testing.T) {
			cfg := annotate.DefaultConfig()
			cfg.Timeline = setting
			p, sink := newProcessor(t, processortest.NewNopSettings(typ), cfg)
			traces, spans := newSpans()
			span := spans.AppendEmpty()
			span.SetStartTimestamp(epoch)
			span.SetEndTimestamp(epoch + pcommon.Timestamp(time.Second))
			offsetsOf([]byte{100, 10, 1, 0, 100, 10, 2, 1}, span.Attributes(), pcommon.NewMap())

			require.NoError(t, p.ConsumeTraces(t.Context(), traces))
			once := span.Attributes().AsRaw()
			for _, name := range []string{names.ChunkOffsets, names.ChunkTokens, names.ChunkChannels} {
				_, kept := once[name]
				require.Equal(t, setting == annotate.TimelineKeep, kept, name)
			}
			require.NoError(t, p.ConsumeTraces(t.Context(), sink.AllTraces()[0]))
			require.Equal(t, once, onlySpan(t, sink.AllTraces()[1]).Attributes().AsRaw(), "a second processor")
		})
	}
}

func TestChunkOffsets_UnreadableOnesAreCountedAndLogged(t *testing.T) {
	reader := componenttest.NewTelemetry()
	defer func() { require.NoError(t, reader.Shutdown(t.Context())) }()
	core, logs := observer.New(zap.WarnLevel)
	set := metadatatest.NewSettings(reader)
	set.Logger = zap.New(core)
	p, sink := newProcessor(t, set, annotate.DefaultConfig())
	traces, spans := newSpans()
	for range 1000 {
		spans.AppendEmpty().Attributes().PutStr(names.ChunkOffsets, "[100,200]")
	}
	require.NoError(t, p.ConsumeTraces(t.Context(), traces))
	require.Equal(t, map[string]any{names.ChunkOffsets: "[100,200]"}, spansOf(sink.AllTraces()[0])[0].Attributes().AsRaw())
	metadatatest.AssertEqualProcessorTokenLatencySpansMalformed(t, reader,
		[]metricdata.DataPoint[int64]{{Value: 1000, Attributes: attribute.NewSet(attribute.String("source", "chunk_offsets"))}}, metricdatatest.IgnoreTimestamp())
	require.Equal(t, 1, logs.Len())
	require.Contains(t, logs.All()[0].Message, "correct the sender: docs/timeline-attributes.md")
	require.Equal(t, "tokenpulse.chunk.offsets has type Str; it must be an array of integers", logs.All()[0].ContextMap()["error"])
}
