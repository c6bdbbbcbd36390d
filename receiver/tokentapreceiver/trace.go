// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokentapreceiver

import (
	"context"
	"crypto/rand"
	"net/http"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

var w3c propagation.TraceContext

// traceIdentity is the identity of an exchange's span, and its parent.
type traceIdentity struct {
	trace  trace.TraceID
	span   trace.SpanID
	parent trace.SpanID // zero for the first span of a trace
	flags  trace.TraceFlags
	state  trace.TraceState
}

// newTraceIdentity starts a trace.
func newTraceIdentity() (id traceIdentity) {
	var random [len(id.trace) + len(id.span)]byte
	_, _ = rand.Read(random[:]) // never fails
	copy(id.span[:], random[copy(id.trace[:], random[:]):])
	id.flags = trace.FlagsSampled
	return id
}

// join continues the trace of a request, if it has one.
func (id *traceIdentity) join(header http.Header) {
	from := trace.SpanContextFromContext(w3c.Extract(context.Background(), propagation.HeaderCarrier(header)))
	if from.IsValid() {
		id.trace, id.parent, id.flags, id.state = from.TraceID(), from.SpanID(), from.TraceFlags(), from.TraceState()
	}
}

// inject makes the exchange's span the parent of the upstream's spans.
func (id *traceIdentity) inject(header http.Header) {
	context := trace.ContextWithSpanContext(context.Background(), trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: id.trace, SpanID: id.span, TraceFlags: id.flags, TraceState: id.state,
	}))
	w3c.Inject(context, propagation.HeaderCarrier(header))
}

// sibling returns the identity of another span with the same parent.
func (id *traceIdentity) sibling() traceIdentity {
	other := *id
	_, _ = rand.Read(other.span[:])
	return other
}

// put writes the identity of a span.
func (id *traceIdentity) put(span ptrace.Span) {
	span.SetTraceID(pcommon.TraceID(id.trace))
	span.SetSpanID(pcommon.SpanID(id.span))
	span.SetParentSpanID(pcommon.SpanID(id.parent))
	span.SetFlags(uint32(id.flags))
	span.TraceState().FromRaw(id.state.String())
}
