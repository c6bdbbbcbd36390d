// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokenstreamreceiver

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/internal/annotate"
	"github.com/tokenpulse/tokenpulse/internal/assembly"
	"github.com/tokenpulse/tokenpulse/internal/latency"
	"github.com/tokenpulse/tokenpulse/internal/source"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/metadata"
)

// annotatedSpans makes the spans that the token_latency processor would pass on. It is not
// safe for concurrent use.
type annotatedSpans struct {
	observer  source.Observer
	analyzer  *latency.Analyzer
	annotator *annotate.Annotator
	rules     *annotate.Rules
}

// traces returns the annotated span of a stream.
func (a *annotatedSpans) traces(stream assembly.Finished) (traces ptrace.Traces, removed int) {
	traces, removed = toTraces([]assembly.Finished{stream})
	resource, span := onlySpan(traces)
	observed, err := a.observer.Observe(metadata.ScopeName, span)
	if err == nil {
		var derived latency.Latency
		if derived, err = a.analyzer.Analyze(observed.Request, observed.Timeline); err == nil {
			a.annotator.Annotate(span.Attributes(), observed, &derived, a.analyzer)
		}
	}
	if a.rules.Any() {
		a.rules.Judge(span, resource)
	}
	return traces, removed
}

// annotated returns the annotated span of a stream, and its resource.
func (a *annotatedSpans) annotated(stream assembly.Finished) (span ptrace.Span, resource pcommon.Map, removed int) {
	traces, removed := a.traces(stream)
	resource, span = onlySpan(traces)
	return span, resource, removed
}

func onlySpan(traces ptrace.Traces) (resource pcommon.Map, span ptrace.Span) {
	spans := traces.ResourceSpans().At(0)
	return spans.Resource().Attributes(), spans.ScopeSpans().At(0).Spans().At(0)
}
