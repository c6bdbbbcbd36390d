// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokenlatencyprocessor

import (
	"encoding/binary"
	"maps"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/collector/processor/processortest"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"

	"github.com/tokenpulse/tokenpulse/internal/annotate"
	"github.com/tokenpulse/tokenpulse/internal/attributes"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/processor/tokenlatencyprocessor/internal/metadatatest"
)

// placed is a span of a trace, with times in milliseconds after the epoch.
type placed struct {
	id, parent byte
	name       string
	start, end int64
	attributes map[string]any
}

// clientSpan, gatewaySpan and engineSpan return spans of one request from three vantages.
func clientSpan(id, parent byte, start, end int64, more map[string]any) placed {
	attributes := map[string]any{names.GenAIOperationName: "chat"}
	maps.Copy(attributes, more)
	return placed{id, parent, "chat m", start, end, attributes}
}

func gatewaySpan(id, parent byte, start, end int64) placed {
	return placed{id, parent, "http-request", start, end, map[string]any{"ttft_ms": "150.00", "output_tokens": 11}}
}

func engineSpan(id, parent byte, start, end int64, more map[string]any) placed {
	attributes := map[string]any{"gen_ai.latency.e2e": float64(end-start) / 1e3}
	for key, v := range more {
		attributes["gen_ai.latency."+key] = v
	}
	return placed{id, parent, "llm_request", start, end, attributes}
}

func plainSpan(id, parent byte, start, end int64) placed {
	return placed{id, parent, "work", start, end, nil}
}

func traceOf(t *testing.T, spans ...placed) ptrace.Traces {
	t.Helper()
	traces := ptrace.NewTraces()
	for _, s := range spans { // each from its own service
		span := traces.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans().AppendEmpty()
		span.SetName(s.name)
		span.SetTraceID(pcommon.TraceID{1})
		span.SetSpanID(pcommon.SpanID{s.id})
		if s.parent != 0 {
			span.SetParentSpanID(pcommon.SpanID{s.parent})
		}
		span.SetStartTimestamp(epoch + pcommon.Timestamp(s.start*1e6))
		span.SetEndTimestamp(epoch + pcommon.Timestamp(s.end*1e6))
		require.NoError(t, span.Attributes().FromRaw(s.attributes))
	}
	return traces
}

// processTrace processes a trace and returns its spans by ID.
func processTrace(t *testing.T, cfg *Config, traces ptrace.Traces) map[byte]ptrace.Span {
	t.Helper()
	return processTraceWith(t, processortest.NewNopSettings(typ), cfg, traces)
}

func processTraceWith(t *testing.T, set processor.Settings, cfg *Config, traces ptrace.Traces) map[byte]ptrace.Span {
	t.Helper()
	p, sink := newProcessor(t, set, cfg)
	require.NoError(t, p.ConsumeTraces(t.Context(), traces))
	byID := map[byte]ptrace.Span{}
	for _, span := range allSpans(sink.AllTraces()[0]) {
		byID[span.SpanID()[0]] = span
	}
	return byID
}

func allSpans(traces ptrace.Traces) (all []ptrace.Span) {
	for _, resource := range traces.ResourceSpans().All() {
		for _, scope := range resource.ScopeSpans().All() {
			for _, span := range scope.Spans().All() {
				all = append(all, span)
			}
		}
	}
	return all
}

func joining() *Config {
	cfg := annotate.DefaultConfig()
	cfg.Join, cfg.Detail = true, annotate.DetailFull
	return cfg
}

// requireNumbers compares attributes of a span, to a nanosecond. A negative number stands for a missing
// attribute.
func requireNumbers(t *testing.T, expected map[string]float64, span ptrace.Span) {
	t.Helper()
	for name, want := range expected {
		v, ok := span.Attributes().Get(name)
		require.Equal(t, want >= 0, ok, "whether the span has %s", name)
		if !ok {
			continue
		}
		if v.Type() == pcommon.ValueTypeInt {
			require.EqualValues(t, want, v.Int(), name)
		} else {
			require.InDelta(t, want, v.Double(), 1e-9, name)
		}
	}
}

func estimatesOf(span ptrace.Span) []any {
	v, ok := span.Attributes().Get(names.Estimated)
	if !ok {
		return nil
	}
	return v.Slice().AsRaw()
}

