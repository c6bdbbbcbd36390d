// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokenlatencyprocessor

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor"
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

const epoch = 1_795_233_292_000_000_000

// onlySpan returns the only span of the traces.
func onlySpan(tb testing.TB, traces ptrace.Traces) ptrace.Span {
	tb.Helper()
	require.Equal(tb, 1, traces.SpanCount())
	return traces.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0)
}

// newProcessor returns a processor and the sink that receives its output.
func newProcessor(tb testing.TB, set processor.Settings, cfg *Config) (processor.Traces, *consumertest.TracesSink) {
	tb.Helper()
	sink := new(consumertest.TracesSink)
	p, err := NewFactory().CreateTraces(tb.Context(), set, cfg, sink)
	require.NoError(tb, err)
	return p, sink
}

// addStream adds the span of a stream that lasts a second, with one-token chunks at the given times.
func addStream(spans ptrace.SpanSlice, milliseconds ...int64) ptrace.Span {
	span := spans.AppendEmpty()
	span.SetStartTimestamp(epoch)
	span.SetEndTimestamp(epoch + pcommon.Timestamp(time.Second))
	var line timeline.Timeline
	for _, at := range milliseconds {
		line.Append(epoch+at*int64(time.Millisecond), 1, timeline.Content)
	}
	span.Attributes().PutEmptyBytes(names.Timeline).FromRaw(line.AppendBinary(nil, epoch))
	return span
}

func newSpans() (ptrace.Traces, ptrace.SpanSlice) {
	traces := ptrace.NewTraces()
	return traces, traces.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans()
}

func TestProcessor_Capabilities(t *testing.T) {
	p, _ := newProcessor(t, processortest.NewNopSettings(typ), annotate.DefaultConfig())
	require.True(t, p.Capabilities().MutatesData, "the processor changes spans that other pipelines may share")
}

// A second processor derives the same numbers again if the timeline was kept, and leaves the span
// unchanged if it was dropped.
func TestProcessor_TwiceGivesTheSame(t *testing.T) {
	for _, keep := range []string{annotate.TimelineKeep, annotate.TimelineDrop} {
		t.Run(keep, func(t *testing.T) {
			cfg := annotate.DefaultConfig()
			cfg.Timeline = keep
			p, sink := newProcessor(t, processortest.NewNopSettings(typ), cfg)
			traces, spans := newSpans()
			addStream(spans, 100, 120, 90, 700).Attributes().PutDouble("tokenpulse.queue.duration", 0.03)
			addStream(spans)

			require.NoError(t, p.ConsumeTraces(t.Context(), traces))
			once := ptrace.NewTraces()
			sink.AllTraces()[0].CopyTo(once)
			require.NoError(t, p.ConsumeTraces(t.Context(), sink.AllTraces()[0]))
			twice := sink.AllTraces()[1]
			for i := range 2 {
				first := once.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(i).Attributes()
				second := twice.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(i).Attributes()
				require.Equal(t, first.AsRaw(), second.AsRaw())
				_, kept := first.Get(names.Timeline)
				require.Equal(t, keep == annotate.TimelineKeep, kept)
			}
		})
	}
}

// token_sli must read only numbers that this processor derived, so those of the service are removed.
func TestProcessor_RemovesDerivedAttributesOfOthers(t *testing.T) {
	p, sink := newProcessor(t, processortest.NewNopSettings(typ), annotate.DefaultConfig())
	traces, spans := newSpans()
	attributes := addStream(spans).Attributes() // without a token
	for name := range derivedNames {
		attributes.PutDouble(name, 1e9)
	}
	attributes.PutStr("tokenpulse.audio.duration", "an input, which cannot be read")
	attributes.PutStr("tokenpulse.slo.met", "verdict of another processor")
	attributes.PutStr("mine", "kept")
	require.NoError(t, p.ConsumeTraces(t.Context(), traces))
	require.Equal(t, map[string]any{
		names.Source: "token_stream", names.Vantage: "server", names.Outcome: "error", names.ErrorType: "empty_answer",
		"tokenpulse.request.duration": 1.0, "tokenpulse.chunk.count": int64(0),
		names.Unmeasured:     []any{"time_to_first_token=no_token", "time_per_output_token=no_token"},
		"tokenpulse.slo.met": "verdict of another processor", "mine": "kept",
	}, onlySpan(t, sink.AllTraces()[0]).Attributes().AsRaw())
}

