// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokenlatencyprocessor

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor/processortest"

	"github.com/tokenpulse/tokenpulse/internal/annotate"
	"github.com/tokenpulse/tokenpulse/internal/attributes"
	"github.com/tokenpulse/tokenpulse/internal/names"
)

func withModel(s placed, model any) placed {
	s.attributes[names.GenAIRequestModel] = model
	return s
}

func modelOf(span ptrace.Span) any {
	v, ok := span.Attributes().Get("gen_ai.request.model")
	if !ok {
		return nil
	}
	return v.AsRaw()
}

func TestJoin_NamesTheModelOfEngineSpans(t *testing.T) {
	client := withModel(clientSpan(1, 0, 0, 1000, nil), "chat-large")
	engine := engineSpan(3, 2, 20, 900, phasesOfEngine)
	tests := map[string]struct {
		spans []placed
		want  map[byte]any // models by span
	}{
		"of the client": {
			[]placed{client, plainSpan(2, 1, 10, 990), engine}, map[byte]any{1: "chat-large", 2: nil, 3: "chat-large"},
		},
		"of the client, not of the gateway in between": {
			[]placed{client, withModel(gatewaySpan(2, 1, 10, 990), "llama"), engine}, map[byte]any{1: "chat-large", 2: "llama", 3: "chat-large"},
		},
		"of the gateway, without a client": {
			[]placed{withModel(gatewaySpan(2, 0, 10, 990), "llama"), engine}, map[byte]any{2: "llama", 3: "llama"},
		},
		"of an engine inside an engine": {
			[]placed{client, engineSpan(3, 1, 20, 900, phasesOfEngine), engineSpan(4, 3, 30, 890, nil)}, map[byte]any{3: "chat-large", 4: "chat-large"},
		},
		"of both engines of a retry": {
			[]placed{client, engineSpan(3, 1, 20, 400, nil), engineSpan(4, 1, 500, 900, nil)}, map[byte]any{3: "chat-large", 4: "chat-large"},
		},
		"never over its own": {
			[]placed{client, withModel(engineSpan(3, 1, 20, 900, nil), "meta-llama/Llama-3")}, map[byte]any{3: "meta-llama/Llama-3"},
		},
		"never over its own, of another type": {
			[]placed{client, withModel(engineSpan(3, 1, 20, 900, nil), 7)}, map[byte]any{3: int64(7)},
		},
		"not across an agent": {
			[]placed{client, {2, 1, "tool", 20, 900, map[string]any{"openinference.span.kind": "TOOL"}}, engine}, map[byte]any{3: nil},
		},
		"not of a client that reports none": {
			[]placed{clientSpan(2, 0, 0, 1000, nil), engine}, map[byte]any{2: nil, 3: nil},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			spans := processTrace(t, joining(), traceOf(t, test.spans...))
			for id, want := range test.want {
				require.Equal(t, want, modelOf(spans[id]), "span %d", id)
			}
		})
	}
}

// A resource attribute of the engine's process names its model too, and so stays the dimension.
func TestJoin_ReadsModelsFromResources(t *testing.T) {
	resource := func(traces ptrace.Traces, i int) pcommon.Map {
		return traces.ResourceSpans().At(i).Resource().Attributes()
	}
	traces := traceOf(t, withModel(clientSpan(1, 0, 0, 1000, nil), "chat-large"), engineSpan(3, 1, 20, 900, nil))
	resource(traces, 1).PutStr(names.GenAIRequestModel, "llama")
	require.Nil(t, modelOf(processTrace(t, joining(), traces)[3]), "the engine's resource has the model")

	traces = traceOf(t, clientSpan(1, 0, 0, 1000, nil), engineSpan(3, 1, 20, 900, nil))
	resource(traces, 0).PutStr(names.GenAIRequestModel, "chat-large")
	require.Equal(t, "chat-large", modelOf(processTrace(t, joining(), traces)[3]))
}

func joinedOf(span ptrace.Span) any {
	v, ok := span.Attributes().Get("tokenpulse.joined")
	if !ok {
		return nil
	}
	return v.AsRaw()
}