var phasesOfEngine = map[string]any{
	"time_to_first_token": 0.12, "time_in_queue": 0.02, "time_in_model_prefill": 0.09, "time_in_model_decode": 0.7,
}

func TestJoin_AddsPhasesAndNetworkToClient(t *testing.T) {
	spans := processTrace(t, joining(), traceOf(t,
		clientSpan(1, 0, 0, 1000, map[string]any{names.GenAITimeToFirstChunk: 0.2, names.GenAIOutputTokens: 11}),
		plainSpan(2, 1, 30, 980),                     // HTTP server in between
		engineSpan(3, 2, 5040, 5940, phasesOfEngine), // a clock five seconds off
	))
	requireNumbers(t, map[string]float64{
		"tokenpulse.time_to_first_token": 0.2,
		"tokenpulse.queue.duration":      0.02, "tokenpulse.prefill.duration": 0.09, "tokenpulse.decode.duration": 0.7,
		"tokenpulse.decode.share":          0.7 / 0.79,
		"tokenpulse.network.duration":      0.08, // 0.2 - 0.12, independent of the clocks
		"tokenpulse.time_per_output_token": 0.08, // measured by the client: (1 - 0.2) / 10
	}, spans[1])
	require.Equal(t, []any{"time_per_output_token", "output_token_rate"}, estimatesOf(spans[1]))
	requireNumbers(t, map[string]float64{"tokenpulse.network.duration": -1, "tokenpulse.time_per_output_token": -1}, spans[3])
	requireNumbers(t, map[string]float64{"tokenpulse.queue.duration": -1}, spans[2])
}

// A Collector at the edge may write every number, and the one that joins only the standard ones.
func TestJoin_WithStandardDetailOnlyUpdatesTheDecodeShare(t *testing.T) {
	for detail, share := range map[string]float64{annotate.DetailFull: 0.7 / 0.79, annotate.DetailStandard: -1} {
		traces := traceOf(t,
			clientSpan(1, 0, 0, 1000, map[string]any{names.GenAITimeToFirstChunk: 0.2, names.GenAIOutputTokens: 11}),
			engineSpan(2, 1, 20, 900, phasesOfEngine))
		cfg := annotate.DefaultConfig()
		cfg.Detail = detail
		edge, sink := newProcessor(t, processortest.NewNopSettings(typ), cfg)
		require.NoError(t, edge.ConsumeTraces(t.Context(), traces))
		standard := joining()
		standard.Detail = annotate.DetailStandard
		requireNumbers(t, map[string]float64{"tokenpulse.decode.share": share}, processTrace(t, standard, sink.AllTraces()[0])[1])
	}
}

