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
// Times and what the chunks hold are apart. The gaps have a varint for each chunk:
// zigzag(ticks since the previous chunk), where a tick is one microsecond and the
// first chunk counts from itself. The runs have two varints for each run of chunks
// that hold as many tokens on the same channel: how many chunks these are, and
// tokens << 2 | channel. A chunk in the same tick as the one before has the very
// same time.
//
// So the gaps of a run look as they do in a ChunkRun on the wire, in microseconds:
// they are copied, not packed anew. And whoever reads them reads one number after
// the other, and need not look at each whether something has changed.
//
// A stored timeline has a header in front: a version byte, the number of chunks
// (varint), the time from the stream's start to its first chunk in nanoseconds
// (zigzag varint; negative when the clock went backwards), and what cutting the
// first chunk's time to a tick would take from it, in nanoseconds (varint). Then
// come the runs, as many as it takes for all chunks, and the gaps.
package timeline

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"time"
)

// Tick is the resolution of every time in a timeline but the first.
const Tick = time.Microsecond

// MaxTokensPerChunk bounds the token count of one chunk. No engine emits a
// millionth of it in one step; a larger number is a mistake of the sender.
const MaxTokensPerChunk = 1 << 20

// Channel is the purpose of a chunk's tokens.
type Channel uint8

// Content is the answer, ToolCall a call that the model requests: the user waits
// for both. Reasoning precedes them.
const (
	Content Channel = iota
	Reasoning
	ToolCall
	channels
)

var channelNames = [channels]string{Content: "content", Reasoning: "reasoning", ToolCall: "tool_call"}

// ParseChannel returns the channel that a name stands for. ok is false for an
// unknown name.
func ParseChannel[T string | []byte](name T) (c Channel, ok bool) {
	for c, known := range channelNames {
		if string(name) == known {
			return Channel(c), true
		}
	}
	return Content, false
}

// String returns the channel's name, and "" for an unknown value.
func (c Channel) String() string {
	if c >= channels {
		return ""
	}
	return channelNames[c]
}

// IsOutput reports whether the channel is one the user waits for.
func (c Channel) IsOutput() bool { return c != Reasoning }

const (
	version     = 2
	channelBits = 2
	channelMask = 1<<channelBits - 1
)

// Timeline is the packed arrivals of one stream, in order. The zero value is
// empty and ready to use.
type Timeline struct {
	first int64 // Unix time of the first chunk, nanoseconds
	tick  int64 // Unix time of the last chunk, ticks
	gaps  []byte
	runs  []byte // but for the last
	last  run
	count int
}

// run is chunks that hold the same. It is small, because every open stream has one.
type run struct {
	chunks int32
	meta   uint32 // tokens << channelBits | channel
}

func metaOf(tokens uint32, channel Channel) uint32 {
	return tokens<<channelBits | uint32(channel)
}

// Append adds a chunk that arrived at the Unix time unixNano, in nanoseconds.
// tokens is between 1 and MaxTokensPerChunk; a chunk without tokens is none.
// A time before the last chunk's is kept as it is.
func (t *Timeline) Append(unixNano int64, tokens uint32, channel Channel) {
	t.begin(unixNano)
	t.extend(1, metaOf(tokens, channel))
	tick := toTick(unixNano)
	t.gaps = appendGap(t.gaps, zigzag(tick-t.tick))
	t.tick = tick
}

// AppendEach adds chunks of one token each, as Append does, at half the cost.
func (t *Timeline) AppendEach(unixNanos []int64, channel Channel) {
	if len(unixNanos) == 0 {
		return
	}
	t.begin(unixNanos[0])
	t.extend(len(unixNanos), metaOf(1, channel))
	gaps, last := t.gaps, t.tick
	for _, unixNano := range unixNanos {
		tick := toTick(unixNano)
		gaps = appendGap(gaps, zigzag(tick-last))
		last = tick
	}
	t.gaps, t.tick = gaps, last
}

// AppendGaps adds chunks of one token each: one that arrived at unixNano, and after
// it those that gaps holds, each as zigzag(ticks since the one before). Gaps is what
// Ascending says it is.
func (t *Timeline) AppendGaps(unixNano int64, gaps []byte, chunks int, ticks int64, channel Channel) {
	t.Append(unixNano, 1, channel)
	t.extend(chunks, metaOf(1, channel))
	t.gaps = append(t.gaps, gaps...)
	t.tick += ticks
}

// AppendTimeline adds the chunks of another timeline, as Append does one by one.
func (t *Timeline) AppendTimeline(other *Timeline) {
	if other.count == 0 {
		return
	}
	t.begin(other.first)
	t.gaps = appendGap(t.gaps, zigzag(toTick(other.first)-t.tick))
	t.gaps = append(t.gaps, other.gaps[1:]...) // the first is zero: it counts from itself
	t.tick = other.tick
	for runs := other.runs; len(runs) > 0; {
		r, length := readRun(runs)
		t.extend(int(r.chunks), r.meta)
		runs = runs[length:]
	}
	t.extend(int(other.last.chunks), other.last.meta)
}

