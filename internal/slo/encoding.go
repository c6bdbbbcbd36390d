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
// have changed since: the budget then begins anew. A window that reaches past now,
// as the clock was ahead or has been set back, is moved to now.
func DecodeHistory(encoded []byte, budgetLength, now time.Duration) (*History, error) {
	d := decoder{encoded}
	h := NewHistory(budgetLength)
	sameBudget := time.Duration(d.number()) == budgetLength
	for i := range h.burn {
		d.window(&h.burn[i], slotAt(now, BurnWindows[i]))
	}
	d.window(&h.budget, slotAt(now, budgetLength))
	if !sameBudget {
		h.budget = window{}
	}
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

func (d *decoder) window(w *window, now int64) {
	w.open = min(int64(d.number()&(1<<62-1)), now)
	for range min(d.number(), slotsPerWindow) {
		back := int64(d.number() % slotsPerWindow)
		w.slots[(w.open+slotsPerWindow-back)%slotsPerWindow] = Counts{Good: d.number(), Bad: d.number()}
	}
}
