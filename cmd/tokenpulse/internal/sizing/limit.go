// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package sizing

import (
	"cmp"
	"iter"
	"slices"

	"github.com/tokenpulse/tokenpulse/internal/capacity"
)

// alike is how much longer mean prompts or answers of a run may be than those of another one.
const alike = 1.5

// Limit is what runs say of the largest load within an objective.
type Limit struct {
	Objective float64
	// Runs are in the order of their load.
	Runs []Run
	// Met is the run of the largest load that met the objective, and Missed that of the smallest one that missed it. Nil means none.
	Met, Missed *Run
	// Reason says why there is no limit, or why it is only a lower bound (KneeNotSeen). It is empty otherwise.
	Reason Reason
	// Between are the two runs that contradict each other, for MixChanged, NotMonotone and OtherView.
	Between [2]*Run
}

// Find decides which runs met an objective.
//
// The share of good requests never rises with load. So if a run misses the objective, then so do all at higher loads: slots of the run, and
// then of those above it, are evidence against that. Likewise, slots of the run and those below it are evidence against that it is met. Short
// runs gain by that. No verdict contradicts the run's own share.
func Find(runs []Run, objective float64) *Limit {
	l := &Limit{Objective: objective, Runs: slices.SortedStableFunc(slices.Values(runs), func(a, b Run) int {
		return cmp.Compare(a.Load[capacity.Requests], b.Load[capacity.Requests])
	})}
	if l.compare(incomparable); l.Reason != "" {
		l.explain(l.Reason)
		return l
	}
	for i := range l.Runs {
		l.decide(i)
	}
	l.explain(TooFew)
	l.bracket()
	return l
}

// explain sets why runs that may have a verdict have none.
func (l *Limit) explain(why Reason) {
	for i := range l.Runs {
		if r := &l.Runs[i]; r.Verdict == Undecided && r.Reason == "" {
			r.Reason = why
		}
	}
}

// decide decides whether a run met the objective.
func (l *Limit) decide(i int) {
	r := &l.Runs[i]
	if r.Reason != "" {
		return
	}
	if good, _ := r.Good(); good >= l.Objective {
		if certain(slices.All(l.Runs[i:]), func(e *capacity.Evidence) bool { return e.Meets(l.Objective, alpha) }) {
			r.Verdict = Met
		}
	} else if certain(slices.Backward(l.Runs[:i+1]), func(e *capacity.Evidence) bool { return e.Misses(l.Objective, alpha) }) {
		r.Verdict = Missed
	}
}

// certain reports whether the first runs, as many as it takes, show something.
func certain(runs iter.Seq2[int, Run], shows func(*capacity.Evidence) bool) bool {
	var all capacity.Evidence
	for _, r := range runs {
		if r.Reason == "" {
			all.Add(r.evidence)
			if shows(&all) {
				return true
			}
		}
	}
	return false
}

// bracket sets the runs on both sides of the limit, or the reason why one is missing.
func (l *Limit) bracket() {
	if l.compare(contradict); l.Reason != "" {
		return
	}
	for i := range l.Runs {
		switch r := &l.Runs[i]; {
		case r.Verdict == Met:
			l.Met = r
		case r.Verdict == Missed && l.Missed == nil:
			l.Missed = r
		}
	}
	switch {
	case l.Met == nil && l.Missed == nil:
		l.Reason = TooFew
	case l.Met == nil:
		l.Reason = NeverMet
	case l.Missed == nil:
		l.Reason = KneeNotSeen
	}
}

// compare sets the reason why two runs do not speak of one limit.
func (l *Limit) compare(why func(low, high *Run) Reason) {
	for i := range l.Runs {
		for j := range l.Runs[:i] {
			low, high := &l.Runs[j], &l.Runs[i]
			if low.Reason != "" || high.Reason != "" {
				continue
			}
			if reason := why(low, high); reason != "" {
				l.Reason, l.Between = reason, [2]*Run{low, high}
				return
			}
		}
	}
}

func incomparable(low, high *Run) Reason {
	switch {
	case low.Vantage != high.Vantage:
		return OtherView
	case !Alike(low.Output, high.Output) || !Alike(low.Prompt, high.Prompt):
		return MixChanged
	}
	return ""
}

func contradict(low, high *Run) Reason {
	if low.Verdict == Missed && high.Verdict == Met {
		return NotMonotone
	}
	return ""
}

// Alike reports whether mean lengths are about the same. Unknown ones are.
func Alike(a, b float64) bool {
	return a == 0 || b == 0 || a <= alike*b && b <= alike*a
}
