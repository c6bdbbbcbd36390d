// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokenlatencyprocessor

import (
	"maps"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor/processortest"

	"github.com/tokenpulse/tokenpulse/internal/names"
)

// The root span starts at 0, the last call after 1 s. Its first token arrives 250 ms later.
func TestVerdict_OfATrace(t *testing.T) {
	streams := map[string]any{names.GenAITimeToFirstChunk: 0.25}
	answer := map[string]any{"name": "answer", "indicator": "trace.time_to_answer", "threshold": "1250ms"}
	tight := map[string]any{"name": "tight", "indicator": "trace.time_to_answer", "threshold": "1249ms"}
	ttft := map[string]any{"name": "ttft", "indicator": "time_to_first_token", "threshold": "100ms"}
	agent := []placed{plainSpan(1, 0, 0, 3000), clientSpan(2, 1, 1000, 2000, streams)}
	notStreaming := []placed{plainSpan(1, 0, 0, 3000), clientSpan(2, 1, 1000, 2000, nil)}
	tests := map[string]struct {
		spans  []placed
		slos   []map[string]any
		failed bool
		root   map[string][]any
		call   map[string][]any
	}{
		"at the threshold":   {agent, []map[string]any{answer}, false, good("answer"), nil},
		"over the threshold": {agent, []map[string]any{tight}, false, bad("tight"), nil},
		"each SLO judges its own span": {
			agent,
			[]map[string]any{ttft, answer, tight},
			false,
			map[string][]any{names.SLOMet: {"answer"}, names.SLOBreached: {"tight"}},
			bad("ttft"),
		},
		"no time to answer is not eligible":  {notStreaming, []map[string]any{answer}, false, ineligible("answer"), nil},
		"no time to answer of a failed root": {notStreaming, []map[string]any{answer}, true, bad("answer"), nil},
		"fast, but the root failed":          {agent, []map[string]any{answer}, true, good("answer"), nil},
		"root span that is a model call": {
			[]placed{clientSpan(1, 0, 0, 2000, streams)},
			[]map[string]any{ttft, answer},
			false,
			map[string][]any{names.SLOMet: {"answer"}, names.SLOBreached: {"ttft"}},
			nil,
		},
		"root span that the Collector cut": {
			[]placed{clientSpan(1, 0, 0, 2000, map[string]any{names.GenAITimeToFirstChunk: 0.25, "tokenpulse.cut": "collector"})},
			[]map[string]any{ttft, answer, tight},
			false, ineligible("ttft", "answer", "tight"), nil,
		},
		"another threshold on the root": {
			[]placed{{1, 0, "work", 0, 3000, map[string]any{"tenant.answer": "1s"}}, agent[1]},
			[]map[string]any{{"name": "answer", "indicator": "trace.time_to_answer", "threshold": "5s", "threshold_attribute": "tenant.answer"}},
			false, bad("answer"), nil,
		},
		"root that does not match": {
			agent,
			[]map[string]any{{"name": "answer", "indicator": "trace.time_to_answer", "threshold": "5s", "match": map[string]any{"route": "/chat"}}},
			false, nil, nil,
		},
		"trace without a model call": {[]placed{plainSpan(1, 0, 0, 3000)}, []map[string]any{answer}, false, nil, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			cfg := judging(t, test.slos...)
			cfg.RollUp = true
			traces := traceOf(t, test.spans...)
			if test.failed {
				allSpans(traces)[0].Status().SetCode(ptrace.StatusCodeError)
			}
			spans := processTrace(t, cfg, traces)
			require.Equal(t, orEmpty(test.root), verdictsOn(spans[1]))
			if call, ok := spans[2]; ok {
				require.Equal(t, orEmpty(test.call), verdictsOn(call))
			}
			// Processed again, as in a second Collector without roll_up, the verdicts are the same.
			again := processTrace(t, judging(t, test.slos...), traces)
			require.Equal(t, orEmpty(test.root), verdictsOn(again[1]))
			requireListsOfTrace(t, again[1])
		})
	}
}

func orEmpty(lists map[string][]any) map[string][]any {
	if lists == nil {
		return map[string][]any{}
	}
	return lists
}

// requireListsOfTrace compares tokenpulse.slo.of_trace with the verdicts on SLOs other than ttft.
func requireListsOfTrace(t *testing.T, root ptrace.Span) {
	t.Helper()
	var want, got []any
	for _, name := range []string{"answer", "tight"} {
		for _, list := range verdictsOn(root) {
			for _, slo := range list {
				if slo == name {
					want = append(want, slo)
				}
			}
		}
	}
	if v, ok := root.Attributes().Get("tokenpulse.slo.of_trace"); ok {
		got = v.Slice().AsRaw()
	}
	require.Equal(t, want, got)
}

func TestVerdict_OnNetworkDuration(t *testing.T) {
	cfg := judging(t, map[string]any{
		"name": "network", "indicator": "network.duration", "threshold": "50ms", "match": map[string]any{"tokenpulse.vantage": "client"},
	})
	cfg.Join = true
	spans := processTrace(t, cfg, traceOf(t,
		clientSpan(1, 0, 0, 1000, map[string]any{names.GenAITimeToFirstChunk: 0.2}), engineSpan(3, 1, 20, 900, phasesOfEngine)))
	require.Equal(t, bad("network"), verdictsOn(spans[1]), "0.2 s - 0.12 s")
	require.Empty(t, verdictsOn(spans[3]))
}

// The second Collector has fewer spans of the trace, and so does not know the time to answer.
func TestRollUp_ReplacesEarlierNumbers(t *testing.T) {
	stale := map[string]any{"tokenpulse.trace.time_to_answer": 0.001, names.TraceOutputTokens: 9, names.TraceCalls: 7}
	root := placed{1, 0, "work", 0, 3000, maps.Clone(stale)}
	spans := processTrace(t, rollingUp(), traceOf(t, root, clientSpan(2, 1, 1000, 2000, nil)))
	requireNumbers(t, map[string]float64{names.TraceCalls: 1, "tokenpulse.trace.time_to_answer": -1, names.TraceOutputTokens: -1}, spans[1])
}

// A network duration that a sender wrote is removed, like everything that the processor derives.
func TestJoin_RemovesForgedNetworkDuration(t *testing.T) {
	p, sink := newProcessor(t, processortest.NewNopSettings(typ), joining())
	require.NoError(t, p.ConsumeTraces(t.Context(), traceOf(t, clientSpan(1, 0, 0, 1000, map[string]any{"tokenpulse.network.duration": 0.001}))))
	requireNumbers(t, map[string]float64{"tokenpulse.network.duration": -1}, allSpans(sink.AllTraces()[0])[0])
}

// Verdicts on a span that is neither a model call nor rolled up are removed, whatever they judge.
func TestVerdict_OfATraceNeedsNumbersOfTheTrace(t *testing.T) {
	traces := traceOf(t, placed{1, 0, "work", 0, 3000, map[string]any{
		names.SLOBreached: []any{"answer"}, names.SLOOfTrace: []any{"answer"}, "tokenpulse.trace.time_to_answer": 9.0,
	}})
	cfg := judging(t, map[string]any{"name": "answer", "indicator": "trace.time_to_answer", "threshold": "1s"})
	attributes := pcommon.NewMap()
	processTrace(t, cfg, traces)[1].Attributes().CopyTo(attributes)
	require.Equal(t, map[string]any{"tokenpulse.trace.time_to_answer": 9.0}, attributes.AsRaw())
}
