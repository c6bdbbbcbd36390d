// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"context"
	"slices"
	"time"

	"go.opentelemetry.io/collector/extension/xextension/storage"
)

// log is the state of the storage, which only the writer accesses.
type log struct {
	index    index // as stored; zero if unknown
	next     uint64
	segments []segment // the stored ones, oldest first
	entries  place     // the head; the entry whose base is in the oldest segment is next

	buffer  []byte // the segment that is written
	fresh   int64  // bytes of the last segment that were not rewritten
	settled int64  // bytes in the storage after the last compaction, or less
}

type segment struct {
	number uint64
	size   int64
}

// segmentOverhead is added to the size of each segment, so that the limit of stored bytes
// also bounds the number of segments.
const segmentOverhead = 64

const (
	// The index is written when the numbers that it bounds are used up.
	reservedSegments = 1 << 10
	reservedNumbers  = 1 << 20
	// maxDeletes is the maximum number of segments that are deleted with one write.
	maxDeletes = 1 << 10
)

// run is the writer: it writes groups until the journal closes.
func (j *Journal) run() {
	defer close(j.done)
	for {
		last := false
		select {
		case <-j.wake:
		case <-j.closing:
			last = true
		}
		for j.round() {
		}
		if last {
			return
		}
	}
}

// round writes the pending changes, and rewrites entries in old segments. It reports whether
// there is more to do.
func (j *Journal) round() (more bool) {
	rewritten := j.rewrite()
	j.mu.Lock()
	g := j.pending
	j.pending = nil
	j.mu.Unlock()
	if g == nil {
		if !j.isCompacting() || j.deletable() == 0 {
			return false
		}
		g = newGroup() // only deletes segments
	}
	g.err = j.write(g)
	if g.err != nil {
		j.fail(g)
	} else if j.failure.Load() != nil {
		j.failure.Store(nil)
	}
	close(g.written)
	j.fresh = int64(len(j.buffer)) - rewritten
	return g.err == nil && (rewritten > 0 || j.isCompacting() && j.deletable() > 0 || j.hasPending())
}

func (j *Journal) hasPending() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.pending != nil
}

// write stores a group as a segment, and deletes the oldest segments without entries.
func (j *Journal) write(g *group) error {
	j.encode(g)
	deletes := j.deletable()
	operations := make([]*storage.Operation, 0, 2+deletes)
	content := len(j.buffer) > headerLength
	updated := j.index
	// A crash between two operations must not leave a segment that the index does not cover.
	if content && (j.next >= updated.segments || j.numbers.Load() >= updated.numbers) {
		updated = index{j.next, j.next + reservedSegments, j.numbers.Load() + reservedNumbers}
		if len(j.segments) > 0 {
			updated.first = j.segments[0].number
		}
		operations = append(operations, storage.SetOperation(indexKey, updated.encode()))
	}
	if content {
		var previous uint64
		if n := len(j.segments); n > 0 {
			previous = j.segments[n-1].number
		}
		operations = append(operations, storage.SetOperation(segmentKey(j.next), seal(segmentKey(j.next), previous, j.buffer)))
	}
	operations = append(operations, j.deletions(deletes)...)
	if len(operations) == 0 {
		return nil
	}
	if err := j.client.Batch(context.Background(), operations...); err != nil {
		return err
	}
	j.index = updated
	j.deleted(deletes)
	if content {
		j.written(g)
	}
	return nil
}

// encode encodes a group into the buffer, after room for the header.
func (j *Journal) encode(g *group) {
	const keep = 1 << 20
	if cap(j.buffer) > keep {
		j.buffer = nil
	}
	b := slices.Grow(j.buffer[:0], headerLength)[:headerLength]
	for _, changes := range g.changes {
		content := changes.content
		for _, r := range changes.records {
			if r.kind == finish && !r.entry.IsStored() {
				continue
			}
			r.entry.sequence++
			b = appendRecord(b, r.entry.number, r.entry.sequence, r.kind, content[:r.length])
			content = content[r.length:]
		}
	}
	j.buffer = b
}

// written applies a stored group to the state of the log.
func (j *Journal) written(g *group) {
	for _, changes := range g.changes {
		for _, r := range changes.records {
			switch r.kind {
			case base:
				r.entry.base.Store(j.next)
				r.entry.moveToEnd(&j.entries)
			case finish:
				r.entry.base.Store(0)
				r.entry.remove()
			}
		}
	}
	size := int64(len(j.buffer) + segmentOverhead)
	j.segments = append(j.segments, segment{j.next, size})
	j.stored.Add(size)
	j.next++
}

// fail reverts a group that could not be written. Deleting segments may make room for the
// next one.
func (j *Journal) fail(g *group) {
	for _, changes := range g.changes {
		for _, r := range changes.records {
			if r.kind != finish || r.entry.IsStored() {
				r.entry.sequence--
			}
		}
	}
	if kept := g.kept(); !kept.IsEmpty() {
		for _, r := range kept.records {
			r.entry.remove() // its segments can be deleted now
		}
		j.mu.Lock()
		j.add(kept)
		j.mu.Unlock()
	}
	j.failure.Store(&failure{g.err, time.Now()})
	j.failed(g.err)
	if n := j.deletable(); n > 0 && j.client.Batch(context.Background(), j.deletions(n)...) == nil {
		j.deleted(n)
	}
}

// deletable returns the number of the oldest segments without a part of an entry.
func (j *Journal) deletable() (n int) {
	before := j.next
	if first := entryAt(j.entries.Next()); first != nil {
		before = first.base.Load()
	}
	for n < min(len(j.segments), maxDeletes) && j.segments[n].number < before {
		n++
	}
	return n
}

func (j *Journal) deletions(n int) (operations []*storage.Operation) {
	for _, s := range j.segments[:n] {
		operations = append(operations, storage.DeleteOperation(segmentKey(s.number)))
	}
	return operations
}

// deleted removes the oldest segments from the state of the log.
func (j *Journal) deleted(n int) {
	for _, s := range j.segments[:n] {
		j.stored.Add(-s.size)
	}
	j.segments = j.segments[n:]
}
