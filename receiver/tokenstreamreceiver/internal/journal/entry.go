// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"container/ring"
	"sync/atomic"
)

// Entry is a stored entry, such as an open stream.
type Entry struct {
	number uint64
	owner  any
	// base is the segment with the latest base, or 0 if none is stored.
	base atomic.Uint64

	// The fields below belong to the writer.
	sequence uint64 // of the last record
	place    place
}

// NewEntry returns an entry that is not stored yet. owner is passed to Contents.Rewrite.
func (j *Journal) NewEntry(owner any) *Entry {
	if j == nil {
		return nil
	}
	return &Entry{number: j.numbers.Add(1), owner: owner}
}

// Number identifies the entry in the content of others. It is never used again.
func (e *Entry) Number() uint64 { return e.number }

// Owner returns the owner of the entry.
func (e *Entry) Owner() any { return e.owner }

// SetOwner replaces the owner of a restored entry. Call it before Journal.Start.
func (e *Entry) SetOwner(owner any) { e.owner = owner }

// IsStored reports whether the storage has the entry.
func (e *Entry) IsStored() bool { return e.base.Load() != 0 }

// IsStale reports whether the entry's base should be stored again, because its segment is
// one of the oldest.
func (j *Journal) IsStale(e *Entry) bool {
	base := e.base.Load()
	return base != 0 && base < j.threshold.Load()
}

// place is the place of an entry in a ring of the stored ones, in the order of base. The head
// of the ring has no entry.
type place = ring.Ring

// entryAt returns the entry at a place, or nil.
func entryAt(p *place) *Entry {
	e, _ := p.Value.(*Entry)
	return e
}

// moveToEnd adds an entry behind all others.
func (e *Entry) moveToEnd(entries *place) {
	e.remove()
	e.place.Value = e
	entries.Prev().Link(&e.place)
}

func (e *Entry) remove() { e.place.Prev().Unlink(1) }
