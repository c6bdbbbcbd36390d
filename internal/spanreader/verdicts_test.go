// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package spanreader

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/series"
	"github.com/tokenpulse/tokenpulse/internal/slo"
)

func newEngine() *series.Engine {
	return series.NewEngine(series.Options{
		Config: series.Config{MaxSeries: 10}, Metrics: series.Selection{"tokenpulse.inter_chunk_latency": true},
	})
}

func spans(t testing.TB, all ...map[string]any) ptrace.Traces {
	t.Helper()
	traces := ptrace.NewTraces()
	scope := traces.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty()
	for _, attributes := range all {
		require.NoError(t, scope.Spans().AppendEmpty().Attributes().FromRaw(attributes))
	}
	return traces
}

// verdicts returns the number of requests that are not eligible, good and bad, by SLO.
func verdicts(e *series.Engine) map[string][3]uint64 {
	all := map[string][3]uint64{}
	e.Collect(time.Now(), func(s *series.Snapshot) {
		for _, slo := range s.SLOs {
			all[slo.Name] = slo.Requests
		}
	})
	return all
}

func manyNames(n int) (all []any) {
	for i := range n {
		all = append(all, fmt.Sprint("slo-", i))
	}
	return all
}

func TestRead_CountsVerdictsOfAllLists(t *testing.T) {
	tests := map[string]struct {
		span  map[string]any
		want  map[string][3]uint64
		wrong int64
	}{
		"three lists": {
			span: map[string]any{"tokenpulse.slo.met": []any{"a", "b"}, "tokenpulse.slo.breached": []any{"c"}, "tokenpulse.slo.not_eligible": []any{"d"}},
			want: map[string][3]uint64{"all": {0, 0, 1}, "a": {0, 1, 0}, "b": {0, 1, 0}, "c": {0, 0, 1}, "d": {1, 0, 0}},
		},
		"empty lists": {
			span: map[string]any{"tokenpulse.slo.met": []any{}, "tokenpulse.slo.breached": []any{}},
			want: map[string][3]uint64{},
		},
		"other types in place of lists": {
			span:  map[string]any{"tokenpulse.slo.met": "a", "tokenpulse.slo.breached": 1, "tokenpulse.slo.not_eligible": map[string]any{"a": "b"}},
			want:  map[string][3]uint64{},
			wrong: 3,
		},
		"lists with entries that are not names": {
			span:  map[string]any{"tokenpulse.slo.met": []any{1, "a", true, "", nil, []any{"b"}}, "tokenpulse.slo.breached": []any{2.5}},
			want:  map[string][3]uint64{"all": {0, 1, 0}, "a": {0, 1, 0}},
			wrong: 2,
		},
		"name too long": {
			span: map[string]any{"tokenpulse.slo.met": []any{strings.Repeat("x", 100_000)}},
			want: map[string][3]uint64{"all": {0, 1, 0}, strings.Repeat("x", 256): {0, 1, 0}},
		},
		"names that are equal once cut": {
			span: map[string]any{"tokenpulse.slo.met": []any{strings.Repeat("x", 256) + "1"}, "tokenpulse.slo.breached": []any{strings.Repeat("x", 256) + "2"}},
			want: map[string][3]uint64{"all": {0, 0, 1}, strings.Repeat("x", 256): {0, 0, 1}},
		},
		"name with invalid UTF-8": {
			span: map[string]any{"tokenpulse.slo.met": []any{"a\xff"}},
			want: map[string][3]uint64{"all": {0, 1, 0}, "a?": {0, 1, 0}},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			e := newEngine()
			tally := Read(spans(t, test.span), &Options{}, time.Now(), e.Record)
			require.EqualValues(t, 1, tally.Requests)
			require.Equal(t, test.wrong, tally.Rejected[series.WrongType])
			require.Zero(t, tally.DroppedVerdicts)
			require.Equal(t, test.want, verdicts(e))
		})
	}
}

// A request that failed is not good, however fast its tokens were.
func TestRead_AllIsGoodOnlyForRequestsThatDidNotFail(t *testing.T) {
	for situation, test := range map[string]struct {
		span map[string]any
		want [3]uint64
	}{
		"success":                         {map[string]any{"tokenpulse.outcome": "success"}, [3]uint64{0, 1, 0}},
		"error":                           {map[string]any{"tokenpulse.outcome": "error"}, [3]uint64{0, 0, 1}},
		"incomplete":                      {map[string]any{"tokenpulse.outcome": "incomplete"}, [3]uint64{0, 0, 1}},
		"cut by the Collector":            {map[string]any{"tokenpulse.outcome": "incomplete", "tokenpulse.cut": "collector"}, [3]uint64{1, 0, 0}},
		"cut by something else":           {map[string]any{"tokenpulse.outcome": "incomplete", "tokenpulse.cut": "other"}, [3]uint64{0, 0, 1}},
		"cancelled":                       {map[string]any{"tokenpulse.outcome": "cancelled"}, [3]uint64{0, 1, 0}},
		"cancelled during a stall":        {map[string]any{"tokenpulse.outcome": "cancelled", "tokenpulse.stall.at_end": true}, [3]uint64{0, 0, 1}},
		"success with a stall at end":     {map[string]any{"tokenpulse.outcome": "success", "tokenpulse.stall.at_end": true}, [3]uint64{0, 1, 0}},
		"stall at end that is not a bool": {map[string]any{"tokenpulse.outcome": "cancelled", "tokenpulse.stall.at_end": "true"}, [3]uint64{0, 1, 0}},
	} {
		t.Run(situation, func(t *testing.T) {
			e := newEngine()
			test.span["tokenpulse.slo.met"] = []any{"ttft"}
			Read(spans(t, test.span), &Options{}, time.Now(), e.Record)
			require.Equal(t, test.want, verdicts(e)["all"])
			require.Equal(t, [3]uint64{0, 1, 0}, verdicts(e)["ttft"], "the verdict of the SLO itself stays")
		})
	}
}

