// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokenlatencyprocessor

import (
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor/processortest"

	"github.com/tokenpulse/tokenpulse/internal/annotate"
	"github.com/tokenpulse/tokenpulse/internal/names"
)

// verdictsOn returns the SLOs that a span lists, by the attribute of their verdict.
func verdictsOn(span ptrace.Span) map[string][]any {
	lists := map[string][]any{}
	for _, name := range [...]string{names.SLOMet, names.SLOBreached, names.SLONotEligible} {
		if v, ok := span.Attributes().Get(name); ok {
			lists[name] = v.Slice().AsRaw()
		}
	}
	return lists
}

// load returns the settings, or the error that a user would see.
func load(tb testing.TB, settings map[string]any) (*Config, error) {
	tb.Helper()
	cfg := annotate.DefaultConfig()
	if err := confmap.NewFromStringMap(settings).Unmarshal(cfg); err != nil {
		return nil, err
	}
	return cfg, confmap.Validate(cfg)
}

func judging(tb testing.TB, slos ...map[string]any) *Config {
	tb.Helper()
	all := make([]any, len(slos))
	for i, s := range slos {
		all[i] = s
	}
	cfg, err := load(tb, map[string]any{"slos": all})
	require.NoError(tb, err)
	return cfg
}

var (
	good       = func(slos ...any) map[string][]any { return map[string][]any{names.SLOMet: slos} }
	bad        = func(slos ...any) map[string][]any { return map[string][]any{names.SLOBreached: slos} }
	ineligible = func(slos ...any) map[string][]any { return map[string][]any{names.SLONotEligible: slos} }
)

