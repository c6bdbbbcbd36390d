// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package assembly

import (
	"bytes"
	"math"
	"slices"

	"github.com/tokenpulse/tokenpulse/internal/httpguard"
	"github.com/tokenpulse/tokenpulse/internal/liveness"
	"github.com/tokenpulse/tokenpulse/internal/optional"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
)

// Start is the start event of a stream.
type Start struct {
	UnixNano     int64
	TraceID      [16]byte // zero if missing, like the other IDs
	SpanID       [8]byte
	ParentSpanID [8]byte
	Vantage      timeline.Vantage
}

// checkRepeat returns an error if other cannot be a repeat of s. An ID missing on
// either side is ignored. A missing start never conflicts.
func (s *Start) checkRepeat(other *Start, id string) error {
	different := ""
	switch {
	case s.UnixNano == 0 || *s == *other:
		return nil
	case s.UnixNano != other.UnixNano:
		different = "start time"
	case differ(s.TraceID, other.TraceID):
		different = "trace_id"
	case differ(s.SpanID, other.SpanID):
		different = "span_id"
	case differ(s.ParentSpanID, other.ParentSpanID):
		different = "parent_span_id"
	default:
		return nil
	}
	return Errorf(Invalid, "stream %s is already open with another %s; use a stream_id that is unique among all senders", quoteID(id), different)
}

func (s *Start) checkVantage() error {
	if !s.Vantage.Valid() {
		return Errorf(Invalid, "`vantage` is unknown; send client, gateway, server or engine")
	}
	return nil
}

func differ[ID comparable](a, b ID) bool {
	var missing ID
	return a != b && a != missing && b != missing
}

// Usage holds the token counts that a service reports at a stream's end.
type Usage struct {
	Input, Output, Reasoning, CachedInput, CacheWrite optional.Value[int64]
}

// End is the end event of a stream.
type End struct {
	UnixNano     int64 // 0 if missing
	Usage        Usage
	FinishReason string
	Error        string
	Cancelled    bool
	Interrupted  bool   // by the user; implies Cancelled
	Attributes   []byte // encoded like those of the Stream, to be appended to them
}

// Stream holds all events of a stream except its end.
//
// Attributes and Resource are encoded OTLP KeyValueLists; concatenating two of them
// merges them. Resource may be shared between streams and does not change.
type Stream struct {
	ID         string
	Resource   []byte
	Attributes []byte
	Start      Start // UnixNano is 0 if missing
	Scheduled  int64 // Unix time in nanoseconds; 0 if missing
	Chunks     Chunks
	// Accepted counts the sender's units that were accepted, repeats included.
	Accepted int32

	dropped int32 // chunks beyond MaxChunksPerStream; see drop
}

// Finished is a stream that has ended or expired.
type Finished struct {
	*Stream
	// End is nil if the stream expired, or was cut, without an end event.
	End *End
	// Cut means that the stream had not expired when Store.Cut ended it.
	Cut bool
	// Client is the sender that opened the stream, or sent it whole.
	Client *httpguard.Client
	// Cold means that the stream is a cold start of its replica. The ingester sets it.
	Cold bool

	// Engine generated the tokens, if the store watches it. Commit sets it.
	Engine *liveness.Engine

	open *open // nil if the stream was sent whole
}

// EndAttributes returns the attributes of the end event.
func (f Finished) EndAttributes() []byte {
	if f.End == nil {
		return nil
	}
	return f.End.Attributes
}

// EndUnixNano returns the end event's time or, if missing, the latest time of any
// other event.
func (f Finished) EndUnixNano() int64 {
	if f.End != nil && f.End.UnixNano != 0 {
		return f.End.UnixNano
	}
	return max(f.Start.UnixNano, f.Scheduled, f.Chunks.latest)
}

// Dropped returns the number of chunks beyond MaxChunksPerStream.
func (s *Stream) Dropped() int { return int(s.dropped) }

// arrived returns the number of chunks, dropped ones included.
func (s *Stream) arrived() int { return s.Chunks.Len() + s.Dropped() }

// Duplicates returns the number of repeated events. Repeated chunks are fully counted
// only after a call of Chunks.Timeline.
func (s *Stream) Duplicates() int { return int(s.Chunks.duplicates) }

func (s *Stream) started() bool { return s.Start.UnixNano != 0 }

// addChunk adds a chunk, or drops it at the limit.
func (s *Stream) addChunk(k *Chunk, limit int) {
	if s.Chunks.Len() >= limit && !s.Chunks.repeats(k) {
		s.drop(1)
		return
	}
	s.Chunks.add(k)
}

// drop counts dropped chunks, up to the maximum of the counter.
func (s *Stream) drop(chunks int32) { s.dropped += min(chunks, math.MaxInt32-s.dropped) }

// overflow returns how many chunks of a part exceed the limit.
func (s *Stream) overflow(part *Stream, limit int) int {
	room := limit - s.Chunks.Len()
	if part.Chunks.Len() <= room {
		return 0
	}
	added := 0
	for k := range part.Chunks.all {
		if !s.Chunks.repeats(&k) {
			added++
		}
	}
	return max(0, added-room)
}

// merge adds the events of a part. Values that the stream already has are kept.
func (s *Stream) merge(part *Stream, maxChunks int) {
	s.mergeHead(part)
	s.mergeEvents(part, maxChunks)
}

// mergeHead is the part of merge that changes Start, Resource and Attributes.
func (s *Stream) mergeHead(part *Stream) {
	switch {
	case !part.started():
	case s.started():
		s.Chunks.duplicates++
	default:
		s.Start = part.Start
		s.Resource = part.Resource
	}
	if s.addsAttributes(part.Attributes) {
		s.Attributes = append(s.Attributes, part.Attributes...)
	}
}

// mergeEvents is the rest of merge.
func (s *Stream) mergeEvents(part *Stream, maxChunks int) {
	s.addScheduled(part.Scheduled)
	if s.Chunks.Len()+part.Chunks.Len() > maxChunks || !s.Chunks.appendAll(&part.Chunks) {
		for k := range part.Chunks.all {
			s.addChunk(&k, maxChunks)
		}
	}
	s.Chunks.keepLatest(&part.Chunks)
	s.drop(part.dropped)
	s.Chunks.duplicates += part.Chunks.duplicates
}

func (s *Stream) addScheduled(unixNano int64) {
	switch {
	case unixNano == 0:
	case s.Scheduled != 0:
		s.Chunks.duplicates++
	default:
		s.Scheduled = unixNano
	}
}

// addsAttributes reports whether attributes are not a repeat of the last ones.
func (s *Stream) addsAttributes(attributes []byte) bool {
	return !bytes.HasSuffix(s.Attributes, attributes)
}

// fork returns a copy to merge a part into, without changing the stream. The copy uses
// the spare capacity of the stream's slices, so only one of both may grow.
func (s *Stream) fork() *Stream {
	c := *s
	c.Chunks.list = slices.Clone(s.Chunks.list) // Timeline sorts it in place
	return &c
}

// estimate returns roughly the bytes that a copy would hold, without openOverhead and the
// resource.
func (s *Stream) estimate() int64 { return int64(len(s.ID) + len(s.Attributes) + s.Chunks.estimate()) }

// encodedSize returns the size that MaxStreamBytes bounds.
func (s *Stream) encodedSize() int { return len(s.ID) + len(s.Resource) + len(s.Attributes) }
