// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Package history keeps the increments of series over the last week, in slots of time that widen
// with age: seconds, minutes, quarters of an hour, hours. Sketches merge exactly, so a percentile of any
// range of slots is as exact as that of one.
package history

import (
	"maps"
	"slices"
	"sort"
	"sync"
	"time"
	"unique"

	"github.com/tokenpulse/tokenpulse/internal/series"
)

// Key is the key of a series. Slots of one series share its memory.
type Key = unique.Handle[string]

// slot holds the gains of all series in a period of time. It is immutable once shared.
type slot struct {
	start, width int64 // seconds since the Unix epoch; start is a multiple of width
	cells        map[Key][]byte
	size         int // bytes
	shared       bool
}

func (s *slot) end() int64 { return s.start + s.width }

// overhead estimates the memory of a cell besides its bytes: its entry in the map, and what
// the allocator adds.
const overhead = 80

func (s *slot) set(key Key, cell []byte) (grown int) {
	before, ok := s.cells[key]
	grown = len(cell) - len(before)
	if !ok {
		grown += overhead
	}
	s.cells[key] = cell
	s.size += grown
	return grown
}

// Store is a history. It is safe for concurrent use.
type Store struct {
	limit int // bytes

	// mu guards everything declared below.
	mu sync.Mutex
	// slots are in the order of time. They do not overlap.
	slots   []*slot
	size    int   // bytes
	level   int   // of coarsening: see coarsen.go
	width   int64 // of new slots, in seconds
	sum     Sum
	encoded []byte
}

// New returns an empty history that takes up to limit bytes.
func New(limit int) *Store { return &Store{limit: limit, width: finest} }

// Add implements series.History.
func (s *Store) Add(g *series.Gain) {
	s.mu.Lock()
	defer s.mu.Unlock()
	into := s.open(g.Slot.Unix())
	key := unique.Make(g.Key)
	s.sum.Reset()
	s.sum.addGain(g)
	if cell, ok := into.cells[key]; ok {
		_ = s.sum.add(cell, &everything) // appendCell wrote it
	}
	s.size += into.set(key, s.encode())
}

// encode returns the sum as a cell of exactly the size that it needs.
func (s *Store) encode() []byte {
	s.encoded = s.sum.appendCell(s.encoded[:0])
	return slices.Clone(s.encoded)
}

const finest = int64(series.HistorySlot / time.Second)

// open returns the slot of a time, which may be changed. mu is held.
func (s *Store) open(at int64) *slot {
	i := len(s.slots)
	if i > 0 && s.slots[i-1].end() > at {
		i = sort.Search(i, func(i int) bool { return s.slots[i].end() > at })
	}
	if i == len(s.slots) || s.slots[i].start > at {
		s.slots = slices.Insert(s.slots, i, &slot{start: at - at%s.width, width: s.width, cells: map[Key][]byte{}})
	}
	if open := s.slots[i]; open.shared {
		s.slots[i] = &slot{start: open.start, width: open.width, cells: maps.Clone(open.cells), size: open.size}
	}
	return s.slots[i]
}

// Memory returns the estimated memory in bytes, and its limit.
func (s *Store) Memory() (used, limit int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.size, s.limit
}

// Coarsening returns how often the memory limit halved the ages at which slots widen.
func (s *Store) Coarsening() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.level
}
