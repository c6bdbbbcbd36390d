// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package series

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tokenpulse/tokenpulse/internal/httpguard"
)

// overflowKey is the key of the overflow series. Every other series has a longer key.
const overflowKey = ""

// add calls do with the series of a handle or, if that is nil, of a key.
func (e *Engine) add(h *Handle, key []byte, client *httpguard.Client, arrival time.Time, do func(*series) Recorded) Recorded {
	for {
		var s *series
		if h != nil {
			s = e.handled(h, client, arrival)
		} else {
			s = e.find(key, client, arrival)
		}
		if result, ok := s.at(arrival, do); ok {
			return result
		}
		e.remove(s) // it has expired meanwhile: open its successor
	}
}

// find returns the series of a key, and opens it if necessary.
func (e *Engine) find(key []byte, client *httpguard.Client, now time.Time) *series {
	e.mu.RLock()
	s := e.series[string(key)]
	if s == nil && !e.hasRoom(key, client) {
		s = e.series[overflowKey]
	}
	e.mu.RUnlock()
	if s == nil {
		s = e.open(key, client, now)
	}
	return s
}

// hasRoom reports whether a client may create the series of a key. One value of the first
// dimension may open half of the series: a sender with invented models then leaves the
// other half to others. Past half, each client may open its share: neither can one with
// invented services take the rest. mu is held.
func (e *Engine) hasRoom(key []byte, client *httpguard.Client) bool {
	switch {
	case e.held >= e.config.MaxSeries:
		return false
	case client != nil && e.perClient > 0 && 2*e.held > e.config.MaxSeries && e.heldByClient[*client] >= e.perClient:
		return false
	}
	return len(e.config.Dimensions) == 0 || e.heldBy[string(firstValue(key))] < (e.config.MaxSeries+1)/2
}

func (e *Engine) canOpen(key []byte) bool {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return e.hasRoom(key, nil)
}

// open creates the series of a key, or the overflow series at the limit.
func (e *Engine) open(key []byte, client *httpguard.Client, now time.Time) *series {
	e.mu.Lock()
	defer e.mu.Unlock()
	k := string(key)
	if e.series[k] == nil && !e.hasRoom(key, client) {
		k = overflowKey
	}
	if s := e.series[k]; s != nil {
		return s
	}
	s := newSeries(k, e, now)
	e.series[k] = s
	if k != overflowKey {
		e.held++
		e.heldBy[string(firstValue(key))]++
		if client != nil && e.perClient > 0 {
			owner := *client
			s.client = &owner
			e.heldByClient[*client]++
		}
	}
	return s
}

// remove deletes a series that has expired.
func (e *Engine) remove(s *series) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.series[s.key] != s {
		return
	}
	delete(e.series, s.key)
	s.release()
	if s.key == overflowKey {
		return
	}
	e.held--
	decrement(e.heldBy, string(firstValue([]byte(s.key))))
	if s.client != nil {
		decrement(e.heldByClient, *s.client)
	}
}

// decrement removes one from a count, and the count at zero.
func decrement[K comparable](counts map[K]int, key K) {
	if counts[key]--; counts[key] == 0 {
		delete(counts, key)
	}
}

// sorted returns the series in the order of their keys.
func (e *Engine) sorted() []*series {
	return slices.SortedFunc(slices.Values(e.all()), func(a, b *series) int { return strings.Compare(a.key, b.key) })
}

// all returns the series in no particular order.
func (e *Engine) all() []*series {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return slices.Collect(maps.Values(e.series))
}

// Held returns the number of series, without the overflow series.
func (e *Engine) Held() int {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return e.held
}
