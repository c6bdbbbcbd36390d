// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package waterfall

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/request"
	"github.com/tokenpulse/tokenpulse/internal/attributes"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/series"
)

// Trace is the spans of a trace, and the requests among them.
type Trace struct {
	// Partial means that reading ended before the end of the files.
	Partial bool
	// Left counts spans that are left out because there are too many.
	Left int64

	id       pcommon.TraceID
	spans    []*span // by start
	roots    []*span
	requests map[spanKey]*request.Request
}

// span is a bar.
type span struct {
	key      spanKey
	name     string
	kind     string // agent or tool, empty for others
	failed   bool
	timed    bool // start and end are known
	begin    time.Duration
	end      time.Duration // both since 1970
	parentID pcommon.SpanID
	parent   *span
	children []*span // by start
}

// NewTrace returns the trace of some spans. Pass its Watch to a pipeline before the pipeline consumes them.
func NewTrace(spans ptrace.Traces) *Trace {
	t := &Trace{requests: map[spanKey]*request.Request{}}
	for _, resource := range spans.ResourceSpans().All() {
		for _, scope := range resource.ScopeSpans().All() {
			for _, s := range scope.Spans().All() {
				t.id = s.TraceID()
				t.spans = append(t.spans, newSpan(s))
			}
		}
	}
	slices.SortStableFunc(t.spans, func(a, b *span) int {
		return cmp.Or(cmp.Compare(a.begin, b.begin), cmp.Compare(b.end, a.end))
	})
	t.connect()
	return t
}

func newSpan(s ptrace.Span) *span {
	n := &span{
		key: keyOf(s), name: s.Name(), kind: kindOf(s.Attributes()), failed: s.Status().Code() == ptrace.StatusCodeError,
		parentID: s.ParentSpanID(),
	}
	start, end := s.StartTimestamp(), s.EndTimestamp()
	if n.timed = start > 0 && start <= math.MaxInt64 && end <= math.MaxInt64; n.timed {
		n.begin, n.end = time.Duration(start), time.Duration(max(start, end))
	}
	return n
}

// kindOf returns what an operation other than a model call is.
func kindOf(own pcommon.Map) string {
	switch operation := attributes.Text(own, names.GenAIOperationName); {
	case operation == "execute_tool" || attributes.Text(own, names.OpenInferenceSpanKind) == "TOOL":
		return "tool"
	case operation == "invoke_agent" || operation == "create_agent" || attributes.Text(own, names.OpenInferenceSpanKind) == "AGENT":
		return "agent"
	}
	return ""
}

// Watch takes a request of the trace. It is a Watch of package pipeline.
func (t *Trace) Watch(c *series.Contribution, s ptrace.Span, resource pcommon.Map) {
	if !c.TraceOnly {
		t.requests[keyOf(s)] = request.New(c, s, resource)
	}
}

// connect finds the parent of each span.
func (t *Trace) connect() {
	byID := map[pcommon.SpanID]*span{}
	for _, s := range t.spans {
		if _, ok := byID[s.key.id]; !ok {
			byID[s.key.id] = s
		}
	}
	for _, s := range t.spans {
		if parent := byID[s.parentID]; parent != s && !s.parentID.IsEmpty() {
			s.parent = parent
		}
	}
	t.cutCircles()
	for _, s := range t.spans {
		if s.parent == nil {
			t.roots = append(t.roots, s)
		} else {
			s.parent.children = append(s.parent.children, s)
		}
	}
}

// cutCircles makes the earliest of spans that are each other's parents a root.
func (t *Trace) cutCircles() {
	rooted := map[*span]bool{} // the ways up from these end
	for _, s := range t.spans {
		passed := map[*span]bool{}
		at := s
		for ; at != nil && !rooted[at] && !passed[at]; at = at.parent {
			passed[at] = true
		}
		if at != nil && passed[at] {
			earliest := at
			for other := at.parent; other != at; other = other.parent {
				if other.begin < earliest.begin {
					earliest = other
				}
			}
			earliest.parent = nil
		}
		maps.Copy(rooted, passed)
	}
}
