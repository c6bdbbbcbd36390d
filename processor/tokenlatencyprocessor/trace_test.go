package tokenlatencyprocessor

import (
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

	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/processor/tokenlatencyprocessor/internal/metadatatest"
)

// placed is a span of a trace: times in milliseconds after the epoch.
type placed struct {
	id, parent byte
	name       string
	start, end int64
	attributes map[string]any
}

// The spans of one request, as three vantage points see it.
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
	for _, s := range spans { // each of a service of its own
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

// processTrace puts a trace through the processor and returns its spans by id.
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
	cfg := createDefaultConfig()
	cfg.Join = true
	return cfg
}

// requireNumbers compares what a span carries under our names to a nanosecond. A
// number below zero stands for an absent one.
func requireNumbers(t *testing.T, expected map[string]float64, span ptrace.Span) {
	t.Helper()
	for name, want := range expected {
		v, ok := span.Attributes().Get(name)
		require.Equal(t, want >= 0, ok, "%s is there", name)
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
	v, ok := span.Attributes().Get(names.Estimate)
	if !ok {
		return nil
	}
	return v.Slice().AsRaw()
}

var phasesOfEngine = map[string]any{
	"time_to_first_token": 0.12, "time_in_queue": 0.02, "time_in_model_prefill": 0.09, "time_in_model_decode": 0.7,
}

func TestClientGainsWhatTheEngineKnows(t *testing.T) {
	spans := processTrace(t, joining(), traceOf(t,
		clientSpan(1, 0, 0, 1000, map[string]any{names.GenAITimeToFirstChunk: 0.2, names.GenAIOutputTokens: 11}),
		plainSpan(2, 1, 30, 980),                     // HTTP server in between
		engineSpan(3, 2, 5040, 5940, phasesOfEngine), // a clock five seconds off
	))
	requireNumbers(t, map[string]float64{
		names.TimeToFirstToken: 0.2,
		names.QueueDuration:    0.02, names.PrefillDuration: 0.09, names.DecodeDuration: 0.7,
		names.DecodeShare:        0.7 / 0.79,
		names.NetworkDuration:    0.08, // 0.2 - 0.12, whatever the clocks say
		names.TimePerOutputToken: 0.08, // the client's own: (1 - 0.2) / 10
	}, spans[1])
	require.Equal(t, []any{"time_per_output_token", "output_token_rate"}, estimatesOf(spans[1]))
	requireNumbers(t, map[string]float64{names.NetworkDuration: -1, names.TimePerOutputToken: -1}, spans[3])
	requireNumbers(t, map[string]float64{names.QueueDuration: -1}, spans[2])
}

func TestJoin(t *testing.T) {
	client := clientSpan(1, 0, 0, 1000, map[string]any{names.GenAITimeToFirstChunk: 0.2})
	tests := map[string]struct {
		spans              []placed
		expected           map[string]float64 // of the client
		joined, ambiguous  int64
		estimatedOfNetwork bool
	}{
		"gateway in between gains too": {
			spans:    []placed{client, gatewaySpan(2, 1, 10, 990), engineSpan(3, 2, 20, 900, phasesOfEngine)},
			expected: map[string]float64{names.QueueDuration: 0.02, names.NetworkDuration: 0.08},
			joined:   2,
		},
		"engine inside an engine is the same request": {
			spans: []placed{
				client,
				engineSpan(2, 1, 20, 900, map[string]any{"time_to_first_token": 0.15}),
				engineSpan(3, 2, 20, 900, phasesOfEngine),
			},
			expected: map[string]float64{names.QueueDuration: 0.02, names.NetworkDuration: 0.05},
			joined:   1,
		},
		"two engines: nobody can tell which": {
			spans:     []placed{client, engineSpan(2, 1, 20, 900, phasesOfEngine), engineSpan(3, 1, 20, 900, phasesOfEngine)},
			expected:  map[string]float64{names.QueueDuration: -1, names.NetworkDuration: -1},
			ambiguous: 1,
		},
		"engine of another client": {
			spans:    []placed{client, clientSpan(2, 1, 10, 900, nil), engineSpan(3, 2, 20, 890, phasesOfEngine)},
			expected: map[string]float64{names.QueueDuration: -1, names.NetworkDuration: -1},
			joined:   1,
		},
		"engine that a tool of the client's asked": {
			spans: []placed{
				client, {2, 1, "tool", 20, 900, map[string]any{"openinference.span.kind": "TOOL"}}, engineSpan(3, 2, 20, 900, phasesOfEngine),
			},
			expected: map[string]float64{names.QueueDuration: -1, names.NetworkDuration: -1},
		},
		"engine without a client": {
			spans:    []placed{client, engineSpan(3, 9, 20, 900, phasesOfEngine)},
			expected: map[string]float64{names.QueueDuration: -1, names.NetworkDuration: -1},
		},
		"engine that needed longer for the first token: there is no such network": {
			spans:    []placed{client, engineSpan(3, 1, 20, 900, map[string]any{"time_to_first_token": 0.25, "time_in_queue": 0.02})},
			expected: map[string]float64{names.QueueDuration: 0.02, names.NetworkDuration: -1},
			joined:   1,
		},
		"phase longer than the client's request": {
			spans:    []placed{client, engineSpan(3, 1, 20, 2000, map[string]any{"time_in_model_decode": 1.5})},
			expected: map[string]float64{names.DecodeDuration: 0.8},
			joined:   1,
		},
		"spans without end above the engine": {
			spans:    []placed{client, plainSpan(2, 4, 0, 1000), plainSpan(4, 2, 0, 1000), engineSpan(3, 2, 20, 900, phasesOfEngine)},
			expected: map[string]float64{names.QueueDuration: -1},
		},
		"spans that are each other's parents": {
			spans: []placed{
				clientSpan(1, 3, 0, 1000, nil), plainSpan(2, 1, 0, 1000), engineSpan(3, 2, 20, 900, phasesOfEngine),
			},
			expected: map[string]float64{names.QueueDuration: 0.02},
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

// A client that watched its own tokens knows its decode better than the engine.
func TestJoinKeepsWhatTheClientKnows(t *testing.T) {
	traces := traceOf(t, plainSpan(1, 0, 0, 1000), engineSpan(2, 1, 20, 900, phasesOfEngine))
	_, spans := newSpans()
	own := addStream(spans, 200, 500, 800)
	own.Attributes().PutStr(names.Vantage, "client")
	own.Attributes().CopyTo(traces.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0).Attributes())

	client := processTrace(t, joining(), traces)[1]
	requireNumbers(t, map[string]float64{
		names.QueueDuration: 0.02, names.PrefillDuration: 0.09, names.DecodeDuration: 0.6, names.DecodeShare: 0.6 / 0.69,
		names.NetworkDuration: 0.08,
	}, client)
	require.Nil(t, estimatesOf(client), "prefill is the engine's now, and no bound any more")
}

// A span that a processor in another Collector has annotated joins as well.
func TestJoinOfSpansThatWereAnnotatedBefore(t *testing.T) {
	traces := traceOf(t,
		clientSpan(1, 0, 0, 1000, map[string]any{names.GenAITimeToFirstChunk: 0.2}), engineSpan(3, 1, 20, 900, phasesOfEngine))
	before, sink := newProcessor(t, processortest.NewNopSettings(typ), createDefaultConfig())
	require.NoError(t, before.ConsumeTraces(t.Context(), traces))
	client := processTrace(t, joining(), sink.AllTraces()[0])[1]
	requireNumbers(t, map[string]float64{names.QueueDuration: 0.02, names.NetworkDuration: 0.08}, client)
}

func TestOffByDefault(t *testing.T) {
	spans := processTrace(t, createDefaultConfig(), traceOf(t,
		clientSpan(1, 0, 0, 1000, map[string]any{names.GenAITimeToFirstChunk: 0.2}), engineSpan(3, 1, 20, 900, phasesOfEngine)))
	require.Len(t, spans, 2)
	requireNumbers(t, map[string]float64{
		names.QueueDuration: -1, names.NetworkDuration: -1, names.TraceCalls: -1,
	}, spans[1])
}

func rollingUp() *Config {
	cfg := createDefaultConfig()
	cfg.RollUp = true
	return cfg
}

func TestRollUp(t *testing.T) {
	usage := func(input, output int, ttft float64) map[string]any {
		return map[string]any{names.GenAIInputTokens: input, names.GenAIOutputTokens: output, names.GenAITimeToFirstChunk: ttft}
	}
	tests := map[string]struct {
		spans     []placed
		expected  map[string]float64
		estimated []any
	}{
		"agent with three calls, two at a time": {
			spans: []placed{
				plainSpan(1, 0, 0, 2000),
				clientSpan(2, 1, 100, 600, usage(10, 5, 0.1)),
				clientSpan(3, 1, 300, 900, usage(20, 7, 0.1)),
				plainSpan(4, 1, 950, 1900),
				clientSpan(5, 4, 1000, 1500, usage(30, 9, 0.25)),
			},
			expected: map[string]float64{
				names.TraceCalls: 3, names.TraceInputTokens: 60, names.TraceOutputTokens: 21,
				names.TraceCallDuration: 1.3,  // 100..900 and 1000..1500
				names.TraceCallShare:    0.65, // of 2 s
				names.TraceTimeToAnswer: 1.25,
			},
			estimated: []any{"trace.time_to_answer"}, // of a first token whose channel nobody told
		},
		"one request seen from three vantage points is one": {
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
		"a service that streams to its user and calls models itself is no call": {
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
				names.TraceCalls: 1, names.TraceInputTokens: -1, names.TraceOutputTokens: 5, names.TraceTimeToAnswer: -1,
			},
		},
		"clocks that do not agree: a call before the trace began": {
			spans: []placed{plainSpan(1, 0, 0, 2000), clientSpan(2, 1, -100, 600, usage(10, 5, 0.1))},
			expected: map[string]float64{
				names.TraceCalls: 1, names.TraceCallDuration: 0.7, names.TraceCallShare: -1, names.TraceTimeToAnswer: -1,
			},
		},
		"calls that outlast the trace have no share of it": {
			spans:    []placed{plainSpan(1, 0, 0, 500), clientSpan(2, 1, 400, 700, usage(10, 5, 0.05))},
			expected: map[string]float64{names.TraceCallDuration: 0.3, names.TraceCallShare: -1, names.TraceTimeToAnswer: 0.45},
		},
		"an answer that begins after the trace was over is not what the user waited for": {
			spans:    []placed{plainSpan(1, 0, 0, 500), clientSpan(2, 1, 400, 700, usage(10, 5, 0.15))},
			expected: map[string]float64{names.TraceCallDuration: 0.3, names.TraceCallShare: -1, names.TraceTimeToAnswer: -1},
		},
		"a client without usage: the engine tells": {
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
		"a tool of a model's calls a model": {
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
		"of two roots the first counts": {
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

// The user waits for output, not for reasoning.
func TestTimeToAnswerIsOfTheFirstOutputToken(t *testing.T) {
	traces := traceOf(t, plainSpan(1, 0, 0, 3000), placed{2, 1, "chat m", 1000, 2000, map[string]any{
		names.TimeToFirstOutputToken: 0.4, names.TimeToFirstToken: 0.1, names.Source: "token_stream",
	}})
	root := processTrace(t, rollingUp(), traces)[1]
	requireNumbers(t, map[string]float64{names.TraceTimeToAnswer: 1.4}, root)
	require.Nil(t, estimatesOf(root))
}

func TestRollUpWithoutARoot(t *testing.T) {
	telemetry := componenttest.NewTelemetry()
	set := processortest.NewNopSettings(typ)
	set.TelemetrySettings = telemetry.NewTelemetrySettings()
	span := processTraceWith(t, set, rollingUp(), traceOf(t, clientSpan(2, 1, 100, 600, nil)))[2]
	requireNumbers(t, map[string]float64{names.TraceCalls: -1}, span)
	metadatatest.AssertEqualProcessorTokenLatencyRollUps(t, telemetry, []metricdata.DataPoint[int64]{{
		Attributes: attribute.NewSet(attribute.String("result", "root_missing")), Value: 1,
	}}, metricdatatest.IgnoreTimestamp())
}

// The first frame may come before the first token, and so may what it says of the
// network.
func TestNetworkOfAnEstimateIsAnEstimate(t *testing.T) {
	client := placed{1, 0, "OpenAI.chat", 0, 1000, map[string]any{
		"langfuse.observation.type": "generation", "langfuse.observation.completion_start_time": "2026-11-21T03:54:52.200Z",
	}}
	spans := processTrace(t, joining(), traceOf(t, client, engineSpan(3, 1, 20, 900, phasesOfEngine)))
	requireNumbers(t, map[string]float64{names.NetworkDuration: 0.08}, spans[1])
	require.Contains(t, estimatesOf(spans[1]), "network.duration")
}

// What a retry brings twice counts once, and what a batch held is no part of the
// next.
func TestRollUpOfRepeatedSpansAndBatches(t *testing.T) {
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

func TestRollUpCountsTokensThatNobodyReported(t *testing.T) {
	traces, spans := newSpans()
	call := addStream(spans, 200, 500, 900)
	call.SetTraceID(pcommon.TraceID{1})
	call.SetSpanID(pcommon.SpanID{2})
	call.SetParentSpanID(pcommon.SpanID{1})
	traceOf(t, plainSpan(1, 0, 0, 2000)).ResourceSpans().MoveAndAppendTo(traces.ResourceSpans())
	root := processTrace(t, rollingUp(), traces)[1]
	requireNumbers(t, map[string]float64{names.TraceOutputTokens: 3, names.TraceInputTokens: -1, names.TraceTimeToAnswer: 0.2}, root)
}

// Numbers that somebody else wrote under our names are not to be believed.
func TestImpossibleNumbersOfOthers(t *testing.T) {
	for name, bad := range map[string]any{"not a number": math.NaN(), "infinite": math.Inf(1), "negative": -1.0, "text": "fast", "a list": []any{1.0}} {
		t.Run(name, func(t *testing.T) {
			cfg := rollingUp()
			cfg.Join = true
			annotated := func(id, parent byte, vantage string) placed {
				return placed{id, parent, "call", 0, 1000, map[string]any{
					names.Source: "somebody", names.Vantage: vantage, names.TimeToFirstToken: bad, names.QueueDuration: bad,
					names.PrefillDuration: bad, names.DecodeDuration: bad, names.RequestDuration: bad,
					names.GenAIOutputTokens: bad, names.GenAIInputTokens: bad, names.Estimate: bad,
				}}
			}
			spans := processTrace(t, cfg, traceOf(t, plainSpan(1, 0, 0, 2000), annotated(2, 1, "client"), annotated(3, 2, "engine")))
			requireNumbers(t, map[string]float64{
				names.TraceCalls: 1, names.TraceTimeToAnswer: -1, names.TraceInputTokens: -1, names.TraceOutputTokens: -1,
			}, spans[1])
			requireNumbers(t, map[string]float64{names.NetworkDuration: -1, names.DecodeShare: -1}, spans[2])
		})
	}
}

// Batches of many traces are summed up trace by trace.
func TestRollUpOfSeveralTraces(t *testing.T) {
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

func TestPhases(t *testing.T) {
	cfg := createDefaultConfig()
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
		"engine: one after the other, decode from the first token": {
			span: engineSpan(1, 0, 0, 900, phasesOfEngine),
			expected: []phase{
				{"queue", 0, 20 * time.Millisecond, nil},
				{"prefill", 20 * time.Millisecond, 110 * time.Millisecond, nil},
				{"decode", 120 * time.Millisecond, 820 * time.Millisecond, nil},
			},
		},
		"client: bounds are marked": {
			span: clientSpan(1, 0, 0, 1000, map[string]any{names.GenAITimeToFirstChunk: 0.2}),
			expected: []phase{
				{"prefill", 0, 200 * time.Millisecond, []any{"prefill.duration"}},
				{"decode", 200 * time.Millisecond, 1000 * time.Millisecond, []any{"decode.duration"}},
			},
		},
		"an engine's decode that does not fit after the first token": {
			span: engineSpan(1, 0, 0, 900, map[string]any{"time_to_first_token": 0.3, "time_in_model_decode": 0.7}),
			expected: []phase{
				{"prefill", 0, 300 * time.Millisecond, []any{"prefill.duration"}},
				{"decode", 200 * time.Millisecond, 900 * time.Millisecond, nil},
			},
		},
		"nothing known": {span: clientSpan(1, 0, 0, 1000, nil)},
		"no model call": {span: plainSpan(1, 0, 0, 1000)},
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
				require.Equal(t, span.SpanID(), again[i+1].SpanID(), "sent again, it is the same span")
				ids[span.SpanID()] = true
			}
			require.Len(t, ids, len(test.expected))
		})
	}
}

func TestPhasesOfOneSpanAreNotAddedTwice(t *testing.T) {
	cfg := createDefaultConfig()
	cfg.Phases, cfg.Timeline = true, timelineKeep
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
