// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"slices"
	"time"
)

const (
	// wait is how long after its beginning a slot is complete. Requests that take longer are late, and do not count.
	wait = 10 * time.Minute
	// held is the number of slots that are open, the present one included.
	held = int64(wait/Slot) + 1
	// gone is the time after its last request at which a replica is no longer one of its service.
	gone = 5 * time.Minute
	// rateSlots are those whose requests the present rate averages. The slot before the present one is not among them: some of its requests are
	// still in a batch of their sender.
	rateSlots = 4
	// settled slots of a replica must be known, or else the others may not have been seen yet.
	settled = 8
)

// clock is the time at which a sender is. It follows the ends of requests, so that recorded ones may be of any time, and goes on
// without them.
type clock struct {
	latest  time.Time // end of a request
	arrived time.Time // when it was set
}

// set moves the clock forward, never back.
func (c *clock) set(end, now time.Time) {
	if end.After(c.latest) {
		c.latest, c.arrived = end, now
	}
}

func (c *clock) at(now time.Time) time.Time { return c.latest.Add(max(0, now.Sub(c.arrived))) }

// instance is one replica as one vantage sees it, with the requests of all models that it serves.
type instance struct {
	clock
	name    string
	since   int64 // first slot that was seen from its beginning; those before do not count
	next    int64 // slots before it are complete
	slots   [held]offer
	lasting durations
	shares  []*share
}

// slotOf returns the number of the slot of a time.
func slotOf(at time.Time) int64 { return at.UnixNano() / int64(Slot) }

func startOf(slot int64) time.Time { return time.Unix(0, slot*int64(Slot)) }

// newInstance returns a replica by its first request. Requests that ended in the time before it would have been seen, so that there were none.
func newInstance(first *Request, before time.Duration) *instance {
	since := slotOf(first.End.Add(-min(before, wait))) + 1
	return &instance{name: first.Replica, since: since, next: since}
}

// setBack reports whether a request shows that the clock of the replica was set back: nothing has come from where it was for minutes.
func (i *instance) setBack(r *Request, now time.Time) bool {
	return now.Sub(i.arrived) > gone && r.End.Before(i.latest)
}

// add counts a request. late is true if its slot is complete already.
func (i *instance) add(r *Request, of *share, now time.Time) (late bool) {
	i.set(r.End, now)
	i.complete(slotOf(i.latest) - held + 1)
	// Those that began before the first slot count here, or else only short ones would, for the first minutes.
	if after := i.latest.Sub(r.Start); after <= wait {
		i.lasting.add(after)
	}
	begun := slotOf(r.Start)
	if begun < i.next {
		return begun >= i.since
	}
	s := &i.slots[begun%held]
	s.Others++
	if r.Sized {
		s.Output += r.Output
		s.Prompt += r.Prompt
	} else {
		s.Unsized++
	}
	of.add(begun, &r.Verdicts)
	return false
}

// complete hands the slots before one to the limits.
func (i *instance) complete(before int64) {
	for last := i.next + held; i.next < min(before, last); i.next++ {
		if s := &i.slots[i.next%held]; s.requests() > 0 {
			for _, of := range i.shares {
				of.complete(i.next, s)
			}
			*s = offer{}
			i.shares = slices.DeleteFunc(i.shares, func(of *share) bool { return of.latest < i.next })
		}
		i.lasting.fade()
	}
	i.next = max(i.next, before)
}

// rate returns the requests per second that began in about the last minute. Those that are still open are estimated by how long others took.
// slots is how many are known, from the first one that was seen: none if the replica is new, or gone.
func (i *instance) rate(now time.Time) (perSecond float64, slots int64) {
	at := i.at(now)
	if at.Sub(i.latest) > gone {
		return 0, 0
	}
	var began, seconds float64
	n := 0
	for slot := slotOf(at) - 2; slot >= i.next && n < rateSlots; slot-- {
		ended := i.lasting.ended(at.Sub(startOf(slot + 1)))
		if ended < 0.5 {
			continue
		}
		if slot <= slotOf(i.latest) {
			began += float64(i.slots[slot%held].requests())
		}
		seconds += ended * Slot.Seconds()
		slots = max(slots, slot-i.since+1)
		n++
	}
	return began / max(seconds, 1), slots
}

// share is what the requests of one series are of those of an instance.
type share struct {
	of       *subject
	averages []*sustained // by objective
	verdicts []verdicts   // of the open slots, by slot and objective
	latest   int64        // last slot with a request
}

type verdicts struct{ good, bad uint32 }

// newShare continues the averages of another series, as they are those of all requests of the instance.
func newShare(of *subject, on *instance) *share {
	s := &share{of: of, verdicts: make([]verdicts, held*int64(len(of.limits)))}
	for i, l := range of.limits {
		r := l.replica()
		if len(on.shares) > 0 {
			r.averages = on.shares[0].averages[i].averages
		}
		s.averages = append(s.averages, r)
	}
	return s
}

func (s *share) at(slot int64) []verdicts {
	n := int64(len(s.averages))
	return s.verdicts[slot%held*n : (slot%held+1)*n]
}

func (s *share) add(slot int64, of *[MaxObjectives]Verdict) {
	s.latest = max(s.latest, slot)
	for i, v := range s.at(slot) {
		switch of[i] {
		case Good:
			v.good++
		case Bad:
			v.bad++
		case Unjudged:
		}
		s.at(slot)[i] = v
	}
}

// complete adds the slot to the limits: the load is that of all requests of the replica.
func (s *share) complete(slot int64, all *offer) {
	for i, v := range s.at(slot) {
		o := *all
		o.Good, o.Bad = uint64(v.good), uint64(v.bad)
		o.Others -= o.Good + o.Bad
		s.averages[i].add(startOf(slot), o)
	}
	clear(s.at(slot))
	s.of.slots++
}
