package series

import (
	"math"
	"time"

	"github.com/tokenpulse/tokenpulse/internal/sketch"
)

// slotsPerWindow is how many parts a window moves in: a window of one minute
// forgets five seconds at a time, and holds the last 55 to 60 seconds.
const slotsPerWindow = 12

// calendar numbers the slots of each window, from one moment on.
type calendar struct {
	epoch  time.Time
	widths []time.Duration // of one slot, for each window
}

func newCalendar(epoch time.Time, windows []time.Duration) *calendar {
	c := &calendar{epoch: epoch}
	for _, window := range windows {
		c.widths = append(c.widths, window/slotsPerWindow)
	}
	return c
}

// page is the state of a calendar at one moment.
type page struct {
	slots []int64       // number of each window's open slot
	until time.Duration // after the epoch: when the first of them closes
}

func (c *calendar) page(now time.Time) page {
	p := page{slots: make([]int64, len(c.widths)), until: math.MaxInt64}
	for w, width := range c.widths {
		p.slots[w] = int64(c.since(now) / width)
		p.until = min(p.until, time.Duration(p.slots[w]+1)*width)
	}
	return p
}

// since returns how long after the epoch a time is.
func (c *calendar) since(now time.Time) time.Duration { return now.Sub(c.epoch) }

// over tells whether a slot has closed since. Time that goes backwards closes
// nothing.
func (c *calendar) over(p *page, now time.Time) bool { return c.since(now) >= p.until }

// windows holds the recent past of one histogram: for each window a ring of
// slots. A slot is an encoded sketch, which for the few values of one slot is a
// tenth the size of a sketch in memory. It is never changed in place, so windows
// can share one.
type windows [][slotsPerWindow][]byte

// add merges a sketch into the open slots. The scratch sketch is the caller's to
// lend.
func (ws windows) add(open []int64, s, scratch *sketch.Sketch) {
	var alone []byte
	for w := range ws {
		slot := &ws[w][open[w]%slotsPerWindow]
		if *slot != nil {
			*slot = encodeMerged(*slot, s, scratch)
			continue
		}
		if alone == nil {
			alone = encode(s)
		}
		*slot = alone
	}
}

func encodeMerged(encoded []byte, s, scratch *sketch.Sketch) []byte {
	scratch.Reset()
	merge(scratch, encoded)
	scratch.Merge(s)
	return encode(scratch)
}

// encode makes slices of exactly the size they need: they live as long as their window.
func encode(s *sketch.Sketch) []byte {
	var buffer [1024]byte
	encoded := s.AppendBinary(buffer[:0])
	return append(make([]byte, 0, len(encoded)), encoded...)
}

// move closes the slots that are over: what is older than a window leaves it.
func (ws windows) move(from, to []int64) {
	for w := range ws {
		for slot := max(from[w], to[w]-slotsPerWindow) + 1; slot <= to[w]; slot++ {
			ws[w][slot%slotsPerWindow] = nil
		}
	}
}

// collect merges all slots of one window into a sketch.
func (ws windows) collect(window int, into *sketch.Sketch) {
	into.Reset()
	for _, slot := range ws[window] {
		if slot != nil {
			merge(into, slot)
		}
	}
}

// merge adds what encode made. That decodes, unless counts past all reason have
// been merged: then a slot is better lost than the Collector.
func merge(into *sketch.Sketch, encoded []byte) { _ = into.MergeBinary(encoded) }
