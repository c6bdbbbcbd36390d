// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package slo

import "time"

// Version identifies a state of a series' budgets: equal versions mean equal budgets.
type Version struct {
	of      *budgets
	counted uint64
}

// Saved calls visit with the key and the version of each series' budgets, for Restore
// after a restart. encode returns the budgets; it is valid during the visit only.
// visit must not call the tracker.
func (t *Tracker) Saved(visit func(key string, version Version, encode func() []byte)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for key, b := range t.budgets {
		visit(key, Version{b, b.version}, func() []byte { return b.appendBinary(nil) })
	}
}

// Restore continues the budgets that Saved encoded for a key. Call it before the first
// Record. Budgets whose objective is gone are dropped; those whose objective has
// another window start empty. Beyond the limit, the budgets without a verdict for
// longest are evicted.
func (t *Tracker) Restore(key string, encoded []byte, now time.Time) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	b := &budgets{key: key}
	if err := b.decode(encoded, t.objectives, t.position(now)); err != nil || len(b.objectives) == 0 {
		return err
	}
	if saved := t.budgets[key]; saved != nil { // the key was saved twice
		t.remove(saved)
	}
	t.budgets[key] = b
	if key == OverflowKey {
		return nil
	}
	t.insertByAge(b)
	if t.byAge.Len() > t.maxSeries {
		t.remove(t.byAge.Front().Value.(*budgets))
		t.evicted++
	}
	return nil
}

func (t *Tracker) insertByAge(b *budgets) {
	for e := t.byAge.Back(); e != nil; e = e.Prev() {
		if e.Value.(*budgets).seen <= b.seen {
			b.age = t.byAge.InsertAfter(b, e)
			return
		}
	}
	b.age = t.byAge.PushFront(b)
}
