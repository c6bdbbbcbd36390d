// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package keeper

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// unread are the attributes of model calls that no token_latency processor has read.
var unread = map[string]map[string]any{
	"of the receiver":    {"tokenpulse.timeline": "x"},
	"with an outcome":    {"tokenpulse.timeline": "x", "tokenpulse.outcome": "success"},
	"with a queue":       {"tokenpulse.timeline": "x", "tokenpulse.outcome": "success", "tokenpulse.queue.duration": 0.1},
	"of an engine":       {"tokenpulse.timeline": "x", "tokenpulse.prefill.duration": 0.1, "tokenpulse.decode.duration": 0.1, "tokenpulse.network.duration": 0.1},
	"of the conventions": {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"},
	"of OpenInference":   {"openinference.span.kind": "LLM", "llm.model_name": "m"},
}

func TestWiring_WarnsOnceOfMissingProcessor(t *testing.T) {
	for name, attributes := range unread {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, nil)
			h.Record(t.Context(), spans(t, 19, attributes))
			require.Zero(t, h.logs.Len())
			h.Record(t.Context(), spans(t, 100, attributes))
			h.Record(t.Context(), spans(t, 100, attributes))
			require.Equal(t, 1, h.logs.Len())
			require.Contains(t, h.logs.All()[0].Message, "add a token_latency processor")
		})
	}
}

func TestWiring_IsSilentBehindProcessor(t *testing.T) {
	h := newHarness(t, nil)
	h.Record(t.Context(), spans(t, 19, unread["of the conventions"])) // claimed by no reader
	h.Record(t.Context(), spans(t, 1, met))
	h.Record(t.Context(), spans(t, 100, unread["of the conventions"]))
	h.Record(t.Context(), spans(t, 100, map[string]any{"http.route": "/"}))
	require.Zero(t, h.logs.Len())
}

func TestWiring_IsSilentAboutOtherSpans(t *testing.T) {
	h := newHarness(t, nil)
	h.Record(t.Context(), spans(t, 1000, map[string]any{"http.route": "/"}))
	require.Zero(t, h.logs.Len())
}

// The thresholds of a quarter and a tenth are those of the OpenTelemetry specification of
// tracestate handling, and of its formula.
func TestWiring_WarnsOnceOfSampledSpans(t *testing.T) {
	for state, share := range map[string]float64{
		"ot=th:c":                       0.25,
		"vendor=x, ot=rv:123;th:e66667": 0.1,
		"ot=th:8":                       0.5,
		"ot=th:80000000000000;p:1,b=2":  0.5,
	} {
		t.Run(state, func(t *testing.T) {
			h := newHarness(t, nil)
			for range 3 {
				batch := spans(t, 2, met)
				for _, span := range batch.ResourceSpans().At(0).ScopeSpans().At(0).Spans().All() {
					span.TraceState().FromRaw(state)
				}
				h.Record(t.Context(), batch)
			}
			require.Equal(t, 1, h.logs.Len())
			require.Contains(t, h.logs.All()[0].Message, "put token_sli before the sampler")
			require.InDelta(t, share, h.logs.All()[0].ContextMap()["share"], 1e-6)
		})
	}
}

func TestWiring_IsSilentAboutUnsampledSpans(t *testing.T) {
	h := newHarness(t, nil)
	for _, state := range []string{"", "ot=th:0", "ot=rv:123", "ot=th:", "ot=th:xyz", "ot=th:123456789012345", "xot=th:8", "b=th:8"} {
		batch := spans(t, 1, met)
		batch.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0).TraceState().FromRaw(state)
		h.Record(t.Context(), batch)
	}
	require.Zero(t, h.logs.Len())
}
