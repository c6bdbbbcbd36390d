// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Package identity caches what follows from the attributes of a stream: its series and the SLOs
// that apply to it. Senders repeat their attributes from stream to stream, so a comparison of
// encoded bytes finds most of them.
package identity

import (
	"bytes"
	"encoding/binary"
	"hash/maphash"
	"sync"
	"sync/atomic"

	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/wire"
)

// Stream holds the attributes of a stream as encoded KeyValueLists, and the vantage. If a key
// occurs in several lists, the later list wins.
type Stream struct {
	Resource, Attributes, EndAttributes []byte
	Vantage                             byte
}

// Cache holds values of type T by the attributes of streams. It is safe for concurrent use.
//
// It looks twice. First by all encoded bytes: a stream with the same bytes as another one is
// found without reading an attribute, which saves a quarter of the cost of streams of 10 tokens
// (BenchmarkSeries). Bytes are remembered when they come a second time, so
// that streams with an attribute of their own, such as a user ID, do not fill the cache. Then
// by the values of the attributes that T depends on: streams that differ in others share a
// value.
type Cache[T any] struct {
	names   map[string]int // attributes that T depends on
	resolve func(*Stream) *T
	seed    maphash.Seed

	// mu guards everything declared below.
	mu       sync.Mutex
	byBytes  generations[uint64, *encoded[T]]
	byValues generations[string, *T]
	// once holds the hashes of bytes that came once. A hash takes the place of another one, so the
	// cost of streams that never come again is bounded.
	once []uint64

	resolved, evicted atomic.Int64
}

// encoded is the value of a stream by its encoded bytes. The bytes are compared on each hit, because
// different bytes may have the same hash.
type encoded[T any] struct {
	stream Stream
	value  *T
}

// maxEntry limits the bytes of a stream, and of values, that are remembered.
const maxEntry = 2 << 10

// onceSlots is the number of hashes of bytes that came once, by entry of the limit. With fewer, as many
// streams as the cache can hold would overwrite each other before they come a second time.
const onceSlots = 4

// New returns an empty cache of at most limit streams by their bytes, and as many by their
// values. T depends on nothing but the vantage, the attributes of these names, and the number
// of attributes under `tokenpulse.`, which senders must not set; resolve derives it, and keeps
// no reference to the stream. Without names, T depends on every attribute: streams that differ in
// one do not share a value.
func New[T any](read []string, limit int, resolve func(*Stream) *T) *Cache[T] {
	c := &Cache[T]{names: map[string]int{}, resolve: resolve, seed: maphash.MakeSeed(), once: make([]uint64, onceSlots*max(1, limit))}
	for _, name := range read {
		if _, known := c.names[name]; !known {
			c.names[name] = len(c.names)
		}
	}
	c.byBytes.limit, c.byValues.limit = max(1, limit/2), max(1, limit/2)
	return c
}

// Resolved returns the number of calls of resolve.
func (c *Cache[T]) Resolved() int64 { return c.resolved.Load() }

// Evicted returns the number of streams and values that were forgotten at the limit.
func (c *Cache[T]) Evicted() int64 { return c.evicted.Load() }

// Find returns the value of a stream. The cache keeps no reference to the stream's memory.
func (c *Cache[T]) Find(s *Stream) *T { return c.FindAs(s, nil) }

// FindAs returns the value of a stream whose bytes are not KeyValueLists: canonical returns the
// stream with these. It is called unless the bytes are remembered, and returns nil for a stream
// that has no value.
func (c *Cache[T]) FindAs(s *Stream, canonical func(*Stream) *Stream) *T {
	h := s.hash(c.seed)
	c.mu.Lock()
	known, ok := c.byBytes.get(h)
	c.mu.Unlock()
	if ok && known.stream.equal(s) {
		return known.value
	}
	lists := s
	if canonical != nil {
		if lists = canonical(s); lists == nil {
			return nil
		}
	}
	value := c.find(lists)
	c.remember(s, h, value)
	return value
}

