// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"container/list"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// maxHeldSpans limits the spans of traces that may go on.
const maxHeldSpans = 20_000

// wholeTraces collects the spans of each trace into one batch, as groupbytrace does in a Collector for `join` and
// `roll_up`. A file has no clock: a trace ends when the spans held are too many and no other trace waits longer for a
// span, or at the end of the files.
type wholeTraces struct {
	deliver func(ptrace.Traces) error
	limit   int
	held    int
	traces  map[pcommon.TraceID]*list.Element // of order
	order   list.List                         // of *wholeTrace, from the one that waits longest
}

type wholeTrace struct {
	id    pcommon.TraceID
	spans ptrace.Traces
	count int
}

func newWholeTraces(deliver func(ptrace.Traces) error) *wholeTraces {
	return &wholeTraces{deliver: deliver, limit: maxHeldSpans, traces: map[pcommon.TraceID]*list.Element{}}
}

// add moves the spans of a batch into their traces.
func (w *wholeTraces) add(batch ptrace.Traces) error {
	for _, resource := range batch.ResourceSpans().All() {
		for _, scope := range resource.ScopeSpans().All() {
			into := map[pcommon.TraceID]ptrace.SpanSlice{}
			for _, span := range scope.Spans().All() {
				id := span.TraceID()
				trace := w.touch(id)
				if _, ok := into[id]; !ok {
					into[id] = Section(trace.spans, resource, scope)
				}
				span.MoveTo(into[id].AppendEmpty())
				trace.count++
				w.held++
			}
		}
	}
	for w.held > w.limit {
		if err := w.end(w.order.Front()); err != nil {
			return err
		}
	}
	return nil
}

// flush ends all traces.
func (w *wholeTraces) flush() error {
	for w.order.Len() > 0 {
		if err := w.end(w.order.Front()); err != nil {
			return err
		}
	}
	return nil
}

// touch returns a trace, which from now on waits shorter than all others.
func (w *wholeTraces) touch(id pcommon.TraceID) *wholeTrace {
	if element, ok := w.traces[id]; ok {
		w.order.MoveToBack(element)
		return element.Value.(*wholeTrace)
	}
	trace := &wholeTrace{id: id, spans: ptrace.NewTraces()}
	w.traces[id] = w.order.PushBack(trace)
	return trace
}

func (w *wholeTraces) end(element *list.Element) error {
	trace := w.order.Remove(element).(*wholeTrace)
	delete(w.traces, trace.id)
	w.held -= trace.count
	return w.deliver(trace.spans)
}

// Section adds room for spans with a resource and a scope to a batch.
func Section(batch ptrace.Traces, resource ptrace.ResourceSpans, scope ptrace.ScopeSpans) ptrace.SpanSlice {
	r := batch.ResourceSpans().AppendEmpty()
	resource.Resource().CopyTo(r.Resource())
	r.SetSchemaUrl(resource.SchemaUrl())
	s := r.ScopeSpans().AppendEmpty()
	scope.Scope().CopyTo(s.Scope())
	s.SetSchemaUrl(scope.SchemaUrl())
	return s.Spans()
}
