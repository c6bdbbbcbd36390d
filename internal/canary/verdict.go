// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package canary

import (
	"fmt"
	"math"
)

// Verdict answers whether the candidate may go on.
type Verdict string

// The verdicts.
const (
	Pass      Verdict = "pass"
	Fail      Verdict = "fail"
	Undecided Verdict = "undecided"
)

// Reason says why a verdict is what it is.
type Reason string

// The reasons. docs/canary.md says what to do about each.
const (
	Equivalent     Reason = "equivalent"
	Difference     Reason = "difference"
	TooFew         Reason = "too_few"
	TooFewReplicas Reason = "too_few_replicas"
	TrafficRatio   Reason = "traffic_ratio"
	Coverage       Reason = "coverage"
	OutcomeMix     Reason = "outcome_mix"
	Dependence     Reason = "dependence"
)

// Answer is the state of a pair's closed windows.
type Answer struct {
	Verdict             Verdict
	Reason              Reason
	Hint                string // a sentence for people
	Baseline, Candidate ArmAnswer
	// Ratio is the odds ratio of bad requests, candidate over baseline. Its estimate is NaN until a window has requests of both
	// arms, some of them bad and some good.
	Ratio Interval
	// PercentileRatio is the candidate's percentile over the baseline's, if the pair has one.
	PercentileRatio Interval
	// Windows is the number of those in which both arms had requests.
	Windows int
}

// ArmAnswer is what one arm served.
type ArmAnswer struct {
	// Bad requests are those for the SLO or, with a percentile, over the baseline's threshold.
	Requests, Bad uint64
	// Interval is the percentile, whose bounds hold if the load is stable. Without a percentile, it is the share of bad
	// requests, and has no bounds.
	Interval
	// Replicas is the largest number of replicas that had requests in 5 minutes, at most 64.
	Replicas int
}

// Question is what is asked of a pair.
type Question struct {
	// Alpha limits the probability of a wrong verdict.
	Alpha float64
	// Tolerance is how much worse a candidate may be: 0.5 is 1.5 times the odds of a bad request. A pair with a
	// percentile has its own.
	Tolerance float64
	// ExpectedShare is the candidate's share of the requests, 0 if it is not to be checked.
	ExpectedShare float64
}

// Shares of alpha: those of fail add up to half of it, and pass has the other half.
const (
	passDivisor  = 2
	failDivisor  = 4
	guardDivisor = 8
)

const (
	neededBlocks   = 3
	neededReplicas = 3
)

// Answer returns the verdict. With probability alpha at most, it is ever Fail by Difference though the candidate is not
// worse by more than the tolerance, ever Fail by a guard though the arms are alike, or ever Pass though the candidate is
// worse by more than the tolerance.
func (p *Pair) Answer(q Question) Answer {
	a := Answer{Baseline: p.armAnswer(Baseline, q.Alpha), Candidate: p.armAnswer(Candidate, q.Alpha), PercentileRatio: unknown(), Windows: int(p.windows)}
	if p.settings.Percentile > 0 {
		a.PercentileRatio = a.Candidate.over(a.Baseline.Interval)
	}
	var e [testCount]evidence
	for i := range p.tests {
		e[i] = p.tests[i].likelihood.evidence()
	}
	a.Ratio = p.ratio(&e[judged], q.Alpha)
	if a.Reason, a.Hint = p.obstacle(q.Alpha, q.ExpectedShare); a.Reason != "" {
		a.Verdict = Undecided
		return a
	}
	a.Verdict, a.Reason, a.Hint = p.decide(&e, &q)
	return a
}

func (p *Pair) armAnswer(arm Arm, alpha float64) ArmAnswer {
	t := &p.arms[arm]
	a := ArmAnswer{Requests: t.requests, Bad: t.judged.bad, Interval: unknown(), Replicas: int(t.replicas)}
	if p.settings.Percentile > 0 {
		a.Interval = percentileOf(&t.values, p.settings.Percentile, p.tests[judged].dispersion(), alpha)
	} else {
		a.Estimate = float64(t.judged.bad) / float64(t.judged.n)
	}
	return a
}

// ratio returns the most likely odds ratio. Its bounds are the outermost points of the grid that
// are not rejected, at the levels of fail and pass.
func (p *Pair) ratio(e *evidence, alpha float64) Interval {
	r := unknown()
	if i, ok := p.tests[judged].likelihood.best(); ok {
		r.Estimate = odds[i]
	}
	first, last := 0, gridSize-1
	for first < last && rejects(e.above[first], failDivisor, alpha) {
		first++
	}
	for first < last && rejects(e.below[last], passDivisor, alpha) {
		last--
	}
	if first > 0 {
		r.Lower = odds[first]
	}
	if last < gridSize-1 {
		r.Upper = odds[last]
	}
	return r
}

