// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/tokenpulse/tokenpulse/internal/latency"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/slo"
)

// Subject is a finished request to judge: an annotated span, or a stream that need not become one.
type Subject interface {
	// Outcome is one of names.Outcome*, or empty.
	Outcome() string
	// Mistaken means that the request failed by a mistake of its client.
	Mistaken() bool
	// Number returns a number as the attribute of the annotated span has it.
	Number(id numbers.ID) latency.Measure
	// Cut means that the Collector itself ended the stream, so that no SLO is eligible.
	Cut() bool
	// Interrupted means that the user interrupted the answer, so that no SLO counts it as bad if it was cancelled.
	Interrupted() bool
	// Attribute returns an attribute of the annotated span, or else of its resource. It is called only
	// for conditions, and attributes with thresholds, that Bind did not have.
	Attribute(name string) (v pcommon.Value, ok bool)
}

// Verdict is the verdict of one SLO on a request.
type Verdict struct {
	SLO       string
	Verdict   slo.Verdict
	Indicator string  // without the prefix "tokenpulse."
	Threshold float64 // 0 for the outcome, which has none
	attribute string  // names.SLOVerdictPrefix and the name
}

// Judge appends the verdict of each SLO on requests that applies to the request, and counts the
// request for Unapplied.
func (r *Rules) Judge(verdicts []Verdict, request Subject) []Verdict {
	for _, missed := range r.missed {
		missed.Lacks()
	}
	for i := range r.all {
		rule := &r.all[i]
		if !rule.indicator.OfTrace() && rule.appliesTo(request) {
			rule.use.Has()
			verdicts = append(verdicts, rule.verdictOn(request))
		} else {
			rule.use.Lacks()
		}
	}
	return verdicts
}

// judgeTrace appends the verdict of each SLO on traces that applies to the root span of a trace, whose
// outcome is that of the trace.
func (r *Rules) judgeTrace(verdicts []Verdict, root Subject) []Verdict {
	for i := range r.all {
		rule := &r.all[i]
		if rule.indicator.OfTrace() && rule.appliesTo(root) {
			rule.use.Has()
			verdicts = append(verdicts, rule.verdictOn(root))
		}
	}
	return verdicts
}

// Slow reports whether a request missed a threshold, and whether one applies to it. A request that failed missed it for
// another reason.
func Slow(verdicts []Verdict, outcome string) (slow, timed bool) {
	if outcome != names.OutcomeSuccess {
		return false, false
	}
	for i := range verdicts {
		if v := &verdicts[i]; v.Verdict != slo.NotEligible && names.Prefix+v.Indicator != names.Outcome {
			slow, timed = slow || v.Verdict == slo.Bad, true
		}
	}
	return slow, timed
}

// Breaches reports whether the request breaches an SLO. It does not count the request.
func (r *Rules) Breaches(request Subject) bool {
	for i := range r.all {
		if rule := &r.all[i]; !rule.indicator.OfTrace() && rule.appliesTo(request) && rule.verdictOn(request).Verdict == slo.Bad {
			return true
		}
	}
	return false
}
