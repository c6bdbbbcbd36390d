// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package source

// table maps keys to values. It is fast for keys that it does not hold: spans have many attributes,
// and the first byte and the length rule out nearly all of them without a search.
type table[T any] struct {
	// lengths holds, by first byte, a bit for the length of each key.
	lengths  [256]uint64
	byLength [longestKey + 1][]entry[T]
}

type entry[T any] struct {
	key   string
	value T
}

// longestKey is the maximum length of a key, so that its bit fits lengths.
const longestKey = 63

func newTable[T any](entries map[string]T) *table[T] {
	t := new(table[T])
	for key, value := range entries {
		if key == "" || len(key) > longestKey {
			panic("source: key is empty or longer than 63 bytes: " + key)
		}
		t.lengths[key[0]] |= 1 << len(key)
		t.byLength[len(key)] = append(t.byLength[len(key)], entry[T]{key, value})
	}
	return t
}

// get returns the value of a key, or nil if the table does not hold it.
func (t *table[T]) get(key string) *T {
	if key == "" || len(key) > longestKey || t.lengths[key[0]]>>len(key)&1 == 0 {
		return nil
	}
	return t.search(key)
}

func (t *table[T]) search(key string) *T {
	bucket := t.byLength[len(key)]
	for i := range bucket {
		if bucket[i].key == key {
			return &bucket[i].value
		}
	}
	return nil
}