// Ascending reads gaps that are packed as a timeline packs them. It returns how many
// there are, and how many ticks they take together. It fails for what is not packed
// so, for time that goes backwards, and for a gap of a second or more, which takes
// over three bytes.
func Ascending(gaps []byte) (chunks int, ticks int64, ok bool) {
	var all uint32 // every bit that any of them has
	at := 0
	for ; len(gaps)-at >= 4; chunks++ {
		gap, width := shortGap(binary.LittleEndian.Uint32(gaps[at:]))
		if width == 0 {
			return 0, 0, false
		}
		at += width
		all |= gap
		ticks += int64(gap >> 1)
	}
	for ; at < len(gaps); chunks++ {
		gap, width := binary.Uvarint(gaps[at:])
		if width <= 0 || width > 3 {
			return 0, 0, false
		}
		at += width
		all |= uint32(gap)
		ticks += int64(gap >> 1)
	}
	return chunks, ticks, all&1 == 0
}

// shortGap reads a varint of up to three bytes from the next four. Its width is zero
// where it is longer. Nearly all gaps of nearly all streams take three bytes: the
// processor guesses that, and reads the next gap before it is done with this one. For
// others no guess would do, so there is no branch: the lowest of the bytes that end a
// varint is its last.
func shortGap(word uint32) (gap uint32, width int) {
	if word&0x808080 == 0x8080 {
		return word&0x7f | word>>1&0x3f80 | word>>2&0x1fc000, 3
	}
	ends := ^word & 0x808080
	word &= ends ^ (ends - 1)
	return word&0x7f | word>>1&0x3f80 | word>>2&0x1fc000, (bits.TrailingZeros32(ends|1<<31) + 1) / 8 % 4
}

// begin sets the time of the first chunk.
func (t *Timeline) begin(unixNano int64) {
	if t.count == 0 {
		t.first, t.tick = unixNano, toTick(unixNano)
	}
}

// extend counts chunks.
func (t *Timeline) extend(chunks int, meta uint32) {
	t.count += chunks
	if t.last.chunks > 0 && t.last.meta != meta {
		t.runs = t.last.appendBinary(t.runs)
		t.last.chunks = 0
	}
	t.last = run{t.last.chunks + int32(chunks), meta}
}

func (r run) appendBinary(dst []byte) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(dst, uint64(r.chunks)), uint64(r.meta))
}

// appendGap is binary.AppendUvarint, with one append for what gaps mostly are.
func appendGap(gaps []byte, gap uint64) []byte {
	switch {
	case gap < 1<<7:
		return append(gaps, byte(gap))
	case gap < 1<<14:
		return append(gaps, byte(gap)|0x80, byte(gap>>7))
	case gap < 1<<21:
		return append(gaps, byte(gap)|0x80, byte(gap>>7)|0x80, byte(gap>>14))
	default:
		return binary.AppendUvarint(gaps, gap)
	}
}

// Len returns the number of chunks.
func (t *Timeline) Len() int { return t.count }

// Size returns the bytes that the timeline holds in memory, slack included.
func (t *Timeline) Size() int { return cap(t.gaps) + cap(t.runs) }

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
func (t *Timeline) Reset() { *t = Timeline{gaps: t.gaps[:0], runs: t.runs[:0]} }

// Walk starts a walk over the chunks. Their offsets count from the first chunk.
func (t *Timeline) Walk() Walk {
	return Walk{grid: -t.cut(), left: t.count, gaps: t.gaps, runs: t.runs, last: t.last}
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
	dst = append(dst, t.runs...)
	if t.count > 0 {
		dst = t.last.appendBinary(dst)
	}
	return append(dst, t.gaps...)
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
	length, ok := lengthOfRuns(b, count)
	if !ok {
		return Walk{}, errTruncated
	}
	return Walk{offset: first, grid: first - int64(cut), left: int(count), runs: b[:length], gaps: b[length:]}, nil
}

// lengthOfRuns returns how many bytes the runs of so many chunks take.
func lengthOfRuns(b []byte, chunks uint64) (length int, ok bool) {
	for chunks > 0 {
		r, n := readRun(b[length:])
		if n == 0 || r.chunks == 0 || uint64(r.chunks) > chunks || !validMeta(r.meta) {
			return 0, false
		}
		chunks -= uint64(r.chunks)
		length += n
	}
	return length, true
}

// readRun reads a run and returns its length, which is zero where it is cut off.
func readRun(b []byte) (r run, length int) {
	chunks, n := binary.Uvarint(b)
	if n <= 0 || chunks > math.MaxInt32 {
		return run{}, 0
	}
	meta, m := binary.Uvarint(b[n:])
	if m <= 0 || meta > math.MaxUint32 {
		return run{}, 0
	}
	return run{int32(chunks), uint32(meta)}, n + m
}

