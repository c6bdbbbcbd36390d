// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package stream

import "slices"

// Part is some or all events of a stream.
type Part struct {
	Stream *Stream
	// Start, Scheduled and End report whether the part holds these events.
	Start, Scheduled, End bool
	// From and To select Stream.Chunks[From:To].
	From, To int
}

// Whole returns the part that holds all events.
func Whole(s *Stream) Part {
	return Part{Stream: s, Start: true, Scheduled: s.Scheduled != 0, To: len(s.Chunks), End: s.End != nil}
}

// Chunks returns the part's chunks.
func (p Part) Chunks() []Chunk { return p.Stream.Chunks[p.From:p.To] }

// Events returns the number of events in the part.
func (p Part) Events() int {
	return count(p.Start) + count(p.Scheduled) + p.To - p.From + count(p.End)
}

// Tokens returns the number of tokens in the part.
func (p Part) Tokens() int {
	n := 0
	for _, c := range p.Chunks() {
		n += int(c.Tokens)
	}
	return n
}

func count(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Join merges the parts of each stream into one, at the position of the stream's
// first part. The parts of a stream must be consecutive in that stream.
func Join(parts []Part) []Part {
	var joined []Part
	position := map[*Stream]int{}
	for _, p := range parts {
		i, ok := position[p.Stream]
		if !ok {
			position[p.Stream] = len(joined)
			joined = append(joined, p)
			continue
		}
		j := &joined[i]
		switch {
		case j.From == j.To:
			j.From, j.To = p.From, p.To
		case p.From < p.To:
			j.To = p.To
		}
		j.Scheduled = j.Scheduled || p.Scheduled
		j.End = j.End || p.End
	}
	return joined
}

// Skip returns the parts without their first n events.
func Skip(parts []Part, n int) []Part {
	for i, p := range parts {
		if n < p.Events() {
			rest := slices.Clone(parts[i:])
			rest[0] = p.skip(n)
			return rest
		}
		n -= p.Events()
	}
	return nil
}

// skip removes the first n events, in the order start, scheduled, chunks. n must be
// less than the number of events.
func (p Part) skip(n int) Part {
	if n > 0 && p.Start {
		p.Start = false
		n--
	}
	if n > 0 && p.Scheduled {
		p.Scheduled = false
		n--
	}
	p.From += min(n, p.To-p.From)
	return p
}
