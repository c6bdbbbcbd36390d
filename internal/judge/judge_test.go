// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package judge_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/internal/annotate"
	"github.com/tokenpulse/tokenpulse/internal/judge"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/slo"
)

func load(tb testing.TB, settings map[string]any) (*annotate.Config, error) {
	tb.Helper()
	cfg := annotate.DefaultConfig()
	if err := confmap.NewFromStringMap(settings).Unmarshal(cfg); err != nil {
		return nil, err
	}
	return cfg, confmap.Validate(cfg)
}

// verdictNames holds the attribute that lists the SLOs with a verdict.
var verdictNames = [slo.Verdicts]string{slo.NotEligible: names.SLONotEligible, slo.Good: names.SLOMet, slo.Bad: names.SLOBreached}

func judging(tb testing.TB, slos ...map[string]any) *annotate.Config {
	tb.Helper()
	all := make([]any, len(slos))
	for i, s := range slos {
		all[i] = s
	}
	cfg, err := load(tb, map[string]any{"slos": all})
	require.NoError(tb, err)
	return cfg
}

// verdictsOn returns the SLOs that a span lists, by the attribute of their verdict.
func verdictsOn(span ptrace.Span) map[string][]any {
	lists := map[string][]any{}
	for _, name := range verdictNames {
		if v, ok := span.Attributes().Get(name); ok {
			lists[name] = v.Slice().AsRaw()
		}
	}
	return lists
}

// Each breach comes with its indicator and with the threshold of this request.
func TestVerdict_BreachCarriesIndicatorAndThreshold(t *testing.T) {
	rules, err := judge.NewRules(judging(t,
		map[string]any{"name": "ttft", "indicator": "time_to_first_token", "threshold": "1s"},
		map[string]any{"name": "tpot", "indicator": "time_per_output_token", "threshold": "50ms", "threshold_attribute": "tenant.tpot"},
		map[string]any{"name": "stalls", "indicator": "stall.count", "threshold": 2},
		map[string]any{"name": "duration", "indicator": "request.duration", "threshold": "10s"},
	).SLOs, false)
	require.NoError(t, err)
	span := ptrace.NewSpan()
	require.NoError(t, span.Attributes().FromRaw(map[string]any{
		names.Source: "tokenpulse", names.Outcome: "success", "tenant.tpot": "20ms",
		"tokenpulse.time_to_first_token": 0.5, "tokenpulse.time_per_output_token": 0.03, "tokenpulse.stall.count": 3, "tokenpulse.request.duration": 11.0,
		names.SLOBreachedIndicator: "of another type", // replaced
	}))
	for range 2 { // a second processor, with the same SLOs, changes nothing
		judge.NewSpanJudge(rules).Judge(span, pcommon.NewMap())
		require.Equal(t, []any{"ttft"}, verdictsOn(span)[names.SLOMet])
		require.Equal(t, []any{"tpot", "stalls", "duration"}, verdictsOn(span)[names.SLOBreached])
		attributes := span.Attributes().AsRaw()
		require.Equal(t, []any{"time_per_output_token", "stall.count", "request.duration"}, attributes[names.SLOBreachedIndicator])
		require.Equal(t, []any{0.02, 2.0, 10.0}, attributes[names.SLOBreachedThreshold])
	}
	span.Attributes().PutDouble("tokenpulse.time_per_output_token", 0.01)
	span.Attributes().PutInt("tokenpulse.stall.count", 0)
	span.Attributes().PutDouble("tokenpulse.request.duration", 1)
	judge.NewSpanJudge(rules).Judge(span, pcommon.NewMap())
	for _, gone := range []string{names.SLOBreached, names.SLOBreachedIndicator, names.SLOBreachedThreshold} {
		require.NotContains(t, span.Attributes().AsRaw(), gone)
	}
}

