// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package identity

// generations is a map that forgets the entries that were not used for longest. It holds two
// generations of at most limit entries. When the newer one is full, the older one is dropped;
// entries that are used meanwhile move to the newer one.
type generations[V any] struct {
	limit        int
	newer, older map[string]V
}

// get allocates nothing, unless it moves the entry.
func (g *generations[V]) get(key []byte) (V, bool) {
	if v, ok := g.newer[string(key)]; ok {
		return v, true
	}
	v, ok := g.older[string(key)]
	if ok && len(g.newer) < g.limit {
		delete(g.older, string(key))
		g.newer[string(key)] = v
	}
	return v, ok
}

// put adds or replaces an entry. It returns the number of entries that it dropped.
func (g *generations[V]) put(key string, v V) (dropped int64) {
	if _, replaces := g.newer[key]; !replaces && len(g.newer) >= g.limit {
		dropped = int64(len(g.older))
		g.older, g.newer = g.newer, nil
	}
	if g.newer == nil {
		g.newer = map[string]V{}
	}
	delete(g.older, key)
	g.newer[key] = v
	return dropped
}
