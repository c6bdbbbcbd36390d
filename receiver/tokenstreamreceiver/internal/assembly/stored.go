// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package assembly

import (
	"encoding/binary"
	"errors"
	"math"

	"github.com/tokenpulse/tokenpulse/internal/timeline"
)

// The stored form of streams and resources. The content of an entry of the journal begins
// with a tag:
//   - a resource is a KeyValueList
//   - a stream is its ID, its client, and its events
//
// A change of a stream is further events. Numbers are varints. Texts and bytes follow their
// length. Times are nanoseconds since 1970.

const (
	tagResource = 1
	tagStream   = 2
)

// Flags of stored events: what follows, in this order. Bits without a value of their own
// come last.
const (
	hasStart = 1 << iota // time, vantage, number of the resource's entry or 0
	hasTraceID
	hasSpanID
	hasParentSpanID
	hasScheduled
	hasAttributes
	hasDropped
	hasDuplicates
	hasAccepted
	hasPacked   // chunks in order: latest time - last packed time, gaps if numbered, timeline
	hasSequence // of packed chunks: first number; number of gaps; index and number of each
	hasList     // chunks out of order: latest time, number of chunks, and each
	isImplied
	isFrames
	flags
)

var errStored = errors.New("malformed events of a stream")

func appendResource(b, encoded []byte) []byte { return append(append(b, tagResource), encoded...) }

func appendStream(b []byte, s *Stream, resource *resource, client Client) []byte {
	b = append(b, tagStream)
	b = appendBytes(b, s.ID)
	b = appendBytes(b, client.Subject)
	addr, _ := client.Addr.AppendBinary(nil) // never fails
	b = appendBytes(b, addr)
	return appendEvents(b, s, resource)
}

func appendBytes[T string | []byte](b []byte, value T) []byte {
	return append(binary.AppendUvarint(b, uint64(len(value))), value...)
}

func appendSigned(b []byte, v int64) []byte { return binary.AppendVarint(b, v) }

// appendEvents appends what a stream, or a part, has.
func appendEvents(b []byte, s *Stream, resource *resource) []byte {
	has := s.stored()
	b = binary.AppendUvarint(b, has)
	if has&hasStart != 0 {
		b = binary.AppendUvarint(b, uint64(s.Start.UnixNano))
		b = append(b, byte(s.Start.Vantage))
		b = binary.AppendUvarint(b, resource.number())
	}
	if has&hasTraceID != 0 {
		b = append(b, s.Start.TraceID[:]...)
	}
	if has&hasSpanID != 0 {
		b = append(b, s.Start.SpanID[:]...)
	}
	if has&hasParentSpanID != 0 {
		b = append(b, s.Start.ParentSpanID[:]...)
	}
	if has&hasScheduled != 0 {
		b = binary.AppendUvarint(b, uint64(s.Scheduled))
	}
	if has&hasAttributes != 0 {
		b = appendBytes(b, s.Attributes)
	}
	if has&hasDropped != 0 {
		b = binary.AppendUvarint(b, uint64(s.dropped))
	}
	if has&hasDuplicates != 0 {
		b = binary.AppendUvarint(b, uint64(s.Chunks.duplicates))
	}
	if has&hasAccepted != 0 {
		b = binary.AppendUvarint(b, uint64(s.Accepted))
	}
	return s.Chunks.appendBinary(b, has)
}

// stored returns the flags of what the stream has.
func (s *Stream) stored() (has uint64) {
	for _, each := range [...]struct {
		flag uint64
		set  bool
	}{
		{hasStart, s.started()},
		{hasTraceID, s.started() && s.Start.TraceID != [16]byte{}},
		{hasSpanID, s.started() && s.Start.SpanID != [8]byte{}},
		{hasParentSpanID, s.started() && s.Start.ParentSpanID != [8]byte{}},
		{hasScheduled, s.Scheduled != 0},
		{hasAttributes, len(s.Attributes) > 0},
		{hasDropped, s.dropped > 0},
		{hasDuplicates, s.Chunks.duplicates > 0},
		{hasAccepted, s.Accepted > 0},
		{hasPacked, !s.Chunks.spilled && s.Chunks.packed.Len() > 0},
		{hasSequence, !s.Chunks.spilled && s.Chunks.packed.Len() > 0 && s.Chunks.numbered},
		{hasList, s.Chunks.spilled && len(s.Chunks.list) > 0},
		{isImplied, s.started() && s.Start.Implied},
		{isFrames, s.Chunks.Frames},
	} {
		if each.set {
			has |= each.flag
		}
	}
	return has
}

