// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"math"
	"time"
)

// Reason says why there is no limit.
type Reason string

// The reasons.
const (
	TooFew      Reason = "too_few"       // too few slots met the objective to say so of any load
	KneeNotSeen Reason = "knee_not_seen" // the objective was not missed in enough slots at a higher load
	MixChanged  Reason = "mix_changed"   // requests are longer or shorter than those that were learned from
)

// Answer is what a Limit knows.
type Answer struct {
	Reason Reason // "" if there is a limit
	// Limit is the largest load that met the objective. With KneeNotSeen it is that so far, and no limit. Else it is 0 if there is
	// a reason.
	Limit Load
	// Stale is true if no slot beyond the limit missed the objective in the last day.
	Stale bool
	// MissedAt is when one did last.
	MissedAt time.Time
}

// Utilization returns the largest quotient of load and limit, of output tokens and prompt tokens, or of requests if they have no tokens. It is
// NaN without a limit.
func (a *Answer) Utilization(load Load) float64 {
	if a.Reason != "" {
		return math.NaN()
	}
	if a.Limit[OutputTokens] == 0 && a.Limit[PromptTokens] == 0 {
		return load[Requests] / a.Limit[Requests]
	}
	u := 0.0
	for k := OutputTokens; k < Kinds; k++ {
		if a.Limit[k] > 0 {
			u = max(u, load[k]/a.Limit[k])
		}
	}
	return u
}

// Limit learns the load at which replicas meet an objective: those of one model on one hardware, or a single one. It takes under 10 KiB, and
// is not for concurrent use.
type Limit struct {
	objective float64
	forget    time.Duration
	recent    mix
	// learned is what is answered from. The other one is of another mix, and takes its place as soon as it has a limit and its mix is there.
	learned, other learned
}

// learned is what is known about requests of one mix.
type learned struct {
	reference mix
	curve     curve
}

// New returns a Limit that has learned nothing. An objective is a share of good requests, such as 0.99. What was learned is forgotten after a
// time without a slot that missed it at a higher load.
func New(objective float64, forget time.Duration) *Limit {
	return &Limit{objective: objective, forget: forget}
}

// replica returns the averages of a new replica whose slots the limit learns from.
func (l *Limit) replica() *sustained { return &sustained{limit: l} }

// seen notes the mix of a slot.
func (l *Limit) seen(s *offer) {
	l.recent.fade(s, recentRequests)
	l.recent.add(s)
}

// offered returns the load of a slot. Requests of unknown size count as recent ones.
func (l *Limit) offered(s *offer) Load {
	seconds := Slot.Seconds()
	load := l.Sized(float64(s.Unsized) / seconds)
	load[Requests] = float64(s.requests()) / seconds
	load[OutputTokens] += float64(s.Output) / seconds
	load[PromptTokens] += float64(s.Prompt) / seconds
	return load
}

// Sized returns the load of requests per second that have the mean size of recent ones: what is offered now, before the answers end.
func (l *Limit) Sized(requests float64) Load {
	return l.recent.perRequest().times(requests)
}

func (l *Limit) learn(r *sustained, start time.Time, s *offer) {
	k := l.present(start)
	if k.reference[Requests] < referenceRequests {
		k.reference.add(s)
	}
	share := float64(s.Bad) / float64(s.Good+s.Bad)
	missed, x := share > 1-l.objective, r.index(k.reference.perRequest())
	if !math.IsInf(x, 1) {
		k.curve.at(x).add(s, missed, float64(start.Unix()), l.most())
	}
}

// present returns what is known about the recent mix.
func (l *Limit) present(at time.Time) *learned {
	if l.learned.reference.fits(&l.recent) {
		return &l.learned
	}
	if !l.other.reference.fits(&l.recent) {
		l.other = learned{}
	}
	if l.answer(&l.learned, at).Reason != "" || l.answer(&l.other, at).Reason == "" {
		l.learned, l.other = l.other, l.learned
		return &l.learned
	}
	return &l.other
}

// most is how many slots a bin remembers: several times those that certify it.
func (l *Limit) most() float64 {
	return 2 * math.Log(1/alpha) / (1 - l.objective)
}

// Answer returns the limit, or the reason why none is known.
func (l *Limit) Answer(now time.Time) Answer {
	a := l.answer(&l.learned, now)
	if a.Reason == "" && !l.learned.reference.fits(&l.recent) {
		return Answer{Reason: MixChanged}
	}
	return a
}

func (l *Limit) answer(k *learned, now time.Time) Answer {
	const stale = 24 * time.Hour
	knee := k.curve.knee(l.objective)
	reason, highest := Reason(""), knee
	if knee < 0 {
		reason, highest = KneeNotSeen, binCount-1
	}
	i := k.curve.met(l.objective, highest)
	if i < 0 {
		return Answer{Reason: TooFew}
	}
	a := Answer{Reason: reason}
	x := edge(k.curve.bottom + i)
	for kind, mean := range k.reference.perRequest() {
		a.Limit[kind] = x * mean
	}
	if reason == "" {
		a.MissedAt = time.Unix(k.curve.missedAt(i), 0)
		a.Stale = now.Sub(a.MissedAt) > stale
		if now.Sub(a.MissedAt) > l.forget {
			*k = learned{}
			return Answer{Reason: KneeNotSeen}
		}
	}
	return a
}
