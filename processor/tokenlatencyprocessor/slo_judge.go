// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokenlatencyprocessor

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
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

func judgeSpan(attributes, resource pcommon.Map, rules []rule) {
	for i := range rules {
		if r := &rules[i]; r.applies(attributes, resource) {
			threshold := r.thresholdOf(attributes, resource)
			putVerdict(attributes, r.judge(attributes, threshold), r, threshold)
		}
	}
}
