// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package coldstart

import (
	"cmp"
	"slices"
)

// activity is when a replica had open requests, as far as it is known: the last two periods, in their order. The one
// before the last is for requests that are delivered late.
type activity struct {
	// complete is the time since which all requests of the replica are known.
	complete int64
	periods  []period
}

// maxPeriods limits the periods of an activity.
const maxPeriods = 2

// period is a time in which a replica was never idle.
type period struct {
	since, until int64     // start of its first request, latest end of one
	first        []request // those that started first, in this order
}

type request struct{ start, end int64 }

func (a request) compare(b request) int {
	return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.end, b.end))
}

// note adds a request to its period, of which it keeps the first ones. A request that is delivered late may begin a
// period earlier, be one of its own, or show that there was no idle time between two. note returns nil if the
// period is too old to be kept.
func (a *activity) note(q request, idle int64, first int) *period {
	if last := len(a.periods) - 1; last >= 0 {
		if p := &a.periods[last]; q.start >= p.since && q.start <= p.until+idle {
			p.until = max(p.until, q.end)
			p.insert(q, first)
			return p
		}
	}
	of := period{since: q.start, until: q.end, first: []request{q}}
	at := 0 // periods before this one
	periods := make([]period, 0, maxPeriods+1)
	for _, p := range a.periods {
		switch {
		case p.until+idle < of.since:
			at++
			periods = append(periods, p)
		case of.until+idle < p.since:
			periods = append(periods, p)
		default:
			of.merge(&p, first)
		}
	}
	a.periods = slices.Insert(periods, at, of)
	if len(a.periods) > maxPeriods {
		a.complete = max(a.complete, a.periods[0].until)
		a.periods = slices.Delete(a.periods, 0, 1)
		at--
	}
	if at < 0 {
		return nil
	}
	return &a.periods[at]
}

func (p *period) merge(other *period, first int) {
	p.since, p.until = min(p.since, other.since), max(p.until, other.until)
	for _, q := range other.first {
		p.insert(q, first)
	}
}

// insert adds a request to the first ones, if it is one of them and not known.
func (p *period) insert(q request, first int) {
	i, known := slices.BinarySearchFunc(p.first, q, request.compare)
	if known || i >= first {
		return
	}
	if len(p.first) == first {
		p.first = p.first[:first-1]
	}
	p.first = slices.Insert(p.first, i, q)
}

// isFirst reports whether a request is one of the first ones.
func (p *period) isFirst(q request, first int) bool {
	i, _ := slices.BinarySearchFunc(p.first, q, request.compare)
	return i < first
}
