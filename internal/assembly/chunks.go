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
	// Seq orders the chunk among those of its stream, if Numbered.
	Seq      uint64
	Tokens   uint32
	Channel  timeline.Channel
	Numbered bool
}

// maxSeq keeps a sequence number and the one after it from wrapping around.
const maxSeq = math.MaxInt64

// Chunks are those of one stream. As long as they come in order they go straight
// into a packed timeline, and of sequence numbers only the first, the next and
// the gaps are remembered. The first that breaks the order turns the timeline into
// a list, which is sorted when the stream is over.
type Chunks struct {
	latest   int64 // time of any chunk, zero without any
	line     timeline.Timeline
	firstSeq uint64 // of the chunks in line, if numbered
	nextSeq  uint64 // one past the last chunk in line, if numbered
	gaps     []gap  // between the sequence numbers in line
	list     []Chunk

	numbered   bool // the chunks in line have sequence numbers
	unnumbered bool // some chunk in list has no sequence number
	spilled    bool
	duplicates int32
}

// gap says that sequence numbers are missing right before the chunk at index,
// whose number is seq. They may still come, or belong to no chunk, as those of
// keep-alives.
type gap struct {
	index int
	seq   uint64
}

// maxGaps bounds the gaps of a stream that is in order.
const maxGaps = 1024

// Len returns the number of chunks, repeats that are still in the list included.
func (c *Chunks) Len() int {
	if c.spilled {
		return len(c.list)
	}
	return c.line.Len()
}

// append takes a chunk that comes in order, and reports whether it did.
func (c *Chunks) append(k *Chunk) bool {
	if c.spilled || !c.continues(k) {
		return false
	}
	switch {
	case c.line.Len() == 0:
		c.firstSeq = k.Seq
	case k.Numbered && k.Seq != c.nextSeq:
		c.gaps = append(c.gaps, gap{c.line.Len(), k.Seq})
	}
	c.line.Append(k.UnixNano, k.Tokens, k.Channel)
	c.latest, c.numbered, c.nextSeq = max(c.latest, k.UnixNano), k.Numbered, k.Seq+1
	return true
}

// appendEach takes chunks of one token that come in order and are in order among
// themselves, and reports whether they were.
func (c *Chunks) appendEach(unixNanos []int64, channel timeline.Channel) bool {
	first, last := unixNanos[0], unixNanos[len(unixNanos)-1]
	if c.spilled || !slices.IsSorted(unixNanos) || !c.continues(&Chunk{UnixNano: first}) {
		return false
	}
	c.line.AppendEach(unixNanos, channel)
	c.reach(last)
	return true
}

// appendGaps takes chunks of one token in order: one that arrived at unixNano, and
// those after it, as timeline.AppendGaps does. It reports whether they come in order.
func (c *Chunks) appendGaps(unixNano int64, gaps []byte, chunks int, ticks int64, channel timeline.Channel) bool {
	if c.spilled || !c.continues(&Chunk{UnixNano: unixNano}) {
		return false
	}
	c.line.AppendGaps(unixNano, gaps, chunks, ticks, channel)
	c.reach(unixNano + ticks*int64(timeline.Tick))
	return true
}

// appendAll takes chunks that all come in order after those that are there, and have no
// sequence numbers. It reports whether they do.
func (c *Chunks) appendAll(others *Chunks) bool {
	if c.spilled || others.spilled || others.numbered || others.line.Len() == 0 || !c.continues(&Chunk{UnixNano: others.line.First()}) {
		return false
	}
	c.line.AppendTimeline(&others.line)
	c.reach(others.latest)
	return true
}

// reach notes that chunks without sequence numbers came in line, the last at a time.
func (c *Chunks) reach(unixNano int64) {
	c.latest, c.numbered, c.nextSeq = max(c.latest, unixNano), false, 1
}

// keepLatest takes the time of the latest chunk of others, which were added, as it was
// before their timeline cut it.
func (c *Chunks) keepLatest(others *Chunks) {
	c.latest = uncut(c.latest, others.latest)
}

// uncut returns the time that a timeline was given, if that may be the one that it cut
// to unixNano.
func uncut(unixNano, given int64) int64 {
	if cut := given - unixNano; 0 < cut && cut < int64(timeline.Tick) {
		return given
	}
	return unixNano
}

// add takes any chunk, or drops it as the repeat of one in line.
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
	c.latest = max(c.latest, k.UnixNano)
	c.unnumbered = c.unnumbered || !k.Numbered
}

