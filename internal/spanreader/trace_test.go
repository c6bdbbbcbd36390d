// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package spanreader

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/series"
	"github.com/tokenpulse/tokenpulse/internal/slo"
)

// counted is what one series has, over all outcomes.
type counted struct {
	requests uint64
	answers  map[string]float64 // sums of the time to answer, by outcome
	network  float64
	verdicts map[string][3]uint64
}

func countedBy(e *series.Engine) (all []counted) {
	e.Collect(time.Now(), func(s *series.Snapshot) {
		c := counted{answers: map[string]float64{}, verdicts: map[string][3]uint64{}}
		for i := range s.Outcomes {
			o := &s.Outcomes[i]
			if o.Empty() {
				continue
			}
			c.requests += o.Requests
			if d := &o.Distributions[numbers.TimeToAnswer]; d.Sketch.Count() > 0 {
				c.answers[series.OutcomeNames[i]] = d.Sketch.Sum()
			}
			if d := &o.Distributions[numbers.NetworkDuration]; d.Sketch.Count() > 0 {
				c.network += d.Sketch.Sum()
			}
		}
		for _, o := range s.SLOs {
			c.verdicts[o.Name] = o.Requests
		}
		all = append(all, c)
	})
	return all
}

func TestRead_NumbersOfATraceAreNoRequest(t *testing.T) {
	const answer, ofTrace = "tokenpulse.trace.time_to_answer", "tokenpulse.slo.of_trace"
	type m = map[string]any
	tests := map[string]struct {
		span   m
		failed bool
		want   counted
		tally  Tally
	}{
		"root span": {
			m{answer: 2.5, "tokenpulse.trace.model_call.count": 3},
			false,
			counted{answers: map[string]float64{"success": 2.5}, verdicts: map[string][3]uint64{}},
			Tally{Traces: 1},
		},
		"root span with an error": {
			m{answer: 2.5},
			true,
			counted{answers: map[string]float64{"error": 2.5}, verdicts: map[string][3]uint64{}},
			Tally{Traces: 1},
		},
		"root span with verdicts": {
			m{answer: 2.5, "tokenpulse.slo.breached": []any{"answer"}, ofTrace: []any{"answer"}},
			false,
			counted{answers: map[string]float64{"success": 2.5}, verdicts: map[string][3]uint64{"answer": {0, 0, 1}}},
			Tally{Traces: 1},
		},
		"root span without a time to answer": {
			m{"tokenpulse.slo.not_eligible": []any{"answer"}, ofTrace: []any{"answer"}},
			false,
			counted{answers: map[string]float64{}, verdicts: map[string][3]uint64{"answer": {1, 0, 0}}},
			Tally{Traces: 1},
		},
		"root span that is a model call": {
			m{
				answer: 0.5, "tokenpulse.outcome": "success", "tokenpulse.time_to_first_token": 0.5, "tokenpulse.network.duration": 0.125,
				"tokenpulse.slo.met": []any{"ttft"}, "tokenpulse.slo.breached": []any{"answer"}, ofTrace: []any{"answer"},
			},
			false,
			counted{1, map[string]float64{"success": 0.5}, 0.125, map[string][3]uint64{"all": {0, 1, 0}, "answer": {0, 0, 1}, "ttft": {0, 1, 0}}},
			Tally{Requests: 1},
		},
		"root span that repeats a model call": {
			m{
				answer: 0.5, "tokenpulse.repeated": "0200000000000000", "tokenpulse.outcome": "success", "tokenpulse.time_to_first_token": 0.5,
				"tokenpulse.network.duration": 0.125, "tokenpulse.inter_token_latency.sketch": []byte("no sketch"), "tokenpulse.unmeasured": []any{"time_per_output_token=one_token"},
				"tokenpulse.slo.breached": []any{"answer"}, ofTrace: []any{"answer"},
			},
			false,
			counted{answers: map[string]float64{"success": 0.5}, verdicts: map[string][3]uint64{"answer": {0, 0, 1}}},
			Tally{Traces: 1},
		},
		"model call with a list of another type": {
			m{"tokenpulse.outcome": "success", "tokenpulse.slo.breached": []any{"answer"}, ofTrace: "answer"},
			false,
			counted{1, map[string]float64{}, 0, map[string][3]uint64{"all": {0, 0, 1}, "answer": {0, 0, 1}}},
			Tally{Requests: 1},
		},
		"model call with more SLOs of the trace than are read": {
			m{"tokenpulse.outcome": "success", "tokenpulse.slo.breached": []any{"answer"}, ofTrace: append(manyNames(64), "answer")},
			false,
			counted{1, map[string]float64{}, 0, map[string][3]uint64{"all": {0, 0, 1}, "answer": {0, 0, 1}}},
			Tally{Requests: 1},
		},
		"forged time to answer": {
			m{answer: -1.0},
			false,
			counted{answers: map[string]float64{}, verdicts: map[string][3]uint64{}},
			Tally{Traces: 1, Rejected: [series.Reasons]int64{series.Negative: 1}},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			e := newEngine()
			traces := spans(t, test.span)
			if test.failed {
				traces.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0).Status().SetCode(ptrace.StatusCodeError)
			}
			require.Equal(t, test.tally, Read(traces, &Options{Objectives: slo.Names{}}, time.Now(), e.Record))
			require.Equal(t, []counted{test.want}, countedBy(e))
		})
	}
	e := newEngine()
	require.Equal(t, Tally{Ignored: 1}, Read(spans(t, m{"tokenpulse.trace.model_call.count": 3}), &Options{}, time.Now(), e.Record))
	repeat := m{"tokenpulse.repeated": "0200000000000000", "tokenpulse.outcome": "success", "tokenpulse.slo.met": []any{"ttft"}}
	require.Equal(t, Tally{Ignored: 1}, Read(spans(t, repeat), &Options{}, time.Now(), e.Record))
}

