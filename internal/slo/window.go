// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package slo

import "time"

// slotsPerWindow is the number of slots that a window moves by: a window covers
// between 59/60 of its length and all of it.
const slotsPerWindow = 60

// window counts the requests of a sliding window in a ring of slots.
type window struct {
	open  int64 // number of the newest slot
	slots [slotsPerWindow]Counts
}

// advance opens the slot of a position and clears the slots that left the window.
// A position before the open slot changes nothing.
func (w *window) advance(position, length time.Duration) {
	newest := slotAt(position, length)
	for slot := max(w.open, newest-slotsPerWindow) + 1; slot <= newest; slot++ {
		w.slots[slot%slotsPerWindow] = Counts{}
	}
	w.open = max(w.open, newest)
}

// slotAt returns the number of the slot that a position falls in.
func slotAt(position, length time.Duration) int64 {
	return int64(position / (length / slotsPerWindow))
}

func (w *window) add(n Counts) {
	slot := &w.slots[w.open%slotsPerWindow]
	slot.Good += n.Good
	slot.Bad += n.Bad
}

func (w *window) sum() (total Counts) {
	for _, slot := range w.slots {
		total.Good += slot.Good
		total.Bad += slot.Bad
	}
	return total
}
