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

// sustained averages the load of one replica for one Limit.
type sustained struct {
	limit *Limit
	averages
}

// averages are those of the load that a replica was offered in its slots.
type averages struct {
	short, long Load
	start, end  time.Time // of the first slot and the last one
}

// add adds a slot that has ended, when all its requests have been judged or given up on. Slots come in order; one that is left out is empty.
func (r *sustained) add(start time.Time, s offer) {
	s.Unsized = min(s.Unsized, s.requests())
	r.limit.seen(&s)
	load := r.limit.offered(&s)
	r.averages.add(start, &load)
	if s.Good+s.Bad > 0 && r.seen() >= longTime {
		r.limit.learn(r, start, &s)
	}
}

// add adds the load of a slot.
func (r *averages) add(start time.Time, load *Load) {
	gap := 0.0
	if r.end.IsZero() {
		r.start = start
	} else {
		gap = max(0, start.Sub(r.end).Seconds())
	}
	r.end = start.Add(Slot)
	average(&r.short, load, gap, Slot.Seconds(), shortTime.Seconds())
	average(&r.long, load, gap, Slot.Seconds(), longTime.Seconds())
}

// seen is how long the averages have seen the replica. Before that, its load is unknown: after a restart of the Collector in the middle of an
// overload, slots would count as missed at nearly no load.
func (r *averages) seen() time.Duration { return r.end.Sub(r.start) }

func average(a, load *Load, gap, length, over float64) {
	before, keep := math.Exp(-gap/over), math.Exp(-length/over)
	for k := range a {
		a[k] = a[k]*before*keep + load[k]*(1-keep)
	}
}

// index returns the sustained load as one number: requests per second of the mean size. Of the kinds, it takes the least, so that what
// only one kind explains never raises the limit of another.
func (r *averages) index(mean Load) float64 {
	x, load := math.Inf(1), r.sustained()
	for k, m := range mean {
		if m > 0 {
			x = min(x, load[k]/m)
		}
	}
	return x
}

// sustained returns the smaller one of the averages over shortTime and longTime, for each kind.
func (r *averages) sustained() Load {
	short, long := r.of(r.short, shortTime), r.of(r.long, longTime)
	for k := range short {
		short[k] = min(short[k], long[k])
	}
	return short
}

// of returns an average over the time that was seen.
func (r *averages) of(average Load, over time.Duration) Load {
	return average.times(1 / (1 - math.Exp(-r.seen().Seconds()/over.Seconds())))
}
