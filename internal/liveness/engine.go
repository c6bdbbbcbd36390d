// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Package liveness judges from the streams of an engine whether it produces tokens. It knows no clock: each
// event and question carries the time since a fixed origin on a monotonic clock, so that a step of the wall
// clock changes no verdict.
package liveness

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Settings limit the silence of an engine with open requests: Base + Factor × the silence that is expected for
// the largest prompt that waits, at most MaxBound.
type Settings struct {
	Base     time.Duration // default 5 s
	Factor   float64       // default 3
	MaxBound time.Duration // default 2 minutes
}

// withDefaults replaces zero values.
func (s Settings) withDefaults() Settings {
	if s.Base == 0 {
		s.Base = 5 * time.Second
	}
	if s.Factor == 0 {
		s.Factor = 3
	}
	if s.MaxBound == 0 {
		s.MaxBound = 2 * time.Minute
	}
	return s
}

// maxOpen limits the open requests that an engine tracks. Others count as Untracked, and while there are any, the
// engine is never stuck.
const maxOpen = 4096

// Engine judges one engine. All methods may be called concurrently.
type Engine struct {
	settings Settings

	mu        sync.Mutex
	estimator estimator
	open      []*Request
	untracked int

	lastToken atomic.Int64 // of any request
	prompts   sizes        // of open requests
	turns     turns
	lastFirst time.Duration // last first token
	tokens    bool          // any token was seen since the start or since the engine was down
	ever      bool          // any token was seen

	busyFrom  time.Duration // a witness is open since then
	emptyFrom time.Duration // no request is open since then
	abandoned silence       // requests that ended before a token, since the last token
	unlearned time.Duration // requests that began before had an unexplained silence

	wake  wake
	phase phase
	fails failures
	pace  pace
	ratio ratio

	stuck Reason // of the verdict stuck, which stays until a token
	tried bool   // Try was called, and no token came since
	state State
	since time.Duration
}

// silence sums what abandoned requests waited.
type silence struct {
	waited  time.Duration
	largest int64
}

// New returns an engine of which nothing is known.
func New(s Settings) *Engine {
	return &Engine{settings: s.withDefaults(), estimator: new(prompts), phase: phase{most: unlearnedEnds}, state: Unknown}
}

// Request is an open request. Token and End are for one goroutine.
type Request struct {
	engine  *Engine
	begin   time.Duration
	size    int64
	index   int // in Engine.open, or -1
	started bool
	witness bool
	last    atomic.Int64 // time of the last token, 0 before the first one
	first   sample
	learns  bool
	hungAt  int64 // 1 + time of the last token when the request was marked as one that hangs, else 0
}

// Begin opens a request with a body of so many bytes. A stream that may be silent while the engine is healthy is no
// witness: an answer that is not streamed, hidden reasoning, tools that the server runs, a held tool call.
func (e *Engine) Begin(now time.Duration, bytes int64, witness bool) *Request {
	e.mu.Lock()
	defer e.mu.Unlock()
	r := &Request{engine: e, begin: now, size: bytes, witness: witness, index: len(e.open)}
	if len(e.open) >= maxOpen {
		r.index, r.witness = -1, false
		e.untracked++
		return r
	}
	if len(e.open) == 0 && !e.wake.waking { // while it wakes, clients may give up and ask again
		e.wake.begin(now - e.emptyFrom)
		e.wake.waking = e.wake.waking && e.abandoned.waited == 0
	}
	if witness && !e.witnessed(now) {
		e.busyFrom = now
	}
	e.open = append(e.open, r)
	e.prompts.add(bytes)
	return r
}

// witnessed reports whether a witness is open that does not hang. Usually, one of the first ones is.
func (e *Engine) witnessed(now time.Duration) bool {
	hangs := e.hanging(now)
	return slices.ContainsFunc(e.open, func(r *Request) bool { return r.witness && !hangs(r) })
}

