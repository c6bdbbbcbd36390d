// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package assembly

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"slices"

	"github.com/tokenpulse/tokenpulse/internal/httpguard"
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
	flags
)

var errStored = errors.New("malformed events of a stream")

func appendResource(b, encoded []byte) []byte { return append(append(b, tagResource), encoded...) }

func appendStream(b []byte, s *Stream, resource *resource, client httpguard.Client) []byte {
	c, number := coder{b: append(b, tagStream)}, resource.number()
	c.stream(s, &client, &number)
	return c.b
}

// appendEvents appends what a stream, or a part, has.
func appendEvents(b []byte, s *Stream, resource *resource) []byte {
	c, number := coder{b: b}, resource.number()
	c.events(s, &number)
	return c.b
}

// coder writes stored values, or reads them into the same variables, so that the form of each
// stands once. It changes variables only while it reads. After an error it reads zero values.
type coder struct {
	b       []byte // the written bytes, or the unread rest
	reading bool
	failed  bool
}

func (c *coder) fail() { c.b, c.failed = nil, true }

// end returns an error unless everything was read.
func (c *coder) end() error {
	if c.failed || len(c.b) > 0 {
		return errStored
	}
	return nil
}

// uvarint codes a number from 0 to a limit.
func uvarint[T ~uint8 | ~int32 | ~int | ~int64 | ~uint64](c *coder, v *T, limit uint64) {
	if !c.reading {
		c.b = binary.AppendUvarint(c.b, uint64(*v))
		return
	}
	read, n := binary.Uvarint(c.b)
	if n <= 0 || read > limit {
		c.fail()
		*v = 0
		return
	}
	*v, c.b = T(read), c.b[n:]
}

// signed codes a difference, and returns it.
func (c *coder) signed(v int64) int64 {
	zigzag := uint64(v)<<1 ^ uint64(v>>63)
	uvarint(c, &zigzag, math.MaxUint64)
	return int64(zigzag>>1) ^ -int64(zigzag&1)
}

func (c *coder) time(v *int64) {
	uvarint(c, v, math.MaxInt64)
	c.check(checkPlausible(*v) == nil)
}

// check fails unless what was read is valid.
func (c *coder) check(valid bool) {
	if c.reading && !valid {
		c.fail()
	}
}

// items codes a list.
func items[T any](c *coder, list *[]T, code func(*T)) {
	length := len(*list)
	uvarint(c, &length, math.MaxInt32)
	for i := 0; i < length && !c.failed; i++ {
		var item T
		if !c.reading {
			item = (*list)[i]
		}
		if code(&item); c.reading {
			*list = append(*list, item)
		}
	}
}

// fixed codes bytes without a length.
func (c *coder) fixed(v []byte) {
	if !c.reading {
		c.b = append(c.b, v...)
		return
	}
	if len(v) > len(c.b) {
		c.fail()
		return
	}
	c.b = c.b[copy(v, c.b):]
}

// text codes a text or bytes.
func text[T string | []byte](c *coder, v *T) {
	length := len(*v)
	uvarint(c, &length, math.MaxInt32)
	if !c.reading {
		c.b = append(c.b, *v...)
		return
	}
	if length > len(c.b) {
		c.fail()
		return
	}
	*v = T(bytes.Clone(c.b[:length]))
	c.b = c.b[length:]
}

// stream codes a stream after its tag. resource is the number of the resource's entry.
func (c *coder) stream(s *Stream, client *httpguard.Client, resource *uint64) {
	addr, _ := client.Addr.AppendBinary(nil) // never fails
	text(c, &s.ID)
	text(c, &client.Subject)
	text(c, &addr)
	if c.reading {
		c.check(client.Addr.UnmarshalBinary(addr) == nil && client.Addr.Zone() == "" && s.ID != "" && len(s.ID) <= MaxIDBytes)
	}
	c.events(s, resource)
}

// events codes what a stream, or a part, has.
func (c *coder) events(s *Stream, resource *uint64) {
	has := s.stored()
	uvarint(c, &has, flags-1)
	if has&hasStart != 0 {
		c.time(&s.Start.UnixNano)
		uvarint(c, &s.Start.Vantage, math.MaxUint8)
		uvarint(c, resource, math.MaxUint64)
	}
	for i, id := range [...][]byte{s.Start.TraceID[:], s.Start.SpanID[:], s.Start.ParentSpanID[:]} {
		if has&(hasTraceID<<i) != 0 {
			c.fixed(id)
		}
	}
	if has&hasScheduled != 0 {
		c.time(&s.Scheduled)
	}
	if has&hasAttributes != 0 {
		text(c, &s.Attributes)
	}
	for i, count := range [...]*int32{&s.dropped, &s.Chunks.duplicates, &s.Accepted} {
		if has&(hasDropped<<i) != 0 {
			uvarint(c, count, math.MaxInt32)
		}
	}
	if c.reading {
		c.check(s.Start.checkVantage() == nil)
	}
	switch {
	case has&hasList != 0:
		c.list(&s.Chunks)
	case has&hasPacked != 0:
		c.packed(&s.Chunks, has&hasSequence != 0)
	}
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
	} {
		if each.set {
			has |= each.flag
		}
	}
	return has
}