func TestJoin_SaysWhatComesFromWhichSpan(t *testing.T) {
	client := withModel(clientSpan(1, 0, 0, 1000, map[string]any{names.GenAITimeToFirstChunk: 0.2}), "chat-large")
	from := func(engine string) []any {
		return []any{"queue.duration=" + engine, "prefill.duration=" + engine, "decode.duration=" + engine, "network.duration=" + engine}
	}
	model := []any{"gen_ai.request.model=0100000000000000"}
	tests := map[string]struct {
		spans []placed
		want  map[byte]any // by span
	}{
		"client, gateway and engine": {
			[]placed{client, gatewaySpan(2, 1, 10, 990), engineSpan(3, 2, 20, 900, phasesOfEngine)},
			map[byte]any{1: from("0300000000000000"), 2: from("0300000000000000"), 3: model},
		},
		"an engine inside an engine, which estimates all but the queue": {
			[]placed{client, engineSpan(3, 1, 20, 900, map[string]any{"time_to_first_token": 0.15}), engineSpan(4, 3, 20, 900, phasesOfEngine)},
			map[byte]any{1: append([]any{"queue.duration=0400000000000000"}, from("0300000000000000")[1:]...), 3: model, 4: model},
		},
		"only what the engine reports": {
			[]placed{client, withModel(engineSpan(3, 1, 20, 900, map[string]any{"time_in_queue": 0.02}), "llama")},
			map[byte]any{1: []any{"queue.duration=0300000000000000"}, 3: nil},
		},
		"not a phase longer than the request": {
			[]placed{client, engineSpan(3, 1, 20, 2000, map[string]any{"time_in_model_decode": 1.5})}, map[byte]any{1: nil, 3: model},
		},
		"not of ambiguous engines": {
			[]placed{client, engineSpan(3, 1, 20, 400, phasesOfEngine), engineSpan(4, 1, 500, 900, phasesOfEngine)}, map[byte]any{1: nil, 3: model, 4: model},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p, sink := newProcessor(t, processortest.NewNopSettings(typ), joining())
			traces := traceOf(t, test.spans...)
			for _, times := range []string{"joined", "joined again"} {
				require.NoError(t, p.ConsumeTraces(t.Context(), traces))
				traces = sink.AllTraces()[len(sink.AllTraces())-1]
				for _, span := range allSpans(traces) {
					require.Equal(t, test.want[span.SpanID()[0]], joinedOf(span), "%s: span %d", times, span.SpanID()[0])
				}
			}
		})
	}
}

// phase is a child span with times in milliseconds after the start of its call.
type phase struct {
	call       byte
	name       string
	start, end int64
}

// phasesIn returns the phases of a trace, in the order of their calls.
func phasesIn(traces ptrace.Traces) (all []phase) {
	starts := map[pcommon.SpanID]pcommon.Timestamp{}
	for _, span := range allSpans(traces) {
		starts[span.SpanID()] = span.StartTimestamp()
	}
	for _, span := range allSpans(traces) {
		switch span.Name() {
		case "queue", "prefill", "transfer", "decode":
			start := starts[span.ParentSpanID()]
			milliseconds := func(at pcommon.Timestamp) int64 { return time.Duration(at - start).Milliseconds() }
			all = append(all, phase{span.ParentSpanID()[0], span.Name(), milliseconds(span.StartTimestamp()), milliseconds(span.EndTimestamp())})
		}
	}
	return all
}

func joiningWithPhases() *Config {
	cfg := joining()
	cfg.Phases = true
	return cfg
}

