// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokenlatencyprocessor

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor/processortest"

	"github.com/tokenpulse/tokenpulse/internal/annotate"
)

// modelCall is a span of one process: which instrumentation sent it, below which span, and when.
type modelCall struct {
	id, parent byte
	scope      string
	start, end int64 // milliseconds
	attributes map[string]any
}

func chat(more ...any) map[string]any {
	all := map[string]any{"gen_ai.operation.name": "chat", "gen_ai.request.model": "gpt-5", "gen_ai.usage.input_tokens": 100, "gen_ai.usage.output_tokens": 51}
	for i := 0; i < len(more); i += 2 {
		if all[more[i].(string)] = more[i+1]; more[i+1] == nil {
			delete(all, more[i].(string))
		}
	}
	return all
}

// oneProcess returns a trace of one process, with a resource for each instrumentation, as groupbytrace sends them.
func oneProcess(t *testing.T, calls []modelCall) ptrace.Traces {
	t.Helper()
	traces := ptrace.NewTraces()
	scopes := map[string]ptrace.ScopeSpans{}
	for _, c := range calls {
		if _, ok := scopes[c.scope]; !ok {
			resource := traces.ResourceSpans().AppendEmpty()
			resource.Resource().Attributes().PutStr("service.name", "app")
			if c.scope == "of another" {
				resource.Resource().Attributes().PutStr("service.name", "other")
			}
			scopes[c.scope] = resource.ScopeSpans().AppendEmpty()
			scopes[c.scope].Scope().SetName(c.scope)
		}
		span := scopes[c.scope].Spans().AppendEmpty()
		span.SetTraceID(pcommon.TraceID{9})
		span.SetSpanID(pcommon.SpanID{c.id})
		if c.parent > 0 {
			span.SetParentSpanID(pcommon.SpanID{c.parent})
		}
		span.SetKind(ptrace.SpanKindClient)
		span.SetStartTimestamp(pcommon.Timestamp(1e18 + c.start*1e6))
		span.SetEndTimestamp(pcommon.Timestamp(1e18 + c.end*1e6))
		require.NoError(t, span.Attributes().FromRaw(c.attributes))
	}
	return traces
}

