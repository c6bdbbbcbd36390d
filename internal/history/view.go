// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"iter"
	"slices"
	"time"
)

// View is the part of a history that covers a range of time, at one moment.
type View struct {
	// Since is the start of the oldest slot of the whole history, zero if none starts before the end of the view.
	Since time.Time
	// From and Until are the range, widened so that it cuts no slot.
	From, Until time.Time
	// Step is the width of the widest slot of the view, zero if it has none.
	Step  time.Duration
	slots []*slot
}

// View returns the slots that a range of time touches.
func (s *Store) View(from, until time.Time) View {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := View{From: from, Until: until}
	for i, slot := range s.slots {
		start, end := time.Unix(slot.start, 0), time.Unix(slot.end(), 0)
		if !start.Before(until) {
			break
		}
		if i == 0 {
			v.Since = start
		}
		if !end.After(from) {
			continue
		}
		if len(v.slots) == 0 && start.Before(from) {
			v.From = start
		}
		if end.After(until) {
			v.Until = end
		}
		slot.share()
		v.slots = append(v.slots, slot)
		v.Step = max(v.Step, time.Duration(slot.width)*time.Second)
	}
	return v
}

// share makes the slot immutable. Its cells then lie in memory in the order in which a view walks them: over thousands of
// series, waiting for memory would otherwise take longer than reading the cells.
func (s *slot) share() {
	if s.shared {
		return
	}
	s.shared = true
	size := 0
	for _, cell := range s.cells {
		size += len(cell)
	}
	all := make([]byte, 0, size)
	for key, cell := range s.cells {
		start := len(all)
		all = append(all, cell...)
		s.cells[key] = all[start:len(all):len(all)]
	}
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

// Each yields what each series that is selected gained in the slot, right after its selection. It is valid until the next
// one. For a series that adds to several sums, this reads its cell once.
func (s Slot) Each(selects func(Key) bool, want *Want) iter.Seq[*Sum] {
	return func(yield func(*Sum) bool) {
		var sum Sum
		for key, cell := range s.cells {
			if !selects(key) {
				continue
			}
			sum.Reset()
			_ = sum.add(cell, want) // as in AddTo
			if !yield(&sum) {
				return
			}
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
