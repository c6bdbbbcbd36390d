// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Package slowest holds the slowest requests of each model in the recent past, with the
// arrivals of their chunks.
package slowest

import (
	"iter"
	"strings"
	"sync"
	"time"

	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/optional"
	"github.com/tokenpulse/tokenpulse/internal/series"
)

// Limits.
const (
	// perBoard limits the requests by model, window and quantity.
	perBoard = 100
	// maxModels limits the models with boards of their own. Further models share boards.
	maxModels = 50
	// maxTimeline limits the encoded arrivals of one request, in bytes: 20000 chunks.
	maxTimeline = 64 << 10
	// maxTimelines limits those of all requests together.
	maxTimelines = 16 << 20
)

// Windows are the ranges of time that have lists of slowest requests of their own.
var Windows = [...]time.Duration{5 * time.Minute, time.Hour, 24 * time.Hour, 7 * 24 * time.Hour}

// WindowOf returns the index of the shortest of Windows that holds requests of an age, or else of the longest.
func WindowOf(age time.Duration) int {
	for i, window := range Windows {
		if age <= window {
			return i
		}
	}
	return len(Windows) - 1
}

// Quantities are those by which requests are ranked.
var Quantities = [...]numbers.ID{numbers.RequestDuration, numbers.TimeToFirstToken, numbers.TimePerOutputToken}

// Store holds the slowest requests. It is safe for concurrent use.
type Store struct {
	model int // index of the dimension, or negative

	// mu guards everything declared below.
	mu        sync.Mutex
	models    map[string]*boards
	timelines int // bytes
	dropped   int64
	kept      optional.Value[bool]
}

// boards are those of one model.
type boards [len(Windows)][len(Quantities)]Board

// otherModels is the key of the boards that further models share. No label is as long.
var otherModels = strings.Repeat("x", names.MaxLabelLength+1)

// New returns an empty store. model is the index of the dimension that has the model, or
// negative if none does.
func New(model int) *Store { return &Store{model: model, models: map[string]*boards{}} }

// Accepts reports whether a request is among the slowest. It asks the boards of the shortest
// window only. If a request is not among the slowest there, that window is full of slower ones,
// and each longer window has them, too.
func (s *Store) Accepts(r *series.Contribution) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	shortest := &s.of(r)[0]
	for q := range shortest {
		if shortest[q].Accepts(r) {
			return true
		}
	}
	return false
}

// Add adds a request if it is among the slowest, with its encoded chunk arrivals, or nil if
// they are unknown. The store keeps the timeline and the facts, and no other memory of the request.
func (s *Store) Add(r *series.Contribution, timeline []byte, facts Facts) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var held *Entry
	for b := range s.of(r).accepting(r) {
		if held == nil {
			held = s.hold(r, timeline, facts)
		}
		if displaced := b.Add(held); displaced != nil {
			s.release(displaced)
		}
	}
}

// accepting yields the boards that accept a request.
func (b *boards) accepting(r *series.Contribution) iter.Seq[*Board] {
	return func(yield func(*Board) bool) {
		for q := range Quantities {
			for w := range b {
				if b[w][q].Accepts(r) && !yield(&b[w][q]) {
					return
				}
			}
		}
	}
}

// of returns the boards of a request's model. mu is held.
func (s *Store) of(r *series.Contribution) *boards {
	model := ""
	if s.model >= 0 {
		model = r.Dimensions[s.model]
	}
	if b := s.models[model]; b != nil {
		return b
	}
	if len(s.models) >= maxModels {
		if b := s.models[otherModels]; b != nil {
			return b
		}
		model = otherModels
	}
	b := new(boards)
	for w := range b {
		for q := range b[w] {
			b[w][q] = *NewBoard(Quantities[q], perBoard)
		}
	}
	s.models[strings.Clone(model)] = b
	return b
}

// hold copies a request. mu is held.
func (s *Store) hold(r *series.Contribution, timeline []byte, facts Facts) *Entry {
	held := NewEntry(r, facts)
	if _, ok := r.Value(numbers.TimeToFirstToken); ok {
		s.kept = optional.Of(len(timeline) > 0)
	}
	switch {
	case len(timeline) > maxTimeline || s.timelines+len(timeline) > maxTimelines:
		held.TimelineDropped = true
		s.dropped++
	default:
		held.Timeline = timeline
		s.timelines += len(timeline)
	}
	return held
}

// release accounts for a request that left a board. mu is held.
func (s *Store) release(r *Entry) {
	if r.boards == 0 {
		s.timelines -= len(r.Timeline)
	}
}

// Maintain removes the requests that left their windows. Call it every few seconds.
func (s *Store) Maintain(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for model, boards := range s.models {
		left := 0
		for w := range boards {
			for q := range boards[w] {
				b := &boards[w][q]
				b.expire(now.Add(-Windows[w]), s.release)
				left += len(b.requests)
			}
		}
		if left == 0 {
			delete(s.models, model)
		}
	}
}

// Slowest returns up to limit of the selected requests of a window, slowest first. window and
// by index Windows and Quantities.
func (s *Store) Slowest(window, by, limit int, selected func(*Entry) bool) (found []*Entry) {
	s.mu.Lock()
	for _, boards := range s.models {
		for _, r := range boards[window][by].requests {
			if selected(r) {
				found = append(found, r)
			}
		}
	}
	s.mu.Unlock()
	sortSlowest(found, Quantities[by])
	return found[:min(limit, len(found))]
}

// Find returns the request with an ID, or nil.
func (s *Store) Find(id string) *Entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, boards := range s.models {
		for w := range boards {
			for q := range boards[w] {
				for _, r := range boards[w][q].requests {
					if r.ID() == id {
						return r
					}
				}
			}
		}
	}
	return nil
}

// TimelinesKept reports whether the latest held request that has a first token has a
// timeline. ok is false before the first such request.
func (s *Store) TimelinesKept() (kept, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.kept.Value, s.kept.Known
}

// TimelinesDropped returns the number of requests that are held without their timeline,
// because of the limits of memory.
func (s *Store) TimelinesDropped() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dropped
}
