// Package timeline holds the token arrivals of one stream, packed.
//
// A one-token chunk costs three bytes when the gap before it is between 4 ms and
// half a second, two below that. The first chunk's time is exact, later ones are
// cut to whole microseconds of Unix time. Cutting times and not gaps keeps errors
// from adding up along the stream, a grid that is the same for everybody makes a
// stream's timeline independent of the parts it arrived in, and cutting down, not
// to the nearest, moves no chunk past the stream's end.
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
// (zigzag varint; negative when the clock went backwards), and what cutting the
// first chunk's time to a tick would take from it, in nanoseconds (varint).
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

// AppendEach adds chunks of one token each, as Append does, at half the cost.
// Their times are in ascending order.
func (t *Timeline) AppendEach(unixNanos []int64, channel Channel) {
	if len(unixNanos) == 0 {
		return
	}
	t.Append(unixNanos[0], 1, channel)
	t.count += len(unixNanos) - 1
	packed, last := t.packed, t.tick
	for _, unixNano := range unixNanos[1:] {
		tick := toTick(unixNano)
		entry := zigzag(tick-last) << 1
		last = tick
		switch { // binary.AppendUvarint, one append for what gaps mostly are
		case entry < 1<<7:
			packed = append(packed, byte(entry))
		case entry < 1<<14:
			packed = append(packed, byte(entry)|0x80, byte(entry>>7))
		case entry < 1<<21:
			packed = append(packed, byte(entry)|0x80, byte(entry>>7)|0x80, byte(entry>>14))
		default:
			packed = binary.AppendUvarint(packed, entry)
		}
	}
	t.packed, t.tick = packed, last
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
	return Walk{grid: -t.cut(), meta: metaOneToken, left: t.count, packed: t.packed}
}

// cut returns what cutting the first chunk's time to a tick takes from it, in
// nanoseconds.
func (t *Timeline) cut() int64 { return t.first - toTick(t.first)*int64(Tick) }

// AppendBinary appends the stored form to dst, with times counted from the
// stream's start.
func (t *Timeline) AppendBinary(dst []byte, startUnixNano int64) []byte {
	dst = append(dst, version)
	dst = binary.AppendUvarint(dst, uint64(t.count))
	dst = binary.AppendUvarint(dst, zigzag(t.first-startUnixNano))
	dst = binary.AppendUvarint(dst, uint64(t.cut()))
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
	count, first, cut := header[0], unzigzag(header[1]), header[2]
	if count > uint64(len(b)) || cut >= uint64(Tick) { // a chunk takes at least a byte
		return Walk{}, errTruncated
	}
	return Walk{offset: first, grid: first - int64(cut), meta: metaOneToken, left: int(count), packed: b}, nil
}

// Walk reads the chunks of a timeline one by one, without allocating:
//
//	for walk.Next() {
//		use(walk.Offset(), walk.Tokens(), walk.Channel())
//	}
//	if err := walk.Err(); err != nil { ... }
type Walk struct {
	offset int64 // of the current chunk, nanoseconds
	grid   int64 // the same, cut to a tick
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

// NextRun moves over the next chunk and those right after it that hold as many
// tokens on the same channel, len(gaps) chunks at most. It writes the gap before
// each, and returns how many chunks these are, none at the end, and the offset of
// the first. Tokens and Channel are then those of the run, and Offset that of its
// last chunk.
//
// Gaps are whole ticks, also the one after the first chunk of all: between its
// exact time and a time that is cut, an exact multiple of anything would be none.
func (w *Walk) NextRun(gaps []time.Duration) (n int, first time.Duration) {
	if len(gaps) == 0 {
		return 0, 0
	}
	before := w.grid
	if !w.Next() {
		return 0, 0
	}
	gaps[0] = time.Duration(w.grid - before)
	first = w.Offset()
	packed, grid, offset := w.packed, w.grid, w.offset
	n = 1
	for limit := min(len(gaps), w.left+1); n < limit; n++ {
		var entry uint64
		var width int
		if len(packed) >= 3 && packed[0]&packed[1] >= 0x80 && packed[2] < 0x80 { // most are like this
			entry, width = uint64(packed[0]&0x7f)|uint64(packed[1]&0x7f)<<7|uint64(packed[2])<<14, 3
		} else if entry, width = binary.Uvarint(packed); width <= 0 {
			break
		}
		if entry&1 != 0 {
			break
		}
		packed = packed[width:]
		gaps[n] = 0
		if ticks := unzigzag(entry >> 1); ticks != 0 {
			gaps[n] = time.Duration(ticks) * Tick
			grid += int64(gaps[n])
			offset = grid
		}
	}
	w.packed, w.grid, w.offset, w.left = packed, grid, offset, w.left-(n-1)
	return n, first
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

// toTick cuts a Unix time in nanoseconds to ticks. Times before 1970 do not occur.
func toTick(unixNano int64) int64 { return unixNano / int64(Tick) }

func zigzag(v int64) uint64   { return uint64(v<<1) ^ uint64(v>>63) }
func unzigzag(u uint64) int64 { return int64(u>>1) ^ -int64(u&1) }
