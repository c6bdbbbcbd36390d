// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Package timeline packs the token arrivals of one stream.
//
// A one-token chunk costs three bytes if the gap before it is between 4 ms and
// half a second, two bytes if the gap is shorter. The first chunk's time is
// exact; later times are truncated to whole microseconds of Unix time:
//   - Truncating times instead of gaps keeps rounding errors from adding up.
//   - One grid for all streams makes a timeline independent of how the stream was
//     split into requests.
//   - Truncating instead of rounding to the nearest keeps the last chunk at or
//     before the stream's end.
package timeline

import (
	"encoding/binary"
	"time"
)

// Tick is the resolution of all times in a timeline except the first.
const Tick = time.Microsecond

// MaxTokensPerChunk is the upper bound for the token count of one chunk. It is far
// above what any engine emits in one step: a larger count is a sender error.
const MaxTokensPerChunk = 1 << 20

// Channel is the purpose of a chunk's tokens.
type Channel uint8

// Content is the answer, ToolCall a call that the model requests: the user waits
// for both. Reasoning precedes them. Audio is spoken output. It has a clock of its own,
// and its chunks hold no tokens: Split takes them apart.
const (
	Content Channel = iota
	Reasoning
	ToolCall
	Audio
	channels
)

var channelNames = [channels]string{Content: "content", Reasoning: "reasoning", ToolCall: "tool_call", Audio: "audio"}

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

// TokensIn returns the tokens of a chunk of the channel that says it holds that many: none of Audio.
func (c Channel) TokensIn(tokens uint32) uint32 {
	if c == Audio {
		return 0
	}
	return tokens
}

const (
	channelBits = 2
	channelMask = 1<<channelBits - 1
)

func metaOf(tokens uint32, channel Channel) uint32 {
	return tokens<<channelBits | uint32(channel)
}

func tokensOf(meta uint32) uint32   { return meta >> channelBits }
func channelOf(meta uint32) Channel { return Channel(meta & channelMask) }

// Timeline holds the packed arrivals of one stream, in order. The zero value is
// empty and ready to use.
//
// Gaps and contents are stored apart, so that gaps from a ChunkRun on the wire
// can be copied, and a walk reads one number after the other without a branch on
// the contents. A gap is a varint: zigzag(ticks since the previous chunk); the
// first is zero. A chunk with gap zero has exactly the time of the chunk before.
type Timeline struct {
	first int64 // Unix time of the first chunk, nanoseconds
	tick  int64 // Unix time of the last chunk, ticks
	gaps  []byte
	runs  []byte // encoded runs, without the last one
	last  run
	count int
	// tokens are those of all chunks.
	tokens int64
	audio  bool // a chunk is of Audio
}

// Append adds a chunk that arrived at the Unix time unixNano, in nanoseconds.
// tokens is between 1 and MaxTokensPerChunk; on Audio, it is ignored. A time before that of the
// last chunk is kept as it is.
func (t *Timeline) Append(unixNano int64, tokens uint32, channel Channel) {
	t.begin(unixNano)
	t.extend(1, metaOf(channel.TokensIn(tokens), channel))
	tick := toTick(unixNano)
	t.gaps = binary.AppendUvarint(t.gaps, zigzag(tick-t.tick))
	t.tick = tick
}

// AppendGaps adds a chunk of one token that arrived at unixNano, and after it one
// for each packed gap. chunks and ticks are the results of ScanGaps.
func (t *Timeline) AppendGaps(unixNano int64, gaps []byte, chunks int, ticks int64, channel Channel) {
	t.Append(unixNano, 1, channel)
	t.extend(chunks, metaOf(channel.TokensIn(1), channel))
	t.gaps = append(t.gaps, gaps...)
	t.tick += ticks
}

// AppendTimeline adds all chunks of another timeline.
func (t *Timeline) AppendTimeline(other *Timeline) {
	if other.count == 0 {
		return
	}
	t.begin(other.first)
	t.gaps = binary.AppendUvarint(t.gaps, zigzag(toTick(other.first)-t.tick))
	t.gaps = append(t.gaps, other.gaps[1:]...) // without the first gap, a zero of one byte
	t.tick = other.tick
	for runs := other.runs; len(runs) > 0; {
		r, length := readRun(runs)
		t.extend(int(r.chunks), r.meta)
		runs = runs[length:]
	}
	t.extend(int(other.last.chunks), other.last.meta)
}

// begin sets the time of the first chunk.
func (t *Timeline) begin(unixNano int64) {
	if t.count == 0 {
		t.first, t.tick = unixNano, toTick(unixNano)
	}
}

// extend adds chunks to the last run, or starts a new run if their contents differ.
func (t *Timeline) extend(chunks int, meta uint32) {
	t.count += chunks
	t.tokens += int64(chunks) * int64(tokensOf(meta))
	if t.last.chunks > 0 && t.last.meta != meta {
		t.runs = t.last.appendBinary(t.runs)
		t.last.chunks = 0
	}
	if t.last.chunks == 0 {
		t.audio = t.audio || channelOf(meta) == Audio
	}
	t.last = run{t.last.chunks + int32(chunks), meta}
}

// Len returns the number of chunks.
func (t *Timeline) Len() int { return t.count }

// HasAudio reports whether a chunk is of Audio.
func (t *Timeline) HasAudio() bool { return t.audio }

// Tokens returns the number of tokens in all chunks.
func (t *Timeline) Tokens() int64 { return t.tokens }

// Size returns the bytes allocated for the packed chunks, spare capacity included.
func (t *Timeline) Size() int { return cap(t.gaps) + cap(t.runs) }

// First returns the Unix time of the first chunk in nanoseconds. It is undefined
// for an empty timeline.
func (t *Timeline) First() int64 { return t.first }

// Last returns the Unix time of the last chunk in nanoseconds, truncated to a
// tick. It is undefined for an empty timeline.
func (t *Timeline) Last() int64 {
	if t.tick == toTick(t.first) {
		return t.first
	}
	return t.tick * int64(Tick)
}

// Reset empties the timeline and keeps its buffers.
func (t *Timeline) Reset() { *t = Timeline{gaps: t.gaps[:0], runs: t.runs[:0]} }

// cut returns the nanoseconds by which truncation to a tick lowers the first
// chunk's time.
func (t *Timeline) cut() int64 { return t.first - toTick(t.first)*int64(Tick) }

// toTick truncates a Unix time in nanoseconds to ticks. Times before 1970 do not
// occur.
func toTick(unixNano int64) int64 { return unixNano / int64(Tick) }