// Every stream starts at 0 and ends after a second.
func TestVerdict_OfOneRequest(t *testing.T) {
	tpot := map[string]any{"name": "tpot", "indicator": "time_per_output_token", "threshold": "50ms"}
	promptRange := map[string]any{names.GenAIInputTokens: map[string]any{"min": 1000, "max": 8000}}
	availability := map[string]any{"name": "availability", "indicator": "outcome"}
	with := func(slo map[string]any, key string, value any) map[string]any {
		changed := maps.Clone(slo)
		changed[key] = value
		return changed
	}
	tests := map[string]struct {
		slos       []map[string]any
		chunks     []int64
		attributes map[string]any
		resource   map[string]any
		failed     bool
		expected   map[string][]any
	}{
		"under the threshold": {[]map[string]any{tpot}, []int64{100, 149}, nil, nil, false, good("tpot")},
		"at the threshold":    {[]map[string]any{tpot}, []int64{100, 150}, nil, nil, false, good("tpot")},
		// 150 ms for three tokens: dividing seconds would give a float beside 0.05
		"at the threshold, with a remainder": {[]map[string]any{tpot}, []int64{100, 120, 190, 250}, nil, nil, false, good("tpot")},
		"over the threshold":                 {[]map[string]any{tpot}, []int64{100, 151}, nil, nil, false, bad("tpot")},
		"a success of one token is not eligible": {
			[]map[string]any{tpot}, []int64{100}, nil, nil, false, ineligible("tpot"),
		},
		"a stream without a token is bad": {[]map[string]any{tpot}, nil, nil, nil, false, bad("tpot")},
		"aborted after one token is bad": {
			[]map[string]any{tpot}, []int64{100}, map[string]any{names.Outcome: "cancelled"}, nil, false, bad("tpot"),
		},
		"incomplete, but fast": {
			[]map[string]any{tpot}, []int64{100, 120}, map[string]any{names.Outcome: "incomplete"}, nil, false, good("tpot"),
		},
		"failed after two fast tokens": {[]map[string]any{tpot}, []int64{100, 120}, nil, nil, true, good("tpot")},
		"several": {
			[]map[string]any{
				tpot,
				{"name": "ttft", "indicator": "time_to_first_token", "threshold": "99ms"},
				{"name": "p99", "indicator": "inter_token_latency.p99", "threshold": "100ms"},
				{"name": "e2e", "indicator": "request.duration", "threshold": "1s"},
				{"name": "stalls", "indicator": "stall.count", "threshold": 1},
				{"name": "queue", "indicator": "queue.duration", "threshold": "1s"},
			},
			[]int64{100, 120},
			nil, nil, false,
			map[string][]any{names.SLOMet: {"tpot", "p99", "e2e", "stalls"}, names.SLOBreached: {"ttft"}, names.SLONotEligible: {"queue"}},
		},
		"reasoning only has no first output token": {
			[]map[string]any{{"name": "ttfo", "indicator": "time_to_first_output_token", "threshold": "1s"}},
			[]int64{100, 120},
			map[string]any{"reasoning": true},
			nil, false, ineligible("ttfo"),
		},
		"cut by the Collector, though the indicator is over the threshold": {
			[]map[string]any{tpot}, []int64{100, 200}, map[string]any{names.Outcome: "incomplete", names.Cut: "collector"}, nil, false, ineligible("tpot"),
		},
		"cut by the Collector before the first token": {
			[]map[string]any{tpot, {"name": "ttft", "indicator": "time_to_first_token", "threshold": "1s"}},
			nil,
			map[string]any{names.Outcome: "incomplete", names.Cut: "collector"},
			nil, false, ineligible("tpot", "ttft"),
		},
		"cut by something else": {
			[]map[string]any{tpot}, nil, map[string]any{names.Outcome: "incomplete", names.Cut: "other"}, nil, false, bad("tpot"),
		},
		"outcome of a success":            {[]map[string]any{availability}, []int64{100, 120}, nil, nil, false, good("availability")},
		"outcome of an error":             {[]map[string]any{availability}, []int64{100, 120}, nil, nil, true, bad("availability")},
		"outcome of an empty stream":      {[]map[string]any{availability}, nil, nil, nil, false, bad("availability")},
		"outcome of an incomplete stream": {[]map[string]any{availability}, []int64{100}, map[string]any{names.Outcome: "incomplete"}, nil, false, bad("availability")},
		"outcome of a cancelled request":  {[]map[string]any{availability}, []int64{100}, map[string]any{names.Outcome: "cancelled"}, nil, false, ineligible("availability")},
		"outcome of a stream that the Collector cut": {
			[]map[string]any{availability}, []int64{100}, map[string]any{names.Outcome: "incomplete", names.Cut: "collector"}, nil, false, ineligible("availability"),
		},
		"a client mistake is not eligible, though it was slow": {
			[]map[string]any{tpot, availability}, []int64{100, 200}, map[string]any{"http.response.status_code": 401}, nil, true, ineligible("tpot", "availability"),
		},
		"a client mistake by its error.type": {
			[]map[string]any{tpot}, nil, map[string]any{"error.type": "422"}, nil, false, ineligible("tpot"),
		},
		"a client mistake that the SLO counts, though it was fast": {
			[]map[string]any{with(tpot, "client_errors", "bad"), availability},
			[]int64{100, 120},
			map[string]any{"http.response.status_code": "404"},
			nil, true,
			map[string][]any{names.SLOBreached: {"tpot"}, names.SLONotEligible: {"availability"}},
		},
		"the status goes before error.type": {
			[]map[string]any{availability}, nil, map[string]any{"http.response.status_code": 503, "error.type": "401"}, nil, true, bad("availability"),
		},
		"a rate limit is bad":            {[]map[string]any{tpot}, nil, map[string]any{"http.response.status_code": 429}, nil, true, bad("tpot")},
		"a success with a status is not": {[]map[string]any{tpot}, []int64{100, 120}, map[string]any{"http.response.status_code": 400}, nil, false, good("tpot")},
		"another operation does not match": {
			[]map[string]any{with(tpot, "match", map[string]any{"gen_ai.operation.name": "chat"})},
			[]int64{100, 120},
			map[string]any{"gen_ai.operation.name": "text_completion"},
			nil, false,
			map[string][]any{},
		},
		"a missing attribute does not match": {
			[]map[string]any{with(tpot, "match", map[string]any{"gen_ai.operation.name": "chat"})}, []int64{100, 120}, nil, nil, false, map[string][]any{},
		},
		"matches the span": {
			[]map[string]any{with(tpot, "match", map[string]any{"gen_ai.operation.name": "chat"})},
			[]int64{100, 120},
			map[string]any{"gen_ai.operation.name": "chat"},
			nil, false, good("tpot"),
		},
		"matches the resource": {
			[]map[string]any{with(tpot, "match", map[string]any{"service.name": "chat"})},
			[]int64{100, 120},
			nil,
			map[string]any{"service.name": "chat"},
			false, good("tpot"),
		},
		"the span overrides the resource": {
			[]map[string]any{with(tpot, "match", map[string]any{"tier": "gold"})},
			[]int64{100, 120},
			map[string]any{"tier": "silver"},
			map[string]any{"tier": "gold"},
			false,
			map[string][]any{},
		},
		"matches a number": {
			[]map[string]any{with(tpot, "match", map[string]any{"priority": "7"})}, []int64{100, 120}, map[string]any{"priority": 7}, nil, false, good("tpot"),
		},
		"matches an expression": {
			[]map[string]any{with(tpot, "match_regexp", map[string]any{"gen_ai.request.model": "llama-.*|qwen"})},
			[]int64{100, 120},
			map[string]any{"gen_ai.request.model": "llama-3"},
			nil, false, good("tpot"),
		},
		"an expression must match the whole value": {
			[]map[string]any{with(tpot, "match_regexp", map[string]any{"gen_ai.request.model": "llama|qwen"})},
			[]int64{100, 120},
			map[string]any{"gen_ai.request.model": "llama2"},
			nil, false,
			map[string][]any{},
		},
		"matches the lower end of a range": {
			[]map[string]any{with(tpot, "match_range", promptRange)}, []int64{100, 120}, map[string]any{names.GenAIInputTokens: 1000}, nil, false, good("tpot"),
		},
		"matches below the upper end of a range": {
			[]map[string]any{with(tpot, "match_range", promptRange)}, []int64{100, 120}, map[string]any{names.GenAIInputTokens: 7999}, nil, false, good("tpot"),
		},
		"the upper end of a range does not match": {
			[]map[string]any{with(tpot, "match_range", promptRange)}, []int64{100, 120}, map[string]any{names.GenAIInputTokens: 8000}, nil, false, map[string][]any{},
		},
		"below a range does not match": {
			[]map[string]any{with(tpot, "match_range", promptRange)}, []int64{100, 120}, map[string]any{names.GenAIInputTokens: 999}, nil, false, map[string][]any{},
		},
		"an unknown number does not match a range": {
			[]map[string]any{with(tpot, "match_range", promptRange)}, []int64{100, 120}, nil, nil, false, map[string][]any{},
		},
		"a range of a number that is derived": {
			[]map[string]any{with(tpot, "match_range", map[string]any{"tokenpulse.cached_input.share": map[string]any{"min": 0.5}})},
			[]int64{100, 120},
			map[string]any{names.GenAIInputTokens: 1000, names.GenAICacheReadInputTokens: 500},
			nil, false, good("tpot"),
		},
		"a range of a number on the resource": {
			[]map[string]any{with(tpot, "match_range", map[string]any{"gpus": map[string]any{"min": 4}})}, []int64{100, 120}, nil, map[string]any{"gpus": "8"}, false, good("tpot"),
		},
		"another vantage does not match": {
			[]map[string]any{with(tpot, "match", map[string]any{names.Vantage: "engine"})}, []int64{100, 120}, map[string]any{names.Vantage: "client"}, nil, false, map[string][]any{},
		},
		"matches the vantage": {
			[]map[string]any{with(tpot, "match", map[string]any{names.Vantage: "client"})}, []int64{100, 120}, map[string]any{names.Vantage: "client"}, nil, false, good("tpot"),
		},
		"matches the vantage that the processor wrote": {
			[]map[string]any{with(tpot, "match", map[string]any{names.Vantage: "server"})}, []int64{100, 120}, nil, nil, false, good("tpot"),
		},
		"the threshold that the request carries, in seconds": {
			[]map[string]any{with(tpot, "threshold_attribute", "tenant.tpot")}, []int64{100, 120}, map[string]any{"tenant.tpot": 0.019}, nil, false, bad("tpot"),
		},
		"the threshold that the resource carries, as text": {
			[]map[string]any{with(tpot, "threshold_attribute", "tenant.tpot")}, []int64{100, 180}, nil, map[string]any{"tenant.tpot": "80ms"}, false, good("tpot"),
		},
		"an invalid threshold on the request is ignored": {
			[]map[string]any{with(tpot, "threshold_attribute", "tenant.tpot")}, []int64{100, 180}, map[string]any{"tenant.tpot": "-1"}, nil, false, bad("tpot"),
		},
		"invalid lists from other senders are replaced": {
			[]map[string]any{tpot}, []int64{100, 120}, map[string]any{names.SLOBreached: "everything", names.SLOMet: "other"}, nil, false, good("tpot"),
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			traces, spans := newSpans()
			span := addStream(spans, test.chunks...)
			if test.attributes["reasoning"] != nil {
				span.Attributes().PutStr(names.Timeline, "100r 120r")
				packTimeline(t, span.Attributes())
			}
			for key, v := range test.attributes {
				require.NoError(t, span.Attributes().PutEmpty(key).FromRaw(v))
			}
			if test.failed {
				span.Status().SetCode(ptrace.StatusCodeError)
			}
			require.NoError(t, traces.ResourceSpans().At(0).Resource().Attributes().FromRaw(test.resource))

			p, sink := newProcessor(t, processortest.NewNopSettings(typ), judging(t, test.slos...))
			require.NoError(t, p.ConsumeTraces(t.Context(), traces))
			require.Equal(t, test.expected, verdictsOn(onlySpan(t, sink.AllTraces()[0])))
		})
	}
}

