// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Package sizing finds the largest load within an SLO from runs at constant loads, and how many replicas a load needs.
package sizing

import (
	"cmp"
	"slices"
	"time"

	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/arrivals"
	"github.com/tokenpulse/tokenpulse/internal/capacity"
	"github.com/tokenpulse/tokenpulse/internal/slo"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
)

// Run is what the requests of one run were offered, and how they were judged. Its steady part is what began after the first tenth of the
// time and before the last one: engines start idle, and end so.
type Run struct {
	Name string
	// Vantage is the one that saw the requests.
	Vantage string
	// Replicas served them. It is 1 if no request says which one it was.
	Replicas int
	// Time is the length of the steady part, and Requests are those that began in it, of which Eligible were judged, and Bad were bad.
	Time                    time.Duration
	Requests, Eligible, Bad int
	// Load is that of one replica.
	Load capacity.Load
	// Output and Prompt are the mean tokens of an answer, and of a prompt without the cached ones, and Cached the mean of these. They are 0
	// if no request reports them.
	Output, Prompt, Cached float64
	// Low and High are the 95% interval of the share of good requests.
	Low, High float64
	// Verdict is undecided before Find, and Reason is empty if Find can decide.
	Verdict Verdict
	Reason  Reason

	evidence capacity.Evidence
}

// Verdict is whether a run met the objective.
type Verdict string

// The verdicts.
const (
	Met       Verdict = "met"
	Missed    Verdict = "missed"
	Undecided Verdict = "undecided"
)

// Reason says why there is no verdict or no limit.
type Reason string

// The reasons, of which the first three are those of capacity in a Collector.
const (
	TooFew      Reason = Reason(capacity.TooFew)      // too few requests or too little time to decide
	KneeNotSeen Reason = Reason(capacity.KneeNotSeen) // no run missed the objective
	MixChanged  Reason = Reason(capacity.MixChanged)  // prompts or answers of two runs differ in length
	NeverMet    Reason = "never_met"                  // no run met the objective
	NotMonotone Reason = "not_monotone"               // a run missed the objective, and one at a higher load met it
	LoadVaried  Reason = "load_varied"                // the load was not constant
	NotJudged   Reason = "not_judged"                 // the SLO judged no request
	OtherView   Reason = "other_vantage"              // runs are seen by different vantages
)

const (
	// edge is the part of the time, at either end, that is not steady.
	edge = 0.1
	// MinRequests are those of the steady part that a verdict needs.
	MinRequests = 200
	// alpha is the probability of each kind of wrong verdict.
	alpha = 0.025
	// minSlot is the least length of a slot in seconds. Slots are as long as the mean request, too, or else they would not be independent.
	minSlot = 5
	// varied is how much higher one half of a run may be loaded than the other one.
	varied = 1.5
)

// Measure returns what a run was by its requests, in the order of their starts. replicas is 0 unless the caller knows how many served it.
func Measure(name string, all []arrivals.Request, vantage timeline.Vantage, replicas int) Run {
	r := Run{Name: name, Vantage: vantage.String(), Replicas: replicas, High: 1, Verdict: Undecided, Reason: TooFew}
	if len(all) == 0 {
		return r
	}
	first, last := all[0].Start, all[len(all)-1].Start
	from, to := first+int64(edge*float64(last-first)), last-int64(edge*float64(last-first))
	begun := func(at int64) int {
		i, _ := slices.BinarySearchFunc(all, at, func(q arrivals.Request, at int64) int { return cmp.Compare(q.Start, at) })
		return i
	}
	r.Time = time.Duration(to - from)
	r.count(all[begun(from):begun(to)], from)
	return r
}

// count sums up the steady part.
func (r *Run) count(steady []arrivals.Request, from int64) {
	named := map[uint16]bool{}
	var sized, output, prompt, cached, seconds float64
	early := 0
	for i := range steady {
		q := &steady[i]
		if q.Replica != 0 {
			named[q.Replica] = true
		}
		if q.Sized {
			sized, output = sized+1, output+float64(q.Output)
			prompt, cached = prompt+float64(q.Prompt-q.Cached), cached+float64(q.Cached)
		}
		if time.Duration(q.Start-from) < r.Time/2 {
			early++
		}
		seconds += float64(q.Seconds)
		r.judge(q.Verdict)
	}
	r.Requests = len(steady)
	if r.Replicas == 0 {
		r.Replicas = max(1, len(named))
	}
	if sized > 0 {
		r.Output, r.Prompt, r.Cached = output/sized, prompt/sized, cached/sized
	}
	if r.Requests == 0 {
		return
	}
	perSecond := float64(r.Requests) / r.Time.Seconds() / float64(r.Replicas)
	r.Load = capacity.Load{perSecond, perSecond * r.Output, perSecond * r.Prompt}
	r.weigh(steady, from, max(minSlot, seconds/float64(r.Requests)))
	switch late := r.Requests - early; {
	case r.Eligible == 0:
		r.Reason = NotJudged
	case r.Requests < MinRequests:
		r.Reason = TooFew
	case float64(max(early, late)) > varied*float64(min(early, late)):
		r.Reason = LoadVaried
	default:
		r.Reason = ""
	}
}

func (r *Run) judge(v slo.Verdict) {
	if v != slo.NotEligible {
		r.Eligible++
	}
	if v == slo.Bad {
		r.Bad++
	}
}

// weigh counts the slots with eligible requests. Requests of one slot are bad or good together, so that slots are what is counted.
func (r *Run) weigh(steady []arrivals.Request, from int64, length float64) {
	slots, last := 0.0, int64(-1)
	for i := range steady {
		slot := int64(time.Duration(steady[i].Start-from).Seconds() / length)
		if steady[i].Verdict != slo.NotEligible && slot != last {
			slots, last = slots+1, slot
		}
	}
	if r.Eligible > 0 {
		slots = min(slots, r.Time.Seconds()/length) // the last one is cut
		r.evidence = capacity.Evidence{Slots: slots, Bad: slots * float64(r.Bad) / float64(r.Eligible)}
	}
	r.Low, r.High = r.evidence.Interval(alpha)
}

// Good returns the share of good requests. ok is false if none was judged.
func (r *Run) Good() (share float64, ok bool) {
	return 1 - float64(r.Bad)/float64(r.Eligible), r.Eligible > 0
}

// Needs returns how long a run has to be for a verdict of its own, if its share of good requests stays. It is 0 if even 50 times
// as long is too short.
func (r *Run) Needs(objective float64) time.Duration {
	for factor := 1.0; factor < 50; factor *= 1.1 {
		e := capacity.Evidence{Slots: factor * r.evidence.Slots, Bad: factor * r.evidence.Bad}
		if e.Meets(objective, alpha) || e.Misses(objective, alpha) {
			return time.Duration(factor / (1 - 2*edge) * float64(r.Time))
		}
	}
	return 0
}
