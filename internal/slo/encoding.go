package slo

import (
	"encoding/binary"
	"errors"
	"time"
)

// AppendBinary appends the history, so that DecodeHistory can go on with it. All
// numbers are varints: the length of the budget's window, then the windows in the
// order of their length, the budget's last. A window is its open slot, how many of
// its slots hold something, and for each of them how far back it is, the good and
// the bad.
func (h *History) AppendBinary(b []byte) []byte {
	b = binary.AppendUvarint(b, uint64(h.budgetLength))
	for i := range h.burn {
		b = h.burn[i].appendBinary(b)
	}
	return h.budget.appendBinary(b)
}

var errMalformed = errors.New("malformed history of an objective")

// DecodeHistory reads what AppendBinary made, for a budget of a length that may
// have changed since: the budget then begins anew. A window that reaches past now
// begins anew, too: the clock has been wrong.
func DecodeHistory(encoded []byte, budgetLength, now time.Duration) (*History, error) {
	d := decoder{encoded}
	h := NewHistory(budgetLength)
	sameBudget := time.Duration(d.number()) == budgetLength
	for i := range h.burn {
		d.window(&h.burn[i])
		h.burn[i].noLaterThan(now, BurnWindows[i])
	}
	d.window(&h.budget)
	if !sameBudget {
		h.budget = window{}
	}
	h.budget.noLaterThan(now, budgetLength)
	if d.rest == nil || len(d.rest) > 0 {
		return nil, errMalformed
	}
	return h, nil
}

func (w *window) appendBinary(b []byte) []byte {
	b = binary.AppendUvarint(b, uint64(w.open))
	used := 0
	for _, slot := range w.slots {
		if slot != (Counts{}) {
			used++
		}
	}
	b = binary.AppendUvarint(b, uint64(used))
	for back := range int64(slotsPerWindow) {
		slot := w.slots[(w.open+slotsPerWindow-back)%slotsPerWindow]
		if slot != (Counts{}) {
			b = binary.AppendUvarint(b, uint64(back))
			b = binary.AppendUvarint(b, slot.Good)
			b = binary.AppendUvarint(b, slot.Bad)
		}
	}
	return b
}

// noLaterThan empties a window whose open slot is not there yet.
func (w *window) noLaterThan(now, length time.Duration) {
	if w.open > slotAt(now, length) {
		*w = window{}
	}
}

// decoder reads numbers. After one that is malformed its rest is nil.
type decoder struct{ rest []byte }

func (d *decoder) number() uint64 {
	n, length := binary.Uvarint(d.rest)
	if length <= 0 {
		d.rest = nil
		return 0
	}
	d.rest = d.rest[length:]
	return n
}

func (d *decoder) window(w *window) {
	// The open slot of the shortest window has a number under 2^31.
	w.open = int64(d.number() & (1<<62 - 1))
	for range min(d.number(), slotsPerWindow) {
		back := int64(d.number() % slotsPerWindow)
		w.slots[(w.open+slotsPerWindow-back)%slotsPerWindow] = Counts{Good: d.number(), Bad: d.number()}
	}
}
