// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"fmt"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/optional"
	"github.com/tokenpulse/tokenpulse/internal/outcome"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
)

// tokenStream reads the spans of the token_stream receiver, which carry a timeline.
var tokenStream = reader{
	name:    names.SourceTokenStream,
	vantage: timeline.VantageServer,
	signs:   []*sign{{key: names.Timeline}},
	claims:  func(c candidate) bool { return !isTokenTap(c) },
	read:    func(o *Observation, span ptrace.Span, _ *timeline.Timeline) error { return o.readTokenStream(span) },
	attribute: func(o *Observation, key string, v pcommon.Value) {
		switch key {
		case numbers.QueueDuration.Attribute():
			o.Request.Queue = durationIn(time.Second, v, &o.Unusable)
		case names.ChunksDropped:
			o.Request.LastChunksDropped = count(v, &o.Unusable)
		case names.StartUnseen:
			o.Request.StartUnknown = v.Bool()
		case names.Frames:
			o.Request.Frames = v.Bool()
		case names.Uncounted:
			o.Request.TokensAssumed = v.Bool()
		case numbers.AudioDuration.Attribute():
			o.Request.AudioDuration = durationIn(time.Second, v, &o.Unusable)
		}
	},
}

// TokenStream is a finished stream of the token_stream or the token_tap receiver. Its fields say what
// the attributes of its span would say.
type TokenStream struct {
	Vantage timeline.Vantage
	// Start and End are Unix times in nanoseconds.
	Start, End int64
	// Scheduled is the Unix time in nanoseconds at which the engine scheduled the request, or 0.
	Scheduled int64
	// StartUnseen means that Start is the time of the first chunk.
	StartUnseen bool
	Outcome     string // one of names.Outcome*
	Reason      outcome.Reason
	// ChunksDropped counts the chunks missing at the end of the timeline.
	ChunksDropped int64
	// Interrupted means that the user interrupted the answer.
	Interrupted bool
	// Cut means that the receiver ended the stream before it was over.
	Cut      bool
	Timeline *timeline.Timeline
}

// Queue returns the time from start to scheduling, which is unknown if either is.
func (s *TokenStream) Queue() optional.Value[time.Duration] {
	if s.StartUnseen || s.Scheduled == 0 {
		return optional.Value[time.Duration]{}
	}
	return optional.Of(time.Duration(s.Scheduled - s.Start))
}

// Write writes the attributes of a span with a timeline. Observe reads the stream from them, and from
// the span's own times of start and end. The encoded timeline is copied.
func (s *TokenStream) Write(attributes pcommon.Map, encodedTimeline []byte) {
	attributes.PutStr(names.Vantage, s.Vantage.String())
	attributes.PutStr(names.Outcome, s.Outcome)
	attributes.PutEmptyBytes(names.Timeline).FromRaw(encodedTimeline)
	if queue := s.Queue(); queue.Known {
		attributes.PutDouble(numbers.QueueDuration.Attribute(), queue.Value.Seconds())
	}
	s.WriteFlaws(attributes)
}

// WriteFlaws writes what is incomplete about the timings, with or without a timeline.
func (s *TokenStream) WriteFlaws(attributes pcommon.Map) {
	if s.StartUnseen {
		attributes.PutBool(names.StartUnseen, true)
	}
	if s.Cut {
		attributes.PutStr(names.Cut, names.CutCollector)
	}
	if s.Interrupted {
		attributes.PutBool(names.Interrupted, true)
	}
	if s.ChunksDropped > 0 {
		attributes.PutInt(names.ChunksDropped, s.ChunksDropped)
	}
}

// ObserveTokenStream returns the same as Observe does for the stream's span. attributes are those of
// the span that do not begin with names.Prefix.
func (observer *Observer) ObserveTokenStream(s *TokenStream, attributes pcommon.Map) *Observation {
	o := &observer.observation
	*o = Observation{
		Reader: tokenStreamReader, Vantage: s.Vantage, start: pcommon.Timestamp(s.Start),
		Timeline: s.Timeline.WalkFrom(s.Start),
	}
	o.Request.Duration = time.Duration(s.End - s.Start)
	o.Request.Failed = s.Outcome == names.OutcomeError
	for key, v := range attributes.All() {
		if a := aliases.Get(key); a != nil {
			o.readStandard(a, v)
		}
	}
	o.adoptStandard()
	o.Request.Outcome = s.Outcome
	if queue := s.Queue(); queue.Known {
		o.Request.Queue = durationOf(time.Second, queue.Value.Seconds(), &o.Unusable) // rounded as on the span
	}
	o.Request.LastChunksDropped, o.Request.StartUnknown, o.Request.Interrupted = s.ChunksDropped, s.StartUnseen, s.Interrupted
	return o
}

// readTokenStream reads the attributes that only spans with a timeline have: the outcome, which
// replaces one derived from finish reasons, and the timeline.
func (o *Observation) readTokenStream(span ptrace.Span) (err error) {
	reported, ok := span.Attributes().Get(names.Outcome)
	o.Request.Outcome = ""
	if ok {
		o.Request.Outcome = reported.Str()
	}
	stored, _ := span.Attributes().Get(names.Timeline)
	if stored.Type() != pcommon.ValueTypeBytes {
		return fmt.Errorf("%s has type %s; it must be bytes", names.Timeline, stored.Type())
	}
	o.Timeline, err = timeline.Decode(stored.Bytes().AsRaw())
	return err
}
