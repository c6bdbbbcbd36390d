// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokenlatencyprocessor

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor/processortest"

	"github.com/tokenpulse/tokenpulse/internal/annotate"
	"github.com/tokenpulse/tokenpulse/internal/names"
)

// BenchmarkProcessor annotates batches of streams with 500 one-token chunks each. The measurement
// excludes building the spans.
func BenchmarkProcessor(b *testing.B) {
	const streams, tokensEach = 100, 500
	var milliseconds []int64
	for i := range int64(tokensEach) {
		milliseconds = append(milliseconds, 300+20*i+i*7919%11)
	}
	ready, spans := newSpans()
	for range streams {
		span := addStream(spans, milliseconds...)
		span.SetEndTimestamp(epoch + pcommon.Timestamp(time.Minute))
		attributes := span.Attributes()
		attributes.PutStr(names.GenAIRequestModel, "llama-3-70b")
		attributes.PutStr(names.GenAIProviderName, "vllm")
		attributes.PutStr(names.GenAIOperationName, "chat")
		attributes.PutStr(names.Vantage, "server")
		attributes.PutStr(names.Outcome, names.OutcomeSuccess)
		attributes.PutDouble("tokenpulse.queue.duration", 0.03)
		attributes.PutInt(names.GenAIInputTokens, 200)
		attributes.PutInt(names.GenAIOutputTokens, tokensEach)
	}
	p, sink := newProcessor(b, processortest.NewNopSettings(typ), annotate.DefaultConfig())

	var derived int
	var bytes, allocations uint64
	var elapsed time.Duration
	for b.Loop() {
		traces := ptrace.NewTraces()
		ready.CopyTo(traces)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		start := time.Now()
		require.NoError(b, p.ConsumeTraces(b.Context(), traces))
		elapsed += time.Since(start)
		runtime.ReadMemStats(&after)
		bytes += after.TotalAlloc - before.TotalAlloc
		allocations += after.Mallocs - before.Mallocs
		for _, span := range sink.AllTraces()[0].ResourceSpans().At(0).ScopeSpans().At(0).Spans().All() {
			if v, ok := span.Attributes().Get("tokenpulse.chunk.count"); ok && v.Int() == tokensEach {
				derived++
			}
		}
		sink.Reset()
	}
	require.Equal(b, b.N*streams, derived)
	total := float64(b.N * streams)
	b.ReportMetric(float64(elapsed.Nanoseconds())/total/tokensEach, "ns/token")
	b.ReportMetric(float64(bytes)/total/tokensEach, "B/token")
	b.ReportMetric(float64(elapsed.Nanoseconds())/total, "ns/span")
	b.ReportMetric(float64(allocations)/total, "allocs/span")
	b.ReportMetric(0, "ns/op") // would include building the spans
}
