// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package series

import (
	"math"
	"time"

	"github.com/tokenpulse/tokenpulse/internal/sketch"
)

// slotsPerWindow is the number of slots that a window moves by: a window of one minute
// drops five seconds at a time and covers the last 55 to 60 seconds.
const slotsPerWindow = 12

// calendar numbers the slots of each window, starting at an epoch.
type calendar struct {
	epoch  time.Time
	widths []time.Duration // of one slot, by window
	// history is set if the slots of a history are open, too. They follow the wall clock, since people ask for them by it; windows
	// follow the monotonic one, which does not jump.
	history bool
	// anyOrder is set if the slots of the history follow each arrival, also back in time.
	anyOrder bool
}

func newCalendar(epoch time.Time, windows []time.Duration, history, anyOrder bool) *calendar {
	c := &calendar{epoch: epoch, history: history, anyOrder: anyOrder}
	for _, window := range windows {
		c.widths = append(c.widths, window/slotsPerWindow)
	}
	return c
}

// page is the state of a calendar at one moment.
type page struct {
	slots []int64       // number of the open slot, by window
	until time.Duration // time after the epoch at which the first of them closes
	// history is the start of the open slot of the history.
	history time.Time
}

func (c *calendar) page(now time.Time) page {
	p := page{slots: make([]int64, len(c.widths)), until: math.MaxInt64}
	for w, width := range c.widths {
		p.slots[w] = int64(now.Sub(c.epoch) / width)
		p.until = min(p.until, time.Duration(p.slots[w]+1)*width)
	}
	if c.history {
		since := time.Duration(now.UnixNano() % int64(HistorySlot))
		p.history = now.Add(-since)
		p.until = min(p.until, now.Sub(c.epoch)+HistorySlot-since)
	}
	return p
}

// closed reports whether a slot of the page has closed. A time before the page's closes
// none, except in any order.
func (c *calendar) closed(p *page, now time.Time) bool {
	return now.Sub(c.epoch) >= p.until || c.anyOrder && now.Before(p.history)
}

// windows holds the recent values of one histogram: a ring of slots for each window. A
// slot is an encoded sketch, which for the few values of a slot takes a tenth of the
// memory of a sketch. Slots are immutable, so windows can share them.
type windows [][slotsPerWindow][]byte

// add merges a sketch into the open slots. It overwrites scratch.
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

// encode allocates exactly the size that the sketch needs: a slot lives as long as its
// window.
func encode(s *sketch.Sketch) []byte {
	var buffer [1024]byte
	encoded := s.AppendBinary(buffer[:0])
	return append(make([]byte, 0, len(encoded)), encoded...)
}

// move clears the slots that left their windows.
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

// merge adds the output of encode. It fails only if a count overflows; losing the slot
// is then better than stopping the Collector.
func merge(into *sketch.Sketch, encoded []byte) { _ = into.MergeBinary(encoded) }