// An outcome has no threshold, so the entry that keeps the lists parallel is empty.
func TestVerdict_BreachOfTheOutcomeHasNoThreshold(t *testing.T) {
	traces, spans := newSpans()
	addStream(spans, 100, 200).Status().SetCode(ptrace.StatusCodeError)
	p, sink := newProcessor(t, processortest.NewNopSettings(typ), judging(t,
		map[string]any{"name": "availability", "indicator": "outcome"},
		map[string]any{"name": "tpot", "indicator": "time_per_output_token", "threshold": "50ms"},
	))
	require.NoError(t, p.ConsumeTraces(t.Context(), traces))
	breached := onlySpan(t, sink.AllTraces()[0]).Attributes().AsRaw()
	require.Equal(t, []any{"availability", "tpot"}, breached[names.SLOBreached])
	require.Equal(t, []any{"outcome", "time_per_output_token"}, breached[names.SLOBreachedIndicator])
	require.Equal(t, []any{nil, 0.05}, breached[names.SLOBreachedThreshold])
}

// A stream starts at 0, has its last token at 200 ms and ends at 1 s.
func TestStalledAtEnd_IsWrittenOnlyWhenTheClientGaveUp(t *testing.T) {
	for outcome, stalled := range map[string]any{"cancelled": true, "success": nil, "error": nil, "incomplete": nil} {
		traces, spans := newSpans()
		span := addStream(spans, 100, 200)
		span.Attributes().PutStr(names.Outcome, outcome)
		span.Attributes().PutBool(names.StalledAtEnd, true) // forged
		p, sink := newProcessor(t, processortest.NewNopSettings(typ), annotate.DefaultConfig())
		require.NoError(t, p.ConsumeTraces(t.Context(), traces))
		written := onlySpan(t, sink.AllTraces()[0]).Attributes().AsRaw()
		require.Equal(t, stalled, written[names.StalledAtEnd], outcome)
		if stalled == true {
			require.EqualValues(t, 1, written["tokenpulse.stall.count"])
			require.InDelta(t, 0.8, written["tokenpulse.stall.duration"], 1e-12)
		}
	}
}

