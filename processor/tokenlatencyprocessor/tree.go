package tokenlatencyprocessor

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/internal/names"
)

// tree holds the spans of one batch as the traces they make.
type tree struct {
	nodes []node
	index map[spanKey]int
	calls []int // the nodes that are model calls
	roots map[pcommon.TraceID]int
}

type node struct {
	span    ptrace.Span
	parent  int  // its index, or noNode
	call    bool // a model call that carries its latency
	agent   bool // an agent or a tool, which makes calls of its own
	vantage vantage
}

const noNode = -1

type spanKey struct {
	trace pcommon.TraceID
	span  pcommon.SpanID
}

// vantage orders the vantage points of one request by how close they are to the
// user.
type vantage uint8

const (
	client vantage = iota
	gateway
	server
	engine
)

func vantageOf(attributes pcommon.Map) vantage {
	switch text(attributes, names.Vantage) {
	case names.VantageGateway:
		return gateway
	case names.VantageServer:
		return server
	case names.VantageEngine:
		return engine
	default:
		return client
	}
}

// grow makes the tree of a batch.
func (t *tree) grow(traces ptrace.Traces) {
	t.cut()
	if t.index == nil {
		t.index, t.roots = map[spanKey]int{}, map[pcommon.TraceID]int{}
	}
	for _, resource := range traces.ResourceSpans().All() {
		for _, scope := range resource.ScopeSpans().All() {
			for _, span := range scope.Spans().All() {
				t.add(span)
			}
		}
	}
	for i := range t.nodes {
		n := &t.nodes[i]
		if parent, ok := t.index[spanKey{n.span.TraceID(), n.span.ParentSpanID()}]; ok {
			n.parent = parent
		}
	}
}

func (t *tree) add(span ptrace.Span) {
	key := spanKey{span.TraceID(), span.SpanID()}
	if _, repeated := t.index[key]; repeated {
		return // sent twice: one of them is enough
	}
	n := node{span: span, parent: noNode, call: isAnnotated(span)}
	if n.call {
		n.vantage = vantageOf(span.Attributes())
		t.calls = append(t.calls, len(t.nodes))
	} else {
		n.agent = isAgent(span.Attributes())
	}
	t.index[key] = len(t.nodes)
	if span.ParentSpanID().IsEmpty() {
		t.addRoot(span)
	}
	t.nodes = append(t.nodes, n)
}

// addRoot takes a span without a parent. Of several in one trace, the one that
// begins first counts.
func (t *tree) addRoot(span ptrace.Span) {
	root, there := t.roots[span.TraceID()]
	if !there || span.StartTimestamp() < t.nodes[root].span.StartTimestamp() {
		t.roots[span.TraceID()] = len(t.nodes)
	}
}

// isAgent reports whether a span that is no model call is one of an agent, a tool
// and so on.
func isAgent(attributes pcommon.Map) bool {
	switch text(attributes, names.OpenInferenceSpanKind) {
	case "AGENT", "TOOL":
		return true
	}
	return text(attributes, names.GenAIOperationName) != ""
}

// cut empties the tree, and lets go of the batch and of the memory of a large one.
func (t *tree) cut() {
	const keep = 10_000
	if len(t.nodes) > keep {
		*t = tree{}
		return
	}
	clear(t.nodes)
	clear(t.index)
	clear(t.roots)
	t.nodes, t.calls = t.nodes[:0], t.calls[:0]
}

// maxDepth bounds the way up: spans can be each other's parents.
const maxDepth = 1000

// above visits the spans above a node, the nearest first, until visit reports
// false.
func (t *tree) above(i int, visit func(i int) bool) {
	for range maxDepth {
		if i = t.nodes[i].parent; i == noNode {
			return
		}
		if !visit(i) {
			return
		}
	}
}
