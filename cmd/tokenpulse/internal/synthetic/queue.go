// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package synthetic

import "time"

// defaultSlots is how many requests a service with a queue runs at a time.
const defaultSlots = 8

// queue is the queue of a service that runs a limited number of requests at a time.
// Times are offsets from Config.Begin.
type queue struct {
	limit int
	// slots holds the times at which each slot is free.
	slots users
	// waiting holds the times at which the waiting requests leave the queue, in order.
	waiting []time.Duration
	entered bool // the last request got a slot
}

func newQueue(config Config) *queue {
	slots := config.Concurrency
	if slots == 0 {
		slots = defaultSlots
	}
	return &queue{limit: config.QueueLimit, slots: make(users, slots)}
}

// enter returns when a request that arrives now gets a slot, or false if too many others
// are waiting. Requests arrive in the order of time. ended must follow.
func (q *queue) enter(now time.Duration) (time.Duration, bool) {
	for len(q.waiting) > 0 && q.waiting[0] <= now {
		q.waiting = q.waiting[1:]
	}
	free := q.slots.next()
	q.entered = free <= now || len(q.waiting) < q.limit
	if q.entered && free > now {
		q.waiting = append(q.waiting, free)
	}
	return free, q.entered
}

// ended frees the slot of the request that entered last.
func (q *queue) ended(at time.Duration) {
	if q.entered {
		q.slots.ended(at)
	}
}
