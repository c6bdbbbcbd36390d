// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package names

// Lookup holds values by attribute name. Every attribute of every span is looked up, and few are found. A map hashes
// each name as a whole: with maps, spans of an engine cost the processor and token_sli a fifth more.
type Lookup[V any] struct {
	first   [256]uint16 // by hash: 1 + the index of an entry, or 0
	entries []lookupEntry[V]
}

type lookupEntry[V any] struct {
	name  string
	value V
	next  uint16 // as in first: another entry with the same hash
}

// NewLookup returns a lookup of the entries of a map, which has at most 65,535.
func NewLookup[V any](all map[string]V) *Lookup[V] {
	l := &Lookup[V]{}
	for name, value := range all {
		hash := lookupHash(name)
		l.entries = append(l.entries, lookupEntry[V]{name, value, l.first[hash]})
		l.first[hash] = uint16(len(l.entries))
	}
	return l
}

// Get returns the value of a name, or nil.
func (l *Lookup[V]) Get(name string) *V {
	for i := l.first[lookupHash(name)]; i != 0; i = l.entries[i-1].next {
		if l.entries[i-1].name == name {
			return &l.entries[i-1].value
		}
	}
	return nil
}

// lookupHash depends on what most names differ in: the length, the last byte and the one in the middle.
func lookupHash(name string) uint8 {
	if name == "" {
		return 0
	}
	return uint8(len(name))*37 + name[len(name)-1]*11 + name[len(name)/2]
}
