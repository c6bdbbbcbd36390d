// Package timeline holds the token arrivals of one stream, packed.
//
// A one-token chunk costs three bytes when the gap before it is between 4 ms and
// half a second, two below that. The first chunk's time is exact, later ones are
// rounded to whole microseconds of Unix time. Rounding times and not gaps keeps
// errors from adding up along the stream, and a grid that is the same for
// everybody makes a stream's timeline independent of the parts it arrived in.
//
// # Encoding
//
// Each chunk is one varint: zigzag(ticks since the previous chunk) << 1, with the
// low bit set when the chunk's token count or channel differs from the previous
// chunk's. Then a second varint follows: tokens << 2 | channel. A tick is one
// microsecond. The first chunk is preceded by an imaginary one of one content
// token at the same time. A chunk in the same tick as the one before has the
// very same time.
//
// A stored timeline has a header in front: a version byte, the number of chunks
// (varint), the time from the stream's start to its first chunk in nanoseconds
// (zigzag varint; negative when the clock went backwards), and what rounding the
// first chunk's time to a tick would add to it, in nanoseconds (zigzag varint).
package timeline

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"
)

// Tick is the resolution of every time in a timeline but the first.
const Tick = time.Microsecond

// MaxTokensPerChunk bounds the token count of one chunk. No engine emits a
// millionth of it in one step; a larger number is a mistake of the sender.
const MaxTokensPerChunk = 1 << 20

// Channel tells what the tokens of a chunk are for.
type Channel uint8

// Content is the answer, ToolCall a call the model asks for: both are output
// that somebody waits for. Reasoning comes before them.
const (
	Content Channel = iota
	Reasoning
	ToolCall
	channels
)

// IsOutput reports whether the channel is one the user waits for.
func (c Channel) IsOutput() bool { return c != Reasoning }

const (
	version      = 1
	channelBits  = 2
	channelMask  = 1<<channelBits - 1
	metaOneToken = 1<<channelBits | uint64(Content)
)

// Timeline is the packed arrivals of one stream, in order. The zero value is
// empty and ready to use.
type Timeline struct {
	first  int64  // Unix time of the first chunk, nanoseconds
	tick   int64  // Unix time of the last chunk, ticks
	meta   uint64 // of the last chunk: tokens << channelBits | channel
	count  int
	packed []byte
}

// Append adds a chunk that arrived at the Unix time unixNano, in nanoseconds.
// tokens is between 1 and MaxTokensPerChunk; a chunk without tokens is none.
// A time before the last chunk's is kept as it is.
func (t *Timeline) Append(unixNano int64, tokens uint32, channel Channel) {
	if t.count == 0 {
		t.first, t.tick, t.meta = unixNano, toTick(unixNano), metaOneToken
	}
	t.count++
	tick := toTick(unixNano)
	entry := zigzag(tick-t.tick) << 1
	t.tick = tick
	meta := uint64(tokens)<<channelBits | uint64(channel)
	if meta == t.meta {
		t.packed = binary.AppendUvarint(t.packed, entry)
		return
	}
	t.meta = meta
	t.packed = binary.AppendUvarint(t.packed, entry|1)
	t.packed = binary.AppendUvarint(t.packed, meta)
}

// Len returns the number of chunks.
func (t *Timeline) Len() int { return t.count }

// Size returns the bytes that the timeline holds in memory, slack included.
func (t *Timeline) Size() int { return cap(t.packed) }

// First returns the Unix time of the first chunk in nanoseconds. It is
// meaningless in an empty timeline.
func (t *Timeline) First() int64 { return t.first }

// Last returns the Unix time of the last chunk in nanoseconds, to a tick.
// It is meaningless in an empty timeline.
func (t *Timeline) Last() int64 {
	if t.tick == toTick(t.first) {
		return t.first
	}
	return t.tick * int64(Tick)
}

// Reset empties the timeline and keeps its memory.
func (t *Timeline) Reset() { *t = Timeline{packed: t.packed[:0]} }

// Walk starts a walk over the chunks. Their offsets count from the first chunk.
func (t *Timeline) Walk() Walk {
	return Walk{grid: t.rounding(), meta: metaOneToken, left: t.count, packed: t.packed}
}