// A trace has the same counters as before in the series after it.
func TestRead_TracesDoNotLeakIntoTheNextSpan(t *testing.T) {
	e := newEngine()
	root := map[string]any{"tokenpulse.trace.time_to_answer": 2, "tokenpulse.slo.met": []any{"answer"}, "tokenpulse.slo.of_trace": []any{"answer"}}
	call := map[string]any{"tokenpulse.outcome": "success", "tokenpulse.slo.met": []any{"answer"}}
	Read(spans(t, root, call, root), &Options{}, time.Now(), e.Record)
	require.Equal(t, []counted{{1, map[string]float64{"success": 4}, 0, map[string][3]uint64{"all": {0, 1, 0}, "answer": {0, 3, 0}}}}, countedBy(e))
}

// An SLO with an objective keeps its counter, however many others a sender invents.
func TestRead_LimitsVerdictsOfTraces(t *testing.T) {
	e := series.NewEngine(series.Options{Config: series.Config{MaxSeries: 10}, Objectives: slo.Names{"answer": true}})
	options := &Options{Objectives: slo.Names{"answer": true}}
	tally := Read(spans(t, map[string]any{"tokenpulse.trace.time_to_answer": 2, "tokenpulse.slo.breached": append(manyNames(1000), "answer")}), options, time.Now(), e.Record)
	require.EqualValues(t, 1000-64, tally.DroppedVerdicts)
	require.Len(t, verdicts(e), 65)
	require.Equal(t, [3]uint64{0, 0, 1}, verdicts(e)["answer"])
}

// As OTEL_RESOURCE_ATTRIBUTES sets it on the process of an engine.
func TestRead_DimensionsComeFromTheSpanThenFromItsResource(t *testing.T) {
	dimensions := series.DimensionsOf("service.name", "gen_ai.request.model")
	e := series.NewEngine(series.Options{Config: series.Config{Dimensions: dimensions, MaxSeries: 10}})
	traces := spans(t, map[string]any{"tokenpulse.outcome": "success"}, map[string]any{"tokenpulse.outcome": "success", "gen_ai.request.model": "of the span"})
	resource := traces.ResourceSpans().At(0).Resource().Attributes()
	resource.PutStr("service.name", "vllm")
	resource.PutStr("gen_ai.request.model", "of the resource")
	other := traces.ResourceSpans().AppendEmpty()
	traces.ResourceSpans().At(0).ScopeSpans().At(0).CopyTo(other.ScopeSpans().AppendEmpty())
	other.ScopeSpans().At(0).Spans().RemoveIf(func(s ptrace.Span) bool { return s.Attributes().Len() == 2 })
	Read(traces, &Options{Dimensions: NewDimensions(dimensions)}, time.Now(), e.Record)
	var got [][]string
	e.Collect(time.Now(), func(s *series.Snapshot) { got = append(got, s.Dimensions) })
	require.ElementsMatch(t, [][]string{{"vllm", "of the span"}, {"vllm", "of the resource"}, {"", ""}}, got)
}
