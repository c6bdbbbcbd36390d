// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package streamspan

import (
	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/sampling"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/assembly"
)

// Selection selects the streams that become spans, by the rules of OpenTelemetry's consistent
// probability sampling: a span is in the share if the last 56 bits of its trace ID reach the
// threshold. Spans of the same trace that are sampled elsewhere with the same share are kept
// together with it.
//
// The threshold in a span's tracestate belongs to the probability with which that span is kept. A
// stream that breaches an SLO is kept for certain, in the share or not, so its threshold is 0. Sums
// over spans, each weighted by 1/probability, are then right for both kinds.
type Selection struct {
	threshold  sampling.Threshold
	tracestate string // of spans that are kept because they are in the share
	// breaches reports whether a stream breaches an SLO. It is nil if that does not matter.
	breaches func(*assembly.Finished) bool
}

// thresholdPrecision is the number of significant hexadecimal digits of a threshold, as the
// specification recommends. The share is exact to 1/65536 of itself.
const thresholdPrecision = 4

// certain is the tracestate of a span that is kept for certain.
const certain = "ot=th:0"

// NewSelection returns a selection of a share, between 0 and 1, of the streams and of those that
// breach an SLO. breaches is nil if breaches are not selected. It returns an error if the share is
// positive, but smaller than the smallest probability of the specification.
func NewSelection(share float64, breaches func(*assembly.Finished) bool) (*Selection, error) {
	s := &Selection{threshold: sampling.NeverSampleThreshold}
	if share > 0 {
		threshold, err := sampling.ProbabilityToThresholdWithPrecision(share, thresholdPrecision)
		if err != nil {
			return nil, err
		}
		s.threshold, s.tracestate = threshold, "ot=th:"+threshold.TValue()
	}
	if share < 1 {
		s.breaches = breaches
	}
	return s, nil
}

// inShare reports whether a span is in the share.
func (s *Selection) inShare(id ID) bool {
	return s.threshold.ShouldSample(sampling.TraceIDToRandomness(id.Trace))
}

// choice is why a stream becomes a span.
type choice uint8

const (
	notChosen choice = iota
	ofShare
	ofBreach
)

// choose decides whether a stream becomes a span. A nil selection selects every stream.
func (s *Selection) choose(id ID, stream *assembly.Finished) choice {
	switch {
	case s == nil || s.inShare(id):
		return ofShare
	case s.breaches != nil && s.breaches(stream):
		return ofBreach
	default:
		return notChosen
	}
}

// mark completes the span of a selected stream: it says that the request is aggregated already, and
// with which threshold the span was kept. A nil selection leaves the span as it is.
func (s *Selection) mark(span ptrace.Span, chosen choice) {
	if s == nil {
		return
	}
	span.Attributes().PutBool(names.Aggregated, true)
	if s.breaches != nil && chosen == ofShare {
		if _, breached := span.Attributes().Get(names.SLOBreached); breached {
			chosen = ofBreach
		}
	}
	if chosen == ofBreach {
		span.TraceState().FromRaw(certain)
	} else {
		span.TraceState().FromRaw(s.tracestate)
	}
}
