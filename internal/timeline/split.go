// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"encoding/binary"
	"math"
	"time"
)

// Split returns a walk over the chunks that hold tokens and one over those of Audio, each with its own
// gaps. Nearly all timelines have no audio: then it returns the walk itself, and allocates nothing.
// Where a timeline is malformed, both walks end with an error.
func (w Walk) Split() (tokens, audio Walk) {
	if !w.audio {
		return w, Walk{}
	}
	var parts [2]part
	for w.Next() {
		p := &parts[0]
		if w.Channel() == Audio {
			p = &parts[1]
		}
		p.add(&w)
	}
	if w.Err() != nil {
		return Walk{left: 1}, Walk{left: 1}
	}
	return parts[0].walk, parts[1].walk
}

// part collects some of the chunks of a walk.
type part struct {
	walk Walk
	grid int64 // that of the last chunk
}

func (p *part) add(w *Walk) {
	if p.walk.left == 0 {
		p.walk.offset, p.walk.grid, p.grid = w.offset, w.grid, w.grid
	}
	p.walk.gaps = binary.AppendUvarint(p.walk.gaps, zigzag((w.grid-p.grid)/int64(Tick)))
	p.grid = w.grid
	p.walk.left++
	if last := &p.walk.last; last.chunks > 0 && last.meta != w.current.meta {
		p.walk.runs = last.appendBinary(p.walk.runs)
		last.chunks = 0
	}
	p.walk.last = run{p.walk.last.chunks + 1, w.current.meta}
}

// Speech says when audio arrived, such as between two tokens.
type Speech struct {
	audio Walk
	at    time.Duration // of the current chunk
}

// SpeechIn reads a walk over the chunks of Audio.
func SpeechIn(audio Walk) Speech { return Speech{audio, math.MinInt64} }

// Between reports whether audio arrived after one time and before another. Later calls ask for later times.
func (s *Speech) Between(from, to time.Duration) bool {
	for s.at <= from {
		if !s.audio.Next() {
			return false
		}
		s.at = s.audio.Offset()
	}
	return s.at < to
}