func TestJoin_ByShapeOfTrace(t *testing.T) {
	client := clientSpan(1, 0, 0, 1000, map[string]any{names.GenAITimeToFirstChunk: 0.2})
	tests := map[string]struct {
		spans              []placed
		expected           map[string]float64 // of the client
		joined, ambiguous  int64
		estimatedOfNetwork bool
	}{
		"gateway in between is joined too": {
			spans:    []placed{client, gatewaySpan(2, 1, 10, 990), engineSpan(3, 2, 20, 900, phasesOfEngine)},
			expected: map[string]float64{"tokenpulse.queue.duration": 0.02, "tokenpulse.network.duration": 0.08},
			joined:   2,
		},
		"engine inside an engine is the same request": {
			spans: []placed{
				client,
				engineSpan(2, 1, 20, 900, map[string]any{"time_to_first_token": 0.15}),
				engineSpan(3, 2, 20, 900, phasesOfEngine),
			},
			expected: map[string]float64{"tokenpulse.queue.duration": 0.02, "tokenpulse.network.duration": 0.05},
			joined:   1,
		},
		"two engines are ambiguous": {
			spans:     []placed{client, engineSpan(2, 1, 20, 900, phasesOfEngine), engineSpan(3, 1, 20, 900, phasesOfEngine)},
			expected:  map[string]float64{"tokenpulse.queue.duration": -1, "tokenpulse.network.duration": -1},
			ambiguous: 1,
		},
		"engine of another client": {
			spans:    []placed{client, clientSpan(2, 1, 10, 900, nil), engineSpan(3, 2, 20, 890, phasesOfEngine)},
			expected: map[string]float64{"tokenpulse.queue.duration": -1, "tokenpulse.network.duration": -1},
			joined:   1,
		},
		"engine called by a tool of the client": {
			spans: []placed{
				client, {2, 1, "tool", 20, 900, map[string]any{"openinference.span.kind": "TOOL"}}, engineSpan(3, 2, 20, 900, phasesOfEngine),
			},
			expected: map[string]float64{"tokenpulse.queue.duration": -1, "tokenpulse.network.duration": -1},
		},
		"engine without a client": {
			spans:    []placed{client, engineSpan(3, 9, 20, 900, phasesOfEngine)},
			expected: map[string]float64{"tokenpulse.queue.duration": -1, "tokenpulse.network.duration": -1},
		},
		"engine with a later first token gives no network duration": {
			spans:    []placed{client, engineSpan(3, 1, 20, 900, map[string]any{"time_to_first_token": 0.25, "time_in_queue": 0.02})},
			expected: map[string]float64{"tokenpulse.queue.duration": 0.02, "tokenpulse.network.duration": -1},
			joined:   1,
		},
		"phase longer than the client's request": {
			spans:    []placed{client, engineSpan(3, 1, 20, 2000, map[string]any{"time_in_model_decode": 1.5})},
			expected: map[string]float64{"tokenpulse.decode.duration": 0.8},
			joined:   1,
		},
		"cycle of spans above the engine": {
			spans:    []placed{client, plainSpan(2, 4, 0, 1000), plainSpan(4, 2, 0, 1000), engineSpan(3, 2, 20, 900, phasesOfEngine)},
			expected: map[string]float64{"tokenpulse.queue.duration": -1},
		},
		"cycle that includes the client and the engine": {
			spans: []placed{
				clientSpan(1, 3, 0, 1000, nil), plainSpan(2, 1, 0, 1000), engineSpan(3, 2, 20, 900, phasesOfEngine),
			},
			expected: map[string]float64{"tokenpulse.queue.duration": 0.02},
			joined:   1,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			telemetry := componenttest.NewTelemetry()
			set := processortest.NewNopSettings(typ)
			set.TelemetrySettings = telemetry.NewTelemetrySettings()
			spans := processTraceWith(t, set, joining(), traceOf(t, test.spans...))
			requireNumbers(t, test.expected, spans[1])

			var counts []metricdata.DataPoint[int64]
			for result, n := range map[string]int64{"joined": test.joined, "ambiguous": test.ambiguous} {
				if n > 0 {
					counts = append(counts, metricdata.DataPoint[int64]{
						Attributes: attribute.NewSet(attribute.String("result", result)), Value: n,
					})
				}
			}
			if len(counts) > 0 {
				metadatatest.AssertEqualProcessorTokenLatencyJoins(t, telemetry, counts, metricdatatest.IgnoreTimestamp())
			}
		})
	}
}

// A client that timed its own tokens keeps its exact decode.
func TestJoin_KeepsExactNumbersOfClient(t *testing.T) {
	traces := traceOf(t, plainSpan(1, 0, 0, 1000), engineSpan(2, 1, 20, 900, phasesOfEngine))
	_, spans := newSpans()
	own := addStream(spans, 200, 500, 800)
	own.Attributes().PutStr(names.Vantage, "client")
	own.Attributes().CopyTo(traces.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0).Attributes())

	client := processTrace(t, joining(), traces)[1]
	requireNumbers(t, map[string]float64{
		"tokenpulse.queue.duration": 0.02, "tokenpulse.prefill.duration": 0.09, "tokenpulse.decode.duration": 0.6, "tokenpulse.decode.share": 0.6 / 0.69,
		"tokenpulse.network.duration": 0.08,
	}, client)
	require.Nil(t, estimatesOf(client), "the engine's prefill is exact")
}

func TestJoin_OfSpansAnnotatedByAnotherCollector(t *testing.T) {
	traces := traceOf(t,
		clientSpan(1, 0, 0, 1000, map[string]any{names.GenAITimeToFirstChunk: 0.2}), engineSpan(3, 1, 20, 900, phasesOfEngine))
	before, sink := newProcessor(t, processortest.NewNopSettings(typ), annotate.DefaultConfig())
	require.NoError(t, before.ConsumeTraces(t.Context(), traces))
	client := processTrace(t, joining(), sink.AllTraces()[0])[1]
	requireNumbers(t, map[string]float64{"tokenpulse.queue.duration": 0.02, "tokenpulse.network.duration": 0.08}, client)
}

