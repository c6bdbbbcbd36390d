// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokenlatencyprocessor

import (
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/source"
)

// Two instrumentations of one process, such as an agent framework and the SDK that it calls, send a span each of one
// request. One of them counts; the others get names.Repeated, the ID of that one. docs/sources.md has the rule.

// siblingSlack is how far a span may reach beyond its sibling of the same request.
const siblingSlack = 10 * time.Millisecond

// repeats marks the spans that repeat a request of another span, and removes them from the calls of the tree. It returns
// the calls without times of tokens that took attributes of a repeat: their latency has to be derived again.
func (t *tree) repeats() (changed []int) {
	inner := map[int][]int{} // the calls directly below a call of another instrumentation
	for _, i := range t.calls {
		if above := t.sameObserverAbove(i); above != noNode {
			inner[above] = append(inner[above], i)
		}
	}
	mark := func(repeat, counts int) {
		t.nodes[repeat].call = false
		t.nodes[repeat].span.Attributes().PutStr(names.Repeated, t.nodes[counts].span.SpanID().String())
		if t.take(counts, repeat) && t.timing(counts) < withTimeline {
			changed = append(changed, counts)
		}
	}
	for _, outer := range slices.Clone(t.calls) {
		below := inner[outer]
		switch {
		case len(below) > 1 && t.wraps(outer, below):
			t.nodes[outer].call = false
			t.nodes[outer].span.Attributes().PutStr(names.Repeated, t.nodes[below[0]].span.SpanID().String())
		case len(below) == 1 && t.nodes[outer].call && t.nodes[below[0]].call && t.sameRequest(outer, below[0], true):
			if t.timing(outer) > t.timing(below[0]) {
				mark(below[0], outer)
			} else {
				mark(outer, below[0])
			}
		}
	}
	t.markSiblings(mark)
	t.calls = slices.DeleteFunc(t.calls, func(i int) bool { return !t.nodes[i].call })
	return slices.DeleteFunc(changed, func(i int) bool { return !t.nodes[i].call })
}

// sameObserverAbove returns the nearest model call above a call, if it is of the same resource and vantage and of another
// instrumentation. An agent or a tool between two calls separates their requests.
func (t *tree) sameObserverAbove(i int) (above int) {
	above = noNode
	t.ancestors(i, func(j int) bool {
		if t.nodes[j].call && t.sameObserver(i, j) {
			above = j
		}
		return false
	})
	return above
}

func (t *tree) sameObserver(i, j int) bool {
	a, b := &t.nodes[i], &t.nodes[j]
	return a.vantage == b.vantage && a.scope != b.scope && t.sameResource(a.resource, b.resource)
}

// sameResource compares the attributes: groupbytrace sends a resource of its own for each scope.
func (t *tree) sameResource(i, j int) bool {
	return i == j || t.resources[i].Resource().Attributes().Equal(t.resources[j].Resource().Attributes())
}

// markSiblings marks calls below one span that ran at the same time, of which each instrumentation has one at most.
func (t *tree) markSiblings(mark func(repeat, counts int)) {
	byParent := map[spanKey][]int{}
	for _, i := range t.calls {
		if n := &t.nodes[i]; n.call && !n.span.ParentSpanID().IsEmpty() {
			key := spanKey{n.span.TraceID(), n.span.ParentSpanID()}
			byParent[key] = append(byParent[key], i)
		}
	}
	for _, i := range t.calls { // in the order of the batch, not of the map
		n := &t.nodes[i]
		for _, j := range byParent[spanKey{n.span.TraceID(), n.span.ParentSpanID()}] {
			if j == i || !n.call || !t.nodes[j].call || !t.sameObserver(i, j) || !t.within(j, i) || !t.sameRequest(i, j, false) ||
				t.hasTwin(i, j, byParent) || t.hasTwin(j, i, byParent) {
				continue
			}
			if t.timing(i) > t.timing(j) {
				mark(j, i)
			} else {
				mark(i, j)
			}
		}
	}
}

// hasTwin reports whether another call of the scope of j could be the repeat of i as well: parallel samples stay apart.
func (t *tree) hasTwin(i, j int, byParent map[spanKey][]int) bool {
	n := &t.nodes[i]
	for _, k := range byParent[spanKey{n.span.TraceID(), n.span.ParentSpanID()}] {
		overlaps := t.within(k, i) || t.within(i, k)
		if k != j && k != i && t.nodes[k].call && t.nodes[k].scope == t.nodes[j].scope && overlaps && t.sameRequest(i, k, false) {
			return !t.sameID(i, j)
		}
	}
	return false
}

