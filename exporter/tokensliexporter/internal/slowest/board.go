// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package slowest

import (
	"container/heap"
	"math"
	"slices"
	"time"

	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/series"
)

// board holds the slowest requests of a window by one quantity. It is a heap whose fastest
// request comes first.
type board struct {
	by       numbers.ID
	requests []*Request
	// over is what the value of a further request must exceed. It is here because most requests are
	// compared with nothing else.
	over float64
}

func newBoard(by numbers.ID) board { return board{by: by, over: math.Inf(-1)} }

// accepts reports whether a request with a value would be new on the board. A request whose
// span is delivered again is not.
func (b *board) accepts(r *series.Request, value float64) bool {
	return value > b.over && !slices.ContainsFunc(b.requests, func(held *Request) bool { return held.is(r) })
}

// setOver follows a change of the requests.
func (b *board) setOver() {
	b.over = math.Inf(-1)
	if len(b.requests) == perBoard {
		b.over = b.requests[0].values[b.by]
	}
}

// add adds a request that the board accepts. It returns the request that this displaced, or
// nil.
func (b *board) add(r *Request) (displaced *Request) {
	r.boards++
	defer b.setOver()
	if len(b.requests) < perBoard {
		heap.Push(b, r)
		return nil
	}
	displaced = b.requests[0]
	displaced.boards--
	b.requests[0] = r
	heap.Fix(b, 0)
	return displaced
}

// expire removes the requests from before a time.
func (b *board) expire(before time.Time, removed func(*Request)) {
	held := len(b.requests)
	b.requests = slices.DeleteFunc(b.requests, func(r *Request) bool {
		if !r.Arrival.Before(before) {
			return false
		}
		r.boards--
		removed(r)
		return true
	})
	if len(b.requests) < held {
		heap.Init(b)
		b.setOver()
	}
}

// Len implements heap.Interface.
func (b *board) Len() int { return len(b.requests) }

// Less implements heap.Interface.
func (b *board) Less(i, j int) bool {
	return b.requests[i].values[b.by] < b.requests[j].values[b.by]
}

// Swap implements heap.Interface.
func (b *board) Swap(i, j int) { b.requests[i], b.requests[j] = b.requests[j], b.requests[i] }

// Push implements heap.Interface.
func (b *board) Push(r any) { b.requests = append(b.requests, r.(*Request)) }

// Pop implements heap.Interface.
func (b *board) Pop() any {
	last := len(b.requests) - 1
	r := b.requests[last]
	b.requests[last] = nil
	b.requests = b.requests[:last]
	return r
}