func TestJoinAndRollUp_OffByDefault(t *testing.T) {
	spans := processTrace(t, annotate.DefaultConfig(), traceOf(t,
		clientSpan(1, 0, 0, 1000, map[string]any{names.GenAITimeToFirstChunk: 0.2}), engineSpan(3, 1, 20, 900, phasesOfEngine)))
	require.Len(t, spans, 2)
	requireNumbers(t, map[string]float64{
		"tokenpulse.queue.duration": -1, "tokenpulse.network.duration": -1, names.TraceCalls: -1,
	}, spans[1])
}

func rollingUp() *Config {
	cfg := annotate.DefaultConfig()
	cfg.RollUp = true
	return cfg
}

func TestRollUp_ByShapeOfTrace(t *testing.T) {
	usage := func(input, output int, ttft float64) map[string]any {
		return map[string]any{names.GenAIInputTokens: input, names.GenAIOutputTokens: output, names.GenAITimeToFirstChunk: ttft}
	}
	tests := map[string]struct {
		spans     []placed
		expected  map[string]float64
		estimated []any
	}{
		"agent with three calls, two of them overlapping": {
			spans: []placed{
				plainSpan(1, 0, 0, 2000),
				clientSpan(2, 1, 100, 600, usage(10, 5, 0.1)),
				clientSpan(3, 1, 300, 900, usage(20, 7, 0.1)),
				plainSpan(4, 1, 950, 1900),
				clientSpan(5, 4, 1000, 1500, usage(30, 9, 0.25)),
			},
			expected: map[string]float64{
				names.TraceCalls: 3, names.TraceInputTokens: 60, names.TraceOutputTokens: 21,
				names.TraceCallDuration:           1.3,  // 100..900 and 1000..1500
				names.TraceCallShare:              0.65, // of 2 s
				"tokenpulse.trace.time_to_answer": 1.25,
			},
			estimated: []any{"trace.time_to_answer"}, // the channel of the first token is unknown
		},
		"one request seen from three vantages counts once": {
			spans: []placed{
				plainSpan(1, 0, 0, 2000),
				clientSpan(2, 1, 100, 1100, usage(10, 5, 0.1)),
				gatewaySpan(3, 2, 110, 1090),
				engineSpan(4, 3, 120, 1080, phasesOfEngine),
			},
			expected: map[string]float64{
				names.TraceCalls: 1, names.TraceInputTokens: 10, names.TraceOutputTokens: 5, names.TraceCallDuration: 1, names.TraceCallShare: 0.5,
			},
			estimated: []any{"trace.time_to_answer"},
		},
		"two instrumentations of one client": {
			spans:    []placed{clientSpan(1, 0, 0, 1000, usage(10, 5, 0.1)), clientSpan(2, 1, 10, 990, usage(10, 5, 0.1))},
			expected: map[string]float64{names.TraceCalls: 1, names.TraceOutputTokens: 5, names.TraceCallDuration: 1, names.TraceCallShare: 1},
		},
		"a service that calls models itself is not a call": {
			spans: []placed{
				{1, 0, "chat m", 0, 2000, map[string]any{names.GenAIOperationName: "chat", names.Vantage: "server", names.GenAIOutputTokens: 99}},
				clientSpan(2, 1, 100, 600, usage(10, 5, 0.1)),
				clientSpan(3, 1, 600, 1100, usage(10, 5, 0.1)),
			},
			expected: map[string]float64{names.TraceCalls: 2, names.TraceOutputTokens: 10, names.TraceCallDuration: 1},
		},
		"calls that do not stream have no first token": {
			spans: []placed{plainSpan(1, 0, 0, 2000), clientSpan(2, 1, 100, 600, map[string]any{names.GenAIOutputTokens: 5})},
			expected: map[string]float64{
				names.TraceCalls: 1, names.TraceInputTokens: -1, names.TraceOutputTokens: 5, "tokenpulse.trace.time_to_answer": -1,
			},
		},
		"call before the trace began, by another clock": {
			spans: []placed{plainSpan(1, 0, 0, 2000), clientSpan(2, 1, -100, 600, usage(10, 5, 0.1))},
			expected: map[string]float64{
				names.TraceCalls: 1, names.TraceCallDuration: 0.7, names.TraceCallShare: -1, "tokenpulse.trace.time_to_answer": -1,
			},
		},
		"calls that end after the trace have no share of it": {
			spans:    []placed{plainSpan(1, 0, 0, 500), clientSpan(2, 1, 400, 700, usage(10, 5, 0.05))},
			expected: map[string]float64{names.TraceCallDuration: 0.3, names.TraceCallShare: -1, "tokenpulse.trace.time_to_answer": 0.45},
		},
		"answer that begins after the trace ended gives no time to answer": {
			spans:    []placed{plainSpan(1, 0, 0, 500), clientSpan(2, 1, 400, 700, usage(10, 5, 0.15))},
			expected: map[string]float64{names.TraceCallDuration: 0.3, names.TraceCallShare: -1, "tokenpulse.trace.time_to_answer": -1},
		},
		"client without usage takes the tokens of its engine": {
			spans: []placed{
				plainSpan(1, 0, 0, 2000),
				clientSpan(2, 1, 100, 600, usage(10, 11, 0.1)),
				clientSpan(3, 1, 700, 1200, nil),
				{4, 3, "llm_request", 710, 1190, map[string]any{
					"gen_ai.latency.e2e": 0.48, "gen_ai.usage.prompt_tokens": 44, "gen_ai.usage.completion_tokens": 33,
				}},
			},
			expected: map[string]float64{names.TraceCalls: 2, names.TraceInputTokens: 54, names.TraceOutputTokens: 44},
		},
		"model call below a tool of another call is a request of its own": {
			spans: []placed{
				plainSpan(1, 0, 0, 2000),
				clientSpan(2, 1, 100, 1600, usage(100, 50, 0.1)),
				{3, 2, "execute_tool", 200, 900, map[string]any{names.GenAIOperationName: "execute_tool"}},
				clientSpan(4, 3, 300, 800, usage(7, 3, 0.1)),
			},
			expected: map[string]float64{names.TraceCalls: 2, names.TraceInputTokens: 107, names.TraceOutputTokens: 53, names.TraceCallDuration: 1.5},
		},
		"a client behind a gateway is the same request as the one before it": {
			spans: []placed{
				clientSpan(1, 0, 0, 1000, usage(10, 5, 0.1)), plainSpan(2, 1, 5, 995), gatewaySpan(3, 2, 10, 990),
				clientSpan(4, 3, 20, 980, usage(10, 5, 0.1)),
			},
			expected: map[string]float64{names.TraceCalls: 1, names.TraceOutputTokens: 5},
		},
		"the earlier of two roots wins": {
			spans:    []placed{plainSpan(1, 0, 0, 2000), plainSpan(9, 0, 50, 5000), clientSpan(2, 9, 100, 600, usage(10, 5, 0.1))},
			expected: map[string]float64{names.TraceCalls: 1},
		},
		"a call that ends before it starts takes no time": {
			spans:    []placed{plainSpan(1, 0, 0, 500), clientSpan(2, 1, 300, 100, usage(10, 5, 0.1)), clientSpan(3, 1, 100, 200, nil)},
			expected: map[string]float64{names.TraceCalls: 2, names.TraceCallDuration: 0.1, names.TraceCallShare: 0.2},
		},
		"a trace without model calls": {
			spans:    []placed{plainSpan(1, 0, 0, 500), plainSpan(2, 1, 0, 500)},
			expected: map[string]float64{names.TraceCalls: -1, names.TraceCallDuration: -1},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			root := processTrace(t, rollingUp(), traceOf(t, test.spans...))[1]
			requireNumbers(t, test.expected, root)
			if test.estimated != nil {
				require.Equal(t, test.estimated, estimatesOf(root))
			}
		})
	}
}

