// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokensliconnector

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/tokenpulse/tokenpulse/internal/keeper/keepertest"
)

func TestBreachEvent_DescribesTheRequest(t *testing.T) {
	h := newLogHarness(t, func(c *Config) { c.Publish.Shared.Objectives = nil })
	breached := keepertest.Request(map[string]any{
		"gen_ai.request.model": "m", "tokenpulse.vantage": "server", "gen_ai.input.messages": "secret",
		"tokenpulse.slo.breached":           []any{"tpot", "ttft", "stalls"},
		"tokenpulse.slo.breached.indicator": []any{"time_per_output_token", "time_to_first_token", "stall.count"},
		"tokenpulse.slo.breached.threshold": []any{0.05, 1.0, 3.0},
		"tokenpulse.time_per_output_token":  0.0625, "tokenpulse.stall.count": 4,
		"tokenpulse.slo.met": []any{"other"},
	})
	traces := keepertest.Batch(keepertest.Request(map[string]any{"tokenpulse.slo.met": []any{"tpot"}}), breached)
	span := traces.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(1)
	span.SetEndTimestamp(12345)
	span.SetFlags(0x301)
	require.NoError(t, h.ConsumeTraces(t.Context(), traces))
	require.Len(t, h.to.AllLogs(), 1)
	resource := h.to.AllLogs()[0].ResourceLogs()
	require.Equal(t, 1, resource.Len())
	require.Equal(t, map[string]any{"service.name": "chat"}, resource.At(0).Resource().Attributes().AsRaw())
	require.Equal(t, "github.com/tokenpulse/tokenpulse/connector/tokensliconnector", resource.At(0).ScopeLogs().At(0).Scope().Name())

	events := h.events()
	require.Len(t, events, 1)
	event := events[0]
	require.Equal(t, "tokenpulse.slo.breach", event.EventName())
	require.Equal(t, span.TraceID(), event.TraceID())
	require.Equal(t, span.SpanID(), event.SpanID())
	require.True(t, event.Flags().IsSampled())
	require.EqualValues(t, 1, event.Flags())
	require.EqualValues(t, 12345, event.Timestamp())
	require.Equal(t, pcommon.NewTimestampFromTime(h.clock), event.ObservedTimestamp())
	require.Equal(t, plog.SeverityNumberWarn, event.SeverityNumber())
	require.Equal(t, "Warn", event.SeverityText())
	require.Equal(t, "tpot breached: time_per_output_token is 0.0625, over 0.05; ttft breached: no time_to_first_token; stalls breached: stall.count is 4, over 3", event.Body().Str())
	require.Equal(t, map[string]any{
		"gen_ai.request.model": "m", "tokenpulse.vantage": "server", "tokenpulse.outcome": "success",
		"tokenpulse.slo.breached": []any{"tpot", "ttft", "stalls"},
		"tokenpulse.slo.breaches": []any{
			map[string]any{"slo": "tpot", "indicator": "time_per_output_token", "threshold": 0.05, "value": 0.0625},
			map[string]any{"slo": "ttft", "indicator": "time_to_first_token", "threshold": 1.0},
			map[string]any{"slo": "stalls", "indicator": "stall.count", "threshold": 3.0, "value": 4.0},
		},
	}, event.Attributes().AsRaw())
}

