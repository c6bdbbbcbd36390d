// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package liveness

import "time"

// State of an engine.
type State uint8

// States, in the order in which they hold: the first one that applies.
const (
	Unknown   State = iota // too little was seen
	Down                   // connections fail, or several clients got errors, and nothing else came since
	Stuck                  // requests are open and no token came for longer than the bound, or no first token for longer than capacity explains
	Idle                   // no request is open
	Slow                   // tokens come, and most requests miss their objective
	Producing              // tokens come, or the bound explains the silence
)

var stateNames = [...]string{"unknown", "down", "stuck", "idle", "slow", "producing"}

// States is the number of states.
const States = State(len(stateNames))

func (s State) String() string { return stateNames[s] }

// Reason of a verdict.
type Reason uint8

// Reasons.
const (
	None         Reason = iota
	NoToken             // stuck: no stream has a token
	NoFirstToken        // stuck: streams go on, but requests that wait are not admitted
	Refused             // down: connections were refused or reset
	Errors              // down: several clients got errors
	NoWitness           // unknown: all open requests may be silent while the engine is healthy
	NeverToken          // unknown: no token was seen since the Collector started, or since the engine was down
	TooMany             // unknown: requests are open whose tokens cannot be seen, such as more than the engine tracks
	Trial               // unknown: after it was stuck, the engine has another chance
)

var reasonNames = [...]string{"", "no_token", "no_first_token", "refused", "errors", "no_witness", "never_token", "too_many", "trial"}

func (r Reason) String() string { return reasonNames[r] }

// Verdict is a state, since when it holds, and the evidence.
type Verdict struct {
	State  State
	Reason Reason
	Since  time.Duration

	Waiting   int // open witnesses before their first token
	Decoding  int // open witnesses after it
	Silent    int // open requests that are no witnesses
	Hung      int // witnesses after their first token without a token for longer than the bound, while others have tokens
	Untracked int // open requests beyond the limit

	LastToken time.Duration // time of the last token of any request; 0 if there was none
	Silence   time.Duration // time with an open witness and without a token
	Largest   int64         // bytes of the largest open prompt: an engine may compute it again after it preempted the request
	Tokens    int64         // estimate of its tokens; 0 if no request reported its usage
	Bound     time.Duration // longest silence that is explained
	Learned   bool          // the bound was learned; otherwise it is MaxBound
	Prompts   uint64        // prompts that it was learned from
}

// Open returns the number of open requests.
func (v *Verdict) Open() int { return v.Waiting + v.Decoding + v.Silent + v.Hung + v.Untracked }

// view is what the open requests show at a time.
type view struct {
	waiting, decoding, silent, hung int
	largest                         int64
	oldest                          time.Duration // begin of the oldest witness that waits
	latest                          time.Duration
	silence, bound                  time.Duration
	learned                         bool
}

func (e *Engine) view(now time.Duration) view {
	v := view{largest: e.largestPrompt(), oldest: now, latest: e.latest(), silence: e.silence(now)}
	v.bound, v.learned = e.bound(now, v.largest)
	hangs := e.hanging(now)
	for _, r := range e.open {
		started := r.last.Load() > 0
		switch {
		case !r.witness:
			v.silent++
		case hangs(r):
			v.hung++
		case started:
			v.decoding++
		default:
			v.waiting++
			v.oldest = min(v.oldest, r.begin)
		}
	}
	return v
}

// silence is the time without a token while a witness was open.
func (e *Engine) silence(now time.Duration) time.Duration {
	if !e.witnessed(now) {
		return 0
	}
	return max(0, now-max(e.latest(), e.busyFrom)) + e.abandoned.waited
}

// bound is the longest silence that is explained.
func (e *Engine) bound(now time.Duration, largest int64) (bound time.Duration, learned bool) {
	expected, ok := e.estimator.expect(now, largest)
	if e.wake.waking {
		wakes, known := e.wake.expect()
		expected, ok = expected+wakes, ok && known
	}
	if !ok || !e.tokens {
		return e.settings.MaxBound, false
	}
	return min(e.settings.MaxBound, e.settings.Base+time.Duration(min(e.settings.Factor*float64(expected), 1e18))), true
}

// Verdict judges the engine.
func (e *Engine) Verdict(now time.Duration) Verdict {
	e.mu.Lock()
	defer e.mu.Unlock()
	v := e.view(now)
	state, reason := e.judge(now, &v)
	if state != e.state {
		e.state, e.since = state, now
	}
	return Verdict{
		State: state, Reason: reason, Since: e.since,
		Waiting: v.waiting, Decoding: v.decoding, Silent: v.silent, Hung: v.hung, Untracked: e.untracked,
		LastToken: v.latest, Silence: v.silence,
		Largest: v.largest, Tokens: e.ratio.tokens(v.largest), Bound: v.bound, Learned: v.learned,
		Prompts: e.estimator.seen(),
	}
}

func (e *Engine) judge(now time.Duration, v *view) (State, Reason) {
	if (e.stuck == NoToken || e.tried) && v.latest > e.since { // a stream went on
		e.stuck, e.tried, e.unlearned, e.abandoned = None, false, now, silence{}
	}
	if v.latest > e.fails.last { // a stream that began earlier went on
		e.fails = failures{}
	}
	if reason := e.fails.down(now); reason != None {
		e.tokens, e.stuck = false, None
		return Down, reason
	}
	if e.stuck == None {
		switch {
		case e.untracked > 0 || !e.ever:
		case v.silence > v.bound:
			e.stuck = NoToken
		case e.phase.stalled(v.waiting) && now-max(e.lastFirst, v.oldest) > v.bound:
			e.stuck = NoFirstToken
		}
	}
	switch open := v.waiting + v.decoding; {
	case e.stuck != None:
		return Stuck, e.stuck
	case e.untracked > 0 && v.silence > v.bound:
		return Unknown, TooMany
	case e.tried:
		return Unknown, Trial
	case !e.tokens:
		return Unknown, NeverToken
	case open+v.silent+v.hung+e.untracked == 0:
		return Idle, None
	case open == 0 && now-v.latest > v.bound:
		return Unknown, NoWitness
	case e.pace.slow(now):
		return Slow, None
	}
	return Producing, None
}