func TestRollUp_TimeToAnswerSkipsReasoning(t *testing.T) {
	traces := traceOf(t, plainSpan(1, 0, 0, 3000), placed{2, 1, "chat m", 1000, 2000, map[string]any{
		"tokenpulse.time_to_first_output_token": 0.4, "tokenpulse.time_to_first_token": 0.1, names.Source: "token_stream",
	}})
	root := processTrace(t, rollingUp(), traces)[1]
	requireNumbers(t, map[string]float64{"tokenpulse.trace.time_to_answer": 1.4}, root)
	require.Nil(t, estimatesOf(root))
}

func TestRollUp_CountsTraceWithoutRoot(t *testing.T) {
	telemetry := componenttest.NewTelemetry()
	set := processortest.NewNopSettings(typ)
	set.TelemetrySettings = telemetry.NewTelemetrySettings()
	span := processTraceWith(t, set, rollingUp(), traceOf(t, clientSpan(2, 1, 100, 600, nil)))[2]
	requireNumbers(t, map[string]float64{names.TraceCalls: -1}, span)
	metadatatest.AssertEqualProcessorTokenLatencyRollUps(t, telemetry, []metricdata.DataPoint[int64]{{
		Attributes: attribute.NewSet(attribute.String("result", "root_missing")), Value: 1,
	}}, metricdatatest.IgnoreTimestamp())
}

