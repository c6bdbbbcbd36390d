// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokenlatencyprocessor

import (
	"math"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/internal/attributes"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/repeats"
)

// markRepeats marks the calls that repeat the request of another one with names.Repeated, the ID of that one, and removes
// them from the calls of the tree. The one that counts takes what it lacks. It is derived again if its latency may follow
// from that.
func (p *tokenLatency) markRepeats(w *worker) {
	t := &w.tree
	if !t.severalScopes() {
		return
	}
	all := repeats.Find(t.modelCalls())
	for _, r := range all {
		repeat, counts := &t.nodes[t.calls[r.Call]], &t.nodes[t.calls[r.Counts]]
		if repeat.call { // else it is the sum of several
			repeat.call = false
			repeat.span.Attributes().PutStr(names.Repeated, counts.span.SpanID().String())
		}
		attributes := counts.span.Attributes()
		if !r.Sum && takeUsage(attributes, repeat.span) && !repeats.HasTimeline(attributes) {
			p.deriveAgain(w, counts.scope, counts.span)
		}
	}
	for _, r := range all { // after the last derivation, so that no reader reads the attributes of another
		takeDimensions(t.nodes[t.calls[r.Counts]].span.Attributes(), t.nodes[t.calls[r.Call]].span)
	}
	if len(all) > 0 {
		t.calls = slices.DeleteFunc(t.calls, func(i int) bool { return !t.nodes[i].call })
	}
}

func (t *tree) severalScopes() bool {
	return slices.ContainsFunc(t.calls, func(i int) bool { return t.nodes[i].scope != t.nodes[t.calls[0]].scope })
}

// modelCalls returns the calls of the tree in their order.
func (t *tree) modelCalls() []repeats.Call {
	all, at := make([]repeats.Call, len(t.calls)), make(map[int]int, len(t.calls))
	for c, i := range t.calls {
		at[i] = c
	}
	for c, i := range t.calls {
		n := &t.nodes[i]
		all[c] = repeats.Call{Span: n.span, Scope: n.scope, Resource: n.resource, Of: t.resources[n.resource].Resource().Attributes(), Above: repeats.None}
		if above, ok := at[n.parent]; ok {
			all[c].Above = above
		}
	}
	return all
}

// deriveAgain derives the latency of a call that took attributes of another span.
func (p *tokenLatency) deriveAgain(w *worker, scope string, span ptrace.Span) {
	own := span.Attributes()
	kept := pcommon.NewSlice()
	attributes.List(own, names.Joined).CopyTo(kept)
	reader, whole := attributes.Text(own, names.Source), attributes.Measured(own, numbers.RequestDuration.Attribute())
	own.Remove(names.Source) // else it counts as read
	observed, err := w.observer.Observe(scope, span)
	if observed != nil && err == nil {
		if whole.Known { // also if it began before the span
			observed.Request.Duration = time.Duration(math.Round(whole.Value * float64(time.Second)))
		}
		err = w.analyzer.AnalyzeInto(&w.derived, &observed.Request, observed.Timeline)
	}
	if observed == nil || err != nil {
		own.PutStr(names.Source, reader)
		return
	}
	w.annotator.Annotate(own, observed, &w.derived)
	kept.CopyTo(attributes.List(own, names.Joined))
}

// usage are the values of a response that a call takes from its repeat.
var usage = [...]names.Standard{
	names.InputTokens, names.OutputTokens, names.ReasoningTokens, names.CacheReadInputTokens, names.CacheWriteInputTokens,
	names.FinishReasons, names.RequestModel,
}

// takeUsage copies the usage, finish reasons and model that a call lacks from its repeat. It reports whether there were any.
func takeUsage(to pcommon.Map, from ptrace.Span) (taken bool) {
	for _, standard := range usage {
		if _, exists := reported(to, standard); exists {
			continue
		}
		if v, ok := reported(from.Attributes(), standard); ok {
			name := names.Aliases[standard][0]
			v.CopyTo(to.PutEmpty(name))
			putJoined(to, name, from.SpanID())
			taken = true
		}
	}
	return taken
}

// reported returns a standard value of a span, under any of its names.
func reported(attributes pcommon.Map, standard names.Standard) (pcommon.Value, bool) {
	for _, name := range names.Aliases[standard] {
		if v, ok := attributes.Get(name); ok {
			return v, true
		}
	}
	return pcommon.Value{}, false
}

// maxTaken bounds the texts that a call takes from its repeat, in bytes.
const maxTaken = 256

// takeDimensions copies the attributes that a call lacks and that may be dimensions, such as the tenant: short texts and
// booleans. Texts of prompts and answers stay where they are, and so do times, usage and errors.
func takeDimensions(to pcommon.Map, from ptrace.Span) {
	for name, v := range from.Attributes().All() {
		switch {
		case v.Type() != pcommon.ValueTypeBool && (v.Type() != pcommon.ValueTypeStr || len(v.Str()) > maxTaken) && name != names.ServerPort,
			strings.HasPrefix(v.Str(), "{"), strings.HasPrefix(v.Str(), "["), // JSON, such as messages
			strings.HasPrefix(name, names.Prefix), names.HoldText(name), names.IsCategory(name),
			slices.Contains(names.Aliases[names.TimeToFirstChunk], name):
			continue
		}
		if own, exists := to.GetOrPutEmpty(name); !exists {
			v.CopyTo(own)
			putJoined(to, name, from.SpanID())
		}
	}
}
