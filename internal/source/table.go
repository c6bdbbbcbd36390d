package source

// table finds what belongs to a key. Spans have many attributes, and few are of
// interest: nearly all others are told by their first byte and length.
type table[T any] struct {
	// lengths holds, by first byte, a bit for the length of each key.
	lengths  [256]uint64
	byLength [longestKey + 1][]entry[T]
}

type entry[T any] struct {
	key   string
	value T
}

// longestKey is the length of the longest key that a table takes.
const longestKey = 63

func newTable[T any](entries map[string]T) *table[T] {
	t := new(table[T])
	for key, value := range entries {
		if key == "" || len(key) > longestKey {
			panic("source: no table takes the key " + key)
		}
		t.lengths[key[0]] |= 1 << len(key)
		t.byLength[len(key)] = append(t.byLength[len(key)], entry[T]{key, value})
	}
	return t
}

// get returns nil for a key that is not there.
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
