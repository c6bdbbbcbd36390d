// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Package identity caches what follows from the attributes of a stream: its series and the SLOs
// that apply to it.
package identity

import (
	"bytes"
	"encoding/binary"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/wire"
)

// Stream holds the attributes of a stream as encoded KeyValueLists, those of the start and the end
// in one list, and the vantage. If a key occurs twice in a list, the later one wins.
type Stream struct {
	Resource, Attributes []byte
	Vantage              byte
}

// Cache holds values of type T by the attributes of streams. It is safe for concurrent use.
//
// Its keys hold the encoded attributes that T depends on, and no others. So streams that differ in
// others share a value, such as those with a user ID of their own.
type Cache[T any] struct {
	names   [64][]string // attributes that T depends on, by their length modulo 64
	resolve func(*Stream) *T

	mu     sync.Mutex // guards values
	values generations[*T]

	resolved, evicted atomic.Int64
}

// maxKey limits the bytes of a key that is remembered.
const maxKey = 2 << 10

// New returns an empty cache of at most limit values. T depends on nothing but the vantage, the
// attributes of these names, and the number of attributes under `tokenpulse.`, which senders must
// not set. resolve derives it from a stream that has no other attributes, and keeps no reference to
// the stream.
func New[T any](read []string, limit int, resolve func(*Stream) *T) *Cache[T] {
	c := &Cache[T]{resolve: resolve}
	for _, name := range read {
		if !strings.HasPrefix(name, names.Prefix) && !c.reads([]byte(name)) {
			c.names[len(name)%64] = append(c.names[len(name)%64], name)
		}
	}
	c.values.limit = max(1, limit/2)
	return c
}

// Resolved returns the number of calls of resolve.
func (c *Cache[T]) Resolved() int64 { return c.resolved.Load() }

// Evicted returns the number of values that were forgotten at the limit.
func (c *Cache[T]) Evicted() int64 { return c.evicted.Load() }

// reads reports whether T depends on an attribute that senders may set.
func (c *Cache[T]) reads(key []byte) bool {
	for _, name := range c.names[len(key)%64] { //nolint:modernize // slices.Contains would allocate a string of a long key
		if string(key) == name {
			return true
		}
	}
	return false
}

// Finder finds the values of streams, one after the other. It is fastest if they share a resource.
// It is not safe for concurrent use.
type Finder[T any] struct {
	cache *Cache[T]
	// key holds the length of what is kept of the last resource, that, the vantage, and what is kept
	// of the other attributes.
	key      []byte
	resource []byte // the last one
	begin    int    // of the vantage
	valid    bool   // the resource is
}

// NewFinder returns a finder in the cache.
func (c *Cache[T]) NewFinder() Finder[T] {
	f := Finder[T]{cache: c}
	f.Reset()
	return f
}

// Reset forgets the last resource. Call it before its memory changes.
func (f *Finder[T]) Reset() {
	if cap(f.key) > maxKey {
		f.key = nil
	}
	f.readResource(nil)
}

func (f *Finder[T]) readResource(resource []byte) {
	f.key = append(f.key[:0], 0, 0, 0, 0)
	f.resource, f.valid = resource, f.keep(resource)
	f.begin = len(f.key)
	binary.BigEndian.PutUint32(f.key, uint32(f.begin))
}

// Find returns the value of a stream, or nil if an attribute is not valid. resource is a
// KeyValueList. start and end hold the other attributes, also in KeyValueLists.
func (f *Finder[T]) Find(vantage byte, resource, start, end []byte) *T {
	if len(resource) != len(f.resource) || len(resource) > 0 && &resource[0] != &f.resource[0] {
		f.readResource(resource)
	}
	f.key = append(f.key[:f.begin], vantage)
	if !f.valid || !f.keep(start) || !f.keep(end) {
		return nil
	}
	f.cache.mu.Lock()
	value, ok := f.cache.values.get(f.key)
	f.cache.mu.Unlock()
	if ok {
		return value
	}
	return f.cache.add(f.key, &Stream{f.key[4:f.begin], f.key[f.begin+1:], vantage})
}

// keep appends the attributes that T depends on to the key, which add checks. It reports whether
// the others are valid.
func (f *Finder[T]) keep(attributes []byte) bool {
	a := wire.WalkSent(attributes)
	for a.Next() {
		switch {
		case f.cache.reads(a.Key):
			f.key = a.AppendTo(f.key)
		case !a.Valid():
			return false
		case bytes.HasPrefix(a.Key, []byte(names.Prefix)):
			f.key = append(f.key, ours...)
		}
	}
	return a.Complete()
}

// ours is an attribute `tokenpulse.` in a KeyValueList. It stands for each one under it, with any
// value.
var ours = append([]byte{wire.InList, byte(len(names.Prefix) + 2), 1<<3 | 2, byte(len(names.Prefix))}, names.Prefix...)

// add derives a value, or returns nil if an attribute is not valid.
func (c *Cache[T]) add(key []byte, s *Stream) *T {
	for _, list := range [...][]byte{s.Resource, s.Attributes} {
		a := wire.WalkSent(list)
		for a.Next() {
			if !a.Valid() {
				return nil
			}
		}
	}
	c.resolved.Add(1)
	value := c.resolve(s)
	if len(key) <= maxKey {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.evicted.Add(c.values.put(string(key), value))
	}
	return value
}