// A time per output token equal to the threshold is good: rounding must not push it over.
func TestVerdict_AtThresholdIsGood(t *testing.T) {
	for _, milliseconds := range []int64{1, 3, 7, 11, 23, 49, 50, 51, 333} {
		slo := map[string]any{"name": "tpot", "indicator": "time_per_output_token", "threshold": (time.Duration(milliseconds) * time.Millisecond).String()}
		p, sink := newProcessor(t, processortest.NewNopSettings(typ), judging(t, slo))
		for tokens := int64(2); tokens < 400; tokens++ {
			traces, spans := newSpans()
			span := addStream(spans, 100, 100+milliseconds*(tokens-1))
			span.SetEndTimestamp(epoch + pcommon.Timestamp(time.Hour))
			span.Attributes().PutInt(names.GenAIOutputTokens, tokens)
			require.NoError(t, p.ConsumeTraces(t.Context(), traces))
		}
		for i, traces := range sink.AllTraces() {
			require.Equal(t, good("tpot"), verdictsOn(onlySpan(t, traces)), "%d tokens of %d ms", i+2, milliseconds)
		}
	}
}

// The phases that join adds are judged, also on spans that another Collector annotated. Spans that are
// not model calls are not judged.
func TestVerdict_IsGivenAfterJoin(t *testing.T) {
	cfg := judging(t, map[string]any{"name": "queue", "indicator": "queue.duration", "threshold": "10ms"})
	cfg.Join, cfg.Phases = true, true
	traces := traceOf(t, plainSpan(9, 0, 0, 1000),
		clientSpan(1, 9, 0, 1000, map[string]any{names.GenAITimeToFirstChunk: 0.2}), engineSpan(3, 1, 20, 900, phasesOfEngine))
	edge, sink := newProcessor(t, processortest.NewNopSettings(typ), annotate.DefaultConfig())
	require.NoError(t, edge.ConsumeTraces(t.Context(), traces))

	spans := processTrace(t, cfg, sink.AllTraces()[0])
	require.Equal(t, bad("queue"), verdictsOn(spans[1]))
	require.Equal(t, bad("queue"), verdictsOn(spans[3]))
	require.Empty(t, verdictsOn(spans[9]))
}

func TestVerdict_NoneWithoutSLOs(t *testing.T) {
	traces, spans := newSpans()
	addStream(spans, 100, 120)
	p, sink := newProcessor(t, processortest.NewNopSettings(typ), annotate.DefaultConfig())
	require.NoError(t, p.ConsumeTraces(t.Context(), traces))
	require.Empty(t, verdictsOn(onlySpan(t, sink.AllTraces()[0])))
}

func TestVerdict_IsRemovedFromOtherSpans(t *testing.T) {
	p, sink := newProcessor(t, processortest.NewNopSettings(typ), judging(t, map[string]any{"name": "a", "indicator": "time_to_first_token", "threshold": "1s"}))
	traces, spans := newSpans()
	span := spans.AppendEmpty()
	require.NoError(t, span.Attributes().FromRaw(map[string]any{
		"http.route": "/", names.SLOMet: []any{"a"}, names.SLOBreached: []any{"b"}, names.SLOBreachedIndicator: []any{"c"},
	}))
	require.NoError(t, p.ConsumeTraces(t.Context(), traces))
	require.Equal(t, map[string]any{"http.route": "/"}, onlySpan(t, sink.AllTraces()[0]).Attributes().AsRaw())
}
