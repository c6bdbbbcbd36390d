// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"slices"
	"time"
)

// tier is a width of slots, and the age up to which they are kept, in seconds.
type tier struct{ width, age int64 }

const (
	minute  = 60
	quarter = 15 * minute
	hour    = 60 * minute
	day     = 24 * hour
	week    = 7 * day
)

// maxLevel is the coarsest level: minutes at once, hours after 22 minutes.
const maxLevel = 7

// tiers returns the tiers of a level. The first one widens only what is older than a day. Each further level halves the ages
// within the day; there, hours follow quarters of an hour.
func tiers(level int) []tier {
	halved, old := max(0, level-1), int64(2*hour)
	if level > 0 {
		old = 12 * hour
	}
	all := []tier{{finest, 5 * minute >> halved}, {minute, hour >> halved}, {quarter, day >> halved}}
	if halved > 0 {
		all = append(all, tier{hour, day})
	}
	return append(all, tier{old, week})
}

// Maintain widens the slots that are old enough, and drops those that are too old. Over the
// memory limit it widens at a lower age. If that is not enough, it drops the oldest slots.
// Call it every few seconds, from one goroutine.
func (s *Store) Maintain(now time.Time) {
	s.mu.Lock()
	level := s.level
	s.mu.Unlock()
	s.coarsen(now.Unix(), level)
	for s.over() && level < maxLevel {
		level++
		s.coarsen(now.Unix(), level)
	}
	s.dropOldest()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.level = level; level > 0 && s.size < s.limit/4 {
		s.level-- // a level halves the memory at most
	}
}

// dropOldest drops slots while the history is over its limit, except the last one.
func (s *Store) dropOldest() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.size > s.limit && len(s.slots) > 1 {
		s.size -= s.slots[0].size
		s.slots = slices.Delete(s.slots, 0, 1)
	}
}

func (s *Store) over() bool {
	used, limit := s.Memory()
	return used > limit
}

// coarsen brings all slots to the tiers of a level.
func (s *Store) coarsen(now int64, level int) {
	tiers := tiers(level)
	for i, tier := range tiers {
		if i+1 < len(tiers) {
			s.widen(now-tier.age, tiers[i+1].width)
		} else {
			s.swap(s.before(now-tier.age), nil)
		}
	}
}

// widen merges slots into slots of a width, unless these end after a time.
func (s *Store) widen(until, width int64) {
	narrow := s.before(until - until%width)
	for len(narrow) > 0 {
		start := narrow[0].start - narrow[0].start%width
		n := 1
		for n < len(narrow) && narrow[n].start < start+width {
			n++
		}
		if run := narrow[:n]; run[0].width < width {
			s.swap(run, merged(run, start, width))
		}
		narrow = narrow[n:]
	}
}

// before returns the slots that end at a time or before. They will not change.
func (s *Store) before(until int64) (slots []*slot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, slot := range s.slots {
		if slot.end() > until {
			break
		}
		slot.shared = true
		slots = append(slots, slot)
	}
	return slots
}

// merged returns one slot with the cells of several.
func merged(slots []*slot, start, width int64) *slot {
	cells := map[Key][][]byte{}
	for _, slot := range slots {
		for key, cell := range slot.cells {
			cells[key] = append(cells[key], cell)
		}
	}
	into := &slot{start: start, width: width, cells: make(map[Key][]byte, len(cells))}
	var sum Sum
	var encoded []byte
	for key, parts := range cells {
		if len(parts) == 1 {
			into.set(key, parts[0])
			continue
		}
		sum.Reset()
		for _, part := range parts {
			_ = sum.add(part, &everything) // checked when it was restored, or appendCell wrote it
		}
		encoded = sum.appendCell(encoded[:0])
		into.set(key, slices.Clone(encoded))
	}
	return into
}

// swap replaces slots by another one, or by none. If one of them was added to meanwhile, it
// does nothing: the next call of Maintain tries again.
func (s *Store) swap(old []*slot, by *slot) {
	if len(old) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	at := slices.Index(s.slots, old[0])
	if at < 0 || at+len(old) > len(s.slots) || !slices.Equal(s.slots[at:at+len(old)], old) {
		return
	}
	for _, slot := range old {
		s.size -= slot.size
	}
	if by == nil {
		s.slots = slices.Delete(s.slots, at, at+len(old))
		return
	}
	s.size += by.size
	s.slots = slices.Replace(s.slots, at, at+len(old), by)
}