// Spans of other releases, or forged ones.
func TestBreachEvent_LeavesOutMissingAndMalformedFields(t *testing.T) {
	tests := map[string]struct {
		attributes map[string]any
		want       []any // nil: no event
	}{
		"names without indicators": {map[string]any{"tokenpulse.slo.breached": []any{"tpot"}}, []any{map[string]any{"slo": "tpot"}}},
		"outcome, which has no threshold": {
			map[string]any{
				"tokenpulse.outcome":                "error",
				"tokenpulse.slo.breached":           []any{"a"},
				"tokenpulse.slo.breached.indicator": []any{"outcome"},
				"tokenpulse.slo.breached.threshold": []any{nil},
			},
			[]any{map[string]any{"slo": "a", "indicator": "outcome"}},
		},
		"list of thresholds too short": {
			map[string]any{
				"tokenpulse.slo.breached":           []any{"a", "b"},
				"tokenpulse.slo.breached.indicator": []any{"time_to_first_token", "time_to_first_token"},
				"tokenpulse.slo.breached.threshold": []any{2.0},
			},
			[]any{map[string]any{"slo": "a", "indicator": "time_to_first_token", "threshold": 2.0}, map[string]any{"slo": "b"}},
		},
		"indicator and threshold are not lists": {
			map[string]any{
				"tokenpulse.slo.breached":           []any{"a"},
				"tokenpulse.slo.breached.indicator": "time_to_first_token",
				"tokenpulse.slo.breached.threshold": 2.0,
			},
			[]any{map[string]any{"slo": "a"}},
		},
		"breached is not a list":     {map[string]any{"tokenpulse.slo.breached": "a"}, nil},
		"breached is empty":          {map[string]any{"tokenpulse.slo.breached": []any{}}, nil},
		"no attribute of tokenpulse": {map[string]any{"http.route": "/"}, nil},
		"too many names":             {map[string]any{"tokenpulse.slo.breached": repeated("a", 1000)}, repeated(map[string]any{"slo": "a"}, 64)},
		"entries that are not names": {map[string]any{"tokenpulse.slo.breached": []any{7, "", "a"}}, []any{map[string]any{"slo": "a"}}},
		"name too long":              {map[string]any{"tokenpulse.slo.breached": []any{strings.Repeat("x", 1000)}}, []any{map[string]any{"slo": strings.Repeat("x", 256)}}},
		"indicators that are unknown or too long": {
			map[string]any{
				"tokenpulse.slo.breached":           []any{"a", "b"},
				"tokenpulse.slo.breached.indicator": []any{"prompt", strings.Repeat("x", 257)},
				"tokenpulse.slo.breached.threshold": []any{2.0, 2.0},
				"tokenpulse.prompt":                 "secret",
			},
			[]any{map[string]any{"slo": "a", "indicator": "prompt", "threshold": 2.0}, map[string]any{"slo": "b"}},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			h := newLogHarness(t, nil)
			require.NoError(t, h.ConsumeTraces(t.Context(), keepertest.Batch(test.attributes)))
			events := h.events()
			if test.want == nil {
				require.Empty(t, events)
				return
			}
			require.Len(t, events, 1)
			breaches, _ := events[0].Attributes().Get("tokenpulse.slo.breaches")
			require.Equal(t, test.want, breaches.Slice().AsRaw())
		})
	}
}

func repeated(v any, n int) (all []any) {
	for range n {
		all = append(all, v)
	}
	return all
}

func TestBreachEvent_CopiesTheConfiguredAttributes(t *testing.T) {
	h := newLogHarness(t, func(c *Config) {
		c.EventAttributes = []string{"user.id", "tenant.id", "service.name", "absent", "list", "long"}
	})
	traces := keepertest.Batch(keepertest.Request(map[string]any{
		"user.id": 42, "list": []any{"a"}, "long": strings.Repeat("x", 300), "gen_ai.input.messages": "secret", "session.id": "s",
		"tokenpulse.slo.breached": []any{"tpot"},
	}))
	resource := traces.ResourceSpans().At(0).Resource().Attributes()
	resource.PutStr("tenant.id", "acme")
	resource.PutStr("user.id", "of the resource")
	require.NoError(t, h.ConsumeTraces(t.Context(), traces))
	events := h.events()
	require.Len(t, events, 1)
	require.Equal(t, map[string]any{
		"tokenpulse.outcome": "success", "user.id": "42", "tenant.id": "acme", "service.name": "chat", "long": strings.Repeat("x", 256),
		"tokenpulse.slo.breached": []any{"tpot"}, "tokenpulse.slo.breaches": []any{map[string]any{"slo": "tpot"}},
	}, events[0].Attributes().AsRaw())
}

// An event tells about its span, wherever the request counts. Its verdict spends the budget
// where it counts, and nowhere else.
func TestBreachEvent_IsSentForAggregatedRequests(t *testing.T) {
	h := newLogHarness(t, nil)
	traces := keepertest.Batch(map[string]any{"tokenpulse.slo.breached": []any{"tpot"}, "tokenpulse.aggregated": true})
	for range 2 {
		require.NoError(t, h.ConsumeTraces(t.Context(), traces))
	}
	events := h.events()
	require.Len(t, events, 1)
	require.Equal(t, "tokenpulse.slo.breach", events[0].EventName())
	require.Zero(t, h.spent())
}