// continues reports whether k comes after the last chunk in line.
func (c *Chunks) continues(k *Chunk) bool {
	switch {
	case c.line.Len() == 0:
		return true
	case k.Numbered:
		return c.numbered && (k.Seq == c.nextSeq || k.Seq > c.nextSeq && len(c.gaps) < maxGaps)
	default:
		return !c.numbered && k.UnixNano >= c.latest
	}
}

// repeats reports whether k is known to be in line.
func (c *Chunks) repeats(k *Chunk) bool {
	if c.spilled || !c.numbered || !k.Numbered || k.Seq < c.firstSeq || k.Seq >= c.nextSeq {
		return false
	}
	after, exact := slices.BinarySearchFunc(c.gaps, k.Seq, func(g gap, seq uint64) int { return cmp.Compare(g.seq, seq) })
	if exact || after == len(c.gaps) {
		return true
	}
	run := gap{0, c.firstSeq} // that k would be in
	if after > 0 {
		run = c.gaps[after-1]
	}
	return k.Seq-run.seq < uint64(c.gaps[after].index-run.index)
}

// earliest returns the time of the first chunk by time, or zero without any.
func (c *Chunks) earliest() (unixNano int64) {
	for k := range c.all {
		if unixNano == 0 || k.UnixNano < unixNano {
			unixNano = k.UnixNano
		}
	}
	return unixNano
}

func (c *Chunks) any(matches func(Chunk) bool) bool {
	for k := range c.all {
		if matches(k) {
			return true
		}
	}
	return false
}

// without returns the chunks that do not match, in memory of their own.
func (c *Chunks) without(matches func(Chunk) bool) Chunks {
	rest := Chunks{duplicates: c.duplicates}
	for k := range c.all {
		if !matches(k) {
			rest.add(&k)
		}
	}
	return rest
}

// spill moves the chunks from line to list.
func (c *Chunks) spill() {
	c.list = slices.Grow(c.list[:0], c.line.Len()+1)
	for k := range c.all {
		c.list = append(c.list, k)
	}
	c.unnumbered = !c.numbered
	c.spilled, c.gaps = true, nil
}

// all yields the chunks as they came. The timeline has cut the times of those in line,
// but for the first; of the latest the time itself is known.
func (c *Chunks) all(yield func(Chunk) bool) {
	if c.spilled {
		for _, k := range c.list {
			if !yield(k) {
				return
			}
		}
		return
	}
	first := c.line.First()
	seq, index, gaps := c.firstSeq, 0, c.gaps
	for walk := c.line.Walk(); walk.Next(); seq, index = seq+1, index+1 {
		if len(gaps) > 0 && gaps[0].index == index {
			seq, gaps = gaps[0].seq, gaps[1:]
		}
		k := Chunk{first + int64(walk.Offset()), seq, walk.Tokens(), walk.Channel(), c.numbered}
		if index == c.line.Len()-1 {
			k.UnixNano = uncut(k.UnixNano, c.latest)
		}
		if !yield(k) {
			return
		}
	}
}

// Timeline returns the chunks in order, without repeats: by sequence number if
// every chunk has one, else by time. It is good for reading until the next
// change of the chunks.
func (c *Chunks) Timeline() timeline.Timeline {
	if !c.spilled {
		return c.line
	}
	c.dropRepeats()
	if c.unnumbered {
		slices.SortStableFunc(c.list, func(a, b Chunk) int { return cmp.Compare(a.UnixNano, b.UnixNano) })
	}
	var line timeline.Timeline
	for _, k := range c.list {
		line.Append(k.UnixNano, k.Tokens, k.Channel)
	}
	return line
}

// dropRepeats sorts the list by sequence number, chunks without one last, and
// removes the repeats.
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
	return c.line.Size() + cap(c.list)*int(unsafe.Sizeof(Chunk{})) + cap(c.gaps)*int(unsafe.Sizeof(gap{}))
}

// need returns about the bytes that a copy of the chunks will hold.
func (c *Chunks) need() int {
	const packed = 8 // a chunk, mostly three bytes, in a slice with room to grow
	if c.spilled {
		return len(c.list) * int(unsafe.Sizeof(Chunk{}))
	}
	return c.line.Len()*packed + len(c.gaps)*int(unsafe.Sizeof(gap{}))
}

// reset empties the chunks and keeps their memory.
func (c *Chunks) reset() {
	c.line.Reset()
	*c = Chunks{line: c.line, list: c.list[:0], gaps: c.gaps[:0]}
}

func boolToInt(b bool) int {
	if b {
		return 1
	}
	return 0
}
