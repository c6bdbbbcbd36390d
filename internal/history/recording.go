// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"math"
	"time"
)

// A history of a recording widens all slots alike: no time of it matters more than another. One goroutine adds and widens, and
// it needs no Maintain.

// recordingWidths are those of its slots, in seconds. Each is a multiple of the one before.
var recordingWidths = [...]int64{minute, quarter, 2 * hour, 12 * hour}

// Widen widens all slots, and those of later requests, as far as they divide steps of a length.
func (s *Store) Widen(step time.Duration) {
	for _, next := range recordingWidths {
		if next > int64(step/time.Second) {
			return
		}
		s.widenTo(next)
	}
}

// Shrink widens all slots while the history is over its limit. If half a day is not wide enough, it drops the oldest slots.
func (s *Store) Shrink() {
	for _, next := range recordingWidths {
		if !s.over() {
			return
		}
		s.widenTo(next)
	}
	s.dropOldest()
}

func (s *Store) widenTo(width int64) {
	s.mu.Lock()
	done := s.width >= width
	s.width = max(s.width, width)
	s.mu.Unlock()
	if !done {
		s.widen(math.MaxInt64, width)
	}
}
