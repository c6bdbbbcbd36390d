// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package play

import (
	"container/heap"

	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/stream"
)

// merge orders the events of overlapping streams by time. It holds only the streams
// in flight.
//
// A live merge returns each event as a part of its own. It keeps the order of events
// within a stream, even if their times go back. A merge that is not live returns
// whole streams, at their last time.
type merge struct {
	next     func() (*stream.Stream, bool)
	live     bool
	upcoming *stream.Stream // read, not started
	open     cursors
	started  int
}

// newMerge returns a merge of the streams that next returns, in the order of their starts.
func newMerge(next func() (*stream.Stream, bool), live bool) *merge {
	m := &merge{next: next, live: live}
	m.upcoming, _ = next()
	return m
}

// peek returns the due time of the next part, in Unix nanoseconds, or false after the
// last part.
func (m *merge) peek() (int64, bool) {
	for m.upcoming != nil && (len(m.open) == 0 || m.upcoming.Start <= m.open[0].due) {
		heap.Push(&m.open, newCursor(m.upcoming, m.started, m.live))
		m.started++
		m.upcoming, _ = m.next()
	}
	if len(m.open) == 0 {
		return 0, false
	}
	return m.open[0].due, true
}

// pop returns the next part. It must follow a successful peek.
func (m *merge) pop() stream.Part {
	c := m.open[0]
	part := c.part
	if c.advance() {
		heap.Fix(&m.open, 0)
	} else {
		heap.Pop(&m.open)
	}
	return part
}

// inFlight returns, for each stream that has started and not ended, the part that pop
// has returned. It is empty unless the merge is live.
func (m *merge) inFlight() []stream.Part {
	var out []stream.Part
	for _, c := range m.open {
		out = append(out, c.popped())
	}
	return out
}

// cursor is a position in one stream.
type cursor struct {
	due   int64 // of part; never decreases
	order int   // the order of starts breaks ties
	part  stream.Part
	live  bool
}

func newCursor(s *stream.Stream, order int, live bool) *cursor {
	if !live {
		return &cursor{due: s.LastTime(), order: order, part: stream.Whole(s)}
	}
	return &cursor{due: s.Start, order: order, part: stream.Part{Stream: s, Start: true}, live: true}
}

// advance moves to the stream's next event. It returns false after the last event.
func (c *cursor) advance() bool {
	s, next := c.part.Stream, c.part.To
	switch {
	case !c.live || c.part.End:
		return false
	case c.part.Start && s.Scheduled != 0:
		c.part = stream.Part{Stream: s, Scheduled: true}
		c.due = max(c.due, s.Scheduled)
	case next < len(s.Chunks):
		c.part = stream.Part{Stream: s, From: next, To: next + 1}
		c.due = max(c.due, s.Chunks[next].Time)
	case s.End != nil:
		c.part = stream.Part{Stream: s, From: next, To: next, End: true}
		c.due = max(c.due, s.End.Time)
	default:
		return false
	}
	return true
}

// popped returns the events before the current part.
func (c *cursor) popped() stream.Part {
	if !c.live || c.part.Start {
		return stream.Part{Stream: c.part.Stream}
	}
	scheduled := c.part.Stream.Scheduled != 0 && !c.part.Scheduled
	return stream.Part{Stream: c.part.Stream, Start: true, Scheduled: scheduled, To: c.part.From}
}

// cursors is a heap with the earliest due time first.
type cursors []*cursor

func (c cursors) Len() int { return len(c) }
func (c cursors) Less(i, j int) bool {
	return c[i].due < c[j].due || c[i].due == c[j].due && c[i].order < c[j].order
}
func (c cursors) Swap(i, j int) { c[i], c[j] = c[j], c[i] }
func (c *cursors) Push(x any)   { *c = append(*c, x.(*cursor)) }
func (c *cursors) Pop() any {
	old := *c
	last := old[len(old)-1]
	*c = old[:len(old)-1]
	return last
}