// Of 400 requests, 111 fail and 57 of these were fast enough before they failed.
func TestRead_GoodputOfATrafficWithErrors(t *testing.T) {
	var all []map[string]any
	for i := range 400 {
		span := map[string]any{"tokenpulse.outcome": "success", "tokenpulse.slo.met": []any{"ttft"}}
		if i < 111 {
			span["tokenpulse.outcome"] = "error"
		}
		if i < 54 {
			span["tokenpulse.slo.breached"] = span["tokenpulse.slo.met"]
			delete(span, "tokenpulse.slo.met")
		}
		all = append(all, span)
	}
	e := newEngine()
	Read(spans(t, all...), &Options{}, time.Now(), e.Record)
	require.Equal(t, map[string][3]uint64{"all": {0, 289, 111}, "ttft": {0, 346, 54}}, verdicts(e))
}

func TestRead_LimitsTheVerdictsOfASpan(t *testing.T) {
	e := newEngine()
	tally := Read(spans(t, map[string]any{"tokenpulse.slo.breached": manyNames(1000), "tokenpulse.slo.met": []any{"one more"}}), &Options{}, time.Now(), e.Record)
	require.EqualValues(t, 1000-64+1, tally.DroppedVerdicts)
	require.Len(t, verdicts(e), 65)
	require.Equal(t, [3]uint64{0, 0, 1}, verdicts(e)["all"])
}

// An objective is read wherever a sender puts it.
func TestRead_FindsObjectivesInLongLists(t *testing.T) {
	for name, span := range map[string]map[string]any{
		"at the end of a list": {"tokenpulse.slo.breached": append(manyNames(1000), "tpot")},
		"in another list":      {"tokenpulse.slo.met": manyNames(1000), "tokenpulse.slo.breached": []any{"tpot"}},
		"twice":                {"tokenpulse.slo.met": append(manyNames(100), "tpot", "tpot"), "tokenpulse.slo.breached": append(manyNames(100), "tpot")},
		"after other types":    {"tokenpulse.slo.breached": append(append([]any{1, "", true}, manyNames(100)...), "tpot")},
	} {
		t.Run(name, func(t *testing.T) {
			e := series.NewEngine(series.Options{Config: series.Config{MaxSeries: 10}, Objectives: slo.Names{"tpot": true}})
			Read(spans(t, span), &Options{Objectives: slo.Names{"tpot": true}}, time.Now(), e.Record)
			require.Equal(t, [3]uint64{0, 0, 1}, verdicts(e)["tpot"])
			require.LessOrEqual(t, len(verdicts(e)), slo.MaxSLOs+2)
		})
	}
}

func TestRead_CleansLabels(t *testing.T) {
	long := strings.Repeat("x", names.MaxLabelLength+1)
	e := series.NewEngine(series.Options{Config: series.Config{Dimensions: series.DimensionsOf("a", "b"), MaxSeries: 10}})
	Read(spans(t, map[string]any{"tokenpulse.outcome": "success", "tokenpulse.vantage": "server\xff", "a": "m\xff", "b": long}), &Options{Dimensions: NewDimensions(series.DimensionsOf("a", "b"))}, time.Now(), e.Record)
	e.Collect(time.Now(), func(s *series.Snapshot) {
		require.Equal(t, series.Labels{Dimensions: []string{"m?", long[1:]}, Vantage: "server?"}, s.Labels)
	})
	require.Equal(t, 1, e.Held())
}

// A client mistake counts for `all` only if an SLO counts it.
func TestRead_ClientMistakeIsNotEligibleForAll(t *testing.T) {
	mistake := func(attributes map[string]any) map[string]any {
		attributes["tokenpulse.outcome"] = "error"
		return attributes
	}
	for name, test := range map[string]struct {
		span map[string]any
		want [3]uint64
	}{
		"by its status":     {map[string]any{"http.response.status_code": 401, "tokenpulse.slo.not_eligible": []any{"a"}}, [3]uint64{1, 0, 0}},
		"by its error.type": {map[string]any{"error.type": "401", "tokenpulse.slo.not_eligible": []any{"a"}}, [3]uint64{1, 0, 0}},
		"that an SLO counts": {map[string]any{
			"http.response.status_code": 401, "tokenpulse.slo.not_eligible": []any{"a"}, "tokenpulse.slo.breached": []any{"b"},
		}, [3]uint64{0, 0, 1}},
		"not a rate limit": {map[string]any{"http.response.status_code": 429, "tokenpulse.slo.not_eligible": []any{"a"}}, [3]uint64{0, 0, 1}},
		"not a status that contradicts its error.type": {map[string]any{
			"http.response.status_code": 500, "error.type": "401", "tokenpulse.slo.not_eligible": []any{"a"},
		}, [3]uint64{0, 0, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEngine()
			Read(spans(t, mistake(test.span)), &Options{}, time.Now(), e.Record)
			require.Equal(t, test.want, verdicts(e)["all"])
		})
	}
}
