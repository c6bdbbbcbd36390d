// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokentapreceiver

import (
	"context"
	"crypto/rand"
	"net/http"

	"go.opentelemetry.io/collector/pdata/pcommon"
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

// newTraceIdentity reads the trace context of a request. Without one, it starts a trace.
func newTraceIdentity(header http.Header) (id traceIdentity) {
	from := trace.SpanContextFromContext(w3c.Extract(context.Background(), propagation.HeaderCarrier(header)))
	id = traceIdentity{trace: from.TraceID(), parent: from.SpanID(), flags: from.TraceFlags(), state: from.TraceState()}
	_, _ = rand.Read(id.span[:]) // never fails
	if !from.IsValid() {
		_, _ = rand.Read(id.trace[:])
		id.flags = trace.FlagsSampled
	}
	return id
}

// inject makes the exchange's span the parent of the upstream's spans.
func (id *traceIdentity) inject(header http.Header) {
	context := trace.ContextWithSpanContext(context.Background(), trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: id.trace, SpanID: id.span, TraceFlags: id.flags, TraceState: id.state,
	}))
	w3c.Inject(context, propagation.HeaderCarrier(header))
}

func (id *traceIdentity) traceID() pcommon.TraceID { return pcommon.TraceID(id.trace) }
func (id *traceIdentity) spanID() pcommon.SpanID   { return pcommon.SpanID(id.span) }
func (id *traceIdentity) parentID() pcommon.SpanID { return pcommon.SpanID(id.parent) }
