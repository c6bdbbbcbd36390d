// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokenlatencyprocessor

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/internal/attributes"
	"github.com/tokenpulse/tokenpulse/internal/latency"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/numbers"
)

// request holds the spans of one request to a model. The first one is the closest to the user and
// stands for the request, which began before it if an engine handed it over.
type request struct {
	spans  []ptrace.Span
	before pcommon.Timestamp
}

func (r request) span() ptrace.Span { return r.spans[0] }

func (r request) start() pcommon.Timestamp { return r.span().StartTimestamp() - r.before }

// rollUp sums the model calls of each trace on its root span.
func (t *tree) rollUp(counts *tally) {
	byTrace := map[pcommon.TraceID][]request{}
	for _, r := range t.requests() {
		trace := r.span().TraceID()
		byTrace[trace] = append(byTrace[trace], r)
	}
	for trace, requests := range byTrace {
		root, ok := t.roots[trace]
		if !ok {
			counts.rootMissing++
			continue
		}
		counts.rolledUp++
		sumUp(t.nodes[root].span, requests, counts)
	}
}

// requests groups model calls into requests. A call below another one belongs to its request if that
// one is as close to the user or closer. Otherwise the call above is a service that makes calls
// itself, which is not counted.
func (t *tree) requests() []request {
	byLeader := map[int]request{}
	makesCalls := map[int]bool{}
	for _, i := range t.calls {
		if t.leader(i) != i {
			continue
		}
		byLeader[i] = request{[]ptrace.Span{t.nodes[i].span}, t.nodes[i].before}
		t.ancestors(i, func(above int) bool {
			if t.nodes[above].vantage > t.nodes[i].vantage {
				makesCalls[above] = true
			}
			return true
		})
	}
	for _, i := range t.calls {
		if leader := t.leader(i); leader != i {
			r := byLeader[leader]
			r.spans = append(r.spans, t.nodes[i].span)
			byLeader[leader] = r
		}
	}
	var requests []request
	for _, i := range t.calls { // in the order of the batch, not of the map
		if r := byLeader[i]; r.spans != nil && !makesCalls[i] {
			requests = append(requests, r)
		}
	}
	return requests
}

// leader returns the first call of a call's request. An agent or a tool between two calls separates
// their requests.
func (t *tree) leader(i int) int {
	if known := t.nodes[i].leader; known != noNode {
		return known
	}
	leader := i
	t.ancestors(i, func(above int) bool {
		if n := &t.nodes[above]; n.call && n.vantage <= t.nodes[leader].vantage {
			leader = above
		}
		return !t.nodes[above].agent
	})
	t.nodes[i].leader = leader
	return leader
}

// sumUp writes the sums of a trace's requests on its root span, in place of earlier ones.
func sumUp(root ptrace.Span, requests []request, counts *tally) {
	own := root.Attributes()
	own.RemoveIf(func(name string, _ pcommon.Value) bool { return strings.HasPrefix(name, names.TracePrefix) })
	own.PutInt(names.TraceCalls, int64(len(requests)))
	putTokens(own, names.TraceInputTokens, requests, names.GenAIInputTokens)
	putTokens(own, names.TraceOutputTokens, requests, names.GenAIOutputTokens, numbers.TokenCount.Attribute())

	inCalls := union(requests)
	attributes.PutMeasure(own, names.TraceCallDuration, latency.Measure{Value: seconds(inCalls), Known: true})
	whole := root.EndTimestamp() - root.StartTimestamp()
	switch {
	case root.EndTimestamp() <= root.StartTimestamp():
	case slices.ContainsFunc(requests, func(r request) bool { return !within(root, r) }):
		counts.ignored.Rejected[latency.LongerThanRequest]++
	default:
		attributes.PutMeasure(own, names.TraceCallShare, latency.Measure{Value: float64(inCalls) / float64(whole), Known: true})
	}
	putTimeToAnswer(root, requests, counts)
}

// within reports whether a call begins and ends during the root span.
func within(root ptrace.Span, r request) bool {
	return r.start() >= root.StartTimestamp() && r.span().EndTimestamp() <= root.EndTimestamp()
}

// putTokens writes the sum of the requests' tokens, unless all are unknown. It is at most MaxInt64.
// The attributes are tried in order, each on every span of a request.
func putTokens(attributes pcommon.Map, sum string, requests []request, reported ...string) {
	var total int64
	known := false
	for _, r := range requests {
		m := firstMeasured(r, reported)
		n := int64(m.Value)
		total = min(total, math.MaxInt64-n) + n
		known = known || m.Known
	}
	if known {
		attributes.PutInt(sum, total)
	}
}

func firstMeasured(r request, attributeNames []string) latency.Measure {
	for _, name := range attributeNames {
		for _, span := range r.spans {
			if m := attributes.Measured(span.Attributes(), name); m.Known {
				return m
			}
		}
	}
	return latency.Measure{}
}

// union returns the time during which at least one request was active.
func union(requests []request) (sum pcommon.Timestamp) {
	byStart := slices.SortedFunc(slices.Values(requests), func(a, b request) int {
		return cmp.Compare(a.start(), b.start())
	})
	var covered pcommon.Timestamp // up to here
	for _, r := range byStart {
		if from := max(covered, r.start()); r.span().EndTimestamp() > from {
			sum += r.span().EndTimestamp() - from
			covered = r.span().EndTimestamp()
		}
	}
	return sum
}

// putTimeToAnswer writes the time from the root's start to the first output token of the request
// that began last. If its span does not report channels, its first token is the estimate.
func putTimeToAnswer(root ptrace.Span, requests []request, counts *tally) {
	latest := slices.MaxFunc(requests, func(a, b request) int {
		return cmp.Compare(a.start(), b.start())
	})
	last := latest.span()
	first := attributes.Measured(last.Attributes(), numbers.TimeToFirstOutputToken.Attribute())
	if !first.Known {
		first = attributes.Measured(last.Attributes(), numbers.TimeToFirstToken.Attribute())
		first.Estimated = true
	}
	if !first.Known {
		return
	}
	if latest.start() < root.StartTimestamp() {
		counts.ignored.Rejected[latency.Negative]++
		return
	}
	first.Value += seconds(latest.start() - root.StartTimestamp())
	if !fits(first.Value, root) {
		counts.ignored.Rejected[latency.LongerThanRequest]++
		return
	}
	first.Value = latency.ToNanosecond(first.Value)
	attributes.PutMeasure(root.Attributes(), numbers.TimeToAnswer.Attribute(), first)
}

// fits reports whether a duration in seconds, of up to attributes.MaxNumber, is at most that of the span.
func fits(duration float64, span ptrace.Span) bool {
	start, end := span.StartTimestamp(), span.EndTimestamp()
	return start <= end && duration <= seconds(math.MaxInt64) && nanoseconds(duration) <= end-start
}

func seconds(t pcommon.Timestamp) float64 { return float64(t) / 1e9 }
