// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package slowest

import (
	"cmp"
	"slices"
	"time"

	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/series"
)

// Board holds the slowest requests by one quantity, fastest first.
type Board struct {
	by       numbers.ID
	limit    int
	requests []*Entry
}

// NewBoard returns an empty board of up to limit requests, which is at least 1.
func NewBoard(by numbers.ID, limit int) *Board { return &Board{by: by, limit: limit} }

// Accepts reports whether a request would be new on the board. One without the quantity would not, nor would one whose span
// is delivered again.
func (b *Board) Accepts(r *series.Contribution) bool {
	value, ok := r.Value(b.by)
	return ok && (len(b.requests) < b.limit || value > b.requests[0].values[b.by]) &&
		!slices.ContainsFunc(b.requests, func(held *Entry) bool { return held.is(r) })
}

// Add adds a request that the board accepts. It returns the request that this displaced, or
// nil.
func (b *Board) Add(r *Entry) (displaced *Entry) {
	r.boards++
	if len(b.requests) == b.limit {
		displaced = b.requests[0]
		displaced.boards--
		b.requests = slices.Delete(b.requests, 0, 1)
	}
	at, _ := slices.BinarySearchFunc(b.requests, r, func(held, r *Entry) int { return cmp.Compare(held.values[b.by], r.values[b.by]) })
	b.requests = slices.Insert(b.requests, at, r)
	return displaced
}

// Slowest returns the requests, slowest first.
func (b *Board) Slowest() []*Entry {
	all := slices.Clone(b.requests)
	sortSlowest(all, b.by)
	return all
}

// sortSlowest sorts requests by a quantity, slowest first.
func sortSlowest(all []*Entry, by numbers.ID) {
	slices.SortFunc(all, func(a, b *Entry) int {
		return cmp.Or(cmp.Compare(b.values[by], a.values[by]), cmp.Compare(a.ID(), b.ID()))
	})
}

// expire removes the requests from before a time.
func (b *Board) expire(before time.Time, removed func(*Entry)) {
	b.requests = slices.DeleteFunc(b.requests, func(r *Entry) bool {
		if !r.Arrival.Before(before) {
			return false
		}
		r.boards--
		removed(r)
		return true
	})
}