// Few trace backends can search lists, so each breach has an attribute of its own, by detail also each
// other verdict.
func TestVerdict_HasAnAttributeOfItsOwn(t *testing.T) {
	slos := judging(t,
		map[string]any{"name": "ttft", "indicator": "time_to_first_token", "threshold": "1s"},
		map[string]any{"name": "chat tpot", "indicator": "time_per_output_token", "threshold": "50ms"},
		map[string]any{"name": "stalls", "indicator": "stall.duration", "threshold": "1s"},
		map[string]any{"name": "answer", "indicator": "trace.time_to_answer", "threshold": "1s"},
	).SLOs
	for detailed, expected := range map[bool][2]map[string]any{
		false: {
			{"tokenpulse.slo.verdict.ttft": "breached", "tokenpulse.slo.verdict.chat tpot": "breached", "tokenpulse.slo.verdict.answer": "breached"},
			{},
		},
		true: {
			{
				"tokenpulse.slo.verdict.ttft": "breached", "tokenpulse.slo.verdict.chat tpot": "breached",
				"tokenpulse.slo.verdict.stalls": "not_eligible", "tokenpulse.slo.verdict.answer": "breached",
			},
			{
				"tokenpulse.slo.verdict.ttft": "met", "tokenpulse.slo.verdict.chat tpot": "met",
				"tokenpulse.slo.verdict.stalls": "not_eligible", "tokenpulse.slo.verdict.answer": "met",
			},
		},
	} {
		rules, err := judge.NewRules(slos, detailed)
		require.NoError(t, err)
		span := ptrace.NewSpan()
		require.NoError(t, span.Attributes().FromRaw(map[string]any{
			names.Source: "tokenpulse", names.Outcome: "success", names.SLOVerdictPrefix + "theirs": "breached",
			"tokenpulse.time_to_first_token": 1.5, "tokenpulse.time_per_output_token": 0.06,
			"tokenpulse.trace.time_to_answer": 2.0, names.TraceCalls: 1,
		}))
		for _, verdicts := range expected {
			judge.NewSpanJudge(rules).Judge(span, pcommon.NewMap())
			verdicts[names.SLOVerdictPrefix+"theirs"] = "breached"
			written := span.Attributes().AsRaw()
			maps.DeleteFunc(written, func(name string, _ any) bool { return !strings.HasPrefix(name, names.SLOVerdictPrefix) })
			require.Equal(t, verdicts, written)
			for _, name := range []string{"tokenpulse.time_to_first_token", "tokenpulse.time_per_output_token", "tokenpulse.trace.time_to_answer"} {
				span.Attributes().PutDouble(name, 0.01)
			}
		}
	}
}

// Verdicts on SLOs that this processor does not define come from another one, before it or in another
// Collector.
func TestVerdict_OnUndefinedSLOsIsKept(t *testing.T) {
	rules, err := judge.NewRules(judging(t, map[string]any{"name": "ours", "indicator": "time_to_first_token", "threshold": "1s"}).SLOs, false)
	require.NoError(t, err)
	tests := map[string]struct {
		before, expected map[string]any
	}{
		"met": {
			map[string]any{names.SLOMet: []any{"theirs", "ours"}, names.SLONotEligible: []any{"others"}},
			map[string]any{names.SLOMet: []any{"theirs"}, names.SLONotEligible: []any{"others"}},
		},
		"breached": {
			map[string]any{names.SLOBreached: []any{"a", "ours", "b"}, names.SLOBreachedIndicator: []any{"x", "y", "z"}, names.SLOBreachedThreshold: []any{1.0, 2.0, 3.0}},
			map[string]any{names.SLOBreached: []any{"a", "b"}, names.SLOBreachedIndicator: []any{"x", "z"}, names.SLOBreachedThreshold: []any{1.0, 3.0}},
		},
		"lists of different lengths": {
			map[string]any{names.SLOBreached: []any{"a", "b"}, names.SLOBreachedIndicator: []any{"x"}, names.SLOBreachedThreshold: "y"},
			map[string]any{names.SLOBreached: []any{"a", "b"}, names.SLOBreachedIndicator: []any{nil, nil}, names.SLOBreachedThreshold: []any{nil, nil}},
		},
		"not lists": {map[string]any{names.SLOMet: "theirs", names.SLOBreached: 7}, map[string]any{}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			span := ptrace.NewSpan()
			require.NoError(t, span.Attributes().FromRaw(test.before))
			span.Attributes().PutStr(names.Source, "tokenpulse")
			span.Attributes().PutDouble("tokenpulse.time_to_first_token", 2)
			judge.NewSpanJudge(rules).Judge(span, pcommon.NewMap())
			for list, ours := range map[string]any{names.SLOBreached: "ours", names.SLOBreachedIndicator: "time_to_first_token", names.SLOBreachedThreshold: 1.0} {
				before, _ := test.expected[list].([]any)
				test.expected[list] = append(before, ours)
			}
			attributes := span.Attributes().AsRaw()
			require.Equal(t, names.SLOVerdictBreached, attributes[names.SLOVerdictPrefix+"ours"])
			delete(attributes, names.SLOVerdictPrefix+"ours")
			delete(attributes, names.Source)
			delete(attributes, "tokenpulse.time_to_first_token")
			require.Equal(t, test.expected, attributes)
		})
	}
}

// An interrupted turn is never bad, unless it failed for another reason, such as a broken connection.
func TestVerdict_OnAnInterruptedTurn(t *testing.T) {
	rules, err := judge.NewRules(judging(t,
		map[string]any{"name": "ttft", "indicator": "time_to_first_token", "threshold": "1s"},
		map[string]any{"name": "answers", "indicator": "outcome"}).SLOs, false)
	require.NoError(t, err)
	for outcome, want := range map[string]map[string][]any{
		names.OutcomeCancelled: {names.SLONotEligible: {"ttft", "answers"}},
		names.OutcomeError:     {names.SLOBreached: {"ttft", "answers"}},
	} {
		span := ptrace.NewSpan()
		require.NoError(t, span.Attributes().FromRaw(map[string]any{
			names.Source: "semconv", names.Vantage: "client", names.Outcome: outcome, names.Interrupted: true, "tokenpulse.time_to_first_token": 2.0,
		}))
		judge.NewSpanJudge(rules).Judge(span, pcommon.NewMap())
		require.Equal(t, want, verdictsOn(span), outcome)
	}
}
