// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package series

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tokenpulse/tokenpulse/internal/httpguard"
)

// table holds series by their keys, which each projection of a request makes of other labels: an Engine, and its
// Standard. It limits their number, and removes idle ones.
type table struct {
	engine    *Engine // that the series belong to; nil for those of a Standard
	config    Config
	perClient int

	// mu guards everything declared below. It is held only to find, create and remove
	// series.
	mu     sync.RWMutex
	series map[string]*series
	// held is the number of series, without the overflow series.
	held int
	// heldBy is the number of series by the value of the first dimension.
	heldBy map[string]int
	// heldByClient is the number of series by the client that opened them, if it is known.
	heldByClient map[httpguard.Client]int
}

func newTable(of *Engine, config Config, perClient int) *table {
	return &table{
		engine: of, config: config, perClient: perClient,
		series: map[string]*series{}, heldBy: map[string]int{}, heldByClient: map[httpguard.Client]int{},
	}
}

// overflowKey is the key of the overflow series. Every other series has a longer key.
const overflowKey = ""

// add calls do with the series of a handle or, if that is nil, of a key.
func (t *table) add(h *Handle, key []byte, client *httpguard.Client, arrival time.Time, do func(*series) Recorded) Recorded {
	for {
		var s *series
		if h != nil {
			s = t.handled(h, client, arrival)
		} else {
			s = t.find(key, client, arrival)
		}
		if result, ok := s.at(arrival, do); ok {
			return result
		}
		t.remove(s) // it has expired meanwhile: open its successor
	}
}

// find returns the series of a key, and opens it if necessary.
func (t *table) find(key []byte, client *httpguard.Client, now time.Time) *series {
	t.mu.RLock()
	s := t.series[string(key)]
	if s == nil && !t.hasRoom(key, client) {
		s = t.series[overflowKey]
	}
	t.mu.RUnlock()
	if s == nil {
		s = t.open(key, client, now)
	}
	return s
}

// hasRoom reports whether a client may create the series of a key. One value of the first
// dimension may open half of the series: a sender with invented models then leaves the
// other half to others. Past half, each client may open its share: neither can one with
// invented services take the rest. mu is held.
func (t *table) hasRoom(key []byte, client *httpguard.Client) bool {
	switch {
	case t.held >= t.config.MaxSeries:
		return false
	case client != nil && t.perClient > 0 && 2*t.held > t.config.MaxSeries && t.heldByClient[*client] >= t.perClient:
		return false
	}
	return len(t.config.Dimensions) == 0 || t.heldBy[string(firstValue(key))] < (t.config.MaxSeries+1)/2
}

func (t *table) canOpen(key []byte) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.hasRoom(key, nil)
}

// open creates the series of a key, or the overflow series at the limit.
func (t *table) open(key []byte, client *httpguard.Client, now time.Time) *series {
	t.mu.Lock()
	defer t.mu.Unlock()
	k := string(key)
	if t.series[k] == nil && !t.hasRoom(key, client) {
		k = overflowKey
	}
	if s := t.series[k]; s != nil {
		return s
	}
	s := newSeries(k, t, now)
	t.series[k] = s
	if k != overflowKey {
		t.held++
		t.heldBy[string(firstValue(key))]++
		if client != nil && t.perClient > 0 {
			owner := *client
			s.client = &owner
			t.heldByClient[*client]++
		}
	}
	return s
}

// remove deletes a series that has expired.
func (t *table) remove(s *series) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.series[s.key] != s {
		return
	}
	delete(t.series, s.key)
	s.release()
	if s.key == overflowKey {
		return
	}
	t.held--
	decrement(t.heldBy, string(firstValue([]byte(s.key))))
	if s.client != nil {
		decrement(t.heldByClient, *s.client)
	}
}

// decrement removes one from a count, and the count at zero.
func decrement[K comparable](counts map[K]int, key K) {
	if counts[key]--; counts[key] == 0 {
		delete(counts, key)
	}
}

// sorted returns the series in the order of their keys.
func (t *table) sorted() []*series {
	return slices.SortedFunc(slices.Values(t.all()), func(a, b *series) int { return strings.Compare(a.key, b.key) })
}

// all returns the series in no particular order.
func (t *table) all() []*series {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return slices.Collect(maps.Values(t.series))
}

// Held returns the number of series, without the overflow series.
func (t *table) Held() int {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.held
}

// expire removes the series without a request for the configured time, and returns their number.
func (t *table) expire(now time.Time) (expired int) {
	for _, s := range t.all() {
		if s.expire(now) {
			t.remove(s)
			expired++
		}
	}
	return expired
}
