// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package annotate

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/slo"
)

// Judge writes the verdict of every SLO that applies on a span that is a model call or the root that
// a trace was rolled up on. It reads the numbers that the span carries, whether this component or
// another token_latency wrote them.
func (r *Rules) Judge(span ptrace.Span, resource pcommon.Map) {
	call, rolledUp := IsAnnotated(span), isRolledUp(span)
	if !call && !rolledUp {
		removeAllVerdicts(span.Attributes())
		return
	}
	removeVerdicts(span.Attributes(), r.defined)
	if call {
		r.judgeRequest(span.Attributes(), resource)
	}
	if rolledUp {
		r.judgeTrace(span, resource)
	}
}

// judgeRequest judges a request. One that the Collector itself cut is not eligible for any SLO.
func (r *Rules) judgeRequest(attributes, resource pcommon.Map) {
	cut := Text(attributes, names.Cut) == names.CutCollector
	outcome, severalChunks := Text(attributes, names.Outcome), Measured(attributes, names.ChunkCount).Value > 1
	for i := range r.all {
		rule := &r.all[i]
		if rule.ofTrace() || !rule.applies(attributes, resource) {
			rule.use.miss()
			continue
		}
		rule.use.apply()
		threshold, verdict := rule.thresholdOf(attributes, resource), slo.NotEligible
		if !cut {
			verdict = rule.judge(outcome, Measured(attributes, rule.attribute), threshold, severalChunks)
		}
		putVerdict(attributes, verdict, rule, threshold)
	}
}

// judgeTrace judges the trace of a root span, which may be a model call itself.
func (r *Rules) judgeTrace(root ptrace.Span, resource pcommon.Map) {
	attributes := root.Attributes()
	cut := Text(attributes, names.Cut) == names.CutCollector
	for i := range r.all {
		rule := &r.all[i]
		if !rule.ofTrace() || !rule.applies(attributes, resource) {
			continue
		}
		rule.use.apply()
		threshold, verdict := rule.thresholdOf(attributes, resource), slo.NotEligible
		if !cut {
			value := Measured(attributes, rule.attribute)
			verdict = slo.Judge(value.Value, threshold, value.Known, succeeded(root))
		}
		putVerdict(attributes, verdict, rule, threshold)
		list(attributes, names.SLOOfTrace).AppendEmpty().SetStr(rule.name)
	}
}

// succeeded reports whether a root span ended well: by its outcome, or else by its status.
func succeeded(root ptrace.Span) bool {
	if IsAnnotated(root) {
		return Text(root.Attributes(), names.Outcome) == names.OutcomeSuccess
	}
	return root.Status().Code() != ptrace.StatusCodeError
}