func (c *Chunks) appendBinary(b []byte, has uint64) []byte {
	if has&hasList != 0 {
		b = binary.AppendUvarint(b, uint64(c.latest))
		b = binary.AppendUvarint(b, uint64(len(c.list)))
		var before Chunk
		for _, k := range c.list {
			b = appendSigned(b, k.UnixNano-before.UnixNano)
			b = binary.AppendUvarint(b, uint64(k.Tokens)<<3|uint64(k.Channel)<<1|uint64(boolToInt(k.Numbered)))
			if k.Numbered {
				b = appendSigned(b, int64(k.Seq-before.Seq))
				before.Seq = k.Seq
			}
			before.UnixNano = k.UnixNano
		}
		return b
	}
	if has&hasPacked == 0 {
		return b
	}
	b = appendSigned(b, c.latest-c.packed.Last())
	if has&hasSequence != 0 {
		b = binary.AppendUvarint(b, c.firstSeq)
		b = binary.AppendUvarint(b, c.nextSeq)
		b = binary.AppendUvarint(b, uint64(len(c.gaps)))
		var before gap
		for _, g := range c.gaps {
			b = binary.AppendUvarint(b, uint64(g.index-before.index))
			b = binary.AppendUvarint(b, g.seq-before.seq)
			before = g
		}
	}
	return c.packed.AppendBinary(b, 0)
}

// reader reads stored values. After an error it returns zero values.
type reader struct {
	b      []byte
	failed bool
}

func (r *reader) fail() { r.b, r.failed = nil, true }

func (r *reader) number() uint64 { return readVarint(r, binary.Uvarint) }

func (r *reader) signed() int64 { return readVarint(r, binary.Varint) }

func readVarint[T int64 | uint64](r *reader, decode func([]byte) (T, int)) T {
	v, n := decode(r.b)
	if n <= 0 {
		r.fail()
		return 0
	}
	r.b = r.b[n:]
	return v
}

// atMost reads a number that must not exceed a limit.
func (r *reader) atMost(limit uint64) uint64 {
	v := r.number()
	if v > limit {
		r.fail()
		return 0
	}
	return v
}

// time reads a time, or a number that is added to one.
func (r *reader) time(unixNano int64) int64 {
	if r.failed || checkPlausible(unixNano) != nil {
		r.fail()
		return 0
	}
	return unixNano
}

// fixed reads bytes without a length.
func (r *reader) fixed(n int) []byte {
	if n > len(r.b) {
		r.fail()
		return nil
	}
	value := r.b[:n]
	r.b = r.b[n:]
	return value
}

func (r *reader) bytes() []byte { return r.fixed(int(r.atMost(uint64(len(r.b))))) }

// storedEvents are the events of a stream as they were stored.
type storedEvents struct {
	Stream
	resource uint64 // number of the resource's entry, valid with a start
}

// readStream reads a stream after its tag.
func readStream(b []byte) (events *storedEvents, client Client, err error) {
	r := &reader{b: b}
	id := string(r.bytes())
	client.Subject = string(r.bytes())
	if addr := r.bytes(); client.Addr.UnmarshalBinary(addr) != nil || client.Addr.Zone() != "" {
		r.fail()
	}
	if len(id) == 0 || len(id) > MaxIDBytes {
		r.fail()
	}
	events, err = readEvents(r)
	if err == nil {
		events.ID = id
	}
	return events, client, err
}