// The engine reports a queue of 20 ms, a prefill of 90 ms and a decode of 700 ms. The first token
// reaches the client after 200 ms, and the gateway after 150 ms.
func TestJoin_EachRequestHasOneSetOfPhases(t *testing.T) {
	client := clientSpan(1, 0, 0, 1000, map[string]any{names.GenAITimeToFirstChunk: 0.2})
	plain := clientSpan(1, 0, 0, 1000, nil)
	ofEngine := func(call byte, decode int64) []phase {
		return []phase{{call, "queue", 0, 20}, {call, "prefill", 20, 110}, {call, "decode", decode, decode + 700}}
	}
	estimated := []phase{{1, "prefill", 0, 200}, {1, "decode", 200, 1000}}
	tests := map[string]struct {
		spans []placed
		want  []phase
	}{
		"the client has those of its engine":   {[]placed{client, plainSpan(2, 1, 5, 995), engineSpan(3, 2, 20, 900, phasesOfEngine)}, ofEngine(1, 200)},
		"clocks ten minutes and an hour off":   {[]placed{client, gatewaySpan(2, 1, 600_010, 600_990), engineSpan(3, 2, -3_600_000, -3_599_120, phasesOfEngine)}, ofEngine(1, 200)},
		"decode that would end too late":       {[]placed{client, engineSpan(3, 1, 20, 990, map[string]any{"time_in_queue": 0.02, "time_in_model_prefill": 0.09, "time_in_model_decode": 0.9})}, []phase{{1, "queue", 0, 20}, {1, "prefill", 20, 110}, {1, "decode", 100, 1000}}},
		"the engine's span is first":           {[]placed{engineSpan(3, 1, 20, 900, phasesOfEngine), client}, ofEngine(1, 200)},
		"gateway in between":                   {[]placed{client, gatewaySpan(2, 1, 10, 990), engineSpan(3, 2, 20, 900, phasesOfEngine)}, ofEngine(1, 200)},
		"gateway without a client":             {[]placed{gatewaySpan(2, 0, 10, 990), engineSpan(3, 2, 20, 900, phasesOfEngine)}, ofEngine(2, 150)},
		"client that does not stream":          {[]placed{plain, engineSpan(3, 1, 20, 900, phasesOfEngine)}, []phase{{1, "queue", 0, 20}, {1, "prefill", 20, 110}, {1, "decode", 110, 810}}},
		"two instrumentations of the client":   {[]placed{client, clientSpan(2, 1, 10, 990, nil), engineSpan(3, 2, 20, 900, phasesOfEngine)}, []phase{{2, "queue", 0, 20}, {2, "prefill", 20, 110}, {2, "decode", 110, 810}}},
		"engine without a client":              {[]placed{engineSpan(3, 9, 20, 900, phasesOfEngine)}, ofEngine(3, 120)},
		"client and gateway without an engine": {[]placed{client, gatewaySpan(2, 1, 10, 990)}, estimated},
		"ambiguous engines":                    {[]placed{client, engineSpan(3, 1, 20, 400, phasesOfEngine), engineSpan(4, 1, 20, 900, phasesOfEngine)}, estimated},
		"ambiguous engines below two clients": {
			[]placed{
				client, clientSpan(2, 1, 10, 990, map[string]any{names.GenAITimeToFirstChunk: 0.1}),
				engineSpan(3, 2, 20, 400, phasesOfEngine), engineSpan(4, 2, 20, 900, phasesOfEngine),
			}, estimated,
		},
		"client and engine that report no phase":        {[]placed{plain, engineSpan(3, 1, 20, 900, nil)}, nil},
		"an engine that a tool of the client calls":     {[]placed{client, {2, 1, "tool", 20, 900, map[string]any{"openinference.span.kind": "TOOL"}}, engineSpan(3, 2, 20, 900, phasesOfEngine)}, append(estimated, ofEngine(3, 120)...)},
		"engine phase longer than the client's request": {[]placed{client, engineSpan(3, 1, 20, 2000, map[string]any{"time_in_model_decode": 1.5})}, estimated},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p, sink := newProcessor(t, processortest.NewNopSettings(typ), joiningWithPhases())
			require.NoError(t, p.ConsumeTraces(t.Context(), traceOf(t, test.spans...)))
			require.ElementsMatch(t, test.want, phasesIn(sink.AllTraces()[0]))
			requireConsistent(t, sink.AllTraces()[0])
			for i, sent := range test.spans { // no clock is corrected
				span := sink.AllTraces()[0].ResourceSpans().At(i).ScopeSpans().At(0).Spans().At(0)
				require.Equal(t, [2]pcommon.Timestamp{epoch + pcommon.Timestamp(sent.start*1e6), epoch + pcommon.Timestamp(sent.end*1e6)},
					[2]pcommon.Timestamp{span.StartTimestamp(), span.EndTimestamp()})
			}
		})
	}
}

// requireConsistent compares each phase with the attribute of the span above it, in which it lies.
func requireConsistent(t *testing.T, traces ptrace.Traces) {
	t.Helper()
	calls := map[byte]ptrace.Span{}
	for _, span := range allSpans(traces) {
		calls[span.SpanID()[0]] = span
	}
	for _, p := range phasesIn(traces) {
		requireNumbers(t, map[string]float64{"tokenpulse." + p.name + ".duration": float64(p.end-p.start) / 1000}, calls[p.call])
		require.GreaterOrEqual(t, p.start, int64(0))
		require.LessOrEqual(t, p.end, time.Duration(calls[p.call].EndTimestamp()-calls[p.call].StartTimestamp()).Milliseconds())
	}
}

