// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/zap"

	"github.com/tokenpulse/tokenpulse/internal/keeper"
	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/series"
	"github.com/tokenpulse/tokenpulse/processor/tokenlatencyprocessor"
)

// batchOf returns a batch of one service with a span of each trace.
func batchOf(service string, traces ...byte) ptrace.Traces {
	batch := ptrace.NewTraces()
	resource := batch.ResourceSpans().AppendEmpty()
	resource.Resource().Attributes().PutStr("service.name", service)
	scope := resource.ScopeSpans().AppendEmpty()
	scope.Scope().SetName("of " + service)
	for _, trace := range traces {
		scope.Spans().AppendEmpty().SetTraceID(pcommon.TraceID{trace})
	}
	return batch
}

// ended returns the traces that end with these batches: the services of the spans of each.
func ended(t *testing.T, limit int, batches ...ptrace.Traces) (ends []byte, services map[byte][]string) {
	t.Helper()
	services = map[byte][]string{}
	w := newWholeTraces(func(traces ptrace.Traces) error {
		var id byte
		for _, resource := range traces.ResourceSpans().All() {
			service, _ := resource.Resource().Attributes().Get("service.name")
			for _, scope := range resource.ScopeSpans().All() {
				require.Equal(t, "of "+service.Str(), scope.Scope().Name())
				for _, span := range scope.Spans().All() {
					id = span.TraceID()[0]
					services[id] = append(services[id], service.Str())
				}
			}
		}
		ends = append(ends, id)
		return nil
	})
	w.limit = limit
	for _, batch := range batches {
		require.NoError(t, w.add(batch))
		require.LessOrEqual(t, w.held, limit)
	}
	require.NoError(t, w.flush())
	require.Zero(t, w.held)
	require.Empty(t, w.traces)
	return ends, services
}

func TestWholeTraces_SpansOfSeveralBatchesComeInOne(t *testing.T) {
	ends, services := ended(t, 100, batchOf("client", 1, 2), batchOf("engine", 2, 1, 1))
	require.Equal(t, []byte{2, 1}, ends)
	require.Equal(t, map[byte][]string{1: {"client", "engine", "engine"}, 2: {"client", "engine"}}, services)
}

// The trace that got no span for longest ends first, not the oldest.
func TestWholeTraces_AtTheLimitTheTraceThatWaitsLongestEnds(t *testing.T) {
	ends, _ := ended(t, 4, batchOf("client", 1, 2), batchOf("engine", 1), batchOf("client", 3, 4))
	require.Equal(t, []byte{2, 1, 3, 4}, ends)
}

// A client's span in one batch gets the queue of its engine's span in another one.
func TestPipeline_JoinsSpansOfSeveralBatches(t *testing.T) {
	begin := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	spanOf := func(id, parent byte, kind ptrace.SpanKind, attributes map[string]any) ptrace.Traces {
		traces := ptrace.NewTraces()
		span := traces.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans().AppendEmpty()
		span.SetTraceID([16]byte{1})
		span.SetSpanID([8]byte{id})
		span.SetParentSpanID([8]byte{parent})
		span.SetKind(kind)
		span.SetName("llm_request")
		span.SetStartTimestamp(pcommon.NewTimestampFromTime(begin))
		span.SetEndTimestamp(pcommon.NewTimestampFromTime(begin.Add(time.Second)))
		require.NoError(t, span.Attributes().FromRaw(attributes))
		return traces
	}
	client := spanOf(1, 0, ptrace.SpanKindClient, map[string]any{
		"gen_ai.operation.name": "chat", "gen_ai.request.model": "m", "gen_ai.response.time_to_first_chunk": 0.4, "gen_ai.usage.output_tokens": 10,
	})
	engine := spanOf(2, 1, ptrace.SpanKindServer, map[string]any{
		"gen_ai.latency.time_in_queue": 0.125, "gen_ai.latency.time_to_first_token": 0.3, "gen_ai.latency.e2e": 0.9, "gen_ai.usage.completion_tokens": 10,
	})
	latency := tokenlatencyprocessor.NewFactory().CreateDefaultConfig().(*tokenlatencyprocessor.Config)
	latency.Join = true
	sli, queues := keeper.NewDefaultConfig(), map[string]float64{}
	p, err := New(t.Context(), Settings{Latency: latency, SLI: &sli, Logger: zap.NewNop(), Watch: func(r *series.Contribution, _ ptrace.Span, _ pcommon.Map) {
		queues[r.Vantage], _ = r.Value(numbers.QueueDuration)
	}})
	require.NoError(t, err)
	require.NoError(t, p.Consume(t.Context(), client))
	require.NoError(t, p.Consume(t.Context(), engine))
	require.NoError(t, p.Close(t.Context()))
	require.Equal(t, map[string]float64{"client": 0.125, "engine": 0.125}, queues)
}
