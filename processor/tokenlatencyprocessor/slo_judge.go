// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokenlatencyprocessor

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/slo"
)

// judge writes the verdict of every SLO that applies on each model call. It reads the numbers that
// the spans carry, whether this processor or another token_latency wrote them.
func judge(traces ptrace.Traces, rules []rule) {
	defined := map[string]bool{}
	for i := range rules {
		defined[rules[i].name] = true
	}
	for _, resourceSpans := range traces.ResourceSpans().All() {
		resource := resourceSpans.Resource().Attributes()
		for _, scopeSpans := range resourceSpans.ScopeSpans().All() {
			for _, span := range scopeSpans.Spans().All() {
				if !isAnnotated(span) {
					removeAllVerdicts(span.Attributes())
					continue
				}
				removeVerdicts(span.Attributes(), defined)
				judgeSpan(span.Attributes(), resource, rules)
			}
		}
	}
}

// judgeSpan judges a request. One that the Collector itself cut is not eligible for any SLO.
func judgeSpan(attributes, resource pcommon.Map, rules []rule) {
	cut := text(attributes, names.Cut) == names.CutCollector
	for i := range rules {
		if r := &rules[i]; r.applies(attributes, resource) {
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
