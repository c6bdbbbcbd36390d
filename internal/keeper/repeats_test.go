// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package keeper

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// nested returns a model call of one scope below one of another, with these attributes each.
func nested(t *testing.T, outer, inner string, ofOuter, ofInner map[string]any) ptrace.Traces {
	t.Helper()
	traces := ptrace.NewTraces()
	resource := traces.ResourceSpans().AppendEmpty()
	for i, scope := range []string{outer, inner} {
		scopeSpans := resource.ScopeSpans().AppendEmpty()
		scopeSpans.Scope().SetName(scope)
		span := scopeSpans.Spans().AppendEmpty()
		span.SetTraceID(pcommon.TraceID{1})
		span.SetSpanID(pcommon.SpanID{byte(i + 1)})
		span.SetParentSpanID(pcommon.SpanID{byte(i)})
		require.NoError(t, span.Attributes().FromRaw([]map[string]any{ofOuter, ofInner}[i]))
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

// Senders choose the names of scopes, so the doubts are limited.
func TestDoubtRepeats_AreLimited(t *testing.T) {
	h := newHarness(t, nil)
	for i := range 100 {
		h.Record(t.Context(), nested(t, fmt.Sprint("framework", i), "sdk", annotated(), annotated()))
	}
	require.Len(t, h.doubts.Current(), maxScopePairs+1)
}

// A repeat is in no series.
func TestRecord_LeavesRepeatsOut(t *testing.T) {
	h := newHarness(t, nil)
	h.Record(t.Context(), nested(t, "framework", "sdk", annotated("tokenpulse.repeated", "0200000000000000"), annotated()))
	_, requests := h.Engine.UnusedDimensions()
	require.EqualValues(t, 1, requests)
}
