// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"encoding/binary"
	"errors"
	"time"
)

var errTruncated = errors.New("timeline is truncated or malformed")

// Walk reads the chunks of a timeline one by one, without allocating:
//
//	for walk.Next() {
//		use(walk.Offset(), walk.Tokens(), walk.Channel())
//	}
//	if err := walk.Err(); err != nil { ... }
type Walk struct {
	offset  int64 // time of the current chunk, nanoseconds
	grid    int64 // the same time, truncated to a tick
	left    int
	current run // counts the chunks that are left of it
	gaps    []byte
	runs    []byte
	last    run  // follows those in runs, if it has chunks
	audio   bool // a chunk is of Audio
}

// Walk starts a walk over the chunks. Offsets are relative to the first chunk.
func (t *Timeline) Walk() Walk {
	return Walk{grid: -t.cut(), left: t.count, gaps: t.gaps, runs: t.runs, last: t.last, audio: t.audio}
}

// WalkFrom starts a walk over the chunks whose offsets count from the Unix time startUnixNano,
// in nanoseconds, as those of Decode do. It reads the timeline in place: the walk is valid until
// the timeline is appended to or reset.
func (t *Timeline) WalkFrom(startUnixNano int64) Walk {
	walk := t.Walk()
	walk.offset = t.first - startUnixNano
	walk.grid += walk.offset
	return walk
}

// Next moves to the next chunk and reports whether there is one.
func (w *Walk) Next() bool {
	if w.left == 0 {
		return false
	}
	gap, n := binary.Uvarint(w.gaps)
	// One comparison passes the widths 1 to shortWidth.
	if uint(n-1) >= shortWidth && (n <= 0 || !w.reaches(0, gap)) {
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

// enter moves to the next run if the current one is used up.
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

// NextRun moves past the next chunk and all directly following chunks of the same
// run, up to len(gaps) chunks. It writes the gap before each chunk, in ticks, to
// gaps, and returns the number of chunks (0 at the end), the offset of the first,
// and the bitwise OR of all gaps: all is negative if any gap is, and otherwise no
// gap exceeds it. Afterwards Tokens and Channel are those of the run, and Offset
// is that of its last chunk.
//
// Gaps are whole ticks, also the one after a stream's first chunk. Measured from
// that chunk's exact time, the gap would no longer be an exact multiple of a
// deadline or threshold.
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

// unpack reads up to len(gaps) gaps. It returns how many it read (fewer if the
// encoding is malformed), their sum, and their bitwise OR.
func (w *Walk) unpack(gaps []int64) (n int, sum, all int64) {
	packed, at := w.gaps, 0
	for n < len(gaps) {
		if first, second, ok := gapPair(packed, at); ok && n+1 < len(gaps) {
			gaps[n], gaps[n+1] = first, second
			n += 2
			at += pairWidth
			sum += first + second
			all |= first | second
			continue
		}
		zigzagged, width := binary.Uvarint(packed[at:])
		if width <= 0 || width > shortWidth && !w.reaches(sum, zigzagged) {
			break
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

// maxTicks bounds the gaps and offsets of a walk: 142 years. It keeps every offset
// within 64 bits: after a long gap an offset is at most maxTicks, and the short gaps
// of 2^31 chunks add at most as much again.
const maxTicks = 1 << 52

// reaches reports whether a long gap, and the offset of its chunk, are within
// maxTicks. sum is the sum of the gaps that grid does not include yet. Short gaps
// need no check, so the fast path has none. Inlined, this would slow Next down.
//
//go:noinline
func (w *Walk) reaches(sum int64, zigzagged uint64) bool {
	gap := unzigzag(zigzagged)
	return withinBounds(gap) && withinBounds(w.grid/int64(Tick)+sum+gap)
}

func withinBounds(ticks int64) bool { return -maxTicks <= ticks && ticks <= maxTicks }

// Left returns the number of chunks that are not read yet.
func (w *Walk) Left() int { return w.left }

// Err returns an error if the walk stopped before the last chunk, or if bytes follow
// it. For a walk over a Timeline, it is nil unless a chunk is more than 142 years from
// the origin or from the chunk before it.
func (w *Walk) Err() error {
	if w.left != 0 || len(w.gaps) != 0 {
		return errTruncated
	}
	return nil
}

// Offset returns the current chunk's time since the walk's origin: the stream's
// start after Decode, the first chunk after Timeline.Walk.
func (w *Walk) Offset() time.Duration { return time.Duration(w.offset) }

// Tokens returns the current chunk's token count, at least 1, and 0 on Audio.
func (w *Walk) Tokens() uint32 { return tokensOf(w.current.meta) }

// Channel returns the current chunk's channel.
func (w *Walk) Channel() Channel { return channelOf(w.current.meta) }
