// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package assembly

import (
	"time"

	"github.com/tokenpulse/tokenpulse/internal/liveness"
)

// WatchEngines makes the store report its streams to the engines that generate them. engineOf returns the engine of a
// stream, or nil. Call WatchEngines before the first batch.
func (s *Store) WatchEngines(engineOf func(*Stream) *liveness.Engine) { s.engineOf = engineOf }

// witness reports a part of an open stream to its engine. The tokens count as of now, not as of their events' times, because
// the sender's clock may differ.
func (s *Store) witness(part *Part, now time.Duration, progress bool) {
	if part.created && s.engineOf != nil {
		if engine := s.engineOf(&part.Stream); engine != nil {
			part.open.request = engine.Begin(now, 0, true)
		}
	}
	if part.open.request != nil && progress {
		part.open.request.Token(now)
	}
}

// witnessEnds reports finished streams to their engines.
func (s *Store) witnessEnds(finished []Finished, now time.Duration) {
	if s.engineOf == nil {
		return
	}
	for i := range finished {
		f := &finished[i]
		f.Engine = s.engineOf(f.Stream)
		if f.open != nil {
			f.open.endRequest(f, now)
		} else if f.Engine != nil && f.arrived() > 0 {
			f.Engine.Produced(now)
		}
	}
}

// endRequest ends the request of an engine, if there is one.
func (o *open) endRequest(f *Finished, now time.Duration) {
	if o.request == nil {
		return
	}
	if f.arrived() > o.arrived() {
		o.request.Token(now)
	}
	outcome, usage := liveness.Completed, liveness.Usage{}
	switch {
	case f.End == nil, f.End.Cancelled, f.End.Interrupted: // without an end, the sender has sent nothing more
		outcome = liveness.Abandoned
	case f.End.Error != "":
		outcome = liveness.Broken
	default:
		usage = liveness.Usage{Input: f.End.Usage.Input.Value, Cached: f.End.Usage.CachedInput.Value}
	}
	o.request.End(now, outcome, usage)
}
