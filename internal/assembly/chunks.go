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
// into a packed timeline, and only the next sequence number is remembered. The
// first that breaks the order turns the timeline into a list, which is sorted
// when the stream is over.
type Chunks struct {
	latest   int64 // time of any chunk, zero without any
	line     timeline.Timeline
	nextSeq  uint64 // one past the last chunk in line, if numbered
	numbered bool   // the chunks in line have sequence numbers, without gaps

	spilled    bool
	unnumbered bool // some chunk in list has no sequence number
	list       []Chunk
	duplicates int
}

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
	c.line.Append(k.UnixNano, k.Tokens, k.Channel)
	c.latest, c.numbered, c.nextSeq = max(c.latest, k.UnixNano), k.Numbered, k.Seq+1
	return true
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

// continues reports whether k comes right after the last chunk in line.
func (c *Chunks) continues(k *Chunk) bool {
	switch {
	case c.line.Len() == 0:
		return true
	case k.Numbered:
		return c.numbered && k.Seq == c.nextSeq
	default:
		return !c.numbered && (k.UnixNano >= c.latest || sameTick(k.UnixNano, c.latest))
	}
}

// sameTick reports whether a timeline tells two times apart. The latest chunk of
// a part that was packed may have been rounded up past the next part's first.
func sameTick(a, b int64) bool {
	const tick = int64(timeline.Tick)
	return (a+tick/2)/tick == (b+tick/2)/tick
}

func (c *Chunks) repeats(k *Chunk) bool {
	return c.numbered && k.Numbered && k.Seq < c.nextSeq && c.nextSeq-k.Seq <= uint64(c.line.Len())
}

// spill moves the chunks from line to list.
func (c *Chunks) spill() {
	c.list = slices.Grow(c.list[:0], c.line.Len()+1)
	for k := range c.all {
		c.list = append(c.list, k)
	}
	c.unnumbered = !c.numbered
	c.spilled = true
}

// all yields the chunks as they came.
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
	seq := c.nextSeq - uint64(c.line.Len())
	for walk := c.line.Walk(); walk.Next(); seq++ {
		k := Chunk{first + int64(walk.Offset()), seq, walk.Tokens(), walk.Channel(), c.numbered}
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
	c.duplicates += before - len(c.list)
}

// size returns the bytes that the chunks hold outside of the struct.
func (c *Chunks) size() int {
	return c.line.Size() + cap(c.list)*int(unsafe.Sizeof(Chunk{}))
}

// reset empties the chunks and keeps their memory.
func (c *Chunks) reset() {
	c.line.Reset()
	*c = Chunks{line: c.line, list: c.list[:0]}
}

func boolToInt(b bool) int {
	if b {
		return 1
	}
	return 0
}