// decoding reports whether a witness has had tokens and does not hang.
func (e *Engine) decoding(now time.Duration) bool {
	hangs := e.hanging(now)
	return slices.ContainsFunc(e.open, func(r *Request) bool { return r.witness && r.last.Load() > 0 && !hangs(r) })
}

// hanging returns a function that reports whether a witness has had no token for longer than the bound while others had.
// The engine produces tokens, so such a stream is evidence and no witness until its next token.
func (e *Engine) hanging(now time.Duration) func(*Request) bool {
	latest, bound := e.latest(), time.Duration(-1)
	return func(r *Request) bool {
		last := r.last.Load()
		if silent := latest - time.Duration(last); last > 0 && silent > e.settings.Base {
			if bound < 0 {
				bound, _ = e.bound(now, e.largestPrompt())
			}
			if silent > bound {
				r.hungAt = last + 1
			}
		}
		return r.hungAt == last+1
	}
}

// largestPrompt returns the bytes of the largest prompt that may be waited for.
func (e *Engine) largestPrompt() int64 { return max(e.abandoned.largest, e.prompts.largest) }

// closes notes that no witness is open any more. What the last ones waited in vain counts, but for the base and
// the prefill: clients give up and ask again while an engine hangs.
func (e *Engine) closes(now time.Duration) {
	if expected, ok := e.estimator.expect(now, e.largestPrompt()); ok && e.latest() < e.busyFrom && !e.wake.waking {
		e.abandoned.waited += max(0, now-e.busyFrom-e.settings.Base-expected)
	}
}

// SetWitness changes whether silence of the request counts: false while a tool call is held or reasoning is hidden.
func (r *Request) SetWitness(now time.Duration, witness bool) {
	e := r.engine
	e.mu.Lock()
	defer e.mu.Unlock()
	if r.index < 0 || r.witness == witness {
		return
	}
	before := e.witnessed(now)
	r.witness = witness
	switch after := e.witnessed(now); {
	case after && !before:
		e.busyFrom = now
	case before && !after:
		e.closes(now)
	}
}

// Token notes that a token of the request arrived. After the first one, it takes no lock.
func (r *Request) Token(now time.Duration) {
	if r.started {
		r.last.Store(int64(now))
		r.engine.token(now)
		return
	}
	r.started = true
	r.engine.firstToken(now, r)
	r.last.Store(int64(max(now, 1)))
}

func (e *Engine) token(now time.Duration) {
	for last := e.lastToken.Load(); int64(now) > last && !e.lastToken.CompareAndSwap(last, int64(now)); {
		last = e.lastToken.Load()
	}
}

func (e *Engine) firstToken(now time.Duration, r *Request) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if r.witness {
		e.learnFirst(now, r)
	}
	e.lastFirst = now
	e.turns.add(r.begin, now)
	e.produced(now)
}

// learnFirst learns from the first token of a witness. A silence that the bound does not explain teaches
// nothing, nor do the waits that it was part of.
func (e *Engine) learnFirst(now time.Duration, r *Request) {
	silence, largest := e.silence(now), e.largestPrompt()
	bound, _ := e.bound(now, largest)
	r.first = sample{
		size: r.size, wait: now - r.begin, turn: now - max(r.begin, e.turns.before(r.begin)),
		largest: largest, silence: silence - e.abandoned.waited,
	}
	if !e.decoding(now) { // the turn may have begun with the answers of others, which are over
		r.first.turn = min(r.first.turn, r.first.silence)
	}
	if !e.tokens {
		return
	}
	e.phase.admitted()
	if e.wake.waking {
		// Also of a silence that was not explained: that widens the bound after a sleep only.
		expected, _ := e.estimator.expect(now, r.first.largest)
		e.wake.learn(max(0, r.first.silence-expected))
		return
	}
	if silence > bound || e.stuck != None {
		e.unlearned = now
		return
	}
	if r.begin < e.unlearned {
		return
	}
	r.learns = true
	e.estimator.silent(now, r.first)
}

