// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokentapreceiver

import (
	"context"
	"errors"
	"net/http"
	"strconv"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/tokenpulse/tokenpulse/internal/llmstream"
	"github.com/tokenpulse/tokenpulse/internal/names"
)

// Values of error.type for failures that neither side reports.
const (
	errorUpstreamUnreachable = "upstream_unreachable"
	errorUpstreamCut         = "upstream_cut"
	errorEmptyAnswer         = "empty_answer"
)

// ending is how an exchange ended.
type ending struct {
	outcome string
	// kind is the error.type, or empty.
	kind string
	// cut is set if the receiver ended the exchange or its observation.
	cut bool
}

// report sends a span if the exchange was one with an LLM.
func (x *exchange) report(end int64) {
	var o llmstream.Observation
	if x.decoder != nil {
		o = x.decoder.Observation()
	}
	telemetry, background := x.receiver.telemetry, context.Background()
	if !x.recognised(&o) {
		telemetry.ReceiverTokenTapExchangesUnrecognised.Add(background, 1)
		return
	}
	e := x.ending(&o)
	telemetry.ReceiverTokenTapExchangesFinished.Add(background, 1, metric.WithAttributeSet(attribute.NewSet(attribute.String("outcome", e.outcome))))
	if x.dropped > 0 {
		telemetry.ReceiverTokenTapChunksDropped.Add(background, x.dropped)
	}
	for _, part := range x.unparsed(&o) {
		telemetry.ReceiverTokenTapUnparsed.Add(background, 1, metric.WithAttributeSet(attribute.NewSet(attribute.String("part", part))))
	}
	x.receiver.delivery.send(x.span(&o, e, end))
}

// recognised reports whether the answer is an LLM's, or a request to an LLM has no such
// answer.
func (x *exchange) recognised(o *llmstream.Observation) bool {
	if o.Format != "" {
		return true
	}
	asked := x.facts.Format != "" && (x.request.Method == http.MethodPost || x.status == http.StatusSwitchingProtocols)
	return asked && (x.status >= http.StatusBadRequest || o.Events == 0 || x.unparsed(o) != nil)
}

// unparsed returns why parts of the answer could not be read.
func (x *exchange) unparsed(o *llmstream.Observation) (reasons []string) {
	for _, part := range []struct {
		reason string
		found  bool
	}{
		{"content_encoding", x.unknownContent},
		{"corrupt", o.Unparsed.Corrupt > 0},
		{"invalid", o.Unparsed.Invalid > 0},
		{"too_long", o.Unparsed.TooLong > 0},
	} {
		if part.found {
			reasons = append(reasons, part.reason)
		}
	}
	return reasons
}

func (x *exchange) ending(o *llmstream.Observation) ending {
	switch {
	case o.Error != "" && !(o.Error == llmstream.ErrorMessageOnly && x.status >= http.StatusBadRequest):
		return ending{outcome: names.OutcomeError, kind: o.Error}
	case x.status >= http.StatusBadRequest:
		return ending{outcome: names.OutcomeError, kind: strconv.Itoa(x.status)}
	case o.Ended:
		return ending{outcome: names.OutcomeSuccess}
	case x.expired, x.receiver.closing.Load():
		return ending{outcome: names.OutcomeIncomplete, cut: true}
	case x.clientGone():
		return ending{outcome: names.OutcomeCancelled}
	case x.status == 0:
		return ending{outcome: names.OutcomeError, kind: errorUpstreamUnreachable}
	case x.complete && x.unparsed(o) != nil: // its end may be among what could not be read
		return ending{outcome: names.OutcomeSuccess}
	case x.complete && o.Events == 0:
		return ending{outcome: names.OutcomeError, kind: errorEmptyAnswer}
	default:
		return ending{outcome: names.OutcomeIncomplete, kind: errorUpstreamCut}
	}
}

// clientGone reports whether the client closed first.
func (x *exchange) clientGone() bool {
	if x.clientError != nil {
		return true
	}
	return x.request.Context().Err() != nil && (x.upstreamError == nil || errors.Is(x.upstreamError, context.Canceled))
}