// list codes chunks out of order.
func (c *coder) list(chunks *Chunks) {
	c.time(&chunks.latest)
	latest := int64(0)
	var before Chunk // with the last number
	items(c, &chunks.list, func(k *Chunk) {
		k.UnixNano = before.UnixNano + c.signed(k.UnixNano-before.UnixNano)
		meta := uint64(k.Tokens)<<3 | uint64(k.Channel)<<1 | uint64(boolToInt(k.Numbered))
		uvarint(c, &meta, timeline.MaxTokensPerChunk<<3|7)
		k.Tokens, k.Channel, k.Numbered = uint32(meta>>3), timeline.Channel(meta>>1&3), meta&1 != 0
		if k.Numbered {
			k.Seq = before.Seq + uint64(c.signed(int64(k.Seq-before.Seq)))
			before.Seq = k.Seq
		}
		before.UnixNano = k.UnixNano
		latest = max(latest, k.UnixNano)
		if c.reading {
			chunks.listed += int64(k.Tokens)
		}
		c.check(checkPlausible(k.UnixNano) == nil && (k.Tokens == 0) == (k.Channel == timeline.Audio) && k.Seq <= maxSeq)
	})
	c.check(isLatest(chunks.latest, latest))
	if c.reading {
		chunks.spilled = true
		chunks.unnumbered = slices.ContainsFunc(chunks.list, func(k Chunk) bool { return !k.Numbered })
	}
}

// packed codes chunks in order. Their timeline extends to the end.
func (c *coder) packed(chunks *Chunks, numbered bool) {
	late := c.signed(chunks.latest - chunks.packed.Last())
	if numbered {
		c.sequence(chunks)
	}
	if !c.reading {
		c.b = chunks.packed.AppendBinary(c.b, 0)
		return
	}
	if chunks.numbered = numbered; !numbered {
		chunks.nextSeq = 1 // as append leaves it
	}
	walk, err := timeline.Decode(c.b)
	latest := int64(0)
	for err == nil && walk.Next() {
		at := int64(walk.Offset())
		latest = max(latest, at)
		c.check(checkPlausible(at) == nil)
		chunks.packed.Append(at, walk.Tokens(), walk.Channel())
	}
	c.b = nil
	chunks.latest = chunks.packed.Last() + late
	c.check(err == nil && walk.Err() == nil && chunks.packed.Len() > 0 && isLatest(chunks.latest, latest) && chunks.hasValidSequence())
}

// isLatest reports whether exact may be the time of the latest chunk. That of the chunk itself may be truncated to a tick.
func isLatest(exact, ofChunks int64) bool {
	return checkPlausible(exact) == nil && exact >= ofChunks && exact/int64(timeline.Tick) == ofChunks/int64(timeline.Tick)
}

func (c *coder) sequence(chunks *Chunks) {
	uvarint(c, &chunks.firstSeq, maxSeq)
	uvarint(c, &chunks.nextSeq, maxSeq+1)
	var before gap
	items(c, &chunks.gaps, func(g *gap) {
		index, seq := g.index-before.index, g.seq-before.seq
		uvarint(c, &index, math.MaxInt32)
		uvarint(c, &seq, math.MaxUint64)
		*g = gap{before.index + index, before.seq + seq}
		before = *g
	})
	c.check(len(chunks.gaps) <= maxGaps)
}

// hasValidSequence reports whether the gaps are in order, and match the number of chunks.
func (c *Chunks) hasValidSequence() bool {
	if !c.numbered {
		return true
	}
	index, seq := 0, c.firstSeq
	for _, g := range c.gaps {
		// seq is the first number of the run before the gap.
		if g.index <= index || g.index >= c.packed.Len() || g.seq > maxSeq || g.seq <= seq+uint64(g.index-index) {
			return false
		}
		index, seq = g.index, g.seq
	}
	return c.nextSeq == seq+uint64(c.packed.Len()-index)
}