// Each case follows from the rule in docs/sources.md ("One call, two instrumentations").
func TestRepeats(t *testing.T) {
	const sdk, framework, third = "openai_v2", "pydantic-ai", "langfuse"
	firstChunk := "gen_ai.response.time_to_first_chunk"
	for name, c := range map[string]struct {
		calls   []modelCall
		repeats map[byte]byte // the span that counts, by the one that repeats it
	}{
		"nested, both with a first token: the inner one counts": {[]modelCall{
			{1, 0, framework, 0, 3000, chat(firstChunk, 0.52)}, {2, 1, sdk, 5, 2990, chat(firstChunk, 0.5)},
		}, map[byte]byte{1: 2}},
		"nested, the outer one has more timing": {[]modelCall{
			{1, 0, framework, 0, 3000, chat(firstChunk, 0.52)}, {2, 1, sdk, 5, 2990, chat()},
		}, map[byte]byte{2: 1}},
		"nested, the arrivals of tokens before a first token": {[]modelCall{
			{1, 0, framework, 0, 3000, chat("tokenpulse.chunk.offsets", []any{500_000, 600_000})}, {2, 1, sdk, 5, 2990, chat(firstChunk, 0.5)},
		}, map[byte]byte{2: 1}},
		"nested, through another span": {[]modelCall{
			{1, 0, framework, 0, 3000, chat()}, {3, 1, framework, 1, 2999, map[string]any{"http.route": "/"}}, {2, 3, sdk, 5, 2990, chat()},
		}, map[byte]byte{1: 2}},
		"nested, the SDK knows no usage": {[]modelCall{
			{1, 0, framework, 0, 3000, chat()},
			{2, 1, sdk, 5, 2990, chat(firstChunk, 0.5, "gen_ai.usage.input_tokens", nil, "gen_ai.usage.output_tokens", nil)},
		}, map[byte]byte{1: 2}},
		"nested, names of a model": {[]modelCall{
			{1, 0, framework, 0, 3000, chat("gen_ai.request.model", "openai/gpt-5")}, {2, 1, sdk, 5, 2990, chat("gen_ai.request.model", "gpt-5-2025-08-07")},
		}, map[byte]byte{1: 2}},
		"nested, one response": {[]modelCall{
			{1, 0, framework, 0, 3000, chat("gen_ai.response.id", "r", "gen_ai.usage.output_tokens", 50)}, {2, 1, sdk, 5, 2990, chat("gen_ai.response.id", "r")},
		}, map[byte]byte{1: 2}},
		"three instrumentations": {[]modelCall{
			{1, 0, framework, 0, 3000, chat()}, {2, 1, third, 2, 2995, chat()}, {3, 2, sdk, 5, 2990, chat()},
		}, map[byte]byte{1: 3, 2: 3}},
		"three instrumentations, the outermost has most timing, the middle one least": {[]modelCall{
			{1, 0, framework, 0, 3000, chat("tokenpulse.chunk.offsets", []any{500_000, 600_000})},
			{2, 1, third, 2, 2995, chat()},
			{3, 2, sdk, 5, 2990, chat(firstChunk, 0.5)},
		}, map[byte]byte{2: 1, 3: 1}},
		"two instrumentations of the SDK side by side below a framework": {[]modelCall{
			{1, 0, framework, 0, 3000, chat()}, {2, 1, third, 2, 2995, chat()}, {3, 1, sdk, 5, 2990, chat()},
		}, map[byte]byte{1: 3, 2: 3}},
		"siblings without a parent": {[]modelCall{
			{1, 0, framework, 0, 3000, chat()}, {2, 0, sdk, 5, 2990, chat()},
		}, map[byte]byte{1: 2}},
		"parallel samples with the IDs of their responses": {[]modelCall{
			{1, 9, framework, 0, 3000, chat("gen_ai.response.id", "a")},
			{2, 9, sdk, 5, 2990, chat("gen_ai.response.id", "a")},
			{3, 9, framework, 0, 3000, chat("gen_ai.response.id", "b")},
			{4, 9, sdk, 5, 2990, chat("gen_ai.response.id", "b")},
		}, map[byte]byte{1: 2, 3: 4}},
		"siblings in turn, each twice": {[]modelCall{
			{1, 9, framework, 0, 1000, chat()}, {2, 9, sdk, 5, 990, chat()}, {3, 9, framework, 1100, 2000, chat()}, {4, 9, sdk, 1105, 1990, chat()},
		}, map[byte]byte{1: 2, 3: 4}},
		"a wrapper over two calls that two instrumentations saw": {[]modelCall{
			{1, 0, framework, 0, 3000, chat("gen_ai.usage.output_tokens", 102)},
			{2, 1, third, 5, 1000, chat()},
			{3, 2, sdk, 6, 999, chat()},
			{4, 1, third, 1100, 2990, chat()},
			{5, 4, sdk, 1101, 2989, chat()},
		}, map[byte]byte{1: 3, 2: 3, 4: 5}},
		"two instrumentations over a wrapper": {[]modelCall{
			{4, 0, third, 0, 3001, chat("gen_ai.usage.output_tokens", 102)},
			{1, 4, framework, 0, 3000, chat("gen_ai.usage.output_tokens", 102)},
			{2, 1, sdk, 5, 1000, chat()},
			{3, 1, sdk, 1100, 2990, chat()},
		}, map[byte]byte{1: 2, 4: 2}},
		"a wrapper with the last response": {[]modelCall{
			{1, 0, framework, 0, 3000, chat("gen_ai.response.id", "b", "gen_ai.usage.output_tokens", 7)},
			{2, 1, sdk, 5, 1000, chat("gen_ai.response.id", "a")},
			{3, 1, sdk, 1100, 2990, chat("gen_ai.response.id", "b")},
		}, map[byte]byte{1: 2}},
		"siblings within 10 ms": {[]modelCall{
			{1, 9, framework, 0, 3000, chat(firstChunk, 0.5)}, {2, 9, sdk, 5, 3009, chat()},
		}, map[byte]byte{2: 1}},
		"a wrapper over two calls": {[]modelCall{
			{1, 0, framework, 0, 3000, chat("gen_ai.usage.output_tokens", 102)}, {2, 1, sdk, 5, 1000, chat()}, {3, 1, sdk, 1100, 2990, chat()},
		}, map[byte]byte{1: 2}},
		"a retry below a wrapper": {[]modelCall{
			{1, 0, framework, 0, 3000, chat()},
			{2, 1, sdk, 5, 1000, chat("gen_ai.usage.input_tokens", nil, "gen_ai.usage.output_tokens", nil, "error.type", "503")},
			{3, 1, sdk, 1100, 2990, chat()},
		}, map[byte]byte{1: 2}},

		"other responses":     {[]modelCall{{1, 0, framework, 0, 3000, chat("gen_ai.response.id", "a")}, {2, 1, sdk, 5, 2990, chat("gen_ai.response.id", "b")}}, nil},
		"one instrumentation": {[]modelCall{{1, 0, sdk, 0, 3000, chat()}, {2, 1, sdk, 5, 2990, chat()}}, nil},
		"other processes":     {[]modelCall{{1, 0, "of another", 0, 3000, chat()}, {2, 1, sdk, 5, 2990, chat()}}, nil},
		"other vantages":      {[]modelCall{{1, 0, framework, 0, 3000, chat("tokenpulse.vantage", "gateway")}, {2, 1, sdk, 5, 2990, chat()}}, nil},
		"other models":        {[]modelCall{{1, 0, framework, 0, 3000, chat()}, {2, 1, sdk, 5, 2990, chat("gen_ai.request.model", "gpt-4o")}}, nil},
		"other tokens":        {[]modelCall{{1, 0, framework, 0, 3000, chat()}, {2, 1, sdk, 5, 2990, chat("gen_ai.usage.output_tokens", 7)}}, nil},
		"a tool in between":   {[]modelCall{{1, 0, framework, 0, 3000, chat()}, {3, 1, framework, 1, 2999, map[string]any{"gen_ai.operation.name": "execute_tool"}}, {2, 3, sdk, 5, 2990, chat()}}, nil},
		"a smaller model": {[]modelCall{
			{1, 0, framework, 0, 3000, chat()},
			{2, 1, sdk, 5, 2990, chat("gen_ai.request.model", "gpt-5-mini", "gen_ai.usage.input_tokens", nil, "gen_ai.usage.output_tokens", nil)},
		}, nil},
		"siblings, no model": {[]modelCall{
			{1, 9, framework, 0, 3000, chat("gen_ai.request.model", nil)}, {2, 9, sdk, 5, 2990, chat("gen_ai.request.model", nil)},
		}, nil},
		"calls below a call of other tokens": {[]modelCall{
			{1, 0, framework, 0, 3000, chat()},
			{2, 1, sdk, 5, 1000, chat("gen_ai.usage.output_tokens", 7)},
			{3, 1, sdk, 1100, 2990, chat("gen_ai.usage.output_tokens", 9)},
		}, nil},
		"calls below a call of another response": {[]modelCall{
			{1, 0, framework, 0, 3000, chat("gen_ai.response.id", "r")},
			{2, 1, sdk, 5, 1000, chat("gen_ai.response.id", "a")},
			{3, 1, sdk, 1100, 2990, chat("gen_ai.response.id", "b")},
		}, nil},
		"one scope above and below another": {[]modelCall{
			{1, 0, framework, 0, 3000, chat()}, {2, 1, sdk, 5, 2990, chat()}, {3, 2, framework, 10, 2980, chat()},
		}, map[byte]byte{2: 3}},
		"parallel samples of two instrumentations": {[]modelCall{
			{1, 9, framework, 0, 3000, chat()}, {2, 9, framework, 0, 3000, chat()}, {3, 9, sdk, 5, 2990, chat()}, {4, 9, sdk, 5, 2990, chat()},
		}, nil},
		"siblings in turn":     {[]modelCall{{1, 9, framework, 0, 1000, chat()}, {2, 9, sdk, 1100, 3000, chat()}}, nil},
		"siblings, no usage":   {[]modelCall{{1, 9, framework, 0, 3000, chat("gen_ai.usage.output_tokens", nil)}, {2, 9, sdk, 5, 2990, chat("gen_ai.usage.output_tokens", nil)}}, nil},
		"parallel samples":     {[]modelCall{{1, 9, framework, 0, 3000, chat()}, {2, 9, sdk, 5, 2990, chat()}, {3, 9, sdk, 5, 2990, chat()}}, nil},
		"two calls of one SDK": {[]modelCall{{1, 9, sdk, 0, 3000, chat()}, {2, 9, sdk, 5, 2990, chat()}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			p, sink := newProcessor(t, processortest.NewNopSettings(typ), joining())
			require.NoError(t, p.ConsumeTraces(t.Context(), oneProcess(t, c.calls)))
			for range 2 { // a second processor changes nothing
				for _, span := range allSpans(sink.AllTraces()[len(sink.AllTraces())-1]) {
					id, want := span.SpanID()[0], any(nil)
					if counts := c.repeats[id]; counts > 0 {
						want = fmt.Sprintf("%02x00000000000000", counts)
					}
					got, ok := span.Attributes().Get("tokenpulse.repeated")
					require.Equal(t, want != nil, ok, "span %d", id)
					if ok {
						require.Equal(t, want, got.Str(), "span %d", id)
					}
				}
				require.NoError(t, p.ConsumeTraces(t.Context(), sink.AllTraces()[0]))
			}
		})
	}
}