// readEvents reads events up to the end.
func readEvents(r *reader) (*storedEvents, error) {
	s := &storedEvents{}
	has := r.atMost(flags - 1)
	if has&hasStart != 0 {
		s.Start.UnixNano = r.time(int64(r.number()))
		s.Start.Vantage = timeline.Vantage(r.atMost(math.MaxUint8))
		s.resource = r.number()
		s.Start.Implied = has&isImplied != 0
		if s.Start.checkVantage() != nil {
			r.fail()
		}
	}
	if has&hasTraceID != 0 {
		copy(s.Start.TraceID[:], r.fixed(len(s.Start.TraceID)))
	}
	if has&hasSpanID != 0 {
		copy(s.Start.SpanID[:], r.fixed(len(s.Start.SpanID)))
	}
	if has&hasParentSpanID != 0 {
		copy(s.Start.ParentSpanID[:], r.fixed(len(s.Start.ParentSpanID)))
	}
	if has&hasScheduled != 0 {
		s.Scheduled = r.time(int64(r.number()))
	}
	if has&hasAttributes != 0 {
		s.Attributes = append(s.Attributes, r.bytes()...)
	}
	if has&hasDropped != 0 {
		s.dropped = int32(r.atMost(math.MaxInt32))
	}
	if has&hasDuplicates != 0 {
		s.Chunks.duplicates = int32(r.atMost(math.MaxInt32))
	}
	if has&hasAccepted != 0 {
		s.Accepted = int32(r.atMost(math.MaxInt32))
	}
	s.Chunks.Frames = has&isFrames != 0
	s.Chunks.read(r, has)
	if r.failed || len(r.b) > 0 {
		return nil, errStored
	}
	return s, nil
}

func (c *Chunks) read(r *reader, has uint64) {
	switch {
	case has&hasList != 0:
		c.readList(r)
	case has&hasPacked != 0:
		c.readPacked(r, has)
	}
}

func (c *Chunks) readList(r *reader) {
	c.spilled, c.latest = true, r.time(int64(r.number()))
	var before Chunk
	for range r.atMost(uint64(len(r.b))) { // a chunk takes more than a byte
		k := Chunk{UnixNano: r.time(before.UnixNano + r.signed())}
		meta := r.atMost(timeline.MaxTokensPerChunk<<3 | 7)
		k.Tokens, k.Channel, k.Numbered = uint32(meta>>3), timeline.Channel(meta>>1&3), meta&1 != 0
		if k.Numbered {
			k.Seq = before.Seq + uint64(r.signed())
			before.Seq = k.Seq
		}
		before.UnixNano = k.UnixNano
		if r.failed || k.Tokens == 0 || k.Channel.String() == "" || k.Seq > maxSeq {
			r.fail()
			return
		}
		c.list = append(c.list, k)
		c.unnumbered = c.unnumbered || !k.Numbered
	}
}

func (c *Chunks) readPacked(r *reader, has uint64) {
	late := r.signed()
	if has&hasSequence != 0 {
		c.readSequence(r)
	} else {
		c.nextSeq = 1 // as append leaves it
	}
	walk, err := timeline.Decode(r.b)
	if err != nil {
		r.fail()
		return
	}
	for walk.Next() {
		c.packed.Append(r.time(int64(walk.Offset())), walk.Tokens(), walk.Channel())
	}
	if walk.Err() != nil || c.packed.Len() == 0 {
		r.fail()
		return
	}
	r.b = nil // the timeline extends to the end
	c.latest = r.time(c.packed.Last() + late)
	c.checkSequence(r)
}

func (c *Chunks) readSequence(r *reader) {
	c.numbered = true
	c.firstSeq, c.nextSeq = r.atMost(maxSeq), r.atMost(maxSeq+1)
	var before gap
	for range r.atMost(maxGaps) {
		before = gap{before.index + int(r.atMost(math.MaxInt32)), before.seq + r.number()}
		c.gaps = append(c.gaps, before)
	}
}

// checkSequence checks that the gaps are in order, and match the number of chunks.
func (c *Chunks) checkSequence(r *reader) {
	if !c.numbered {
		return
	}
	index, seq := 0, c.firstSeq
	for _, g := range c.gaps {
		// seq is the first number of the run before the gap.
		if g.index <= index || g.index >= c.packed.Len() || g.seq > maxSeq || g.seq <= seq+uint64(g.index-index) {
			r.fail()
			return
		}
		index, seq = g.index, g.seq
	}
	if c.nextSeq != seq+uint64(c.packed.Len()-index) {
		r.fail()
	}
}
