// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokenlatencyprocessor

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/internal/attributes"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
)

// tree indexes the spans of one batch by their traces.
type tree struct {
	nodes     []node
	resources []ptrace.ResourceSpans
	index     map[spanKey]int
	calls     []int // the nodes that are model calls
	roots     map[pcommon.TraceID]int
	steps     int // taken by walks; tests check that they grow with the spans only

	writesDecodeShare bool // join adds it to spans
}

type node struct {
	span     ptrace.Span
	scope    string
	resource int  // index of its resource
	parent   int  // of a call or agent: the nearest call or agent above it; otherwise the parent; or noNode
	leader   int  // of a call: the first call of its request, or noNode before it is searched
	skipped  bool // of a span that is neither: parent is the nearest call or agent above it, too
	call     bool // an annotated model call
	agent    bool // an agent or a tool, whose calls are requests of their own
	topmost  bool // of the spans that one engine's span was joined with
	vantage  timeline.Vantage
	whole    bool              // of a decode that has the numbers of the whole request, from the engine of the prefill too
	before   pcommon.Timestamp // how long the request of a call began before its span
}

const noNode = -1

type spanKey struct {
	trace pcommon.TraceID
	span  pcommon.SpanID
}

// vantageOf returns the vantage of a model call, by default client. Vantages are ordered by their
// distance from the user.
func vantageOf(own pcommon.Map) timeline.Vantage {
	if v, _ := timeline.ParseVantage(attributes.Text(own, names.Vantage)); v != timeline.VantageUnspecified {
		return v
	}
	return timeline.VantageClient
}

// build fills an empty tree with the spans of a batch.
func (t *tree) build(traces ptrace.Traces) {
	if t.index == nil {
		t.index, t.roots = map[spanKey]int{}, map[pcommon.TraceID]int{}
	}
	for _, resource := range traces.ResourceSpans().All() {
		t.resources = append(t.resources, resource)
		for _, scope := range resource.ScopeSpans().All() {
			for _, span := range scope.Spans().All() {
				t.add(span, scope.Scope().Name())
			}
		}
	}
	for i := range t.nodes {
		n := &t.nodes[i]
		if parent, ok := t.index[spanKey{n.span.TraceID(), n.span.ParentSpanID()}]; ok {
			n.parent = parent
		}
	}
	var path []int
	for i := range t.nodes {
		if n := &t.nodes[i]; n.call || n.agent {
			n.parent, path = t.nearest(n.parent, path[:0])
		}
	}
}

// nearest returns the nearest call or agent at or above a node. It passes each span once in
// all, also where spans are each other's parents. It returns path, which may have grown, for the
// next call.
func (t *tree) nearest(i int, path []int) (int, []int) {
	isPlain := func(i int) bool { return i != noNode && !t.nodes[i].call && !t.nodes[i].agent }
	for isPlain(i) && !t.nodes[i].skipped {
		t.steps++
		path = append(path, i)
		n := &t.nodes[i]
		i, n.parent, n.skipped = n.parent, noNode, true
	}
	if isPlain(i) {
		i = t.nodes[i].parent // noNode if the path leads back to itself
	}
	for _, passed := range path {
		t.nodes[passed].parent = i
	}
	return i, path
}

func (t *tree) add(span ptrace.Span, scope string) {
	key := spanKey{span.TraceID(), span.SpanID()}
	if _, repeated := t.index[key]; repeated {
		return // sent twice, for example by a retry
	}
	n := node{span: span, scope: scope, resource: len(t.resources) - 1, parent: noNode, leader: noNode, call: attributes.IsAnnotated(span) && !attributes.IsRepeated(span)}
	if n.call {
		n.vantage = vantageOf(span.Attributes())
		t.calls = append(t.calls, len(t.nodes))
	} else {
		n.agent = attributes.IsAgent(span.Attributes())
	}
	t.index[key] = len(t.nodes)
	if span.ParentSpanID().IsEmpty() {
		t.addRoot(span)
	}
	t.nodes = append(t.nodes, n)
}

// addRoot records a span without a parent as the root of its trace. Of several, the earliest wins.
func (t *tree) addRoot(span ptrace.Span) {
	root, ok := t.roots[span.TraceID()]
	if !ok || span.StartTimestamp() < t.nodes[root].span.StartTimestamp() {
		t.roots[span.TraceID()] = len(t.nodes)
	}
}

// reset empties the tree. It releases the batch, and the memory of a large tree.
func (t *tree) reset() {
	const maxKept = 10_000
	if len(t.nodes) > maxKept {
		*t = tree{writesDecodeShare: t.writesDecodeShare}
		return
	}
	clear(t.nodes)
	clear(t.resources)
	clear(t.index)
	clear(t.roots)
	t.nodes, t.resources, t.calls, t.steps = t.nodes[:0], t.resources[:0], t.calls[:0], 0
}

// maxDepth bounds the model calls and agents on a walk to the root: a hostile trace may have
// thousands above one another, or each other's parents.
const maxDepth = 64

// ancestors calls visit for the calls and agents above a call, the nearest first, until visit returns
// false.
func (t *tree) ancestors(i int, visit func(i int) bool) {
	for range maxDepth {
		t.steps++
		if i = t.nodes[i].parent; i == noNode || !visit(i) {
			return
		}
	}
}
