package assembly

import (
	"bytes"
	"slices"
	"unsafe"

	"github.com/tokenpulse/tokenpulse/internal/vantage"
)

// Start is how a stream begins.
type Start struct {
	UnixNano     int64
	TraceID      [16]byte // zero: not told
	SpanID       [8]byte
	ParentSpanID [8]byte
	Vantage      vantage.Vantage
	// Implied is set when nobody told of the start: UnixNano is the time of the
	// first chunk. A start that is told later takes its place.
	Implied bool
}

// checkSame checks whether another start can be a repeat of one. Ids that either
// does not tell do not matter, and nothing does of an implied one.
func (s *Start) checkSame(other *Start, id string) error {
	different := ""
	switch {
	case s.UnixNano == 0 || s.Implied || *s == *other:
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
	return Errorf(Invalid, "stream %s is already open with another %s: stream ids must be unique among all senders", quoteID(id), different)
}

func (s *Start) checkVantage() error {
	if !s.Vantage.Valid() {
		return Errorf(Invalid, "vantage must be client, gateway, server or engine")
	}
	return nil
}

func differ[ID comparable](a, b ID) bool {
	var untold ID
	return a != b && a != untold && b != untold
}

// Count is a number that a service may report or not.
type Count struct {
	N     int64
	Known bool
}

// Usage is what a service reports at a stream's end, in tokens.
type Usage struct {
	Input, Output, Reasoning, CachedInput Count
}

// End is how a stream ends.
type End struct {
	UnixNano     int64 // zero: not told
	Usage        Usage
	FinishReason string
	Error        string
	Cancelled    bool
	Attributes   []byte // as those of a Stream, which they come after
}

// Stream is what is known of a stream until its end.
//
// Attributes and Resource are OTLP KeyValueList messages, encoded. Two of them
// one after the other are one again, with the attributes of both. Resource may be
// shared with other streams: it does not change, and each counts it as its own.
type Stream struct {
	ID         string
	Resource   []byte
	Attributes []byte
	Start      Start // UnixNano is zero in a part of a stream that lacks it
	Scheduled  int64 // Unix time in nanoseconds; zero: not told
	Chunks     Chunks
	// Frames is set when chunks are frames, of which some may hold no token.
	Frames bool

	dropped    int // chunks past MaxChunksPerStream
	duplicates int // events but chunks that were told before
}

// Finished is a stream that is over.
type Finished struct {
	*Stream
	// End is nil when the stream's end was never told.
	End *End
}

// EndUnixNano returns when the stream was over: as told, or the last time known
// of it.
func (f Finished) EndUnixNano() int64 {
	if f.End != nil && f.End.UnixNano != 0 {
		return f.End.UnixNano
	}
	return max(f.Start.UnixNano, f.Scheduled, f.Chunks.latest)
}

// Dropped returns how many chunks the stream lacks because of
// MaxChunksPerStream.
func (s *Stream) Dropped() int { return s.dropped }

// Duplicates returns how many events were dropped as repeats of others. All
// those of chunks are known only after Chunks.Timeline.
func (s *Stream) Duplicates() int { return s.duplicates + int(s.Chunks.duplicates) }

func (s *Stream) started() bool { return s.Start.UnixNano != 0 }

// addChunk takes a chunk if there is room for it.
func (s *Stream) addChunk(k *Chunk, limit int) {
	if s.Chunks.Len() >= limit && !s.Chunks.repeats(k) {
		s.dropped++
		return
	}
	s.Chunks.add(k)
}

// tooMany returns how many of a part's chunks there is no room for.
func (s *Stream) tooMany(part *Stream, limit int) int {
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

// merge adds what a later part says. What was told before stays.
func (s *Stream) merge(part *Stream, maxChunks int) {
	switch {
	case !part.started():
	case s.started() && !s.Start.Implied:
		s.duplicates++
	default:
		s.Start = part.Start
		s.Resource = part.Resource
	}
	s.addScheduled(part.Scheduled)
	if s.addsAttributes(part.Attributes) {
		s.Attributes = append(s.Attributes, part.Attributes...)
	}
	if s.Chunks.Len()+part.Chunks.Len() > maxChunks || !s.Chunks.appendAll(&part.Chunks) {
		for k := range part.Chunks.all {
			s.addChunk(&k, maxChunks)
		}
	}
	s.Chunks.keepLatest(&part.Chunks)
	s.Frames = s.Frames || part.Frames
	s.dropped += part.dropped
	s.duplicates += part.duplicates
	s.Chunks.duplicates += part.Chunks.duplicates
}

func (s *Stream) addScheduled(unixNano int64) {
	switch {
	case unixNano == 0:
	case s.Scheduled != 0:
		s.duplicates++
	default:
		s.Scheduled = unixNano
	}
}

// addsAttributes reports whether attributes are more than a repeat.
func (s *Stream) addsAttributes(attributes []byte) bool {
	return !bytes.HasSuffix(s.Attributes, attributes)
}

// fork returns a copy to merge a part into, while the stream stays as it is. It
// borrows the spare room of the stream's slices: only one of both may grow.
func (s *Stream) fork() *Stream {
	c := *s
	c.Chunks.list = slices.Clone(s.Chunks.list) // is sorted in place
	return &c
}

// reset empties the stream and keeps its memory.
func (s *Stream) reset() {
	s.Chunks.reset()
	*s = Stream{Attributes: s.Attributes[:0], Chunks: s.Chunks}
}

// overhead is what an open stream costs besides what its fields refer to: its
// struct, and its place in a map with room to grow.
const overhead = int(unsafe.Sizeof(open{})) + 64

// size returns the bytes that an open stream holds.
func (s *Stream) size() int64 {
	return int64(overhead + len(s.ID) + len(s.Resource) + cap(s.Attributes) + s.Chunks.size())
}

// need returns about the bytes that a copy will hold, but for the overhead.
func (s *Stream) need() int64 { return int64(s.encodedSize() + s.Chunks.need()) }

// encodedSize is what MaxStreamBytes bounds.
func (s *Stream) encodedSize() int { return len(s.ID) + len(s.Resource) + len(s.Attributes) }