// The inner span counts, with the usage and the tenant that only the outer one has, and its TPOT follows from them:
// (2.985 - 0.5) / 50.
func TestRepeats_TheOneThatCountsTakesWhatItLacks(t *testing.T) {
	p, sink := newProcessor(t, processortest.NewNopSettings(typ), joining())
	require.NoError(t, p.ConsumeTraces(t.Context(), oneProcess(t, []modelCall{
		{1, 0, "pydantic-ai", 0, 3000, chat("gen_ai.response.time_to_first_chunk", 0.52, "tenant.id", "acme", "gen_ai.prompt", "text", "gen_ai.response.finish_reasons", []any{"stop"})},
		{2, 1, "openai_v2", 5, 2990, chat("gen_ai.response.time_to_first_chunk", 0.5, "gen_ai.usage.input_tokens", nil, "gen_ai.usage.output_tokens", nil)},
	})))
	for _, span := range allSpans(sink.AllTraces()[0]) {
		if span.SpanID()[0] != 2 {
			continue
		}
		got := span.Attributes().AsRaw()
		require.EqualValues(t, 100, got["gen_ai.usage.input_tokens"])
		require.EqualValues(t, 51, got["gen_ai.usage.output_tokens"])
		require.Equal(t, "acme", got["tenant.id"])
		require.Equal(t, []any{"stop"}, got["gen_ai.response.finish_reasons"])
		require.NotContains(t, got, "gen_ai.prompt")
		require.InDelta(t, 0.5, got["tokenpulse.time_to_first_token"], 1e-9)
		require.InDelta(t, 0.0497, got["tokenpulse.time_per_output_token"], 1e-9)
		require.True(t, slices.Contains(got["tokenpulse.joined"].([]any), any("gen_ai.usage.output_tokens=0100000000000000")), got["tokenpulse.joined"])
	}
}