// Produced notes a token, of a request that was not begun.
func (e *Engine) Produced(now time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.produced(now)
}

// produced ends a silence.
func (e *Engine) produced(now time.Duration) {
	e.token(now)
	e.tokens, e.ever = true, true
	e.stuck, e.tried, e.abandoned, e.fails, e.wake.waking, e.phase.ended = None, false, silence{}, failures{}, false, 0
}

// Unseen notes that tokens of the request cannot be seen any more. While there is such a request, the engine is
// never stuck.
func (r *Request) Unseen(now time.Duration) {
	e := r.engine
	e.mu.Lock()
	defer e.mu.Unlock()
	if r.index < 0 {
		return
	}
	before := e.witnessed(now)
	e.remove(r)
	r.witness = false
	e.untracked++
	if !r.started { // it may still be prefilled
		e.abandoned.largest = max(e.abandoned.largest, r.size)
	}
	if before && !e.witnessed(now) {
		e.closes(now)
	}
}

// Try gives a stuck engine another chance: what is open now is no witness until its next token, and the verdict is
// unknown until a token comes, or none comes to the requests that begin later.
func (e *Engine) Try(now time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, r := range e.open {
		r.hungAt = r.last.Load() + 1
	}
	e.stuck, e.tried, e.abandoned, e.phase.ended = None, true, silence{}, 0
	e.lastFirst, e.unlearned = now, now
}

// skip makes all silence begin now, and teaches nothing of it.
func (e *Engine) skip(now time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.busyFrom, e.lastFirst, e.unlearned = now, now, now
}

// unused reports whether the engine had no request for that long.
func (e *Engine) unused(now, long time.Duration) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.open)+e.untracked == 0 && now-max(e.emptyFrom, e.latest()) > long
}

// Outcome is how a request ended.
type Outcome uint8

// Outcomes.
const (
	Completed Outcome = iota // the engine answered
	Abandoned                // the client broke off
	Broken                   // the connection to the engine broke, or the engine answered with an error
)

// Usage is what the answer reports about its prompt, in tokens; 0 if not reported.
type Usage struct {
	Input, Cached int64
}

// End closes a request.
func (r *Request) End(now time.Duration, outcome Outcome, usage Usage) {
	e := r.engine
	e.mu.Lock()
	defer e.mu.Unlock()
	if r.index < 0 {
		e.untracked--
		return
	}
	e.remove(r)
	switch {
	case r.started:
		if r.witness {
			e.phase.ended++
		}
		e.learnUsage(now, r, usage)
	case outcome == Completed:
		e.produced(now) // not streamed, or without a token
	default:
		e.abandoned.largest = max(e.abandoned.largest, r.size)
	}
	if r.witness && !e.witnessed(now) {
		e.closes(now)
	}
	if len(e.open) == 0 {
		e.emptyFrom = now
	}
}

func (e *Engine) learnUsage(now time.Duration, r *Request, usage Usage) {
	if usage.Input > 0 {
		e.ratio.add(r.size, usage.Input)
	}
	if !r.learns || r.begin < e.unlearned {
		return
	}
	r.first.uncached = 1
	if usage.Input > 0 {
		r.first.uncached = 1 - float64(usage.Cached)/float64(usage.Input)
	}
	e.estimator.served(now, r.first)
}

// remove deletes a request from the open ones.
func (e *Engine) remove(r *Request) {
	last := len(e.open) - 1
	e.open[r.index] = e.open[last]
	e.open[r.index].index = r.index
	e.open[last] = nil
	e.open = e.open[:last]
	r.index = -1
	e.prompts.remove(r.size, e.open)
}

// latest returns the time of the last token of any stream.
func (e *Engine) latest() time.Duration { return time.Duration(e.lastToken.Load()) }
