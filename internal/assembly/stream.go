package assembly

import (
	"bytes"
	"slices"
	"unsafe"
)

// Vantage says whose clock a stream's times are from. Its values are those of
// the wire schema.
type Vantage uint8

// VantageUnspecified means the server's.
const (
	VantageUnspecified Vantage = iota
	VantageClient
	VantageGateway
	VantageServer
	VantageEngine
	vantages
)

// Start is how a stream begins.
type Start struct {
	UnixNano     int64
	TraceID      [16]byte // zero: not told
	SpanID       [8]byte
	ParentSpanID [8]byte
	Vantage      Vantage
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
}

// Stream is what is known of a stream until its end.
//
// Attributes and Resource are OTLP KeyValueList messages, encoded. Two of them
// one after the other are one again, with the attributes of both.
type Stream struct {
	ID         string
	Resource   []byte
	Attributes []byte
	Start      Start // UnixNano is zero in a part of a stream that lacks it
	Scheduled  int64 // Unix time in nanoseconds; zero: not told
	Chunks     Chunks

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
func (s *Stream) Duplicates() int { return s.duplicates + s.Chunks.duplicates }

func (s *Stream) started() bool { return s.Start.UnixNano != 0 }

// addChunk takes a chunk if there is room for it.
func (s *Stream) addChunk(k *Chunk, limit int) {
	if s.Chunks.Len() >= limit {
		s.dropped++
		return
	}
	s.Chunks.add(k)
}

// merge adds what a later part says. What was told before stays.
func (s *Stream) merge(part *Stream, maxChunks int) {
	switch {
	case !part.started():
	case s.started():
		s.duplicates++
	default:
		s.Start = part.Start
		s.Resource = slices.Clone(part.Resource)
	}
	s.addScheduled(part.Scheduled)
	if s.addsAttributes(part) {
		s.Attributes = append(s.Attributes, part.Attributes...)
	}
	for k := range part.Chunks.all {
		s.addChunk(&k, maxChunks)
	}
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

// addsAttributes reports whether the part's attributes are more than a repeat.
func (s *Stream) addsAttributes(part *Stream) bool {
	return !bytes.HasSuffix(s.Attributes, part.Attributes)
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
	*s = Stream{Resource: s.Resource[:0], Attributes: s.Attributes[:0], Chunks: s.Chunks}
}

// overhead is what an open stream costs besides what its fields refer to: its
// struct, and its place in a map with room to grow.
const overhead = int(unsafe.Sizeof(open{})) + 64

// size returns the bytes that an open stream holds.
func (s *Stream) size() int64 {
	return int64(overhead + s.encodedSize() + s.Chunks.size())
}

// encodedSize is what MaxStreamBytes bounds.
func (s *Stream) encodedSize() int { return len(s.ID) + cap(s.Resource) + cap(s.Attributes) }
