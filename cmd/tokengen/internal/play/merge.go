package play

import (
	"container/heap"

	"github.com/tokenpulse/tokenpulse/cmd/tokengen/internal/stream"
)

// Source gives streams in the order in which they start, and false after the last.
type Source interface {
	Next() (*stream.Stream, bool)
}

// Recorded is a Source of streams that are all there.
type Recorded []*stream.Stream

// Next returns the next stream.
func (r *Recorded) Next() (*stream.Stream, bool) {
	if len(*r) == 0 {
		return nil, false
	}
	s := (*r)[0]
	*r = (*r)[1:]
	return s, true
}

// merge puts what streams have to tell in the order of time. It holds only the
// streams that are under way.
//
// A live merge tells every event by itself, in the order that its stream has
// them in, also where that goes back in time. The other tells a whole stream at
// the time it ends.
type merge struct {
	source   Source
	live     bool
	upcoming *stream.Stream // read from source, not begun
	open     cursors
	begun    int
}

func newMerge(source Source, live bool) *merge {
	m := &merge{source: source, live: live}
	m.upcoming, _ = source.Next()
	return m
}

// peek returns the Unix time in nanoseconds of what comes next, or false when
// there is nothing more.
func (m *merge) peek() (int64, bool) {
	for m.upcoming != nil && (len(m.open) == 0 || m.upcoming.Start <= m.open[0].at) {
		heap.Push(&m.open, newCursor(m.upcoming, m.begun, m.live))
		m.begun++
		m.upcoming, _ = m.source.Next()
	}
	if len(m.open) == 0 {
		return 0, false
	}
	return m.open[0].at, true
}

// pop returns what peek announced.
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

// underWay returns the streams that have begun and not been told to their end,
// and of each what has been told: nothing unless live.
func (m *merge) underWay() []stream.Part {
	var out []stream.Part
	for _, c := range m.open {
		out = append(out, c.told())
	}
	return out
}

// cursor is one stream's place in a merge.
type cursor struct {
	at    int64 // when part is due; never goes back
	order int   // of streams that are due at the same time: as they began
	part  stream.Part
	live  bool
}

func newCursor(s *stream.Stream, order int, live bool) *cursor {
	if !live {
		return &cursor{at: s.LastTime(), order: order, part: stream.Whole(s)}
	}
	return &cursor{at: s.Start, order: order, part: stream.Part{Stream: s, Start: true}, live: true}
}

// advance moves on to the stream's next event and reports whether there is one.
func (c *cursor) advance() bool {
	s, next := c.part.Stream, c.part.To
	switch {
	case !c.live || c.part.End:
		return false
	case c.part.Start && s.Scheduled != 0:
		c.part = stream.Part{Stream: s, Scheduled: true}
		c.at = max(c.at, s.Scheduled)
	case next < len(s.Chunks):
		c.part = stream.Part{Stream: s, From: next, To: next + 1}
		c.at = max(c.at, s.Chunks[next].Time)
	case s.End != nil:
		c.part = stream.Part{Stream: s, From: next, To: next, End: true}
		c.at = max(c.at, s.End.Time)
	default:
		return false
	}
	return true
}

// told returns what came before the part that is due.
func (c *cursor) told() stream.Part {
	if !c.live || c.part.Start {
		return stream.Part{Stream: c.part.Stream}
	}
	scheduled := c.part.Stream.Scheduled != 0 && !c.part.Scheduled
	return stream.Part{Stream: c.part.Stream, Start: true, Scheduled: scheduled, To: c.part.From}
}

// cursors are a heap, the next one due first.
type cursors []*cursor

func (c cursors) Len() int { return len(c) }
func (c cursors) Less(i, j int) bool {
	return c[i].at < c[j].at || c[i].at == c[j].at && c[i].order < c[j].order
}
func (c cursors) Swap(i, j int) { c[i], c[j] = c[j], c[i] }
func (c *cursors) Push(x any)   { *c = append(*c, x.(*cursor)) }
func (c *cursors) Pop() any {
	old := *c
	last := old[len(old)-1]
	*c = old[:len(old)-1]
	return last
}
