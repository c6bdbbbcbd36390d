// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package journal

import "sync/atomic"

// Entry is a stored entry, such as an open stream.
type Entry struct {
	number uint64
	owner  any
	// base is the segment with the latest base, or 0 if none is stored.
	base atomic.Uint64

	// The fields below belong to the writer.
	sequence     uint64 // of the last record
	older, newer *Entry // in the order of base
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

// ring holds the stored entries, in the order of base: newer is the entry whose base is in
// the oldest segment.
type ring struct{ head Entry }

func (r *ring) init() { r.head.older, r.head.newer = &r.head, &r.head }

// append adds an entry, or moves it to the end.
func (r *ring) append(e *Entry) {
	r.remove(e)
	e.older, e.newer = r.head.older, &r.head
	e.older.newer, e.newer.older = e, e
}

func (r *ring) remove(e *Entry) {
	if e.older == nil {
		return
	}
	e.older.newer, e.newer.older = e.newer, e.older
	e.older, e.newer = nil, nil
}

// first returns the entry whose base is in the oldest segment, or nil.
func (r *ring) first() *Entry { return r.after(&r.head) }

// after returns the next entry, or nil.
func (r *ring) after(e *Entry) *Entry {
	if e.newer == &r.head {
		return nil
	}
	return e.newer
}
