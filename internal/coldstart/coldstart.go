// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Package coldstart decides which requests of a replica are cold: its first ones, and its first ones after an
// idle time.
package coldstart

import (
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// MaxReplicas is the number of replicas that a process keeps per table. Each takes at most 32 bytes for each of
// Settings.Requests, and some 200 more.
const MaxReplicas = 10_000

// Settings say which requests are cold.
type Settings struct {
	// Requests is how many are cold at the begin of a period of activity, Duration how long they are. Either
	// is enough.
	Requests int
	Duration time.Duration
	// Idle is the longest time without an open request within a period of activity.
	Idle time.Duration
}

// Table has the replicas that had requests. All times are nanoseconds since the Unix epoch. It is safe for
// concurrent use.
type Table struct {
	requests       int
	duration, idle int64
	limit          int
	now            func() int64

	evicted atomic.Int64

	mu sync.Mutex
	// mu guards everything declared below.

	replicas map[uint64]*replica
	newest   *replica // the one that a request was noted of last
	oldest   *replica
	// complete is the time since which all requests of replicas that are not in the table would be known.
	complete int64
}

// replica has the activity of one replica.
type replica struct {
	key uint64
	activity
	newer, older *replica
}

// NewTable returns a table without replicas, of at most limit. now is the clock.
func NewTable(s Settings, limit int, now func() int64) *Table {
	return &Table{
		requests: s.Requests, duration: int64(s.Duration), idle: int64(s.Idle), limit: limit, now: now,
		replicas: map[uint64]*replica{}, complete: now(),
	}
}

// Evicted returns how many replicas were forgotten at the limit although they were not idle. A new replica is not
// called cold in the idle time that follows on the last request of such a one.
func (t *Table) Evicted() int64 { return t.evicted.Load() }

// Cold notes a request of a replica, and reports whether it is cold by what is known so far. A request that was noted
// before counts once.
func (t *Table) Cold(key uint64, start, end int64) bool {
	if start <= 0 || max(start, end) > math.MaxInt64/2 { // no clock shows such a time
		return false
	}
	of := request{start, max(start, end)}
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.replicas[key]
	complete := t.complete
	if r != nil {
		complete = r.complete
	}
	if of.end < complete-t.idle { // nothing is known about that time, nor follows from it
		return false
	}
	if r == nil {
		r = t.add(key)
	}
	t.touch(r)
	p := r.note(of, t.idle, t.requests)
	return p != nil && p.since >= r.complete+t.idle && (of.start < p.since+t.duration || p.isFirst(of, t.requests))
}

func (t *Table) add(key uint64) *replica {
	if len(t.replicas) >= t.limit {
		t.evict()
	}
	r := &replica{key: key, activity: activity{complete: t.complete}}
	t.replicas[key] = r
	return r
}

// evict forgets the replica whose last request was noted first. If that one is idle, nothing is lost: its next
// request is cold in any case.
func (t *Table) evict() {
	r, now := t.oldest, t.now()
	until := r.periods[len(r.periods)-1].until
	if until >= now-t.idle {
		t.evicted.Add(1)
	}
	t.complete = max(t.complete, min(until, now))
	t.unlink(r)
	delete(t.replicas, r.key)
}

// touch makes a replica the newest.
func (t *Table) touch(r *replica) {
	if t.newest == r {
		return
	}
	t.unlink(r)
	r.older, t.newest = t.newest, r
	if r.older != nil {
		r.older.newer = r
	} else {
		t.oldest = r
	}
}

func (t *Table) unlink(r *replica) {
	if r.newer != nil {
		r.newer.older = r.older
	}
	if r.older != nil {
		r.older.newer = r.newer
	}
	if t.newest == r {
		t.newest = r.older
	}
	if t.oldest == r {
		t.oldest = r.newer
	}
	r.newer, r.older = nil, nil
}
