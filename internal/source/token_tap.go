// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/internal/attributes"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/optional"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
)

// tokenTap reads the spans of the token_tap receiver. They carry a timeline like those of
// token_stream, and phases that the service measured itself.
var tokenTap = reader{
	name:    names.SourceTokenTap,
	vantage: timeline.VantageGateway,
	signs:   []*sign{{names.Source, oneOf(names.SourceTokenTap)}},
	claims:  isTokenTap,
	read:    func(o *Observation, span ptrace.Span, _ *timeline.Timeline) error { return o.readTokenTap(span) },
	attribute: func(o *Observation, key string, v pcommon.Value) {
		switch key {
		case numbers.PrefillDuration.Attribute():
			o.Request.Prefill = durationIn(time.Second, v, &o.Unusable)
		case numbers.DecodeDuration.Attribute():
			o.Request.Decode = durationIn(time.Second, v, &o.Unusable)
		case names.Unparsed:
			o.Request.TokensNotObserved = true // they may be in what could not be read
		case numbers.SpeculativeAcceptedTokens.Attribute():
			o.Request.AcceptedTokens = integer(v, &o.Unusable)
		case numbers.SpeculativeDraftTokens.Attribute():
			o.Request.DraftTokens = integer(v, &o.Unusable)
		case numbers.NetworkDuration.Attribute():
			o.Request.Network = durationIn(time.Second, v, &o.Unusable)
		default:
			tokenStream.attribute(o, key, v)
		}
	},
}

func isTokenTap(c candidate) bool {
	return c.text(names.Source) == names.SourceTokenTap && c.has(names.Timeline)
}

// readTokenTap reads what the order of attributes must not decide. If token_latency kept the
// timeline of a span that it derived, estimated phases on it are those of token_latency, not of
// the service: they are derived anew.
func (o *Observation) readTokenTap(span ptrace.Span) error {
	err := o.readTokenStream(span)
	untimed := attributes.Text(span.Attributes(), names.Untimed)
	unparsed := untimed == names.UntimedUnparsed
	o.Request.Tokenless = untimed == names.UntimedTokenless
	o.Request.NotStreamed = !o.Request.Tokenless && (untimed != "" && !unparsed || o.streaming.Known && !o.streaming.Value)
	o.Request.EventsDropped = o.Request.EventsDropped || unparsed
	o.Request.StreamAsked = o.Request.StreamAsked && untimed != names.UntimedReplayed
	o.Request.TokensNotObserved = o.Request.TokensNotObserved || o.Request.NotStreamed || unparsed
	if estimated, ok := span.Attributes().Get(names.Estimated); ok && estimated.Type() == pcommon.ValueTypeSlice {
		for _, name := range estimated.Slice().All() {
			switch names.Prefix + name.Str() {
			case numbers.PrefillDuration.Attribute():
				o.Request.Prefill = optional.Value[time.Duration]{}
			case numbers.DecodeDuration.Attribute():
				o.Request.Decode = optional.Value[time.Duration]{}
			}
		}
	}
	return err
}
