// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokenlatencyprocessor

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/slo"
)

// judge writes the verdict of every SLO that applies on each model call and on each root span that
// was rolled up. It reads the numbers that the spans carry, whether this processor or another
// token_latency wrote them.
func judge(traces ptrace.Traces, rules []rule) {
	defined := map[string]bool{}
	for i := range rules {
		defined[rules[i].name] = true
	}
	for _, resourceSpans := range traces.ResourceSpans().All() {
		resource := resourceSpans.Resource().Attributes()
		for _, scopeSpans := range resourceSpans.ScopeSpans().All() {
			for _, span := range scopeSpans.Spans().All() {
				call, rolledUp := isAnnotated(span), isRolledUp(span)
				if !call && !rolledUp {
					removeAllVerdicts(span.Attributes())
					continue
				}
				removeVerdicts(span.Attributes(), defined)
				if call {
					judgeSpan(span.Attributes(), resource, rules)
				}
				if rolledUp {
					judgeTrace(span, resource, rules)
				}
			}
		}
	}
}

// judgeSpan judges a request. One that the Collector itself cut is not eligible for any SLO.
func judgeSpan(attributes, resource pcommon.Map, rules []rule) {
	cut := text(attributes, names.Cut) == names.CutCollector
	for i := range rules {
		if r := &rules[i]; !r.ofTrace() && r.applies(attributes, resource) {
			r.use.apply()
			threshold := r.thresholdOf(attributes, resource)
			verdict := slo.NotEligible
			if !cut {
				verdict = r.judge(attributes, threshold)
			}
			putVerdict(attributes, verdict, r, threshold)
		} else {
			r.use.miss()
		}
	}
}

// judgeTrace judges the trace of a root span, which may be a model call itself.
func judgeTrace(root ptrace.Span, resource pcommon.Map, rules []rule) {
	attributes := root.Attributes()
	cut := text(attributes, names.Cut) == names.CutCollector
	for i := range rules {
		r := &rules[i]
		if !r.ofTrace() || !r.applies(attributes, resource) {
			continue
		}
		r.use.apply()
		threshold, verdict := r.thresholdOf(attributes, resource), slo.NotEligible
		if !cut {
			value := measured(attributes, r.indicator)
			verdict = slo.Judge(value.Value, threshold, value.Known, succeeded(root))
		}
		putVerdict(attributes, verdict, r, threshold)
		list(attributes, names.SLOOfTrace).AppendEmpty().SetStr(r.name)
	}
}

// succeeded reports whether a root span ended well: by its outcome, or else by its status.
func succeeded(root ptrace.Span) bool {
	if isAnnotated(root) {
		return text(root.Attributes(), names.Outcome) == names.OutcomeSuccess
	}
	return root.Status().Code() != ptrace.StatusCodeError
}
