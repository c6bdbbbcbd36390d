// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package assembly

import (
	"cmp"
	"math"
	"slices"
	"unsafe"

	"github.com/tokenpulse/tokenpulse/internal/timeline"
)

// Chunk is one arrival of tokens.
type Chunk struct {
	UnixNano int64
	// Seq is the sequence number within the stream, valid if Numbered.
	Seq      uint64
	Tokens   uint32
	Channel  timeline.Channel
	Numbered bool
}

// maxSeq keeps sequence numbers from overflowing when incremented.
const maxSeq = math.MaxInt64

// Chunks holds the chunks of one stream. Chunks that arrive in order are packed into
// a timeline; of their sequence numbers only the first, the next and the gaps are
// kept. The first chunk out of order spills all chunks into a list, which is sorted
// when the stream has ended.
type Chunks struct {
	latest   int64 // latest time of any chunk, 0 without chunks
	packed   timeline.Timeline
	firstSeq uint64  // first sequence number in packed, if numbered
	nextSeq  uint64  // last sequence number in packed plus one, if numbered
	gaps     []gap   // gaps in the sequence numbers of packed
	list     []Chunk // all chunks once spilled
	listed   int64   // tokens in list, until Timeline removes repeats

	numbered   bool // the chunks in packed have sequence numbers
	unnumbered bool // some chunk in list has no sequence number
	spilled    bool
	duplicates int32 // repeated events of the stream, chunks or others
}

// gap means that sequence numbers are missing before the chunk at index, whose number
// is seq. The missing chunks may still arrive. Chunks without tokens, such as
// keep-alives, leave gaps too.
type gap struct {
	index int
	seq   uint64
}

// maxGaps bounds the gaps of packed chunks.
const maxGaps = 1024

// Len returns the number of chunks. Repeats in the list count until Timeline removes
// them.
func (c *Chunks) Len() int {
	if c.spilled {
		return len(c.list)
	}
	return c.packed.Len()
}

// Tokens returns the number of tokens in the chunks that Len counts.
func (c *Chunks) Tokens() int64 {
	if c.spilled {
		return c.listed
	}
	return c.packed.Tokens()
}

// HasAudio reports whether a chunk is of audio.
func (c *Chunks) HasAudio() bool {
	if c.spilled {
		return slices.ContainsFunc(c.list, func(k Chunk) bool { return k.Channel == timeline.Audio })
	}
	return c.packed.HasAudio()
}

// append packs a chunk. It returns false and adds nothing if the chunk is out of order.
func (c *Chunks) append(k *Chunk) bool {
	if c.spilled || !c.continues(k) {
		return false
	}
	switch {
	case c.packed.Len() == 0:
		c.firstSeq = k.Seq
	case k.Numbered && k.Seq != c.nextSeq:
		c.gaps = append(c.gaps, gap{c.packed.Len(), k.Seq})
	}
	c.packed.Append(k.UnixNano, k.Tokens, k.Channel)
	c.latest, c.numbered, c.nextSeq = max(c.latest, k.UnixNano), k.Numbered, k.Seq+1
	return true
}

// appendGaps packs one-token chunks without sequence numbers, with the parameters of
// timeline.AppendGaps. It returns false and adds nothing if unixNano is out of order.
func (c *Chunks) appendGaps(unixNano int64, gaps []byte, chunks int, ticks int64, channel timeline.Channel) bool {
	if c.spilled || !c.continues(&Chunk{UnixNano: unixNano}) {
		return false
	}
	c.packed.AppendGaps(unixNano, gaps, chunks, ticks, channel)
	c.advance(unixNano + ticks*int64(timeline.Tick))
	return true
}

// appendAll packs the chunks of others. It returns false and adds nothing if they have
// sequence numbers or are out of order.
func (c *Chunks) appendAll(others *Chunks) bool {
	if c.spilled || others.spilled || others.numbered || others.packed.Len() == 0 || !c.continues(&Chunk{UnixNano: others.packed.First()}) {
		return false
	}
	c.packed.AppendTimeline(&others.packed)
	c.advance(others.latest)
	return true
}

// advance records that chunks without sequence numbers were packed, the last of them
// at unixNano.
func (c *Chunks) advance(unixNano int64) {
	c.latest, c.numbered, c.nextSeq = max(c.latest, unixNano), false, 1
}

// keepLatest restores the exact latest time after the chunks of others were added with
// truncated times.
func (c *Chunks) keepLatest(others *Chunks) {
	c.latest = untruncated(c.latest, others.latest)
}

// untruncated returns exact if unixNano may be the same time truncated to a tick, and
// unixNano otherwise.
func untruncated(unixNano, exact int64) int64 {
	if lost := exact - unixNano; 0 < lost && lost < int64(timeline.Tick) {
		return exact
	}
	return unixNano
}

// add adds a chunk in any order. It drops a repeat of a packed chunk.
func (c *Chunks) add(k *Chunk) {
	switch {
	case c.append(k):
		return
	case c.spilled:
	case c.repeats(k):
		c.duplicates++
		return
	default:
		c.spill()
	}
	c.list = append(c.list, *k)
	c.listed += int64(k.Tokens)
	c.latest = max(c.latest, k.UnixNano)
	c.unnumbered = c.unnumbered || !k.Numbered
}

