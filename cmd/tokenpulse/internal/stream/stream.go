// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Package stream holds streamed answers as tokenpulse generates, records and sends
// them, and encodes them for the token_stream receiver.
package stream

import (
	"slices"
	"time"

	"github.com/tokenpulse/tokenpulse/internal/timeline"
	tokenpulsev1 "github.com/tokenpulse/tokenpulse/proto/tokenpulse/v1"
)

// Stream is one streamed answer. All times are Unix times in nanoseconds.
type Stream struct {
	ID       string
	Resource *Resource
	// TraceID has 16 bytes, SpanID and ParentSpanID have 8; each may be empty.
	TraceID, SpanID, ParentSpanID []byte
	Vantage                       timeline.Vantage
	Attributes                    Attributes
	Start                         int64
	// Scheduled is when the engine started to work on the request; 0 means unknown.
	Scheduled int64
	// Chunks are in the order in which they are sent.
	Chunks []Chunk
	// Arrivals is what Chunks stand for. It is not sent to receivers.
	Arrivals Arrivals
	// End is nil for a stream without an end event.
	End *End
}

// Resource is the service that streams come from. Streams of one resource share a
// pointer.
type Resource struct {
	Attributes Attributes
}

// Attributes hold strings, bools, int64s, float64s, and []any and
// map[string]any of these.
type Attributes = map[string]any

// Arrivals is what the sender of a stream knows of the arrival of its tokens.
type Arrivals uint8

const (
	// Counted means that each chunk holds the tokens that it says.
	Counted Arrivals = iota
	// Uncounted means that each chunk holds tokens, but that their number is unknown: it says one.
	Uncounted
	// Frames means that the chunks are messages of the stream, some of which may hold no token.
	Frames
	// Ends means that only the first and the last chunk arrived when they say. Those in between are spread evenly.
	Ends
	// Unknown means that the stream began and how it ended, but neither when it ended nor when tokens arrived.
	Unknown
)

// Chunk is one piece of an answer. Sequence is used only if Sequenced is true.
type Chunk struct {
	Time      int64
	Tokens    uint32
	Channel   timeline.Channel
	Sequence  uint64
	Sequenced bool
}

// End is the end of a stream.
type End struct {
	// Time 0 means the latest time in the stream.
	Time         int64
	Usage        *Usage
	FinishReason string
	// Error is empty unless the request failed.
	Error     string
	Cancelled bool
	// Interrupted means that the user interrupted the answer. It implies Cancelled.
	Interrupted bool
	Attributes  Attributes
}

// Usage holds the token counts that the service reports. Nil means not reported. Its
// JSON has the same keys as NDJSON events.
type Usage = tokenpulsev1.Usage

// ResourceAttributes returns the attributes of the stream's resource, or nil
// without a resource.
func (s *Stream) ResourceAttributes() Attributes {
	if s.Resource == nil {
		return nil
	}
	return s.Resource.Attributes
}

// LastTime returns the latest time in the stream.
func (s *Stream) LastTime() int64 {
	last := max(s.Start, s.Scheduled)
	for _, c := range s.Chunks {
		last = max(last, c.Time)
	}
	if s.End != nil {
		last = max(last, s.End.Time)
	}
	return last
}

// Shift adds a duration to all known times of the stream.
func (s *Stream) Shift(by time.Duration) {
	s.Start += int64(by)
	if s.Scheduled != 0 {
		s.Scheduled += int64(by)
	}
	for i := range s.Chunks {
		s.Chunks[i].Time += int64(by)
	}
	if s.End != nil && s.End.Time != 0 {
		s.End.Time += int64(by)
	}
}

// Cancelled returns a copy of the stream that its client cancels at a Unix time in
// nanoseconds: without later events.
func (s *Stream) Cancelled(at int64) *Stream {
	cut := *s
	at = max(at, s.Start)
	if cut.Scheduled > at {
		cut.Scheduled = 0
	}
	if late := slices.IndexFunc(s.Chunks, func(c Chunk) bool { return c.Time > at }); late >= 0 {
		cut.Chunks = s.Chunks[:late]
	}
	cut.End = &End{Time: at, Cancelled: true}
	return &cut
}
