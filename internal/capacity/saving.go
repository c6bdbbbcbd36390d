// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"slices"
	"time"
)

// Key identifies a limit.
type Key struct {
	Series string `json:"series"`
	SLO    string `json:"slo"`
}

// Version identifies a state of a limit: equal versions mean equal limits.
type Version struct {
	of    *Limit
	slots uint64
}

// Save calls visit with what each limit has learned. Slots that are not complete are lost, and so is the present load.
func (t *Table) Save(visit func(key Key, version Version, encode func() []byte)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, s := range t.subjects {
		for i, l := range s.limits {
			visit(Key{s.key, t.objectives[i].SLO}, Version{l, s.slots}, func() []byte { return l.AppendBinary(nil) })
		}
	}
}

// Restore continues a limit. One of an SLO that has none now is dropped.
func (t *Table) Restore(key Key, encoded []byte, now time.Time) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	i := slices.IndexFunc(t.objectives, func(o Objective) bool { return o.SLO == key.SLO })
	if i < 0 {
		return nil
	}
	s := t.subject([]byte(key.Series), now)
	if s == nil {
		return nil
	}
	s.set(now, now)
	return s.limits[i].Restore(encoded)
}