// rejects reports whether an e-value is large enough for a share of alpha.
func rejects(logE, divisor, alpha float64) bool { return logE >= math.Log(divisor/alpha) }

// obstacle returns a reason for which nothing is decided yet, or "".
func (p *Pair) obstacle(alpha, expectedShare float64) (Reason, string) {
	baseline, candidate := &p.arms[Baseline], &p.arms[Candidate]
	switch {
	case baseline.requests == 0 || candidate.requests == 0:
		return TooFew, "an arm has no request in a closed window; this Collector must see both arms"
	case p.badBlocks < neededBlocks:
		return TooFew, fmt.Sprintf("the baseline had bad requests in %d blocks of 5 minutes; %d are needed", p.badBlocks, neededBlocks)
	case baseline.replicas < neededReplicas:
		return TooFewReplicas, fmt.Sprintf("the baseline has %d replicas by service.instance.id; %d are needed", baseline.replicas, neededReplicas)
	case expectedShare > 0 && expectedShare < 1 &&
		rejects(logShareEvidence(float64(candidate.requests), float64(baseline.requests), expectedShare), 1, alpha):
		return TrafficRatio, fmt.Sprintf("the candidate's share of requests is %.3g, not %.3g",
			float64(candidate.requests)/float64(candidate.requests+baseline.requests), expectedShare)
	}
	return "", ""
}

func (p *Pair) decide(e *[testCount]evidence, q *Question) (Verdict, Reason, string) {
	// Outcomes come first: most requests that fail are unmeasured, too, and their errors say why.
	guards := [...]struct {
		test   int
		reason Reason
		what   string
	}{{outcomes, OutcomeMix, "unsuccessful"}, {coverage, Coverage, "unmeasured"}}
	for _, g := range guards {
		if p.clear(g.test) && rejects(e[g.test].above[gridEnd], guardDivisor, q.Alpha) {
			return Fail, g.reason, "more of the candidate's requests are " + g.what
		}
	}
	for _, g := range guards {
		if p.clear(g.test) && rejects(e[g.test].below[gridEnd], guardDivisor, q.Alpha) {
			return Undecided, g.reason, "fewer of the candidate's requests are " + g.what
		}
	}
	if !p.clear(judged) {
		return Undecided, Dependence, "bad requests crowd in single replicas"
	}
	// With a percentile, the tolerance is in the candidate's thresholds.
	passing, failing, passFrom, failTo := shifted, beyond, gridEnd, gridEnd
	if p.settings.Percentile == 0 {
		passing, failing, passFrom, failTo = judged, judged, roundedDown(1+q.Tolerance), roundedUp(1+q.Tolerance)
	}
	worse := rejects(e[judged].above[gridEnd], failDivisor, q.Alpha)
	farWorse := rejects(e[failing].above[failTo], failDivisor, q.Alpha)
	noWorse := rejects(e[passing].below[passFrom], passDivisor, q.Alpha) && rejects(e[strict].below[passFrom], passDivisor, q.Alpha)
	allClear := p.clear(strict) && p.clear(coverage) && p.clear(outcomes)
	switch candidate := p.arms[Candidate].replicas; {
	case noWorse && !allClear:
		return Undecided, Dependence, "unmeasured or unsuccessful requests crowd in single replicas"
	case noWorse && candidate < neededReplicas:
		return Undecided, TooFewReplicas, fmt.Sprintf("the candidate has %d replicas by service.instance.id; pass needs %d", candidate, neededReplicas)
	case noWorse && worse:
		return Pass, Equivalent, "the candidate is worse, within the tolerance"
	case noWorse:
		return Pass, Equivalent, "the candidate is not worse by more than the tolerance"
	case farWorse:
		return Fail, Difference, "the candidate is worse by more than the tolerance"
	case worse:
		return Undecided, Difference, "the candidate is worse; the requests so far do not show whether by more than the tolerance"
	}
	return Undecided, TooFew, "the requests so far fit a candidate that is as good, and one beyond the tolerance"
}

// clear reports whether a test's bad requests are independent enough to decide.
func (p *Pair) clear(test int) bool { return p.tests[test].dispersion() <= maxDispersion }