func TestJoin_NetworkOfEstimatedFirstTokenIsEstimated(t *testing.T) {
	client := placed{1, 0, "OpenAI.chat", 0, 1000, map[string]any{
		"langfuse.observation.type": "generation", "langfuse.observation.completion_start_time": "2026-11-21T03:54:52.200Z",
	}}
	spans := processTrace(t, joining(), traceOf(t, client, engineSpan(3, 1, 20, 900, phasesOfEngine)))
	requireNumbers(t, map[string]float64{"tokenpulse.network.duration": 0.08}, spans[1])
	require.Contains(t, estimatesOf(spans[1]), "network.duration")
}

// A span that a retry repeats counts once, and a batch does not affect the next.
func TestRollUp_OfRepeatedSpansAndBatches(t *testing.T) {
	p, sink := newProcessor(t, processortest.NewNopSettings(typ), rollingUp())
	for range 5 {
		traces := traceOf(t, plainSpan(1, 0, 0, 2000), clientSpan(2, 1, 100, 600, nil), clientSpan(2, 1, 100, 600, nil))
		require.NoError(t, p.ConsumeTraces(t.Context(), traces))
		require.NoError(t, p.ConsumeTraces(t.Context(), traceOf(t, clientSpan(3, 1, 700, 900, nil))))
	}
	for i, traces := range sink.AllTraces() {
		if i%2 == 0 {
			requireNumbers(t, map[string]float64{names.TraceCalls: 1}, allSpans(traces)[0])
			continue
		}
		requireNumbers(t, map[string]float64{names.TraceCalls: -1}, allSpans(traces)[0])
	}
}

func TestRollUp_CountsUnreportedTokens(t *testing.T) {
	traces, spans := newSpans()
	call := addStream(spans, 200, 500, 900)
	call.SetTraceID(pcommon.TraceID{1})
	call.SetSpanID(pcommon.SpanID{2})
	call.SetParentSpanID(pcommon.SpanID{1})
	traceOf(t, plainSpan(1, 0, 0, 2000)).ResourceSpans().MoveAndAppendTo(traces.ResourceSpans())
	root := processTrace(t, rollingUp(), traces)[1]
	requireNumbers(t, map[string]float64{names.TraceOutputTokens: 3, names.TraceInputTokens: -1, "tokenpulse.trace.time_to_answer": 0.2}, root)
}

func TestJoinAndRollUp_IgnoreImplausibleNumbersOfOthers(t *testing.T) {
	for name, bad := range map[string]any{"not a number": math.NaN(), "infinite": math.Inf(1), "negative": -1.0, "text": "fast", "a list": []any{1.0}} {
		t.Run(name, func(t *testing.T) {
			cfg := rollingUp()
			cfg.Join = true
			annotated := func(id, parent byte, vantage string) placed {
				return placed{id, parent, "call", 0, 1000, map[string]any{
					names.Source: "another", names.Vantage: vantage, "tokenpulse.time_to_first_token": bad, "tokenpulse.queue.duration": bad,
					"tokenpulse.prefill.duration": bad, "tokenpulse.decode.duration": bad, "tokenpulse.request.duration": bad,
					names.GenAIOutputTokens: bad, names.GenAIInputTokens: bad, names.Estimated: bad,
				}}
			}
			spans := processTrace(t, cfg, traceOf(t, plainSpan(1, 0, 0, 2000), annotated(2, 1, "client"), annotated(3, 2, "engine")))
			requireNumbers(t, map[string]float64{
				names.TraceCalls: 1, "tokenpulse.trace.time_to_answer": -1, names.TraceInputTokens: -1, names.TraceOutputTokens: -1,
			}, spans[1])
			requireNumbers(t, map[string]float64{"tokenpulse.network.duration": -1, "tokenpulse.decode.share": -1}, spans[2])
		})
	}
}