// A roll-up counts the request once, and the calls below a wrapper without it.
func TestRepeats_AreNotRolledUp(t *testing.T) {
	for name, c := range map[string]struct {
		calls            []modelCall
		requests, tokens int
	}{
		"nested":    {[]modelCall{{2, 1, "pydantic-ai", 0, 3000, chat()}, {3, 2, "openai_v2", 5, 2990, chat()}}, 1, 51},
		"siblings":  {[]modelCall{{2, 1, "pydantic-ai", 0, 3000, chat()}, {3, 1, "openai_v2", 5, 2990, chat()}}, 1, 51},
		"a wrapper": {[]modelCall{{2, 1, "pydantic-ai", 0, 3000, chat("gen_ai.usage.output_tokens", 102)}, {3, 2, "openai_v2", 5, 990, chat()}, {4, 2, "openai_v2", 1000, 2990, chat()}}, 2, 102},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := annotate.DefaultConfig()
			cfg.RollUp = true
			p, sink := newProcessor(t, processortest.NewNopSettings(typ), cfg)
			require.NoError(t, p.ConsumeTraces(t.Context(), oneProcess(t, append([]modelCall{{1, 0, "app", 0, 4000, map[string]any{}}}, c.calls...))))
			root := allSpans(sink.AllTraces()[0])[0].Attributes().AsRaw()
			require.EqualValues(t, c.requests, root["tokenpulse.trace.model_call.count"])
			require.EqualValues(t, c.tokens, root["tokenpulse.trace.output_tokens"])
		})
	}
}

