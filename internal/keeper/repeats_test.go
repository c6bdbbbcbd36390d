// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package keeper

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/internal/diagnostics"
)

// nested returns a model call of one scope below one of another, with these attributes each.
func nested(t *testing.T, outer, inner string, ofOuter, ofInner map[string]any) ptrace.Traces {
	t.Helper()
	return trace(t, []sent{{1, 0, outer, ofOuter}, {2, 1, inner, ofInner}})
}

// sent is a span of a trace.
type sent struct {
	id, parent byte
	scope      string
	attributes map[string]any
}

// trace returns spans of one process in a resource each, as a batch processor puts them together.
func trace(t *testing.T, spans []sent) ptrace.Traces {
	t.Helper()
	traces := ptrace.NewTraces()
	for _, s := range spans {
		resource := traces.ResourceSpans().AppendEmpty()
		resource.Resource().Attributes().PutStr("service.name", "app")
		scope := resource.ScopeSpans().AppendEmpty()
		scope.Scope().SetName(s.scope)
		span := scope.Spans().AppendEmpty()
		span.SetTraceID(pcommon.TraceID{1})
		span.SetSpanID(pcommon.SpanID{s.id})
		span.SetParentSpanID(pcommon.SpanID{s.parent})
		require.NoError(t, span.Attributes().FromRaw(s.attributes))
	}
	return traces
}

func annotated(more ...string) map[string]any {
	all := map[string]any{"tokenpulse.source": "semconv", "tokenpulse.vantage": "client", "tokenpulse.request.duration": 1.0}
	for i := 0; i < len(more); i += 2 {
		all[more[i]] = more[i+1]
	}
	return all
}

func TestDoubtRepeats_NamesTwoInstrumentationsOfOneCall(t *testing.T) {
	for name, c := range map[string]struct {
		inner    string
		ofInner  map[string]any
		expected bool
	}{
		"two instrumentations":         {"sdk", annotated(), true},
		"one response":                 {"sdk", annotated("gen_ai.response.id", "r"), true},
		"other responses":              {"sdk", annotated("gen_ai.response.id", "s"), false},
		"one instrumentation":          {"framework", annotated(), false},
		"other vantages":               {"sdk", annotated("tokenpulse.vantage", "gateway"), false},
		"a repeat that does not count": {"sdk", annotated("tokenpulse.repeated", "0100000000000000"), false},
		"no model call":                {"sdk", map[string]any{"http.route": "/"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, nil)
			h.Record(t.Context(), nested(t, "framework", c.inner, annotated("gen_ai.response.id", "r"), c.ofInner))
			found := h.logs.FilterMessageSnippet("two instrumentations").Len()
			require.Equal(t, c.expected, found == 1)
			if c.expected {
				require.Equal(t, "framework, sdk", h.doubts.Current()[0].About)
			}
		})
	}
}

// The doubt follows the rule by which the processor finds repeats in whole traces.
func TestDoubtRepeats_FollowsTheRuleOfTheProcessor(t *testing.T) {
	whole := func(more ...any) map[string]any {
		all := annotated()
		all["gen_ai.request.model"], all["gen_ai.usage.input_tokens"], all["gen_ai.usage.output_tokens"] = "gpt-5", 100, 51
		for i := 0; i < len(more); i += 2 {
			all[more[i].(string)] = more[i+1]
		}
		return all
	}
	for name, c := range map[string]struct {
		spans    []sent
		expected bool
	}{
		"siblings":              {[]sent{{1, 9, "sdk", whole()}, {2, 9, "framework", whole()}}, true},
		"below another span":    {[]sent{{1, 0, "framework", whole()}, {3, 1, "http", map[string]any{"http.route": "/"}}, {2, 3, "sdk", whole()}}, true},
		"a tool in between":     {[]sent{{1, 0, "framework", whole()}, {3, 1, "framework", map[string]any{"gen_ai.operation.name": "execute_tool"}}, {2, 3, "sdk", whole()}}, false},
		"a wrapper":             {[]sent{{1, 0, "framework", whole("gen_ai.usage.output_tokens", 102)}, {2, 1, "sdk", whole()}, {3, 1, "sdk", whole()}}, true},
		"other models":          {[]sent{{1, 0, "framework", whole()}, {2, 1, "sdk", whole("gen_ai.request.model", "gpt-5-mini")}}, false},
		"other tokens":          {[]sent{{1, 0, "framework", whole()}, {2, 1, "sdk", whole("gen_ai.usage.output_tokens", 7)}}, false},
		"siblings of other IDs": {[]sent{{1, 9, "framework", whole("gen_ai.response.id", "a")}, {2, 9, "sdk", whole("gen_ai.response.id", "b")}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, nil)
			h.Record(t.Context(), trace(t, c.spans))
			var want []string
			if c.expected {
				want = []string{"framework, sdk"}
			}
			require.Equal(t, want, h.abouts(diagnostics.CallRepeated))
		})
	}
}

// Batches of many scopes, such as those of a fleet, cost a bounded time per second.
func TestDoubtRepeats_InspectsLimitedSpansPerSecond(t *testing.T) {
	h := newHarness(t, nil)
	var many []sent
	for i := range maxInspected {
		many = append(many, sent{byte(i), 0, []string{"a", "b"}[i%2], annotated()})
	}
	h.Record(t.Context(), trace(t, many))
	repeat := nested(t, "framework", "sdk", annotated(), annotated())
	h.Record(t.Context(), repeat)
	require.Empty(t, h.abouts(diagnostics.CallRepeated))
	h.clock = h.clock.Add(time.Second)
	h.Record(t.Context(), repeat)
	require.Equal(t, []string{"framework, sdk"}, h.abouts(diagnostics.CallRepeated))
}

// Senders choose the names of scopes, so the doubts are limited.
func TestDoubtRepeats_AreLimited(t *testing.T) {
	h := newHarness(t, nil)
	for i := range 100 {
		h.Record(t.Context(), nested(t, fmt.Sprint("framework", i), "sdk", annotated(), annotated()))
	}
	require.Len(t, h.doubts.Current(), 8+1)
}

// A repeat is in no series.
func TestRecord_LeavesRepeatsOut(t *testing.T) {
	h := newHarness(t, nil)
	h.Record(t.Context(), nested(t, "framework", "sdk", annotated("tokenpulse.repeated", "0200000000000000"), annotated()))
	_, requests := h.Engine.UnusedDimensions()
	require.EqualValues(t, 1, requests)
}
