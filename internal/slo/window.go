package slo

import "time"

// slotsPerWindow is how many parts a window moves in: it holds from 59/60 of its
// length up to the whole.
const slotsPerWindow = 60

// window counts the requests of a recent past, in a ring of slots.
type window struct {
	open  int64 // number of the slot that counts what happens now
	slots [slotsPerWindow]Counts
}

// advance opens the slot of a time, given since the epoch, and empties those that
// are older than the window. Time that goes backwards changes nothing.
func (w *window) advance(at, length time.Duration) {
	now := slotAt(at, length)
	for slot := max(w.open, now-slotsPerWindow) + 1; slot <= now; slot++ {
		w.slots[slot%slotsPerWindow] = Counts{}
	}
	w.open = max(w.open, now)
}

// slotAt returns the number of the slot that a time falls in.
func slotAt(at, length time.Duration) int64 { return int64(at / (length / slotsPerWindow)) }

func (w *window) add(good bool) {
	slot := &w.slots[w.open%slotsPerWindow]
	if good {
		slot.Good++
	} else {
		slot.Bad++
	}
}

func (w *window) sum() (total Counts) {
	for _, slot := range w.slots {
		total.Good += slot.Good
		total.Bad += slot.Bad
	}
	return total
}
