// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/internal/names"
)

// removeVerdicts removes the verdicts that a Collector wrote on spans. token_latency alone would keep those on SLOs that it
// does not define, and let them count toward `all`.
func removeVerdicts(traces ptrace.Traces) {
	for _, resource := range traces.ResourceSpans().All() {
		for _, scope := range resource.ScopeSpans().All() {
			for _, span := range scope.Spans().All() {
				span.Attributes().RemoveIf(func(name string, _ pcommon.Value) bool { return strings.HasPrefix(name, names.SLOPrefix) })
			}
		}
	}
}
