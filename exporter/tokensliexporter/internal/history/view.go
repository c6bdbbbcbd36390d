// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"iter"
	"slices"
	"time"
)

// View is a history at one moment, from a time on.
type View struct {
	// Since is the start of the oldest slot of the whole history, zero if it is empty.
	Since time.Time
	// Step is the width of the widest slot of the view, zero if it has none.
	Step  time.Duration
	slots []*slot
}

// View returns the slots that start at a time or later.
func (s *Store) View(from time.Time) (v View) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.slots) > 0 {
		v.Since = time.Unix(s.slots[0].start, 0)
	}
	for _, slot := range s.slots {
		if slot.start < from.Unix() {
			continue
		}
		slot.shared = true
		v.slots = append(v.slots, slot)
		v.Step = max(v.Step, time.Duration(slot.width)*time.Second)
	}
	return v
}

// Until returns the part of the view whose slots start before a time.
func (v View) Until(end time.Time) View {
	all := v.slots
	v.slots, v.Step = nil, 0
	for _, slot := range all {
		if slot.start < end.Unix() {
			v.slots = append(v.slots, slot)
			v.Step = max(v.Step, time.Duration(slot.width)*time.Second)
		}
	}
	return v
}

// Slot is one slot of a view.
type Slot struct {
	Start time.Time
	Width time.Duration
	cells map[Key][]byte
}

// Slots yields the slots in the order of time.
func (v *View) Slots() iter.Seq[Slot] {
	return func(yield func(Slot) bool) {
		for _, slot := range v.slots {
			if !yield(Slot{time.Unix(slot.start, 0), time.Duration(slot.width) * time.Second, slot.cells}) {
				return
			}
		}
	}
}

// AddTo adds the increments of each series in the slot to the sum that of returns for it. It
// skips a series for which of returns nil.
func (s Slot) AddTo(of func(Key) *Sum, want *Want) {
	for key, cell := range s.cells {
		if sum := of(key); sum != nil {
			_ = sum.add(cell, want) // checked when it was restored, or appendCell wrote it
		}
	}
}

// Keys returns the keys of the series in the view, sorted.
func (v *View) Keys() []string {
	keys := map[Key]bool{}
	for _, slot := range v.slots {
		for key := range slot.cells {
			keys[key] = true
		}
	}
	sorted := make([]string, 0, len(keys))
	for key := range keys {
		sorted = append(sorted, key.Value())
	}
	slices.Sort(sorted)
	return sorted
}
