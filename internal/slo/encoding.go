// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package slo

import (
	"encoding/binary"
	"errors"
	"time"
)

// AppendBinary appends the windows in the form that DecodeWindows reads. All numbers
// are unsigned varints: the length of the budget's window, then each burn window in
// the order of BurnWindows, then the budget's. A window is its open slot, the number
// of slots in use, and for each of these its age in slots, the good and the bad
// requests.
func (h *Windows) AppendBinary(dst []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(h.budgetLength))
	for i := range h.windows {
		dst = h.windows[i].appendBinary(dst)
	}
	return dst
}

var errMalformed = errors.New("malformed windows of an objective")

// DecodeWindows reads the output of AppendBinary. If budgetLength differs from the
// encoded one, the budget starts empty. A window whose open slot lies after now,
// because the clock was ahead or was set back, is moved to now.
func DecodeWindows(encoded []byte, budgetLength, now time.Duration) (*Windows, error) {
	d := decoder{encoded}
	h := NewWindows(budgetLength)
	sameBudget := time.Duration(d.number()) == budgetLength
	for i := range h.windows {
		d.window(&h.windows[i], slotAt(now, h.length(i)))
	}
	if !sameBudget {
		h.windows[len(BurnWindows)] = window{}
	}
	if d.rest == nil || len(d.rest) > 0 {
		return nil, errMalformed
	}
	return h, nil
}

func (w *window) appendBinary(dst []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(w.open))
	used := 0
	for _, slot := range w.slots {
		if slot != (Counts{}) {
			used++
		}
	}
	dst = binary.AppendUvarint(dst, uint64(used))
	for age := range int64(slotsPerWindow) {
		slot := w.slots[(w.open+slotsPerWindow-age)%slotsPerWindow]
		if slot != (Counts{}) {
			dst = binary.AppendUvarint(dst, uint64(age))
			dst = binary.AppendUvarint(dst, slot.Good)
			dst = binary.AppendUvarint(dst, slot.Bad)
		}
	}
	return dst
}

// decoder reads varints. After a malformed one, rest is nil.
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
		age := int64(d.number() % slotsPerWindow)
		w.slots[(w.open+slotsPerWindow-age)%slotsPerWindow] = Counts{Good: d.count(), Bad: d.count()}
	}
}

// maxCount keeps the sum of a window from overflowing. No Collector counts that far.
const maxCount = 1 << 52

func (d *decoder) count() uint64 {
	n := d.number()
	if n > maxCount {
		d.rest = nil
	}
	return n
}
