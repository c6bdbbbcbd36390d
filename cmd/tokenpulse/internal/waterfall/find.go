// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Package waterfall draws one trace as text: its spans over time, with the phases and tokens of its requests.
package waterfall

import (
	"fmt"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/pipeline"
)

// Limits of a Finder. Spans of instrumentations may hold whole prompts.
const (
	maxSpans = 10_000
	maxBytes = 64 << 20
)

// Finder keeps the spans of one trace, out of those of files.
type Finder struct {
	// Repeated counts spans that came again, and Left those beyond the limits.
	Repeated, Left int64

	id     ID
	found  bool
	trace  pcommon.TraceID
	bySpan bool // so that spans of the trace may have come before
	spans  ptrace.Traces
	seen   map[spanKey]bool
	bytes  int
}

// spanKey identifies a span. Client and server share an ID in some systems.
type spanKey struct {
	id         pcommon.SpanID
	start, end pcommon.Timestamp
}

func keyOf(span ptrace.Span) spanKey {
	return spanKey{span.SpanID(), span.StartTimestamp(), span.EndTimestamp()}
}

// NewFinder returns a Finder of the trace that has the ID, or a span with it.
func NewFinder(id ID) *Finder {
	return &Finder{id: id, spans: ptrace.NewTraces(), seen: map[spanKey]bool{}}
}

// Add copies the spans of the trace. It returns an error if the ID is that of several traces.
func (f *Finder) Add(batch ptrace.Traces) error {
	for _, resource := range batch.ResourceSpans().All() {
		for _, scope := range resource.ScopeSpans().All() {
			var section ptrace.SpanSlice
			begun := false
			for _, span := range scope.Spans().All() {
				if wanted, err := f.wants(span); err != nil {
					return err
				} else if !wanted || !f.admits(span) {
					continue
				}
				if !begun {
					section, begun = pipeline.Section(f.spans, resource, scope), true
					f.bytes += sizes.ResourceSpansSize(f.last())
				}
				span.CopyTo(section.AppendEmpty())
			}
		}
	}
	return nil
}

// wants reports whether a span is of the trace. The first span with the ID decides which trace that is.
func (f *Finder) wants(span ptrace.Span) (bool, error) {
	trace, id := span.TraceID(), span.SpanID()
	if f.found && trace == f.trace {
		return true, nil
	}
	if f.found && f.id.isWhole() || trace.IsEmpty() {
		return false, nil
	}
	ofTrace := f.id.begins(trace[:])
	if !ofTrace && !f.id.begins(id[:]) {
		return false, nil
	}
	if f.found {
		return false, fmt.Errorf("the ID %s is not unique: traces %s and %s have it; give more digits, or one of these", f.id.text, f.trace, trace)
	}
	f.found, f.trace, f.bySpan = true, trace, !ofTrace
	return true, nil
}

var sizes ptrace.ProtoMarshaler

// admits reports whether a span of the trace is new and within the limits.
func (f *Finder) admits(span ptrace.Span) bool {
	key := keyOf(span)
	size := sizes.SpanSize(span)
	switch {
	case f.seen[key]:
		f.Repeated++
	case len(f.seen) >= maxSpans || f.bytes+size > maxBytes:
		f.Left++
	default:
		f.seen[key] = true
		f.bytes += size
		return true
	}
	return false
}

func (f *Finder) last() ptrace.ResourceSpans {
	all := f.spans.ResourceSpans()
	return all.At(all.Len() - 1)
}

// Found returns the spans of the trace. It returns an error if there are none.
func (f *Finder) Found() (ptrace.Traces, error) {
	if !f.found {
		return f.spans, fmt.Errorf("no span has the trace or span ID %s; `tokenpulse slowest` lists IDs", f.id.text)
	}
	return f.spans, nil
}

// Again returns a Finder of the whole trace if the files have to be read a second time, because the ID is that of a span:
// others of its trace may come before it. Otherwise, it returns nil.
func (f *Finder) Again() *Finder {
	if !f.bySpan {
		return nil
	}
	id, err := ParseID(f.trace.String())
	if err != nil {
		panic(err) // cannot happen: it has 32 digits
	}
	return NewFinder(id)
}

// ReadOnce returns the error of a span ID in a pipe, where Again is not possible.
func (f *Finder) ReadOnce() error {
	return fmt.Errorf("%s is the ID of a span, and standard input or a pipe can be read only once; give the ID of its trace, %s", f.id.text, f.trace)
}
