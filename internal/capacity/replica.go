// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"math"
	"time"
)

// The load of a slot is noise of arrivals and lengths, and an engine stands a burst that it would not stand for long. So a slot counts at
// the load that was there for the time of both: the smaller one of two exponential averages.
const (
	shortTime = time.Minute
	longTime  = 10 * time.Minute
)

// Replica averages the load of one replica. It is not for concurrent use, also not with its Limit.
type Replica struct {
	limit       *Limit
	short, long Load
	end         time.Time // of the last slot
}

// Add adds a slot that has ended, when all its requests have been judged or given up on. Slots come in order; one that is left out is empty.
func (r *Replica) Add(start time.Time, s Slot) {
	length := r.limit.settings.Slot
	s.Unsized = min(s.Unsized, s.Good+s.Bad)
	r.limit.seen(&s)
	load := r.limit.offered(&s)
	gap := 0.0
	if !r.end.IsZero() {
		gap = max(0, start.Sub(r.end).Seconds())
	}
	r.end = start.Add(length)
	average(&r.short, &load, gap, length.Seconds(), shortTime.Seconds())
	average(&r.long, &load, gap, length.Seconds(), longTime.Seconds())
	if s.Good+s.Bad > 0 {
		r.limit.learn(r, start, &s)
	}
}

// Load returns what the replica was offered about the last minute.
func (r *Replica) Load() Load { return r.short }

func average(a, load *Load, gap, length, over float64) {
	before, keep := math.Exp(-gap/over), math.Exp(-length/over)
	for k := range a {
		a[k] = a[k]*before*keep + load[k]*(1-keep)
	}
}

// index returns the sustained load as one number: requests per second of the mean size. Of the kinds, it takes the least, so that what
// only one kind explains never raises the limit of another.
func (r *Replica) index(mean Load) float64 {
	x := math.Inf(1)
	for k, m := range mean {
		if m > 0 {
			x = min(x, r.short[k]/m, r.long[k]/m)
		}
	}
	return x
}