// continues reports whether k can follow the last packed chunk.
func (c *Chunks) continues(k *Chunk) bool {
	switch {
	case c.packed.Len() == 0:
		return true
	case k.Numbered:
		return c.numbered && (k.Seq == c.nextSeq || k.Seq > c.nextSeq && len(c.gaps) < maxGaps)
	default:
		return !c.numbered && k.UnixNano >= c.latest
	}
}

// repeats reports whether k is a repeat of a packed chunk.
func (c *Chunks) repeats(k *Chunk) bool {
	if c.spilled || !c.numbered || !k.Numbered || k.Seq < c.firstSeq || k.Seq >= c.nextSeq {
		return false
	}
	after, exact := slices.BinarySearchFunc(c.gaps, k.Seq, func(g gap, seq uint64) int { return cmp.Compare(g.seq, seq) })
	if exact || after == len(c.gaps) {
		return true
	}
	run := gap{0, c.firstSeq} // start of the gapless run that k would belong to
	if after > 0 {
		run = c.gaps[after-1]
	}
	return k.Seq-run.seq < uint64(c.gaps[after].index-run.index)
}

// without returns a copy without the chunks that match.
func (c *Chunks) without(matches func(Chunk) bool) Chunks {
	rest := Chunks{duplicates: c.duplicates}
	for k := range c.all {
		if !matches(k) {
			rest.add(&k)
		}
	}
	return rest
}

// spill moves the packed chunks to the list.
func (c *Chunks) spill() {
	c.list = slices.Grow(c.list[:0], c.packed.Len()+1)
	for k := range c.all {
		c.list = append(c.list, k)
	}
	c.unnumbered = !c.numbered
	c.spilled, c.gaps, c.listed = true, nil, c.packed.Tokens()
}

// all yields the chunks in the order of arrival. Times of packed chunks are truncated
// to ticks, except for the first, and for the last if it is the latest.
func (c *Chunks) all(yield func(Chunk) bool) {
	if c.spilled {
		for _, k := range c.list {
			if !yield(k) {
				return
			}
		}
		return
	}
	first := c.packed.First()
	seq, index, gaps := c.firstSeq, 0, c.gaps
	for walk := c.packed.Walk(); walk.Next(); seq, index = seq+1, index+1 {
		if len(gaps) > 0 && gaps[0].index == index {
			seq, gaps = gaps[0].seq, gaps[1:]
		}
		k := Chunk{first + int64(walk.Offset()), seq, walk.Tokens(), walk.Channel(), c.numbered}
		if index == c.packed.Len()-1 {
			k.UnixNano = untruncated(k.UnixNano, c.latest)
		}
		if !yield(k) {
			return
		}
	}
}

// Timeline returns the chunks in order and without repeats: by sequence number if
// all chunks have one, otherwise by time. It is valid for reading until the chunks
// change.
func (c *Chunks) Timeline() timeline.Timeline {
	if !c.spilled {
		return c.packed
	}
	c.dropRepeats()
	if c.unnumbered {
		slices.SortStableFunc(c.list, func(a, b Chunk) int { return cmp.Compare(a.UnixNano, b.UnixNano) })
	}
	var sorted timeline.Timeline
	for _, k := range c.list {
		sorted.Append(k.UnixNano, k.Tokens, k.Channel)
	}
	return sorted
}

// dropRepeats sorts the list by sequence number, with unnumbered chunks last, and
// removes repeats.
func (c *Chunks) dropRepeats() {
	slices.SortStableFunc(c.list, func(a, b Chunk) int {
		if a.Numbered && b.Numbered {
			return cmp.Compare(a.Seq, b.Seq)
		}
		return cmp.Compare(boolToInt(b.Numbered), boolToInt(a.Numbered))
	})
	before := len(c.list)
	c.list = slices.CompactFunc(c.list, func(a, b Chunk) bool {
		return a.Numbered && b.Numbered && a.Seq == b.Seq
	})
	c.duplicates += int32(before - len(c.list))
}

// size returns the bytes that the chunks hold outside of the struct.
func (c *Chunks) size() int {
	return c.packed.Size() + cap(c.list)*int(unsafe.Sizeof(Chunk{})) + cap(c.gaps)*int(unsafe.Sizeof(gap{}))
}

// estimate returns roughly the bytes that a copy of the chunks would hold.
func (c *Chunks) estimate() int {
	const bytesPerChunk = 8 // usually three, in a slice with spare capacity
	if c.spilled {
		return len(c.list) * int(unsafe.Sizeof(Chunk{}))
	}
	return c.packed.Len()*bytesPerChunk + len(c.gaps)*int(unsafe.Sizeof(gap{}))
}

// reset empties the chunks and keeps the buffers.
func (c *Chunks) reset() {
	c.packed.Reset()
	*c = Chunks{packed: c.packed, list: c.list[:0], gaps: c.gaps[:0]}
}

func boolToInt(b bool) int {
	if b {
		return 1
	}
	return 0
}
