// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokenlatencyprocessor

import (
	"crypto/sha256"
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/internal/attributes"
	"github.com/tokenpulse/tokenpulse/internal/latency"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/processor/tokenlatencyprocessor/internal/metadata"
)

// phaseSpans adds the child spans of one resource's model calls, in a scope of their own.
type phaseSpans struct {
	scopes ptrace.ScopeSpansSlice
	spans  ptrace.SpanSlice
	made   bool // whether the scope exists
}

// phases are the phases of a call in their order.
var phases = [...]struct{ name, attribute string }{
	{names.PhaseQueue, numbers.QueueDuration.Attribute()},
	{names.PhasePrefill, numbers.PrefillDuration.Attribute()},
	{names.PhaseTransfer, numbers.TransferDuration.Attribute()},
	{names.PhaseDecode, numbers.DecodeDuration.Attribute()},
}

// longestPhase is 34 years in seconds. Timestamps of longer phases, which only a forged span has,
// could wrap around.
const longestPhase = 1 << 30

// phaseDuration returns the duration of a phase from its attribute.
func phaseDuration(own pcommon.Map, attribute string) latency.Measure {
	m := attributes.Measured(own, attribute)
	m.Known = m.Known && m.Value <= longestPhase
	return m
}

// addTo adds a child span for each phase that an annotated model call has. A phase begins at the end
// of the previous one, decode at the first token. The first one begins as long before the call as its
// request did.
func (p *phaseSpans) addTo(call ptrace.Span, before pcommon.Timestamp) {
	own := call.Attributes()
	first := attributes.Measured(own, numbers.TimeToFirstToken.Attribute())
	end := min(attributes.Measured(own, numbers.RequestDuration.Attribute()).Value, longestPhase)
	var at float64
	for _, phase := range phases {
		m := phaseDuration(own, phase.attribute)
		if !m.Known {
			continue
		}
		if phase.name == names.PhaseDecode && first.Known {
			at = first.Value
		}
		// An engine measures phases with another clock than its span, so a phase may not fit.
		at = max(0, min(at, end-m.Value))
		p.add(call, phase.name, call.StartTimestamp()-before, at, m)
		at += m.Value
	}
}

func (p *phaseSpans) add(call ptrace.Span, phase string, start pcommon.Timestamp, at float64, m latency.Measure) {
	if !p.made {
		scope := p.scopes.AppendEmpty()
		scope.Scope().SetName(metadata.ScopeName)
		p.spans, p.made = scope.Spans(), true
	}
	span := p.spans.AppendEmpty()
	span.SetName(phase)
	span.SetKind(ptrace.SpanKindInternal)
	span.SetTraceID(call.TraceID())
	span.SetSpanID(phaseID(spanKey{call.TraceID(), call.SpanID()}, phase))
	span.SetParentSpanID(call.SpanID())
	span.SetStartTimestamp(start + nanoseconds(at))
	span.SetEndTimestamp(start + nanoseconds(at+m.Value))
	if m.Estimated {
		span.Attributes().PutEmptySlice(names.Estimated).AppendEmpty().SetStr(phase + ".duration")
	}
}

func nanoseconds(seconds float64) pcommon.Timestamp {
	return pcommon.Timestamp(seconds*float64(time.Second) + 0.5)
}

// phaseID derives the ID of a phase's span from its call's, so that a call that is sent again gets
// the same phases.
func phaseID(call spanKey, phase string) (id pcommon.SpanID) {
	hash := sha256.Sum256(slices.Concat(call.trace[:], call.span[:], []byte(phase)))
	copy(id[:], hash[:])
	return id
}

// addPhases gives each request one set of phases, if it is to get phases or has some of an earlier
// processor. They are those of the topmost span that join completed; in a request without one, those
// of the first span that has phases.
func (t *tree) addPhases(toAll bool) {
	removed := t.removePhases()
	wanted, carriers := map[int]bool{}, map[int]int{} // by leader
	for _, i := range t.calls {
		leader := t.leader(i)
		if toAll || removed[i] {
			wanted[leader] = true
		}
		if !t.hasPhases(i) {
			continue
		}
		carrier, found := carriers[leader]
		if !found || !t.nodes[carrier].topmost && (t.nodes[i].topmost || i == leader) {
			carriers[leader] = i
		}
	}
	byResource := map[int]*phaseSpans{}
	for _, leader := range t.calls { // in the order of the batch
		carrier, found := carriers[leader]
		if !found || !wanted[leader] {
			continue
		}
		resource := t.nodes[carrier].resource
		if byResource[resource] == nil {
			byResource[resource] = &phaseSpans{scopes: t.resources[resource].ScopeSpans()}
		}
		byResource[resource].addTo(t.nodes[carrier].span, t.nodes[carrier].before)
	}
}

func (t *tree) hasPhases(i int) bool {
	return slices.ContainsFunc(phases[:], func(p struct{ name, attribute string }) bool {
		return phaseDuration(t.nodes[i].span.Attributes(), p.attribute).Known
	})
}

// removePhases removes the phases of the batch's calls, and returns these calls.
func (t *tree) removePhases() map[int]bool {
	removed := map[int]bool{}
	isPhase := func(span ptrace.Span) bool {
		of := spanKey{span.TraceID(), span.ParentSpanID()}
		call, found := t.index[of]
		if !found || !t.nodes[call].call && !attributes.IsRepeated(t.nodes[call].span) || attributes.IsAnnotated(span) || span.SpanID() != phaseID(of, span.Name()) {
			return false
		}
		removed[call] = true
		return true
	}
	for _, resource := range t.resources {
		resource.ScopeSpans().RemoveIf(func(scope ptrace.ScopeSpans) bool {
			if scope.Scope().Name() != metadata.ScopeName {
				return false
			}
			scope.Spans().RemoveIf(isPhase)
			return scope.Spans().Len() == 0
		})
	}
	return removed
}
