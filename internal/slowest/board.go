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

// board holds the slowest requests of a window by one quantity, fastest first.
type board struct {
	by       numbers.ID
	requests []*Entry
}

// accepts reports whether a request with a value would be new on the board. A request whose
// span is delivered again is not.
func (b *board) accepts(r *series.Contribution, value float64) bool {
	return (len(b.requests) < perBoard || value > b.requests[0].values[b.by]) &&
		!slices.ContainsFunc(b.requests, func(held *Entry) bool { return held.is(r) })
}

// add adds a request that the board accepts. It returns the request that this displaced, or
// nil.
func (b *board) add(r *Entry) (displaced *Entry) {
	r.boards++
	if len(b.requests) == perBoard {
		displaced = b.requests[0]
		displaced.boards--
		b.requests = slices.Delete(b.requests, 0, 1)
	}
	at, _ := slices.BinarySearchFunc(b.requests, r, func(held, r *Entry) int { return cmp.Compare(held.values[b.by], r.values[b.by]) })
	b.requests = slices.Insert(b.requests, at, r)
	return displaced
}

// expire removes the requests from before a time.
func (b *board) expire(before time.Time, removed func(*Entry)) {
	b.requests = slices.DeleteFunc(b.requests, func(r *Entry) bool {
		if !r.Arrival.Before(before) {
			return false
		}
		r.boards--
		removed(r)
		return true
	})
}
