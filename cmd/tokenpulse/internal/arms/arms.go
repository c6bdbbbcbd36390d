// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Package arms makes the arms of a comparison: of the requests that a pipeline counts, one arm for each vantage.
package arms

import (
	"encoding/json"
	"fmt"
	"math"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/twosample"
	"github.com/tokenpulse/tokenpulse/internal/attributes"
	"github.com/tokenpulse/tokenpulse/internal/latency"
	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/series"
	"github.com/tokenpulse/tokenpulse/internal/sketch"
	"github.com/tokenpulse/tokenpulse/internal/slo"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
)

// Arms are the requests of one side of a comparison, by vantage: several vantages see the same request. The zero value is
// empty and ready to use. Arms are not safe for concurrent use.
type Arms struct {
	byVantage [timeline.VantageEngine + 1]*twosample.Arm
	request   twosample.Request
	gaps      sketch.Sketch
}

// Add adds a request of a run, and keeps no memory of it. Mistakes of clients are no requests of a comparison.
func (a *Arms) Add(run string, r *series.Contribution, span ptrace.Span, resource pcommon.Map) {
	if r.TraceOnly || r.Failure.Known && r.Failure.Value == slo.ClientMistake {
		return
	}
	text := func(name string) string { return attributes.Label(name, span.Attributes(), resource) }
	q := &a.request
	*q = twosample.Request{
		Run: run, Replica: attributes.Replica(r.Vantage, text), Unsuccessful: r.Outcome != series.Success,
		Values:    [twosample.Indicators]float64{math.NaN(), math.NaN(), math.NaN(), math.NaN()},
		TokenGaps: a.tokenGaps(r), Verdicts: verdictsOf(&r.Verdicts),
	}
	if start := span.StartTimestamp(); start != 0 {
		q.Start = start.AsTime()
	}
	if tokens, ok := r.Value(numbers.InputTokens); ok {
		q.PromptTokens = uint64(tokens)
	}
	for i := range q.Values {
		q.Values[i] = valueOf(twosample.Indicator(i), r, q.TokenGaps)
	}
	vantage, _ := timeline.ParseVantage(r.Vantage) // or the unknown one
	if a.byVantage[vantage] == nil {
		a.byVantage[vantage] = &twosample.Arm{}
	}
	a.byVantage[vantage].Add(q)
}

var numberOf = map[twosample.Indicator]numbers.ID{
	twosample.TimeToFirstToken: numbers.TimeToFirstToken, twosample.TimePerOutputToken: numbers.TimePerOutputToken,
	twosample.RequestDuration: numbers.RequestDuration,
}

// valueOf returns a latency: NaN if the request has none, and infinity if it has one that is unmeasured.
func valueOf(i twosample.Indicator, r *series.Contribution, gaps *sketch.Sketch) float64 {
	if i == twosample.InterTokenLatency {
		if tokens, ok := r.Value(numbers.OutputTokens); gaps == nil && ok && tokens > 1 {
			return math.Inf(1)
		}
		return math.NaN()
	}
	if v, ok := r.Value(numberOf[i]); ok {
		return v
	}
	for place, id := range numbers.Indicators {
		if id == numberOf[i] {
			switch r.Latency.Absences[place] {
			case latency.Present, latency.NoToken, latency.NotStreamed, latency.OneToken:
			default:
				return math.Inf(1)
			}
		}
	}
	return math.NaN()
}

// tokenGaps returns the inter-token latencies of a request, or nil. They are valid until the next request.
func (a *Arms) tokenGaps(r *series.Contribution) *sketch.Sketch {
	d := r.Distribution(numbers.InterTokenLatency)
	if d.Values != nil {
		return d.Values
	}
	a.gaps.Reset()
	if len(d.Sketch) == 0 || a.gaps.MergeBinary(d.Sketch) != nil { // which the pipeline has reported
		return nil
	}
	return &a.gaps
}

// verdictsOf yields the SLOs that a request is eligible for, and whether it is bad for them.
func verdictsOf(set *slo.VerdictSet) func(yield func(string, bool) bool) {
	return func(yield func(string, bool) bool) {
		set.All(func(name string, v slo.Verdict) bool {
			return v == slo.NotEligible || yield(name, v == slo.Bad)
		})
	}
}

// Requests returns the number of requests by vantage.
func (a *Arms) Requests() (n timeline.Requests) {
	for v, arm := range a.byVantage {
		if arm != nil {
			n[v] = arm.Requests()
		}
	}
	return n
}

// Common returns the arms of the vantage that both sides have, as the live page chooses it.
func Common(base, cand *Arms) (vantage timeline.Vantage, baseline, candidate *twosample.Arm, err error) {
	var both timeline.Requests
	of := [2]timeline.Requests{base.Requests(), cand.Requests()}
	for v := range both {
		if of[0][v] > 0 && of[1][v] > 0 {
			both[v] = of[0][v] + of[1][v]
		}
	}
	vantage = both.Shown()
	if both[vantage] > 0 {
		return vantage, base.byVantage[vantage], cand.byVantage[vantage], nil
	}
	if of[0] == (timeline.Requests{}) || of[1] == (timeline.Requests{}) {
		return 0, &twosample.Arm{}, &twosample.Arm{}, nil // too few, as the comparison says
	}
	return 0, nil, nil, fmt.Errorf("no vantage saw requests of both: the baseline's are of %v, the candidate's of %v; compare files of the same observer", of[0].Shown(), of[1].Shown())
}

// MarshalJSON encodes the arms by vantage.
func (a *Arms) MarshalJSON() ([]byte, error) {
	all := map[string]*twosample.Arm{}
	for v, arm := range a.byVantage {
		if arm != nil {
			all[timeline.Vantage(v).String()] = arm
		}
	}
	return json.Marshal(all)
}

// UnmarshalJSON decodes arms.
func (a *Arms) UnmarshalJSON(text []byte) error {
	var all map[string]*twosample.Arm
	if err := json.Unmarshal(text, &all); err != nil {
		return err
	}
	*a = Arms{}
	for name, arm := range all {
		v, ok := timeline.ParseVantage(name)
		if !ok && name != "" || arm == nil {
			return fmt.Errorf("unknown vantage %q", name)
		}
		a.byVantage[v] = arm
	}
	return nil
}