func TestProcessor_KeepsStandardAttributes(t *testing.T) {
	p, sink := newProcessor(t, processortest.NewNopSettings(typ), annotate.DefaultConfig())
	traces, spans := newSpans()
	attributes := addStream(spans, 100, 200).Attributes()
	attributes.PutStr(names.GenAIOutputTokens, "11") // some instrumentations send a string
	require.NoError(t, p.ConsumeTraces(t.Context(), traces))
	raw := onlySpan(t, sink.AllTraces()[0]).Attributes().AsRaw()
	require.Equal(t, "11", raw[names.GenAIOutputTokens], "an existing attribute is not overwritten")
	require.InDelta(t, 0.010, raw["tokenpulse.time_per_output_token"], 1e-12, "the string is read as a number")
}

func TestProcessor_SelfTelemetry(t *testing.T) {
	reader := componenttest.NewTelemetry()
	defer func() { require.NoError(t, reader.Shutdown(t.Context())) }()
	core, logs := observer.New(zap.WarnLevel)
	set := metadatatest.NewSettings(reader)
	set.Logger = zap.New(core)
	p, sink := newProcessor(t, set, annotate.DefaultConfig())

	traces, spans := newSpans()
	addStream(spans, 100, 200)
	addStream(spans, 300, 250, 400)                                              // one step back: one negative gap
	addStream(spans, 1500)                                                       // after the end: TTFT, TTFO and prefill too long
	addStream(spans, 100).Attributes().PutStr("tokenpulse.queue.duration", "no") // unusable
	spans.AppendEmpty().SetName("foreign")
	for range 3 {
		addStream(spans).Attributes().PutStr(names.Timeline, "not bytes")
	}
	require.NoError(t, p.ConsumeTraces(t.Context(), traces))
	require.Equal(t, 8, sink.SpanCount(), "no span is lost")

	one := func(key, value string, n int64) []metricdata.DataPoint[int64] {
		return []metricdata.DataPoint[int64]{{Value: n, Attributes: attribute.NewSet(attribute.String(key, value))}}
	}
	ignore := metricdatatest.IgnoreTimestamp()
	metadatatest.AssertEqualProcessorTokenLatencySpansDerived(t, reader, one("source", "token_stream", 4), ignore)
	metadatatest.AssertEqualProcessorTokenLatencySpansMalformed(t, reader, one("source", "token_stream", 3), ignore)
	metadatatest.AssertEqualProcessorTokenLatencySpansForeign(t, reader, []metricdata.DataPoint[int64]{{Value: 1}}, ignore)
	metadatatest.AssertEqualProcessorTokenLatencyClockAnomalies(t, reader, []metricdata.DataPoint[int64]{{Value: 2}}, ignore)
	metadatatest.AssertEqualProcessorTokenLatencyValuesRejected(t, reader, append(append(
		one("reason", "negative", 1), one("reason", "longer_than_request", 3)...), one("reason", "unusable", 1)...), ignore)

	unread := logs.FilterMessageSnippet("cannot read the token timings").All()
	require.Len(t, unread, 1, "a repeated message is logged once")
	require.Contains(t, unread[0].Message, "check that")
}

func TestProcessor_EmptyBatch(t *testing.T) {
	p, sink := newProcessor(t, processortest.NewNopSettings(typ), annotate.DefaultConfig())
	require.NoError(t, p.ConsumeTraces(t.Context(), ptrace.NewTraces()))
	require.Zero(t, sink.SpanCount())
}

func TestProcessor_ConcurrentBatches(t *testing.T) {
	p, sink := newProcessor(t, processortest.NewNopSettings(typ), annotate.DefaultConfig())
	const batches, spansEach = 8, 50
	done := make(chan error, batches)
	for i := range int64(batches) {
		go func() {
			traces, spans := newSpans()
			for range spansEach {
				addStream(spans, 100, 200+i)
			}
			done <- p.ConsumeTraces(t.Context(), traces)
		}()
	}
	for range batches {
		require.NoError(t, <-done)
	}
	for _, traces := range sink.AllTraces() {
		spans := traces.ResourceSpans().At(0).ScopeSpans().At(0).Spans()
		first, _ := spans.At(0).Attributes().Get("tokenpulse.time_per_output_token")
		for _, span := range spans.All() {
			v, _ := span.Attributes().Get("tokenpulse.time_per_output_token")
			require.Equal(t, first.Double(), v.Double())
		}
	}
	require.Equal(t, batches*spansEach, sink.SpanCount())
}
