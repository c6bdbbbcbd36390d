// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package liveness

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"
)

// version is the first byte of what AppendBinary writes.
const version = 2

// saved is what an engine has learned, without times: peaks are as of the time of saving.
type saved struct {
	Classes [classes]savedClass
	Wakes   [sleeps]savedWake
	Ended   float64 // phase.most
	Ratio   float64 // tokens per byte
}

type savedClass struct {
	Count, Samples uint64
	Turn, Peak     float64
}

type savedWake struct {
	Slept   [enough]time.Duration
	Longest time.Duration
}

// Learned returns how many first tokens the engine has learned from. Equal numbers mean that it has learned nothing in between.
func (e *Engine) Learned() uint64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.estimator.seen()
}

// AppendBinary appends what the engine has learned, under 1 KiB. Open requests and the verdict are not part of it.
func (e *Engine) AppendBinary(dst []byte, now time.Duration) []byte {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := saved{Ended: e.phase.most, Ratio: e.ratio.perByte}
	if learned, ok := e.estimator.(*prompts); ok {
		for i := range learned.classes {
			c := &learned.classes[i]
			s.Classes[i] = savedClass{c.count, c.samples, float64(c.turn), c.decayed(now)}
		}
	}
	for i, w := range e.wake.seen {
		s.Wakes[i] = savedWake{w.slept, w.longest}
	}
	dst, err := binary.Append(append(dst, version), binary.LittleEndian, &s)
	if err != nil {
		panic(err) // saved has fields of fixed size only
	}
	return dst
}

var errMalformed = errors.New("learned state of an engine is truncated or malformed")

// Restore reads what AppendBinary wrote into a new engine. After an error, the engine is unchanged.
func (e *Engine) Restore(encoded []byte, now time.Duration) error {
	if len(encoded) == 0 || encoded[0] != version {
		return fmt.Errorf("unknown version of an engine's learned state; this build reads version %d", version)
	}
	var s saved
	if n, err := binary.Decode(encoded[1:], binary.LittleEndian, &s); err != nil || n != len(encoded)-1 || !s.valid() {
		return errMalformed
	}
	learned := new(prompts)
	for i, c := range s.Classes {
		learned.classes[i] = class{
			count: c.Count, samples: c.Samples, sampled: now - spacing,
			turn: percentile(c.Turn), peak: c.Peak, peakAge: now,
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.estimator, e.phase.most, e.ratio.perByte = learned, s.Ended, s.Ratio
	for i, w := range s.Wakes {
		e.wake.seen[i] = awakening{w.Slept, w.Longest}
	}
	return nil
}

// valid reports whether all numbers are such as an engine may learn.
func (s *saved) valid() bool {
	ok := within(s.Ended, 0, maxOpen*1e6) && within(s.Ratio, 0, 1e9)
	for _, c := range s.Classes {
		ok = ok && within(c.Turn, -100, 100) && within(c.Peak, 0, 1e9)
	}
	for _, w := range s.Wakes {
		ok = ok && slices.Min(w.Slept[:]) >= 0 && w.Longest >= 0
	}
	return ok
}

// within reports whether x lies in a range. NaN lies in none.
func within(x, from, to float64) bool { return !math.IsNaN(x) && x >= from && x <= to }