// rounding returns what rounding the first chunk's time to a tick adds to it, in
// nanoseconds.
func (t *Timeline) rounding() int64 { return toTick(t.first)*int64(Tick) - t.first }

// AppendBinary appends the stored form to dst, with times counted from the
// stream's start.
func (t *Timeline) AppendBinary(dst []byte, startUnixNano int64) []byte {
	dst = append(dst, version)
	dst = binary.AppendUvarint(dst, uint64(t.count))
	dst = binary.AppendUvarint(dst, zigzag(t.first-startUnixNano))
	dst = binary.AppendUvarint(dst, zigzag(t.rounding()))
	return append(dst, t.packed...)
}

var errTruncated = errors.New("timeline is truncated or malformed")

// Decode starts a walk over the stored form. The chunks' offsets count from the
// stream's start. The walk reads b, so b must not change under it, and finds
// what is wrong in it only on the way: ask Walk.Err at the end.
func Decode(b []byte) (Walk, error) {
	if len(b) == 0 {
		return Walk{}, errTruncated
	}
	if b[0] != version {
		return Walk{}, fmt.Errorf("timeline has version %d, this build reads %d", b[0], version)
	}
	b = b[1:]
	var header [3]uint64
	for i := range header {
		v, n := binary.Uvarint(b)
		if n <= 0 {
			return Walk{}, errTruncated
		}
		header[i], b = v, b[n:]
	}
	count, first, rounding := header[0], unzigzag(header[1]), unzigzag(header[2])
	if count > uint64(len(b)) { // a chunk takes at least a byte
		return Walk{}, errTruncated
	}
	return Walk{offset: first, grid: first + rounding, meta: metaOneToken, left: int(count), packed: b}, nil
}

// Walk reads the chunks of a timeline one by one, without allocating:
//
//	for walk.Next() {
//		use(walk.Offset(), walk.Tokens(), walk.Channel())
//	}
//	if err := walk.Err(); err != nil { ... }
type Walk struct {
	offset int64 // of the current chunk, nanoseconds
	grid   int64 // the same, rounded to a tick
	meta   uint64
	left   int
	packed []byte
}

// Next moves to the next chunk and reports whether there is one.
func (w *Walk) Next() bool {
	if w.left == 0 {
		return false
	}
	entry, n := binary.Uvarint(w.packed)
	if n <= 0 {
		return false
	}
	w.packed = w.packed[n:]
	if entry&1 != 0 {
		meta, n := binary.Uvarint(w.packed)
		if n <= 0 || !validMeta(meta) {
			return false
		}
		w.packed = w.packed[n:]
		w.meta = meta
	}
	if ticks := unzigzag(entry >> 1); ticks != 0 {
		w.grid += ticks * int64(Tick)
		w.offset = w.grid
	}
	w.left--
	return true
}

// Left returns how many chunks are still to come.
func (w *Walk) Left() int { return w.left }

// Err returns why a walk stopped before the end, or nil when it has seen every
// chunk. A walk over a Timeline does not fail.
func (w *Walk) Err() error {
	if w.left != 0 || len(w.packed) != 0 {
		return errTruncated
	}
	return nil
}

// Offset returns the current chunk's time since the walk's origin: the stream's
// start after Decode, the first chunk after Timeline.Walk.
func (w *Walk) Offset() time.Duration { return time.Duration(w.offset) }

// Tokens returns the current chunk's token count, at least 1.
func (w *Walk) Tokens() uint32 { return uint32(w.meta >> channelBits) }

// Channel returns the current chunk's channel.
func (w *Walk) Channel() Channel { return Channel(w.meta & channelMask) }

func validMeta(meta uint64) bool {
	tokens := meta >> channelBits
	return tokens >= 1 && tokens <= MaxTokensPerChunk && Channel(meta&channelMask) < channels
}

// toTick rounds a Unix time in nanoseconds to the nearest tick. Times before 1970
// do not occur.
func toTick(unixNano int64) int64 { return (unixNano + int64(Tick)/2) / int64(Tick) }

func zigzag(v int64) uint64   { return uint64(v<<1) ^ uint64(v>>63) }
func unzigzag(u uint64) int64 { return int64(u>>1) ^ -int64(u&1) }
