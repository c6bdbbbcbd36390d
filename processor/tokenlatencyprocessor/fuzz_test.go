// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokenlatencyprocessor

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/processor/processortest"

	"github.com/tokenpulse/tokenpulse/internal/annotate"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/sketch"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
)

// putAnything sets an attribute to a value of any pdata type, or removes it.
func putAnything(attributes pcommon.Map, name string, kind uint8, bits uint64) {
	v := attributes.PutEmpty(name)
	switch kind % 9 {
	case 0:
		attributes.Remove(name)
	case 1:
		v.SetInt(int64(bits))
	case 2:
		v.SetDouble(math.Float64frombits(bits))
	case 3:
		v.SetDouble(float64(int64(bits)) / 1e9)
	case 4:
		v.SetStr(strings.Repeat("9", int(bits%400)))
	case 5:
		v.SetBool(bits&1 == 0)
	case 6:
		v.SetEmptyBytes().Append(byte(bits))
	case 7:
		v.SetEmptySlice().AppendEmpty().SetInt(int64(bits))
	case 8:
		v.SetEmptyMap().PutInt("key", int64(bits))
	}
}

// requireSane fails if a written attribute is not a finite number of at least 0, or is out of range.
func requireSane(t *testing.T, attributes pcommon.Map) {
	t.Helper()
	if _, ours := attributes.Get(names.Source); !ours {
		return // not annotated
	}
	for name, v := range attributes.All() {
		if !derivedNames[name] {
			continue
		}
		switch {
		case name == "tokenpulse.token_count.mismatch":
			require.NotZero(t, v.Int())
		case v.Type() == pcommon.ValueTypeDouble:
			require.False(t, math.IsNaN(v.Double()) || math.IsInf(v.Double(), 0) || v.Double() < 0, "%s is %v", name, v.Double())
		case v.Type() == pcommon.ValueTypeInt:
			require.GreaterOrEqual(t, v.Int(), int64(0), name)
		case v.Type() == pcommon.ValueTypeBytes:
			var s sketch.Sketch
			require.NoError(t, s.MergeBinary(v.Bytes().AsRaw()), name)
			require.Positive(t, s.Count())
		}
	}
	requireReasons(t, attributes)
	for _, share := range []string{"tokenpulse.decode.share", "tokenpulse.fluidity_index"} {
		if v, ok := attributes.Get(share); ok {
			require.LessOrEqual(t, v.Double(), 1.0, share)
		}
	}
	if duration, ok := attributes.Get("tokenpulse.request.duration"); ok {
		for _, name := range []string{
			"tokenpulse.time_to_first_token", "tokenpulse.time_to_first_output_token", "tokenpulse.time_per_output_token", "tokenpulse.queue.duration",
			"tokenpulse.prefill.duration", "tokenpulse.decode.duration", "tokenpulse.stall.duration",
		} {
			if v, ok := attributes.Get(name); ok {
				require.LessOrEqual(t, v.Double(), duration.Double(), name)
			}
		}
		for _, d := range []string{"tokenpulse.inter_token_latency", "tokenpulse.inter_chunk_latency"} { // gaps are rounded to ticks
			if v, ok := attributes.Get(d + ".max"); ok {
				require.Less(t, v.Double(), duration.Double()+timeline.Tick.Seconds(), d)
			}
		}
	}
}

func FuzzProcessor(f *testing.F) {
	var line timeline.Timeline
	for i := range int64(5) {
		line.Append(epoch+i*i*300_000_000, 1+uint32(i%2), timeline.Channel(i%3))
	}
	good := line.AppendBinary(nil, epoch)
	var wild timeline.Timeline
	for i := range int64(9) { // gaps whose sum overflows
		wild.Append(epoch+(i%2)*(math.MaxInt64-epoch), timeline.MaxTokensPerChunk, timeline.Content)
	}
	second := uint64(time.Second)
	f.Add(good, uint64(epoch), uint64(epoch)+3*second, uint8(2), math.Float64bits(0.1), uint8(1), uint64(12), uint8(0), uint64(0))
	f.Add(good, uint64(epoch), uint64(epoch)-second, uint8(2), math.Float64bits(math.NaN()), uint8(4), uint64(30), uint8(1), uint64(3))
	f.Add(good, uint64(0), uint64(math.MaxUint64), uint8(2), math.Float64bits(-1), uint8(2), math.Float64bits(math.Inf(1)), uint8(1), ^uint64(0))
	f.Add(wild.AppendBinary(nil, epoch), uint64(0), uint64(math.MaxInt64), uint8(3), second, uint8(1), uint64(math.MaxInt64), uint8(1), uint64(math.MaxInt64))
	// A request of a nanosecond with gaps of a tick.
	f.Add([]byte("\x02\x0500\x010\x010\x010\x010\x0100\x02000"), uint64(1), uint64(2), uint8(5), uint64(9), uint8(6), uint64(9), uint8(7), uint64(9))
	f.Add([]byte{}, uint64(1), uint64(2), uint8(7), uint64(9), uint8(8), uint64(9), uint8(6), uint64(9))
	f.Add(good[:len(good)-1], uint64(1), uint64(2), uint8(5), uint64(9), uint8(6), uint64(9), uint8(7), uint64(9))

	cfg := annotate.DefaultConfig()
	cfg.Fluidity = configoptional.Some(FluidityConfig{TimeToFirstToken: time.Second, TimePerOutputToken: 1})
	f.Fuzz(func(
		t *testing.T, stored []byte, start, end uint64,
		queueKind uint8, queue uint64, tokensKind uint8, tokens uint64, droppedKind uint8, dropped uint64,
	) {
		p, sink := newProcessor(t, processortest.NewNopSettings(typ), cfg)
		traces, spans := newSpans()
		addStream(spans, 100, 200)
		span := addStream(spans)
		span.SetStartTimestamp(pcommon.Timestamp(start))
		span.SetEndTimestamp(pcommon.Timestamp(end))
		attributes := span.Attributes()
		attributes.PutEmptyBytes(names.Timeline).FromRaw(stored)
		putAnything(attributes, "tokenpulse.queue.duration", queueKind, queue)
		putAnything(attributes, names.GenAIOutputTokens, tokensKind, tokens)
		putAnything(attributes, names.ChunksDropped, droppedKind, dropped)
		putAnything(attributes, names.Outcome, tokensKind+1, queue)
		putAnything(attributes, names.Vantage, queueKind+1, tokens)
		if droppedKind&0x80 != 0 {
			putAnything(attributes, names.Timeline, droppedKind, queue)
		}

		require.NoError(t, p.ConsumeTraces(t.Context(), traces))
		require.Equal(t, 2, sink.SpanCount())
		spans = sink.AllTraces()[0].ResourceSpans().At(0).ScopeSpans().At(0).Spans()
		requireSane(t, spans.At(0).Attributes())
		requireSane(t, spans.At(1).Attributes())
		first, _ := spans.At(0).Attributes().Get("tokenpulse.time_to_first_token")
		require.Equal(t, 0.1, first.Double(), "the other span is unaffected")
	})
}
