// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package repeats

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/internal/attributes"
)

// CallsOf returns the calls of a batch that no processor found to be repeats, or nil if they are all of one scope. A batch
// with a single scope costs nothing.
func CallsOf(traces ptrace.Traces) []Call {
	if !hasSeveralScopes(traces) {
		return nil
	}
	b := batch{index: make(map[spanKey]place, traces.SpanCount())}
	for i, resource := range traces.ResourceSpans().All() {
		for _, scope := range resource.ScopeSpans().All() {
			for _, span := range scope.Spans().All() {
				b.add(Call{span, scope.Scope().Name(), i, resource.Resource().Attributes(), None})
			}
		}
	}
	for i := range b.calls {
		b.calls[i].Above = b.above(b.calls[i].Span)
	}
	return b.calls
}

// hasSeveralScopes reports whether calls of a batch are of more than one scope.
func hasSeveralScopes(traces ptrace.Traces) bool {
	if !hasSeveralNames(traces) {
		return false
	}
	first, found := "", false
	for _, resource := range traces.ResourceSpans().All() {
		for _, scope := range resource.ScopeSpans().All() {
			name := scope.Scope().Name()
			if found && name == first || !hasCall(scope.Spans()) {
				continue
			}
			if found {
				return true
			}
			first, found = name, true
		}
	}
	return false
}

func hasSeveralNames(traces ptrace.Traces) bool {
	first, found := "", false
	for _, resource := range traces.ResourceSpans().All() {
		for _, scope := range resource.ScopeSpans().All() {
			name := scope.Scope().Name()
			if found && name != first {
				return true
			}
			first, found = name, true
		}
	}
	return false
}

func hasCall(spans ptrace.SpanSlice) bool {
	for _, span := range spans.All() {
		if isCall(span) {
			return true
		}
	}
	return false
}

func isCall(span ptrace.Span) bool {
	return attributes.IsAnnotated(span) && !attributes.IsRepeated(span)
}

// batch indexes the spans of a batch.
type batch struct {
	calls []Call
	index map[spanKey]place
}

type spanKey struct {
	trace pcommon.TraceID
	span  pcommon.SpanID
}

// place is where a span is in its trace.
type place struct {
	parent pcommon.SpanID
	call   int // its index among the calls, or None
	agent  bool
}

func (b *batch) add(c Call) {
	at, key := place{c.Span.ParentSpanID(), None, false}, spanKey{c.Span.TraceID(), c.Span.SpanID()}
	if _, sentTwice := b.index[key]; sentTwice {
		return
	}
	if isCall(c.Span) {
		at.call = len(b.calls)
		b.calls = append(b.calls, c)
	} else {
		at.agent = attributes.IsAgent(c.Span.Attributes())
	}
	b.index[key] = at
}

// above returns the nearest call above a span, or None if an agent or a tool is nearer.
func (b *batch) above(span ptrace.Span) int {
	key := spanKey{span.TraceID(), span.ParentSpanID()}
	for range maxDepth {
		at, ok := b.index[key]
		if !ok || at.agent || key.span.IsEmpty() {
			return None
		}
		if at.call != None {
			return at.call
		}
		key.span = at.parent
	}
	return None
}