// within reports whether the time of call j lies within that of call i.
func (t *tree) within(j, i int) bool {
	slack := pcommon.Timestamp(siblingSlack)
	a, b := t.nodes[i].span, t.nodes[j].span
	return b.StartTimestamp()+slack >= a.StartTimestamp() && b.EndTimestamp() <= a.EndTimestamp()+slack
}

// wraps reports whether a call is the sum of calls below it, all of one instrumentation.
func (t *tree) wraps(outer int, below []int) bool {
	own := t.number(outer, names.GenAIOutputTokens)
	sum, known := int64(0), true
	for _, i := range below {
		if t.nodes[i].scope != t.nodes[below[0]].scope {
			return false
		}
		n := t.number(i, names.GenAIOutputTokens)
		sum, known = sum+max(n, 0), known && n >= 0
	}
	return own < 0 || sum == own || !known && own >= sum
}

// sameRequest reports whether two calls are of one request: by the ID of the response or, without one on either, by model
// and tokens. One below the other may lack tokens, as SDKs do that do not read the usage of a stream.
func (t *tree) sameRequest(i, j int, nested bool) bool {
	if a, b := t.text(i, names.GenAIResponseID), t.text(j, names.GenAIResponseID); a != "" && b != "" {
		return a == b
	}
	if !t.sameModel(i, j) {
		return false
	}
	for _, name := range [...]string{names.GenAIInputTokens, names.GenAIOutputTokens} {
		a, b := t.number(i, name), t.number(j, name)
		if a != b && (!nested || a >= 0 && b >= 0) || !nested && a < 0 {
			return false
		}
	}
	return true
}

func (t *tree) sameID(i, j int) bool {
	id := t.text(i, names.GenAIResponseID)
	return id != "" && id == t.text(j, names.GenAIResponseID)
}

// sameModel reports whether two calls name one model, in the request or the response: gpt-5, openai/gpt-5 and
// gpt-5-2025-08-07 are one. A call without a model is of any.
func (t *tree) sameModel(i, j int) bool {
	models := func(i int) (all []string) {
		for _, name := range [...]string{names.GenAIRequestModel, names.GenAIResponseModel} {
			if model := t.text(i, name); model != "" {
				all = append(all, strings.ToLower(model[strings.LastIndexByte(model, '/')+1:]))
			}
		}
		return all
	}
	own, others := models(i), models(j)
	if len(own) == 0 || len(others) == 0 {
		return true
	}
	for _, a := range own {
		for _, b := range others {
			if a == b || strings.HasPrefix(a, b+"-") || strings.HasPrefix(b, a+"-") {
				return true
			}
		}
	}
	return false
}

func (t *tree) text(i int, name string) string {
	return source.Text(t.nodes[i].span.Attributes(), name)
}

// number returns a number of tokens, or -1 if it is unknown.
func (t *tree) number(i int, name string) int64 {
	if m := source.Measured(t.nodes[i].span.Attributes(), name); m.Known {
		return int64(m.Value)
	}
	return -1
}

// Timings of a call, the most first: the arrivals of its tokens, its first token, neither.
const (
	withoutTiming = iota
	withFirstToken
	withTimeline
)

func (t *tree) timing(i int) int {
	attributes := t.nodes[i].span.Attributes()
	if _, ok := attributes.Get(numbers.ChunkCount.Attribute()); ok {
		return withTimeline
	}
	if source.Measured(attributes, numbers.TimeToFirstToken.Attribute()).Known {
		return withFirstToken
	}
	return withoutTiming
}

// maxTaken bounds the texts that a call takes from its repeat.
const maxTaken = 256

// take copies what a call lacks from its repeat: usage, finish reasons, and what may be a dimension, such as the tenant.
// Times and texts of prompts stay where they are. It reports whether anything was copied.
func (t *tree) take(to, from int) (taken bool) {
	target, id := t.nodes[to].span.Attributes(), t.nodes[from].span.SpanID()
	for name, v := range t.nodes[from].span.Attributes().All() {
		finish := slices.Contains(names.Aliases[names.FinishReasons], name)
		switch {
		case strings.HasPrefix(name, names.Prefix), slices.Contains(names.Aliases[names.TimeToFirstChunk], name),
			names.HoldText(name) && !strings.HasPrefix(name, "gen_ai.usage."),
			v.Type() == pcommon.ValueTypeStr && len(v.Str()) > maxTaken,
			!finish && (v.Type() == pcommon.ValueTypeSlice || v.Type() == pcommon.ValueTypeMap || v.Type() == pcommon.ValueTypeBytes):
			continue
		}
		if own, exists := target.GetOrPutEmpty(name); !exists {
			v.CopyTo(own)
			putJoined(target, name, id)
			taken = true
		}
	}
	return taken
}