// Walk reads the chunks of a timeline one by one, without allocating:
//
//	for walk.Next() {
//		use(walk.Offset(), walk.Tokens(), walk.Channel())
//	}
//	if err := walk.Err(); err != nil { ... }
type Walk struct {
	offset  int64 // of the current chunk, nanoseconds
	grid    int64 // the same, cut to a tick
	left    int
	current run // its chunks are those still to come
	gaps    []byte
	runs    []byte
	last    run // after those in runs, if it has chunks
}

// Next moves to the next chunk and reports whether there is one.
func (w *Walk) Next() bool {
	if w.left == 0 {
		return false
	}
	gap, n := binary.Uvarint(w.gaps)
	if n <= 0 {
		return false
	}
	w.gaps = w.gaps[n:]
	w.enter()
	if ticks := unzigzag(gap); ticks != 0 {
		w.grid += ticks * int64(Tick)
		w.offset = w.grid
	}
	w.current.chunks--
	w.left--
	return true
}

// enter moves to the next run where the current one is over.
func (w *Walk) enter() {
	switch {
	case w.current.chunks > 0:
	case len(w.runs) > 0:
		var n int
		w.current, n = readRun(w.runs)
		w.runs = w.runs[n:]
	default:
		w.current, w.last = w.last, run{}
	}
}

// NextRun moves over the next chunk and those right after it that hold as many
// tokens on the same channel, len(gaps) chunks at most. It writes the gap before
// each, in ticks, and returns how many chunks these are, none at the end, and the
// offset of the first. Tokens and Channel are then those of the run, and Offset that
// of its last chunk. All has every bit that any of the gaps has: it is negative if
// one of them is, and none of them is larger.
//
// Gaps are whole ticks, also the one after the first chunk of all: between its
// exact time and a time that is cut, an exact multiple of anything would be none.
func (w *Walk) NextRun(gaps []int64) (n int, first time.Duration, all int64) {
	if len(gaps) == 0 {
		return 0, 0, 0
	}
	before := w.grid
	if !w.Next() {
		return 0, 0, 0
	}
	gaps[0] = (w.grid - before) / int64(Tick)
	first = w.Offset()
	rest := gaps[1:min(len(gaps), int(w.current.chunks)+1)]
	n, sum, all := w.unpack(rest)
	if all != 0 {
		w.grid += sum * int64(Tick)
		w.offset = w.grid
	}
	w.current.chunks -= int32(n)
	w.left -= n
	return 1 + n, first, all | gaps[0]
}

// unpack reads gaps, as many as there is room for. It returns how many these are,
// fewer where they are malformed or cut off, their sum, and every bit that any has.
func (w *Walk) unpack(gaps []int64) (n int, sum, all int64) {
	packed, at := w.gaps, 0
	for n < len(gaps) {
		var zigzagged uint64
		width := 0
		if len(packed)-at >= 4 {
			var short uint32
			short, width = shortGap(binary.LittleEndian.Uint32(packed[at:]))
			zigzagged = uint64(short)
		}
		if width == 0 {
			if zigzagged, width = binary.Uvarint(packed[at:]); width <= 0 {
				break
			}
		}
		at += width
		gap := unzigzag(zigzagged)
		gaps[n] = gap
		n++
		sum += gap
		all |= gap
	}
	w.gaps = packed[at:]
	return n, sum, all
}

// Left returns how many chunks are still to come.
func (w *Walk) Left() int { return w.left }

// Err returns why a walk stopped before the end, or nil when it has seen every
// chunk. A walk over a Timeline does not fail.
func (w *Walk) Err() error {
	if w.left != 0 || len(w.gaps) != 0 {
		return errTruncated
	}
	return nil
}

// Offset returns the current chunk's time since the walk's origin: the stream's
// start after Decode, the first chunk after Timeline.Walk.
func (w *Walk) Offset() time.Duration { return time.Duration(w.offset) }

// Tokens returns the current chunk's token count, at least 1.
func (w *Walk) Tokens() uint32 { return w.current.meta >> channelBits }

// Channel returns the current chunk's channel.
func (w *Walk) Channel() Channel { return Channel(w.current.meta & channelMask) }

func validMeta(meta uint32) bool {
	tokens := meta >> channelBits
	return tokens >= 1 && tokens <= MaxTokensPerChunk && Channel(meta&channelMask) < channels
}

// toTick cuts a Unix time in nanoseconds to ticks. Times before 1970 do not occur.
func toTick(unixNano int64) int64 { return unixNano / int64(Tick) }

func zigzag(v int64) uint64   { return uint64(v<<1) ^ uint64(v>>63) }
func unzigzag(u uint64) int64 { return int64(u>>1) ^ -int64(u&1) }
