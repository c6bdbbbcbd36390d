// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package liveness

import "time"

const (
	firstTrial = 30 * time.Second
	lastTrial  = 5 * time.Minute
	// watched is how long after a question a machine is assumed to act on the answers.
	watched = time.Minute
)

// trial gives an engine that machines avoid another chance: no traffic comes that could show that it works again.
type trial struct {
	asked  time.Duration // when a machine last asked, or 0
	since  time.Duration // the engine has been stuck since then, or 0
	failed int           // trials in a row
}

// due reports whether a stuck engine gets another chance: 30 s after it became stuck, and after each chance
// that failed twice as long, up to 5 minutes. While no machine asks, its traffic goes on to show whether it works: it
// then gets a chance only if it has had no open request for 5 minutes.
func (t *trial) due(now time.Duration, v *Verdict) bool {
	switch v.State {
	case Stuck:
	case Unknown: // perhaps because of a trial, whose end shows whether it failed
		t.since = 0
		return false
	default:
		t.since, t.failed = 0, 0
		return false
	}
	if t.since == 0 {
		t.since = now
	}
	switch {
	case v.Open() == 0 && now-max(t.since, v.LastToken) >= lastTrial:
	case t.asked == 0, now-t.asked > watched, now-t.since < min(lastTrial, firstTrial<<min(t.failed, 8)):
		return false
	}
	t.failed++
	return true
}

// stale is how old a verdict may be that advises against an engine. If Judge is late, this process is overloaded.
const stale = 10 * time.Second

// Ready returns the last verdict on an engine, and whether a machine may send it requests. It fails open: only an engine
// that is stuck or down is not ready, as long as Limits.Ejected allows. known is false if the table does not have the engine.
func (e *Engines) Ready(now time.Duration, name string) (s Status, known, ready bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	k := e.byName[name]
	if k == nil {
		return Status{Engine: name}, false, true
	}
	k.trial.asked = now
	s = k.status(name)
	return s, true, s.Ready(now)
}

// Ready reports whether a machine may send the engine requests.
func (s *Status) Ready(now time.Duration) bool { return !s.Ejected || now-s.Judged > stale }

// eject decides which engines are not ready: those that are stuck or down, and among them first those that were not ready
// before. names are those of all engines, in their order.
func (e *Engines) eject(names []string) {
	room := len(e.byName)
	if room > 1 {
		room = int(e.limits.Ejected * float64(room))
	}
	for _, before := range [...]bool{true, false} {
		for _, name := range names {
			k := e.byName[name]
			if k.ejected != before {
				continue
			}
			fails := k.verdict.State == Stuck || k.verdict.State == Down
			k.ejected = fails && room > 0
			if k.ejected {
				room--
			}
		}
	}
}
