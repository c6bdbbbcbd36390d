// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/collector/extension/xextension/storage"
)

// Loader restores the contents of entries, record by record. The content is valid until the
// function returns.
type Loader interface {
	// Base returns the owner of an entry with this content.
	Base(content []byte) (owner any, err error)
	// Change applies a change.
	Change(owner any, content []byte) error
}

// Restored is what Open found in the storage.
type Restored struct {
	// Entries are the entries in the order of their bases.
	Entries []*Entry
	// Lost is the number of entries of which a part is damaged or missing. They are not
	// restored. Entries of which nothing is left are not included.
	Lost int
	// Failures is the number of damaged segments and records, and Err joins their errors up
	// to a limit.
	Failures int
	Err      error
}

// Open restores the entries of a storage. It returns an error if the storage cannot be read
// at all. Damaged segments and records are skipped. Call Start next.
func Open(ctx context.Context, client storage.Client, loader Loader) (*Journal, *Restored, error) {
	j := &Journal{
		client:    client,
		wake:      make(chan struct{}, 1),
		abandoned: make(chan struct{}),
		closing:   make(chan struct{}),
		done:      make(chan struct{}),
	}
	j.next = 1
	encoded, err := client.Get(ctx, indexKey)
	if err != nil {
		return nil, nil, err
	}
	r := replay{loader: loader, entries: map[uint64]*Entry{}, lost: map[uint64]bool{}}
	if encoded != nil {
		i, err := decodeIndex(encoded)
		if err != nil {
			// Without the index, no stored segment can be found, but some may be left in the
			// storage. New segments and entries get numbers that no old one has, so that a
			// later start does not take old ones for new ones.
			unused := uint64(time.Now().UnixNano())
			i = index{unused, unused, unused}
			r.fail("the index of open streams", err)
		}
		if err := j.readSegments(ctx, i, &r); err != nil {
			return nil, nil, err
		}
		j.next = i.segments
		j.numbers.Store(i.numbers)
	}
	restored := &Restored{Lost: len(r.lost), Failures: r.failures, Err: errors.Join(r.errs...)}
	for e := entryAt(j.entries.Next()); e != nil; e = entryAt(e.place.Next()) {
		restored.Entries = append(restored.Entries, e)
	}
	return j, restored, nil
}

// readSegments replays the segments that the index covers.
func (j *Journal) readSegments(ctx context.Context, i index, r *replay) error {
	const atOnce = 64
	for from := i.first; from < i.segments; from += atOnce {
		var gets []*storage.Operation
		for number := from; number < min(from+atOnce, i.segments); number++ {
			gets = append(gets, storage.GetOperation(segmentKey(number)))
		}
		if err := j.client.Batch(ctx, gets...); err != nil {
			return err
		}
		for at, get := range gets {
			if get.Value == nil {
				continue
			}
			s := segment{from + uint64(at), int64(len(get.Value) + segmentOverhead)}
			j.segments = append(j.segments, s)
			j.stored.Add(s.size)
			r.segment(&j.entries, s.number, get.Value)
		}
	}
	return nil
}

// replay is the state of reading the segments.
type replay struct {
	loader   Loader
	entries  map[uint64]*Entry
	lost     map[uint64]bool // entries of which a part is missing
	last     uint64          // number of the segment read last, or 0
	failures int
	errs     []error
}

// maxErrors is the maximum number of errors that Restored.Err joins.
const maxErrors = 10

func (r *replay) fail(what string, err error) {
	r.failures++
	if len(r.errs) < maxErrors {
		r.errs = append(r.errs, fmt.Errorf("%s: %w", what, err))
	}
}

func (r *replay) segment(entries *place, number uint64, b []byte) {
	previous, b, err := unseal(segmentKey(number), b)
	if err == nil && r.last != 0 && previous != r.last {
		r.fail("open streams", fmt.Errorf("a segment between %d and %d is missing", r.last, number))
	}
	r.last = number
	for err == nil && len(b) > 0 {
		var next stored
		if next, b, err = readRecord(b); err == nil {
			r.record(entries, number, &next)
		}
	}
	if err != nil {
		r.fail(fmt.Sprintf("segment %d of open streams", number), err)
	}
}

func (r *replay) record(entries *place, segment uint64, next *stored) {
	e := r.entries[next.number]
	switch {
	case next.kind == finish:
		r.remove(next.number)
		delete(r.lost, next.number)
		return
	case next.kind == base:
		owner, err := r.loader.Base(next.content)
		if err != nil {
			r.lose(next.number, err)
			return
		}
		if e == nil {
			e = &Entry{number: next.number}
			r.entries[next.number] = e
		}
		e.owner = owner
		e.base.Store(segment)
		e.moveToEnd(entries)
		delete(r.lost, next.number)
	case e == nil || next.sequence != e.sequence+1:
		r.lose(next.number, nil)
		return
	default:
		if err := r.loader.Change(e.owner, next.content); err != nil {
			r.lose(next.number, err)
			return
		}
	}
	e.sequence = next.sequence
}

// lose removes an entry that misses a part. A later base may restore it.
func (r *replay) lose(number uint64, err error) {
	r.remove(number)
	r.lost[number] = true
	if err != nil {
		r.fail("an open stream", err)
	}
}

func (r *replay) remove(number uint64) {
	if e := r.entries[number]; e != nil {
		e.remove()
		delete(r.entries, number)
	}
}