// find searches by values.
func (c *Cache[T]) find(s *Stream) *T {
	if len(c.names) == 0 {
		c.resolved.Add(1)
		return c.resolve(s)
	}
	var buffer [512]byte
	key := c.appendValues(buffer[:0], s)
	c.mu.Lock()
	value, ok := getBytes(&c.byValues, key)
	c.mu.Unlock()
	if ok {
		return value
	}
	c.resolved.Add(1)
	value = c.resolve(s)
	if len(key) > maxEntry {
		return value
	}
	return c.share(string(key), value)
}

// share adds a value, unless another goroutine did so first. It returns the value to use.
func (c *Cache[T]) share(key string, value *T) *T {
	c.mu.Lock()
	defer c.mu.Unlock()
	if other, resolved := c.byValues.get(key); resolved {
		return other
	}
	c.evicted.Add(c.byValues.put(key, value))
	return value
}

// remember adds a value by its stream's bytes, if they come a second time.
func (c *Cache[T]) remember(s *Stream, h uint64, value *T) {
	if s.size() > maxEntry {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if slot := &c.once[h%uint64(len(c.once))]; *slot == h {
		c.evicted.Add(c.byBytes.put(h, &encoded[T]{s.clone(), value}))
	} else {
		*slot = h
	}
}

// appendValues appends the values of the attributes that T depends on: those of the resource,
// then those of the stream, and how many attributes are ours.
func (c *Cache[T]) appendValues(key []byte, s *Stream) []byte {
	var room [16]value
	key = append(key, s.Vantage)
	read, ours := c.read(room[:0], s.Resource)
	key = appendValues(key, read, ours)
	read, ours = c.read(room[:0], s.Attributes)
	read, more := c.read(read, s.EndAttributes)
	return appendValues(key, read, ours+more)
}

// value is the value of one of the attributes that T depends on.
type value struct {
	name int
	wire.Value
}

// read reads the values of a list, of which later ones replace earlier ones. It returns how
// many attributes are ours.
func (c *Cache[T]) read(values []value, list []byte) (_ []value, ours uint64) {
	a := wire.WalkAttributes(list)
	for a.Next() {
		if bytes.HasPrefix(a.Key, []byte(names.Prefix)) {
			ours++
		}
		if name, ok := c.names[string(a.Key)]; ok {
			values = put(values, value{name, a.Value})
		}
	}
	return values, ours
}

func put(values []value, v value) []value {
	for i := range values {
		if values[i].name == v.name {
			values[i] = v
			return values
		}
	}
	return append(values, v)
}

func appendValues(key []byte, values []value, ours uint64) []byte {
	key = binary.AppendUvarint(key, ours)
	key = binary.AppendUvarint(key, uint64(len(values)))
	for i := range values {
		v := &values[i]
		key = binary.AppendUvarint(append(key, byte(v.Kind)), uint64(v.name))
		key = binary.AppendUvarint(key, v.Bits)
		key = binary.AppendUvarint(key, uint64(len(v.Bytes)))
		key = append(key, v.Bytes...)
	}
	return key
}

func (s *Stream) hash(seed maphash.Seed) uint64 {
	h := maphash.Bytes(seed, s.Attributes)
	if len(s.Resource) > 0 {
		h = h*mix + maphash.Bytes(seed, s.Resource)
	}
	if len(s.EndAttributes) > 0 {
		h = h*mix + maphash.Bytes(seed, s.EndAttributes) + 1
	}
	return max(1, h*mix+uint64(s.Vantage)) // 0 marks an empty slot
}

// mix is odd, and has no pattern.
const mix = 0x9e37_79b9_7f4a_7c15

func (s *Stream) equal(other *Stream) bool {
	return s.Vantage == other.Vantage && bytes.Equal(s.Attributes, other.Attributes) &&
		bytes.Equal(s.Resource, other.Resource) && bytes.Equal(s.EndAttributes, other.EndAttributes)
}

func (s *Stream) size() int { return len(s.Resource) + len(s.Attributes) + len(s.EndAttributes) }

func (s *Stream) clone() Stream {
	return Stream{bytes.Clone(s.Resource), bytes.Clone(s.Attributes), bytes.Clone(s.EndAttributes), s.Vantage}
}
