// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package liveness

import (
	"math"
	"math/bits"
	"slices"
	"time"
)

// sleep is how long an engine is idle before its first answer may take longer: some unload their model.
const sleep = time.Minute

// sleeps are classes of idle times: 1 to 2 minutes, 2 to 4, up to 64 and more.
const sleeps = 7

// wake learns how much longer than its prefill the first token after a sleep takes.
type wake struct {
	waking bool
	idle   time.Duration
	after  int // class of the sleep
	seen   [sleeps]awakening
}

type awakening struct {
	slept   [enough]time.Duration // longest sleeps, the longest first
	longest time.Duration         // longest additional time, which decays
}

// begin notes how long the engine was idle.
func (w *wake) begin(idle time.Duration) {
	w.waking, w.idle = idle > sleep, idle
	w.after = min(bits.Len64(uint64(max(0, idle)/sleep))-1, sleeps-1)
}

// learn keeps the longest time; each shorter one lowers it by 1%.
func (w *wake) learn(silence time.Duration) {
	s := &w.seen[w.after]
	if i := slices.IndexFunc(s.slept[:], func(slept time.Duration) bool { return w.idle > slept }); i >= 0 {
		copy(s.slept[i+1:], s.slept[i:])
		s.slept[i] = w.idle
	}
	s.longest = max(silence, s.longest-s.longest/100)
}

// expect returns the additional time: the longest after a sleep of any class up to the first one with enough sleeps as
// long as this one. It is not known before these were seen.
func (w *wake) expect() (most time.Duration, known bool) {
	for i, s := range w.seen {
		most = max(most, s.longest)
		if i >= w.after && s.slept[enough-1] >= w.idle {
			return most, true
		}
	}
	return most, false
}

// unlearnedEnds is assumed before the phase has learned.
const unlearnedEnds = 128

// phase finds an engine that goes on decoding and admits no request. A full engine admits none either until
// streams end, so it counts streams that ended since the last first token.
type phase struct {
	ended int     // streams with a token that ended since the last first token
	most  float64 // the same between two first tokens of a healthy engine: the most, which decays
}

// admitted learns from a first token.
func (p *phase) admitted() {
	if p.ended > 0 {
		p.most = max(float64(p.ended), p.most*0.9995)
	}
}

func (p *phase) stalled(waiting int) bool {
	return waiting > 0 && float64(p.ended) > 32+4*p.most
}

const (
	fewFailures = 3
	failureAge  = time.Minute
)

// failures counts failures since the last token or answer.
type failures struct {
	refused, errors int
	client          uint64
	several         bool // errors of several clients
	last            time.Duration
}

// Fail notes a request that the engine refused or reset (client is not used), or answered with 5xx. The client is
// any hash of who asked.
func (e *Engine) Fail(now time.Duration, refused bool, client uint64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	f := &e.fails
	if now-f.last > failureAge {
		*f = failures{}
	}
	f.last = now
	if refused {
		f.refused++
		return
	}
	f.several = f.several || f.errors > 0 && client != f.client
	f.client = client
	f.errors++
}

// Answered notes an answer that says only that the engine takes requests, such as one with 4xx.
func (e *Engine) Answered() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.fails = failures{}
}

// down returns why the engine is down. It is forgotten after a while without failures.
func (f *failures) down(now time.Duration) Reason {
	switch {
	case now-f.last > failureAge:
		return None
	case f.refused >= fewFailures:
		return Refused
	case f.several && f.errors >= fewFailures:
		return Errors
	}
	return None
}

// paceHalfLife is how soon judgements of requests are forgotten.
const paceHalfLife = 30 * time.Second

// pace compares requests that missed their objective with those that met it.
type pace struct {
	missed, met float64
	at          time.Duration
}

// Judge notes whether a request missed its objective.
func (e *Engine) Judge(now time.Duration, missed bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	p := &e.pace
	decay := p.decay(now)
	p.missed, p.met, p.at = p.missed*decay, p.met*decay, now
	if missed {
		p.missed++
	} else {
		p.met++
	}
}

func (p *pace) decay(now time.Duration) float64 {
	return math.Exp2(-max(0, (now-p.at).Seconds()) / paceHalfLife.Seconds())
}

// slow reports whether most recent requests missed their objective.
func (p *pace) slow(now time.Duration) bool {
	return p.missed > p.met && p.missed*p.decay(now) >= 2
}

// ratio learns tokens per byte of a prompt, as evidence for people: the bound needs bytes only.
type ratio struct {
	perByte float64
}

func (r *ratio) add(bytes, tokens int64) {
	x := float64(tokens) / float64(max(bytes, 1))
	if r.perByte == 0 {
		r.perByte = x
	}
	r.perByte += (x - r.perByte) / 32
}

func (r *ratio) tokens(bytes int64) int64 { return int64(r.perByte * float64(bytes)) }
