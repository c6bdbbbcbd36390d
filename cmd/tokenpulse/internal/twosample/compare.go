// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package twosample

import (
	"fmt"
	"math"
)

// Compare compares a candidate with a baseline. An error names a value of the question that cannot be.
func Compare(base, cand *Arm, q Question) (Result, error) {
	if err := q.check([2]*Arm{base, cand}); err != nil {
		return Result{}, err
	}
	r := Result{Baseline: base.summary(), Candidate: cand.summary(), Warnings: notes(base, cand)}
	if r.Decision = refuse(base, cand); r.Verdict != "" {
		return r, nil
	}
	c := newComparison([2]*Arm{base, cand})
	r.Mix = c.mix
	if r.Decision = c.mix.refuse(); r.Verdict != "" {
		return r, nil
	}
	if c.mix.Changed {
		r.Warnings = append(r.Warnings, c.mix.note())
	}
	if n := c.withoutLength(); n != [2]uint64{} {
		r.Warnings = append(r.Warnings, fmt.Sprintf("%d and %d unsuccessful requests report no length of their prompt: the row of unsuccessful requests"+
			" is of all lengths, to count them; those of slos leave them out, unless a band of unknown lengths is compared", n[baseline], n[candidate]))
	}
	subjects, left := c.subjects(&q)
	r.Warnings = append(r.Warnings, left...)
	deciding := 0
	for i := range subjects {
		if subjects[i].as.Decides {
			deciding++
		}
	}
	for i := range subjects {
		r.Rows = append(r.Rows, subjects[i].row(q.Alpha, deciding))
	}
	r.Decision = decide(r.Rows, c.outcomesDiffer())
	return r, nil
}

const (
	// differAlpha is the probability with which the same outcomes count as different ones.
	differAlpha = 0.01
	// minDifference is the difference of the shares of unsuccessful requests that may hide one of latencies.
	minDifference = 0.01
)

// outcomesDiffer returns a decision if the arms have different shares of unsuccessful requests: then the latencies are of different requests.
func (c *comparison) outcomesDiffer() (none Decision) {
	n, ok := c.outcomes()
	if !ok || math.Abs(n.values[candidate]-n.values[baseline]) < minDifference {
		return none
	}
	lower, upper := n.difference(differAlpha / 2)
	if lower <= 0 && upper >= 0 {
		return none
	}
	return undecided(Outcomes, "%.1f%% of the baseline's requests and %.1f%% of the candidate's are unsuccessful, so that the latencies are of different"+
		" requests; look at the errors first", 100*n.values[baseline], 100*n.values[candidate])
}

func undecided(reason Reason, format string, args ...any) Decision {
	return Decision{Undecided, reason, fmt.Sprintf(format, args...)}
}

// refuse returns why arms cannot be compared at all, or nothing.
func refuse(base, cand *Arm) (none Decision) {
	for i, a := range [...]*Arm{base, cand} {
		if a.requests < MinRequests {
			return undecided(TooFew, "the %s has %d requests; record %d or more", armNames[i], a.requests, MinRequests)
		}
	}
	if base.sample.shared(cand.sample) > maxShared {
		return undecided(SameRequests, "both arms have the same requests; pass the files of different runs")
	}
	return unlikeLoad(base.summary(), cand.summary())
}

// maxLoadRatio is by how much both the rate and the requests in flight may differ. One of them follows from the speed: of clients that
// wait for answers the rate, of others the requests in flight.
const maxLoadRatio = 1.3

func unlikeLoad(b, c Summary) (none Decision) {
	if b.RequestRate == 0 || b.InFlight == 0 || c.RequestRate == 0 || c.InFlight == 0 {
		return none
	}
	rate, inFlight := c.RequestRate/b.RequestRate, c.InFlight/b.InFlight
	if max(rate, inFlight) < 1/maxLoadRatio || min(rate, inFlight) > maxLoadRatio {
		return undecided(Load, "the load differs, and latencies with it: %.3g and %.3g requests/s, %.3g and %.3g in flight; send the same load to both",
			b.RequestRate, c.RequestRate, b.InFlight, c.InFlight)
	}
	return none
}

// notes returns what limits a verdict on the arms.
func notes(base, cand *Arm) (all []string) {
	b, c := base.summary(), cand.summary()
	if b.Runs == 1 && c.Runs == 1 {
		all = append(all, "each arm is one run: what differs between runs of the same version, such as a noisy neighbour, counts as a difference;"+
			" pass a folder with three runs or more, each a file of benchmark results or token events")
	}
	for i, a := range [...]*Arm{base, cand} {
		if a.folded > 0 {
			all = append(all, fmt.Sprintf("the %s has more than %d runs, %d replicas or %d slos; further runs and replicas count as a part of others,"+
				" further slos do not", armNames[i], maxRuns, maxReplicas, maxSLOs))
		}
	}
	return all
}

var armNames = [...]string{"baseline", "candidate"}

// decide returns the verdict of all rows that decide. differ is set if the outcomes of the arms differ.
func decide(rows []Row, differ Decision) Decision {
	some := func(of func(*Row) bool) (d Decision, ok bool) {
		for i := range rows {
			if r := &rows[i]; r.Decides && of(r) {
				return Decision{r.Verdict, r.Reason, r.name() + ": " + r.Hint}, true
			}
		}
		return d, false
	}
	if d, ok := some(func(r *Row) bool { return r.Verdict == Worse && r.Indicator == "" }); ok {
		return d
	}
	if differ.Verdict != "" {
		return differ
	}
	if d, ok := some(func(r *Row) bool { return r.Verdict == Worse }); ok {
		return d
	}
	// Outcomes need not be equivalent: there may be too few that are bad.
	if d, ok := some(func(r *Row) bool { return r.Verdict == Undecided && !r.ofOutcomes() }); ok {
		return d
	}
	if d, ok := some(func(r *Row) bool { return r.Verdict == Better }); ok {
		return d
	}
	return Decision{Equivalent, WithinTolerance, "the candidate is not worse by more than the tolerance"}
}