// The Collectors of the services add phases, the one that has the whole trace joins.
func TestJoin_ReplacesThePhasesOfEarlierProcessors(t *testing.T) {
	edge := annotate.DefaultConfig()
	edge.Phases = true
	want := []phase{{1, "queue", 0, 20}, {1, "prefill", 20, 110}, {1, "decode", 200, 900}}
	for name, cfg := range map[string]*Config{"with phases": joiningWithPhases(), "without phases": joining()} {
		t.Run(name, func(t *testing.T) {
			before, sent := newProcessor(t, processortest.NewNopSettings(typ), edge)
			require.NoError(t, before.ConsumeTraces(t.Context(), traceOf(t,
				clientSpan(1, 0, 0, 1000, map[string]any{names.GenAITimeToFirstChunk: 0.2}), engineSpan(3, 1, 20, 900, phasesOfEngine))))
			require.Len(t, phasesIn(sent.AllTraces()[0]), 2+3)

			p, sink := newProcessor(t, processortest.NewNopSettings(typ), cfg)
			require.NoError(t, p.ConsumeTraces(t.Context(), sent.AllTraces()[0]))
			require.ElementsMatch(t, want, phasesIn(sink.AllTraces()[0]))
			require.NoError(t, p.ConsumeTraces(t.Context(), sink.AllTraces()[0]))
			require.ElementsMatch(t, want, phasesIn(sink.AllTraces()[1]), "joined twice")
		})
	}
}

// Phases whose call is in another batch, and spans that only look like phases, stay.
func TestJoin_KeepsPhasesOfOtherBatches(t *testing.T) {
	edge := annotate.DefaultConfig()
	edge.Phases = true
	before, sent := newProcessor(t, processortest.NewNopSettings(typ), edge)
	require.NoError(t, before.ConsumeTraces(t.Context(), traceOf(t, engineSpan(3, 9, 20, 900, phasesOfEngine))))
	traces := sent.AllTraces()[0]
	scopes := traces.ResourceSpans().At(0).ScopeSpans()
	other := scopes.At(1).Spans().AppendEmpty()
	other.SetName("queue")
	other.SetTraceID(pcommon.TraceID{1})
	other.SetSpanID(pcommon.SpanID{7})
	scopes.At(0).Spans().RemoveIf(func(ptrace.Span) bool { return true })

	p, sink := newProcessor(t, processortest.NewNopSettings(typ), joiningWithPhases())
	require.NoError(t, p.ConsumeTraces(t.Context(), traces))
	require.Equal(t, 4, sink.SpanCount())
}

// A call that a sender gave the name and ID of a phase stays.
func TestJoin_KeepsCallsThatPassForPhases(t *testing.T) {
	edge := annotate.DefaultConfig()
	edge.Phases = true
	before, sent := newProcessor(t, processortest.NewNopSettings(typ), edge)
	require.NoError(t, before.ConsumeTraces(t.Context(), traceOf(t, engineSpan(3, 9, 20, 900, phasesOfEngine))))
	traces := sent.AllTraces()[0]
	for _, span := range allSpans(traces) {
		if span.Name() == "queue" {
			span.Attributes().PutStr(names.Source, "forged")
		}
	}
	p, sink := newProcessor(t, processortest.NewNopSettings(typ), joiningWithPhases())
	require.NoError(t, p.ConsumeTraces(t.Context(), traces))
	require.Equal(t, 1+1+3, sink.SpanCount())
}

// Numbers of another processor may be as large as attributes.MaxNumber: they do not wrap a timestamp around.
func TestJoin_PhasesOfForgedDurationsStayOrdered(t *testing.T) {
	p, sink := newProcessor(t, processortest.NewNopSettings(typ), joiningWithPhases())
	require.NoError(t, p.ConsumeTraces(t.Context(), traceOf(t, placed{1, 0, "call", 0, 1000, map[string]any{
		names.Source: "another", "tokenpulse.queue.duration": float64(attributes.MaxNumber), "tokenpulse.prefill.duration": 0.1, "tokenpulse.decode.duration": 0.1,
		"tokenpulse.time_to_first_token": float64(attributes.MaxNumber), "tokenpulse.request.duration": float64(attributes.MaxNumber),
	}})))
	require.Len(t, phasesIn(sink.AllTraces()[0]), 2)
	for _, span := range allSpans(sink.AllTraces()[0]) {
		require.Less(t, span.StartTimestamp(), span.EndTimestamp())
	}
}