// Each number is plausible by itself, but not the sum.
func TestRollUp_SumOfTokensDoesNotOverflow(t *testing.T) {
	traces := traceOf(t, plainSpan(1, 0, 0, 2000))
	spans := traces.ResourceSpans().At(0).ScopeSpans().At(0).Spans()
	for i := range 1100 {
		call := spans.AppendEmpty()
		call.SetTraceID(pcommon.TraceID{1})
		call.SetSpanID(pcommon.SpanID{2, byte(i), byte(i >> 8)})
		call.SetParentSpanID(pcommon.SpanID{1})
		call.Attributes().PutStr(names.GenAIOperationName, "chat")
		call.Attributes().PutInt(names.GenAIOutputTokens, attributes.MaxNumber)
	}
	root := processTrace(t, rollingUp(), traces)[1]
	requireNumbers(t, map[string]float64{names.TraceCalls: 1100}, root)
	sum, _ := root.Attributes().Get(names.TraceOutputTokens)
	require.Equal(t, int64(math.MaxInt64), sum.Int())
}

// A timestamp and a duration that are both far too large do not wrap around to a plausible time.
func TestRollUp_TimeToAnswerDoesNotWrapAround(t *testing.T) {
	for _, ttft := range []float64{1e15, 1 << 53, 9.3e9, 1.1} {
		traces := traceOf(t, plainSpan(1, 0, 0, 0), placed{2, 1, "call", 0, 0, map[string]any{
			names.Source: "another", "tokenpulse.time_to_first_token": ttft,
		}})
		for _, span := range allSpans(traces) {
			span.SetStartTimestamp(1 << 63)
			span.SetEndTimestamp(1<<63 + 1e9)
		}
		requireNumbers(t, map[string]float64{names.TraceCalls: 1, "tokenpulse.trace.time_to_answer": -1}, processTrace(t, rollingUp(), traces)[1])
	}
}

func TestRollUp_OfSeveralTracesInOneBatch(t *testing.T) {
	traces := traceOf(t, plainSpan(1, 0, 0, 2000), clientSpan(2, 1, 100, 600, nil))
	other := traceOf(t, plainSpan(3, 0, 0, 1000), clientSpan(4, 3, 100, 600, nil), clientSpan(5, 3, 600, 700, nil))
	for _, span := range allSpans(other) {
		span.SetTraceID(pcommon.TraceID{2})
	}
	other.ResourceSpans().MoveAndAppendTo(traces.ResourceSpans())
	spans := processTrace(t, rollingUp(), traces)
	requireNumbers(t, map[string]float64{names.TraceCalls: 1, names.TraceCallDuration: 0.5}, spans[1])
	requireNumbers(t, map[string]float64{names.TraceCalls: 2, names.TraceCallDuration: 0.6}, spans[3])
}

func TestPhases_OfOneSpan(t *testing.T) {
	cfg := annotate.DefaultConfig()
	cfg.Phases = true
	type phase struct {
		name       string
		start, end time.Duration
		estimated  []any
	}
	tests := map[string]struct {
		span     placed
		expected []phase
	}{
		"engine: consecutive, decode from the first token": {
			span: engineSpan(1, 0, 0, 900, phasesOfEngine),
			expected: []phase{
				{"queue", 0, 20 * time.Millisecond, nil},
				{"prefill", 20 * time.Millisecond, 110 * time.Millisecond, nil},
				{"decode", 120 * time.Millisecond, 820 * time.Millisecond, nil},
			},
		},
		"client: estimates are marked": {
			span: clientSpan(1, 0, 0, 1000, map[string]any{names.GenAITimeToFirstChunk: 0.2}),
			expected: []phase{
				{"prefill", 0, 200 * time.Millisecond, []any{"prefill.duration"}},
				{"decode", 200 * time.Millisecond, 1000 * time.Millisecond, []any{"decode.duration"}},
			},
		},
		"engine whose decode does not fit after the first token": {
			span: engineSpan(1, 0, 0, 900, map[string]any{"time_to_first_token": 0.3, "time_in_model_decode": 0.7}),
			expected: []phase{
				{"prefill", 0, 300 * time.Millisecond, []any{"prefill.duration"}},
				{"decode", 200 * time.Millisecond, 900 * time.Millisecond, nil},
			},
		},
		"unknown phases":   {span: clientSpan(1, 0, 0, 1000, nil)},
		"not a model call": {span: plainSpan(1, 0, 0, 1000)},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p, sink := newProcessor(t, processortest.NewNopSettings(typ), cfg)
			require.NoError(t, p.ConsumeTraces(t.Context(), traceOf(t, test.span)))
			require.NoError(t, p.ConsumeTraces(t.Context(), traceOf(t, test.span)))

			first, again := allSpans(sink.AllTraces()[0]), allSpans(sink.AllTraces()[1])
			require.Len(t, first, 1+len(test.expected))
			ids := map[pcommon.SpanID]bool{}
			for i, span := range first[1:] {
				want := test.expected[i]
				require.Equal(t, want.name, span.Name())
				require.Equal(t, first[0].SpanID(), span.ParentSpanID())
				require.Equal(t, first[0].TraceID(), span.TraceID())
				require.Equal(t, want.start, time.Duration(span.StartTimestamp()-epoch))
				require.Equal(t, want.end, time.Duration(span.EndTimestamp()-epoch))
				require.Equal(t, want.estimated, estimatesOf(span))
				require.False(t, span.SpanID().IsEmpty())
				require.Equal(t, span.SpanID(), again[i+1].SpanID(), "the ID is the same when the call is sent again")
				ids[span.SpanID()] = true
			}
			require.Len(t, ids, len(test.expected))
		})
	}
}