// An error or a time of the repeat says nothing of the call that counts. Its tenant is on all calls below a wrapper.
func TestRepeats_TakeNoErrorsAndTimes(t *testing.T) {
	process := func(calls ...modelCall) (byID map[byte]map[string]any) {
		p, sink := newProcessor(t, processortest.NewNopSettings(typ), joining())
		require.NoError(t, p.ConsumeTraces(t.Context(), oneProcess(t, calls)))
		byID = map[byte]map[string]any{}
		for _, span := range allSpans(sink.AllTraces()[0]) {
			byID[span.SpanID()[0]] = span.Attributes().AsRaw()
		}
		return byID
	}
	got := process(
		modelCall{1, 0, "pydantic-ai", 0, 3000, chat("error.type", "ValidationError", "http.response.status_code", 500, "custom.ttft", 0.7, "all_messages", `[{"role":"user"}]`, "tenant.id", "acme")},
		modelCall{2, 1, "openai_v2", 5, 2990, chat("gen_ai.response.time_to_first_chunk", 0.5, "gen_ai.usage.output_tokens", nil)},
	)
	require.Equal(t, "success", got[2]["tokenpulse.outcome"])
	require.Equal(t, "acme", got[2]["tenant.id"])
	require.EqualValues(t, 51, got[2]["gen_ai.usage.output_tokens"])
	for _, name := range []string{"error.type", "http.response.status_code", "custom.ttft", "all_messages"} {
		require.NotContains(t, got[2], name)
	}

	got = process(
		modelCall{1, 0, "pydantic-ai", 0, 3000, chat("gen_ai.usage.output_tokens", 102, "tenant.id", "acme")},
		modelCall{2, 1, "openai_v2", 5, 1000, chat("gen_ai.usage.output_tokens", nil)}, modelCall{3, 1, "openai_v2", 1100, 2990, chat()},
	)
	require.Contains(t, got[1], "tokenpulse.repeated")
	for _, id := range []byte{2, 3} {
		require.Equal(t, "acme", got[id]["tenant.id"])
	}
	require.NotContains(t, got[2], "gen_ai.usage.output_tokens", "the usage is that of both")
}

// The root span of a trace may be a repeat itself. It has no verdict but those on the trace.
func TestRepeats_OfTheRootKeepTheNumbersOfTheTrace(t *testing.T) {
	cfg := joining()
	cfg.RollUp = true
	cfg.SLOs = []SLOConfig{{Name: "answer", Indicator: "trace.time_to_answer", Threshold: "1s"}, {Name: "ttft", Indicator: "time_to_first_token", Threshold: "1s"}}
	p, sink := newProcessor(t, processortest.NewNopSettings(typ), cfg)
	firstChunk := "gen_ai.response.time_to_first_chunk"
	require.NoError(t, p.ConsumeTraces(t.Context(), oneProcess(t, []modelCall{
		{1, 0, "pydantic-ai", 0, 3000, chat(firstChunk, 0.52)}, {2, 1, "openai_v2", 5, 2990, chat(firstChunk, 0.5)},
	})))
	root, inner := allSpans(sink.AllTraces()[0])[0].Attributes().AsRaw(), allSpans(sink.AllTraces()[0])[1].Attributes().AsRaw()
	require.Contains(t, root, "tokenpulse.repeated")
	require.EqualValues(t, 1, root["tokenpulse.trace.model_call.count"])
	require.InDelta(t, 0.505, root["tokenpulse.trace.time_to_answer"], 1e-9)
	require.Equal(t, []any{"answer"}, root["tokenpulse.slo.met"])
	require.Contains(t, inner["tokenpulse.slo.met"], "ttft")
	require.NotContains(t, inner["tokenpulse.slo.met"], "answer")
}
