package tokenlatencyprocessor

import (
	"cmp"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/internal/latency"
	"github.com/tokenpulse/tokenpulse/internal/names"
)

// request is a request to a model, as the vantage points along its way saw it:
// the one closest to the user first, whose span is the request's.
type request []ptrace.Span

func (r request) span() ptrace.Span { return r[0] }

// rollUp sums up the model calls of each trace on its root span.
func (t *tree) rollUp(counts *tally) {
	byTrace := map[pcommon.TraceID][]request{}
	for _, r := range t.requests() {
		trace := r.span().TraceID()
		byTrace[trace] = append(byTrace[trace], r)
	}
	for trace, calls := range byTrace {
		root, ok := t.roots[trace]
		if !ok {
			counts.rollUps[rootMissing]++
			continue
		}
		counts.rollUps[rolledUp]++
		sumUp(t.nodes[root].span, calls, counts)
	}
}

// requests returns the requests to models. A call belongs to the request of one
// above it that is as close to the user or closer. One above it that is further
// away is a service which makes calls itself: those count, and it does not.
func (t *tree) requests() []request {
	byLeader := map[int]request{}
	makesCalls := map[int]bool{}
	for _, i := range t.calls {
		if t.leader(i) != i {
			continue
		}
		byLeader[i] = request{t.nodes[i].span}
		t.above(i, func(above int) bool {
			if t.nodes[above].vantage > t.nodes[i].vantage {
				makesCalls[above] = true
			}
			return true
		})
	}
	for _, i := range t.calls {
		if leader := t.leader(i); leader != i {
			byLeader[leader] = append(byLeader[leader], t.nodes[i].span)
		}
	}
	var requests []request
	for _, i := range t.calls { // in their order, and not that of a map
		if r := byLeader[i]; r != nil && !makesCalls[i] {
			requests = append(requests, r)
		}
	}
	return requests
}

// leader returns the call that a call's request is counted by. An agent or a tool
// between two calls makes them two requests.
func (t *tree) leader(i int) int {
	leader := i
	t.above(i, func(above int) bool {
		if n := &t.nodes[above]; n.call && n.vantage <= t.nodes[leader].vantage {
			leader = above
		}
		return !t.nodes[above].agent
	})
	return leader
}

// sumUp writes the sums of a trace's model calls on its root.
func sumUp(root ptrace.Span, calls []request, counts *tally) {
	attributes := root.Attributes()
	attributes.PutInt(names.TraceCalls, int64(len(calls)))
	putTokens(attributes, names.TraceInputTokens, calls, names.GenAIInputTokens)
	putTokens(attributes, names.TraceOutputTokens, calls, names.GenAIOutputTokens, names.TokenCount)

	inCalls := union(calls)
	putMeasure(attributes, names.TraceCallDuration, latency.Measure{Value: seconds(inCalls), Known: true})
	whole := root.EndTimestamp() - root.StartTimestamp()
	switch {
	case root.EndTimestamp() <= root.StartTimestamp():
	case slices.ContainsFunc(calls, func(r request) bool { return !within(root, r.span()) }):
		counts.rejected[latency.LongerThanRequest]++
	default:
		putMeasure(attributes, names.TraceCallShare, latency.Measure{Value: float64(inCalls) / float64(whole), Known: true})
	}
	putTimeToAnswer(root, calls, counts)
}

// within reports whether a call begins and ends while the root is under way.
func within(root, call ptrace.Span) bool {
	return call.StartTimestamp() >= root.StartTimestamp() && call.EndTimestamp() <= root.EndTimestamp()
}

// putTokens adds up the tokens of the requests. Of each the first vantage point
// that has the first of the attributes counts, or else the second.
func putTokens(attributes pcommon.Map, sum string, calls []request, told ...string) {
	var total int64
	known := false
	for _, call := range calls {
		m := firstOf(call, told)
		total += int64(m.Value)
		known = known || m.Known
	}
	if known {
		attributes.PutInt(sum, total)
	}
}

func firstOf(call request, told []string) latency.Measure {
	for _, name := range told {
		for _, span := range call {
			if m := measured(span.Attributes(), name); m.Known {
				return m
			}
		}
	}
	return latency.Measure{}
}

// union returns the time that at least one of the calls was under way.
func union(calls []request) (sum pcommon.Timestamp) {
	byStart := slices.SortedFunc(slices.Values(calls), func(a, b request) int {
		return cmp.Compare(a.span().StartTimestamp(), b.span().StartTimestamp())
	})
	var covered pcommon.Timestamp // up to here
	for _, call := range byStart {
		if from := max(covered, call.span().StartTimestamp()); call.span().EndTimestamp() > from {
			sum += call.span().EndTimestamp() - from
			covered = call.span().EndTimestamp()
		}
	}
	return sum
}

// putTimeToAnswer writes how long the user waited for the first output token of
// the call that began last. Where its span does not tell what its tokens are for,
// its first token stands for it.
func putTimeToAnswer(root ptrace.Span, calls []request, counts *tally) {
	last := slices.MaxFunc(calls, func(a, b request) int {
		return cmp.Compare(a.span().StartTimestamp(), b.span().StartTimestamp())
	}).span()
	first := measured(last.Attributes(), names.TimeToFirstOutputToken)
	if !first.Known {
		first = measured(last.Attributes(), names.TimeToFirstToken)
		first.Estimated = true
	}
	if !first.Known {
		return
	}
	if last.StartTimestamp() < root.StartTimestamp() {
		counts.rejected[latency.Negative]++
		return
	}
	first.Value += seconds(last.StartTimestamp() - root.StartTimestamp())
	if root.StartTimestamp()+nanoseconds(first.Value) > root.EndTimestamp() {
		counts.rejected[latency.LongerThanRequest]++
		return
	}
	putMeasure(root.Attributes(), names.TraceTimeToAnswer, first)
}

func seconds(t pcommon.Timestamp) float64 { return float64(t) / 1e9 }