func TestPhases_AddedOnce(t *testing.T) {
	cfg := annotate.DefaultConfig()
	cfg.Phases, cfg.Timeline = true, annotate.TimelineKeep
	traces, spans := newSpans()
	addStream(spans, 200, 500, 900)
	traceOf(t, engineSpan(1, 0, 0, 900, phasesOfEngine)).ResourceSpans().MoveAndAppendTo(traces.ResourceSpans())
	once, sink := newProcessor(t, processortest.NewNopSettings(typ), cfg)
	require.NoError(t, once.ConsumeTraces(t.Context(), traces))
	require.Equal(t, 2+2+3, sink.SpanCount())
	twice, again := newProcessor(t, processortest.NewNopSettings(typ), cfg)
	require.NoError(t, twice.ConsumeTraces(t.Context(), sink.AllTraces()[0]))
	require.Equal(t, 2+2+3, again.SpanCount())
}

// Hostile parents must not cost more than the number of spans.
func TestJoinAndRollUp_StepsGrowWithTheSpans(t *testing.T) {
	const engine, client, plain = "engine", "client", "plain"
	kinds := map[string]func(i int) string{
		"plain spans below an engine": func(int) string { return plain },
		"engines":                     func(int) string { return engine },
		"clients":                     func(int) string { return client },
		"engines under plain spans": func(i int) string {
			if i%2 == 0 {
				return engine
			}
			return plain
		},
		"many engines at the end of a chain": func(i int) string {
			if i%1000 > 500 {
				return engine
			}
			return plain
		},
	}
	// parents of span i of n
	shapes := map[string]func(i, n int) int{
		"chain":              func(i, _ int) int { return i - 1 },
		"ring":               func(i, n int) int { return (i + 1) % n },
		"star below a chain": func(i, n int) int { return min(i-1, n/2) },
		"ring with a long tail": func(i, n int) int {
			if i == 0 {
				return n / 2
			}
			return i - 1
		},
	}
	for kind, of := range kinds {
		for shape, parentOf := range shapes {
			t.Run(kind+", "+shape, func(t *testing.T) {
				for _, n := range []int{100, 1000, 10_000} {
					const perSpan = 450 // seven walks of up to 64 calls
					traces := ptrace.NewTraces()
					spans := traces.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans()
					for i := range n {
						span := spans.AppendEmpty()
						span.SetTraceID(pcommon.TraceID{1})
						span.SetSpanID(pcommon.SpanID(binary.BigEndian.AppendUint64(nil, uint64(i+1))))
						if parent := parentOf(i, n); parent >= 0 {
							span.SetParentSpanID(pcommon.SpanID(binary.BigEndian.AppendUint64(nil, uint64(parent+1))))
						}
						if of(i) != plain {
							span.Attributes().PutStr(names.Source, "x")
							span.Attributes().PutStr(names.Vantage, of(i))
							span.Attributes().PutDouble("tokenpulse.time_to_first_token", 0.1)
						}
					}
					var tree tree
					tree.build(traces)
					require.Len(t, tree.nodes, n)
					tree.join(new(tally))
					tree.addPhases(true)
					tree.rollUp(new(tally))
					require.LessOrEqual(t, tree.steps, perSpan*n)
				}
			})
		}
	}
}
