// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Package dedup recognises requests that arrived before. If one consumer refuses a batch, the
// pipeline delivers it again to all consumers: without deduplication, its requests would count
// again.
package dedup

import (
	"hash/maphash"
	"slices"
	"sync"
	"time"
)

// ID identifies a request. Two observers of a request can share its trace and span ID,
// so the vantage belongs to it.
type ID struct {
	TraceID [16]byte
	SpanID  [8]byte
	Vantage string
}

// valid reports whether the ID identifies a request at all: all-zero IDs are missing.
func (id *ID) valid() bool { return id.TraceID != [16]byte{} && id.SpanID != [8]byte{} }

// Set holds the requests of the recent past. It is safe for concurrent use: of several
// goroutines that add the same request, one succeeds. A nil Set recognises nothing.
//
// It holds 64-bit hashes in two generations. Requests are added to the newer one. When
// that is full or as old as the horizon, the older one is dropped, the newer one becomes
// the older, and a new one begins. So a request is remembered for one to two horizons, or
// for as long as half of the limit lasts. A hash with a random seed makes two requests of
// a million collide with a probability of 3e-8, and no sender can choose IDs that do.
type Set struct {
	horizon time.Duration
	limit   int // of one generation
	seed    maphash.Seed

	// mu guards everything declared below.
	mu           sync.Mutex
	newer, older table
	opened       time.Time // when newer began, and older ended
	evicted      int64
	loaded       uint64 // keeps the compiler from removing the reads of table.load
}

// NewSet returns an empty set, or nil if the configuration turns deduplication off.
func NewSet(c Config, now time.Time) *Set {
	if c.Horizon == 0 {
		return nil
	}
	return &Set{horizon: c.Horizon, limit: c.MaxSpans / 2, seed: maphash.MakeSeed(), opened: now}
}

// Add adds a request. It returns false if the set holds it already, and remembers it from
// now on again. A request without a trace ID or span ID is never held.
func (s *Set) Add(id *ID, now time.Time) bool {
	key := s.KeyOf(id)
	if key == None {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expire(now)
	return s.add(uint64(key), now)
}

// Key is the hash of a request in one set.
type Key uint64

// None is the key of a request that is never held.
const None Key = 0

// KeyOf returns the key of a request.
func (s *Set) KeyOf(id *ID) Key {
	if s == nil || !id.valid() {
		return None
	}
	return Key(s.hash(id))
}

// KeyOfSeed returns the key of a request whose IDs are derived from a seed. It is cheaper
// than deriving them.
func (s *Set) KeyOfSeed(seed []byte) Key {
	if s == nil {
		return None
	}
	return Key(max(1, maphash.Bytes(s.seed, seed)))
}

// Place returns a key that has the slot of a request, of whatever vantage.
func (s *Set) Place(traceID [16]byte, spanID [8]byte) Key {
	var ids [24]byte
	copy(ids[:16], traceID[:])
	copy(ids[16:], spanID[:])
	return Key(maphash.Bytes(s.seed, ids[:]))
}

// Load reads the slots of requests that will be added, so that the CPU has them in its caches.
func (s *Set) Load(keys []Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.loaded += s.newer.load(keys) + s.older.load(keys)
}

// AddAll adds the requests of several keys, like Add. It appends to fresh whether the set did
// not hold each.
func (s *Set) AddAll(keys []Key, now time.Time, fresh []bool) []bool {
	if s == nil {
		for range keys {
			fresh = append(fresh, true)
		}
		return fresh
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expire(now)
	for keys := range slices.Chunk(keys, keysAtOnce) {
		s.loaded += s.newer.load(keys) + s.older.load(keys)
		for _, key := range keys {
			fresh = append(fresh, key == None || s.add(uint64(key), now))
		}
	}
	return fresh
}

// keysAtOnce is the number of keys whose slots fit into the CPU's L1 cache.
const keysAtOnce = 128

// add adds a hash. The set must be expired, and mu is held.
func (s *Set) add(h uint64, now time.Time) bool {
	full := s.newer.used >= s.limit
	switch {
	case s.newer.has(h):
		return false
	case s.older.has(h):
		if !full {
			s.older.remove(h)
			s.newer.add(h)
		}
		return false
	case full:
		s.evicted += int64(s.older.used) // expire left those of the horizon only
		s.rotate(now)
	}
	s.newer.add(h)
	return true
}

// Remove forgets a request.
func (s *Set) Remove(id *ID) {
	if s == nil || !id.valid() {
		return
	}
	h := s.hash(id)
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.newer.remove(h) || s.older.remove(h)
}

// Expire forgets the requests that are older than the horizon. Add does so, too: Expire releases
// the memory of a set to which nothing is added.
func (s *Set) Expire(now time.Time) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expire(now)
}

// Evicted returns the number of requests that were forgotten before the horizon, because
// the limit was reached.
func (s *Set) Evicted() int64 {
	if s == nil {
		return 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.evicted
}

func (s *Set) expire(now time.Time) {
	age := now.Sub(s.opened)
	if age >= s.horizon {
		s.rotate(now)
	}
	if age >= 2*s.horizon { // nothing was added in the second half
		s.older = table{}
	}
}

// rotate drops the older generation and begins a new one, in its memory if the new one
// will probably need that much.
func (s *Set) rotate(now time.Time) {
	recycled := s.older
	s.older, s.newer, s.opened = s.newer, table{}, now
	if len(recycled.slots) <= slotsFor(s.older.used) {
		clear(recycled.slots)
		s.newer.slots = recycled.slots
	}
}

// hash depends on the vantage in its upper half only: see Place.
func (s *Set) hash(id *ID) uint64 {
	return max(1, uint64(s.Place(id.TraceID, id.SpanID))^maphash.String(s.seed, id.Vantage)<<32) // 0 marks an empty slot
}
