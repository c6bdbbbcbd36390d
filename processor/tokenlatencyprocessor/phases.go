// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokenlatencyprocessor

import (
	"crypto/sha256"
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/internal/latency"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/processor/tokenlatencyprocessor/internal/metadata"
)

// phaseSpans adds the child spans of one resource's model calls, in a scope of their own.
type phaseSpans struct {
	scopes ptrace.ScopeSpansSlice
	spans  ptrace.SpanSlice
	made   bool // whether the scope exists
}

// addTo adds a child span for each known phase of a model call. A phase begins at the end of the
// previous one, decode at the first token.
func (p *phaseSpans) addTo(call ptrace.Span, derived *latency.Latency) {
	var at float64
	for _, phase := range [...]struct {
		name     string
		quantity latency.Quantity
	}{
		{names.PhaseQueue, latency.QueueDuration},
		{names.PhasePrefill, latency.PrefillDuration},
		{names.PhaseDecode, latency.DecodeDuration},
	} {
		m := derived.Measures[phase.quantity]
		if !m.Known {
			continue
		}
		if first := derived.Measures[latency.TimeToFirstToken]; phase.quantity == latency.DecodeDuration && first.Known {
			at = first.Value
		}
		// An engine measures phases with another clock than its span, so a phase may not fit.
		at = max(0, min(at, derived.Measures[latency.RequestDuration].Value-m.Value))
		p.add(call, phase.name, at, m)
		at += m.Value
	}
}

func (p *phaseSpans) add(call ptrace.Span, phase string, at float64, m latency.Measure) {
	if !p.made {
		scope := p.scopes.AppendEmpty()
		scope.Scope().SetName(metadata.ScopeName)
		p.spans, p.made = scope.Spans(), true
	}
	span := p.spans.AppendEmpty()
	span.SetName(phase)
	span.SetKind(ptrace.SpanKindInternal)
	span.SetTraceID(call.TraceID())
	span.SetSpanID(phaseID(call, phase))
	span.SetParentSpanID(call.SpanID())
	span.SetStartTimestamp(call.StartTimestamp() + nanoseconds(at))
	span.SetEndTimestamp(call.StartTimestamp() + nanoseconds(at+m.Value))
	if m.Estimated {
		span.Attributes().PutEmptySlice(names.Estimated).AppendEmpty().SetStr(phase + ".duration")
	}
}

func nanoseconds(seconds float64) pcommon.Timestamp {
	return pcommon.Timestamp(seconds*float64(time.Second) + 0.5)
}

// phaseID derives the ID of a phase's span from its call's, so that a call that is sent again gets
// the same phases.
func phaseID(call ptrace.Span, phase string) (id pcommon.SpanID) {
	trace, span := call.TraceID(), call.SpanID()
	hash := sha256.Sum256(slices.Concat(trace[:], span[:], []byte(phase)))
	copy(id[:], hash[:])
	return id
}
