// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokenlatencyprocessor

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor/processortest"

	"github.com/tokenpulse/tokenpulse/internal/annotate"
	"github.com/tokenpulse/tokenpulse/internal/attributes"
	"github.com/tokenpulse/tokenpulse/internal/judge"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/testenv/golden"
)

// modelCalls returns batches of n model calls, by source.
func modelCalls(tb testing.TB, n int) map[string]ptrace.Traces {
	tb.Helper()
	batches := map[string]ptrace.Traces{}
	for source, folder := range map[string]string{
		names.SourceSemconv: "semconv_dotnet", names.SourceVercelAI: "vercel_ai_v7_legacy",
		names.SourceOpenLLMetry: "openllmetry_python", names.SourceVLLM: "vllm_one_token",
	} {
		one := golden.ReadTraces(tb, filepath.Join("testdata", folder, "input.yaml"))
		span := onlySpan(tb, one)
		if source == names.SourceOpenLLMetry { // as many events as SDKs keep
			for events := span.Events(); events.Len() < 128; {
				event := events.AppendEmpty()
				events.At(0).CopyTo(event)
				event.SetTimestamp(span.EndTimestamp())
				span.SetEndTimestamp(span.EndTimestamp() + pcommon.Timestamp(20_000_000))
			}
		}
		traces := ptrace.NewTraces()
		scopeSpans := traces.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty()
		one.ResourceSpans().At(0).ScopeSpans().At(0).Scope().CopyTo(scopeSpans.Scope())
		for range n {
			span.CopyTo(scopeSpans.Spans().AppendEmpty())
		}
		batches[source] = traces
	}
	return batches
}

// callsEach is the number of model calls in a batch of the benchmarks.
const callsEach = 100

// benchmarkCalls processes batches like the given one, and returns the spans of the last. The measurement excludes
// copying the batches.
func benchmarkCalls(b *testing.B, cfg *annotate.Config, ready ptrace.Traces) []ptrace.Span {
	b.Helper()
	p, sink := newProcessor(b, processortest.NewNopSettings(typ), cfg)
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		sink.Reset()
		traces := ptrace.NewTraces()
		ready.CopyTo(traces)
		b.StartTimer()
		require.NoError(b, p.ConsumeTraces(b.Context(), traces))
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/callsEach, "ns/span")
	return spansOf(sink.AllTraces()[0])
}

// BenchmarkModelCall annotates batches of one instrumentation's model calls.
func BenchmarkModelCall(b *testing.B) {
	for source, ready := range modelCalls(b, callsEach) {
		b.Run(source, func(b *testing.B) {
			for _, span := range benchmarkCalls(b, annotate.DefaultConfig(), ready) {
				v, _ := span.Attributes().Get(names.Source)
				require.Equal(b, source, v.Str())
			}
		})
	}
}

// BenchmarkVerdicts annotates and judges batches of an engine's spans, by the verdict of three SLOs.
func BenchmarkVerdicts(b *testing.B) {
	ready := modelCalls(b, callsEach)[names.SourceVLLM]
	for _, test := range []struct{ verdicts, threshold string }{{"none", ""}, {"met", "1h"}, {"breached", "1ns"}} {
		b.Run(test.verdicts, func(b *testing.B) {
			cfg := annotate.DefaultConfig()
			for _, indicator := range []string{"time_to_first_token", "request.duration", "queue.duration"} {
				if test.threshold != "" {
					cfg.SLOs = append(cfg.SLOs, judge.SLOConfig{Name: "chat-" + indicator, Indicator: indicator, Threshold: test.threshold})
				}
			}
			for _, span := range benchmarkCalls(b, cfg, ready) {
				list, _ := attributes.Listed(span.Attributes(), names.SLOPrefix+test.verdicts)
				require.Equal(b, test.threshold != "", list != pcommon.Slice{} && list.Len() == 3)
			}
		})
	}
}
