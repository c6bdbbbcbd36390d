// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokenstreamreceiver

import (
	"errors"
	"fmt"

	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/sampling"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/internal/assembly"
	"github.com/tokenpulse/tokenpulse/internal/names"
)

// SpansConfig selects the streams that become spans, of a receiver in a metrics pipeline.
type SpansConfig struct {
	// Share is the share of the streams that become spans, by trace ID: between 0 and 1.
	Share float64 `mapstructure:"share"`
	// Breached makes each stream that breaches an SLO a span, too.
	Breached bool `mapstructure:"breached"`

	// prevent unkeyed literal initialization
	_ struct{}
}

// Validate reports a share that cannot be, and a selection of nothing. Config reports a selection of
// breaches without SLOs.
func (c *SpansConfig) Validate() error {
	switch {
	case !(c.Share >= 0 && c.Share <= 1):
		return fmt.Errorf("share is %v; use a number from 0 to 1, such as 0.01 for 1%%", c.Share)
	case c.Share == 0 && !c.Breached:
		return errors.New("share is 0 and breached is false, which selects no span; set one of them, or remove the receiver from its traces pipelines")
	case c.Share > 0 && c.Share < sampling.MinSamplingProbability:
		return fmt.Errorf("share is %v; the smallest share is %v", c.Share, sampling.MinSamplingProbability)
	}
	return nil
}

// spanSelection selects the streams that become spans, by the rules of OpenTelemetry's consistent
// probability sampling: a span is in the share if the last 56 bits of its trace ID reach the
// threshold. Spans of the same trace that are sampled elsewhere with the same share are kept
// together with it.
//
// The threshold in a span's tracestate belongs to the probability with which that span is kept. A
// stream that breaches an SLO is kept for certain, in the share or not, so its threshold is 0. Sums
// over spans, each weighted by 1/probability, are then right for both kinds.
type spanSelection struct {
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

func newSpanSelection(cfg *SpansConfig, breaches func(*assembly.Finished) bool) (*spanSelection, error) {
	s := &spanSelection{threshold: sampling.NeverSampleThreshold}
	if cfg.Share > 0 {
		threshold, err := sampling.ProbabilityToThresholdWithPrecision(cfg.Share, thresholdPrecision)
		if err != nil {
			return nil, fmt.Errorf("spans::share: %w", err)
		}
		s.threshold, s.tracestate = threshold, "ot=th:"+threshold.TValue()
	}
	if cfg.Breached && cfg.Share < 1 {
		s.breaches = breaches
	}
	return s, nil
}

// inShare reports whether a span is in the share.
func (s *spanSelection) inShare(id spanID) bool {
	return s.threshold.ShouldSample(sampling.TraceIDToRandomness(id.trace))
}

// leavesOut reports whether streams without a breach may be left out.
func (s *spanSelection) leavesOut() bool { return s.threshold != sampling.AlwaysSampleThreshold }

// choice is why a stream becomes a span.
type choice uint8

const (
	notChosen choice = iota
	ofShare
	ofBreach
)

// choose decides whether a stream becomes a span. A nil selection selects every stream.
func (s *spanSelection) choose(id spanID, stream *assembly.Finished) choice {
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
func (s *spanSelection) mark(span ptrace.Span, chosen choice) {
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
