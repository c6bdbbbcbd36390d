// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package identity

// generations is a map that forgets the entries that were not used for longest. It holds two
// generations of at most limit entries. When the newer one is full, the older one is dropped;
// entries that are used meanwhile move to the newer one.
type generations[K comparable, V any] struct {
	limit        int
	newer, older map[K]V
}

func (g *generations[K, V]) get(key K) (V, bool) {
	if v, ok := g.newer[key]; ok {
		return v, true
	}
	v, ok := g.older[key]
	if ok && len(g.newer) < g.limit {
		delete(g.older, key)
		g.newer[key] = v
	}
	return v, ok
}

// put adds or replaces an entry. It returns the number of entries that it dropped.
func (g *generations[K, V]) put(key K, v V) (dropped int64) {
	if _, replaces := g.newer[key]; !replaces && len(g.newer) >= g.limit {
		dropped = int64(len(g.older))
		g.older, g.newer = g.newer, nil
	}
	if g.newer == nil {
		g.newer = map[K]V{}
	}
	delete(g.older, key)
	g.newer[key] = v
	return dropped
}

// getBytes is get for a key in a buffer, without an allocation.
func getBytes[V any](g *generations[string, V], key []byte) (V, bool) {
	if v, ok := g.newer[string(key)]; ok {
		return v, true
	}
	v, ok := g.older[string(key)]
	if ok {
		return g.get(string(key)) // moves the entry to the newer generation
	}
	return v, ok
}
