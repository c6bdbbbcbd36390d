// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package liveness

import (
	"maps"
	"slices"
	"sync"
	"time"
)

// Engines are those that a receiver knows, by name. All methods may be called concurrently.
type Engines struct {
	settings Settings
	limits   Limits

	mu sync.Mutex
	// mu guards everything declared below.
	byName map[string]*known
	full   bool // an engine found no room since the last Judge
	judged time.Duration
}

// known is an engine of the table, with what Judge found last.
type known struct {
	*Engine
	trial   trial
	ejected bool // Ready advises against it
	verdict Verdict
	judged  time.Duration
}

// Limits of a table.
type Limits struct {
	// Engines is the most that it holds.
	Engines int
	// Ejected is the share of its engines, rounded down, that are not ready at a time. A single engine has no limit.
	Ejected float64
	// Keep is how long an engine without requests is kept. 0 means for ever.
	Keep time.Duration
}

// NewEngines returns an empty table.
func NewEngines(s Settings, limits Limits) *Engines {
	return &Engines{settings: s.withDefaults(), limits: limits, byName: map[string]*known{}}
}

// Find returns the engine of a name, which it adds if it is new. It returns nil if there is no room: nothing is then
// known about the engine.
func (e *Engines) Find(name string) *Engine {
	e.mu.Lock()
	defer e.mu.Unlock()
	if k := e.byName[name]; k != nil {
		return k.Engine
	}
	if len(e.byName) >= e.limits.Engines {
		e.full = true
		return nil
	}
	k := &known{Engine: New(e.settings)}
	e.byName[name] = k
	return k.Engine
}

// Knows reports whether the table has the engine.
func (e *Engines) Knows(name string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.byName[name] != nil
}

// Status is the verdict on an engine of the table.
type Status struct {
	Engine string
	Verdict
	// Judged is when the verdict was found.
	Judged time.Duration
	// Ejected is set if Ready advises against the engine.
	Ejected bool
}

func (k *known) status(name string) Status { return Status{name, k.verdict, k.judged, k.ejected} }

// Judge judges all engines, and calls changed with each whose state is another one than before. It reports whether an
// engine found no room since the last call. Call it every second: what Statuses and Ready return is of the last call.
func (e *Engines) Judge(now time.Duration, changed func(before State, s Status)) (full bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.forget(now)
	paused := e.judged > 0 && now-e.judged > e.settings.pause()
	e.judged = now
	names := slices.Sorted(maps.Keys(e.byName))
	for _, name := range names {
		k := e.byName[name]
		before := k.verdict.State
		if paused {
			k.skip(now)
		}
		k.verdict, k.judged = k.Verdict(now), now
		if k.trial.due(now, &k.verdict) {
			k.Try(now)
			k.verdict = k.Verdict(now)
		}
		if k.verdict.State != before {
			changed(before, k.status(name))
		}
	}
	e.eject(names)
	full, e.full = e.full, false
	return full
}

// pause is how late Judge is called if this process did not run, or hardly, for much of what an engine may be silent. What
// engines sent meanwhile may not have been read.
func (s Settings) pause() time.Duration { return time.Second + s.Base*2/5 }

// forget removes engines that are gone.
func (e *Engines) forget(now time.Duration) {
	if e.limits.Keep > 0 {
		maps.DeleteFunc(e.byName, func(_ string, k *known) bool { return k.judged > 0 && k.unused(now, e.limits.Keep) })
	}
}

// Statuses returns the verdicts that Judge found last, in the order of names.
func (e *Engines) Statuses() (all []Status) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(e.byName)) {
		if k := e.byName[name]; k.judged > 0 {
			all = append(all, k.status(name))
		}
	}
	return all
}

// JudgeRequest notes whether a request of an engine missed its objective. Engines that are not in the table are not added.
func (e *Engines) JudgeRequest(now time.Duration, name string, missed bool) {
	e.mu.Lock()
	k := e.byName[name]
	e.mu.Unlock()
	if k != nil {
		k.Judge(now, missed)
	}
}

// Visit calls visit with each engine, in any order.
func (e *Engines) Visit(visit func(name string, engine *Engine)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for name, k := range e.byName {
		visit(name, k.Engine)
	}
}
