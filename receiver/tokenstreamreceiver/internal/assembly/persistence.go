// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package assembly

import (
	"context"
	"errors"
	"fmt"
	"math"

	"go.opentelemetry.io/collector/extension/xextension/storage"

	"github.com/tokenpulse/tokenpulse/internal/httpguard"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/journal"
)

// StorageError means that changes of open streams could not be stored. Nothing was applied,
// so the sender can retry it.
type StorageError struct{ Err error }

func (e *StorageError) Error() string { return "open streams cannot be stored: " + e.Err.Error() }

func (e *StorageError) Unwrap() error { return e.Err }

// Restored is what OpenJournal found.
type Restored struct {
	// Streams are open again, and hold so many accepted events.
	Streams int
	Events  int64
	// Damaged is the number of streams of which a part is lost.
	Damaged int
	// Full is the number of streams that exceed a limit.
	Full int
	// Failures is the number of damaged parts of the storage, and Err joins some of their errors.
	Failures int
	Err      error
}

// OpenJournal restores the open streams of a storage, and stores those that are opened from
// now on. It returns an error if the storage cannot be read. failed is called with each
// error of a write. Call it before the first transaction.
func (s *Store) OpenJournal(ctx context.Context, client storage.Client, failed func(error)) (*Restored, error) {
	loader := &loader{limits: &s.limits}
	j, found, err := journal.Open(ctx, client, loader)
	if err != nil {
		return nil, err
	}
	s.journal, s.resources.journal = j, j
	s.changes.New = func() any { return new(journal.Changes) }
	restored := &Restored{Damaged: found.Lost, Failures: found.Failures, Err: found.Err}
	unused := s.restore(found.Entries, restored)
	j.Start(s, failed)
	for _, e := range unused {
		j.Finish(e)
	}
	return restored, nil
}

// CloseJournal closes the storage, or returns the error of ctx. No transaction may be in
// progress or follow.
func (s *Store) CloseJournal(ctx context.Context) error { return s.journal.Close(ctx) }

// AbandonJournal makes commits fail that wait for a storage that blocks.
func (s *Store) AbandonJournal() { s.journal.Abandon() }

// HasJournal reports whether open streams are stored.
func (s *Store) HasJournal() bool { return s.journal != nil }

// Stored returns the bytes that the storage holds.
func (s *Store) Stored() int64 { return s.journal.Stored() }

// Rewrite implements journal.Contents.
func (s *Store) Rewrite(owner any, write func(content []byte)) {
	switch owner := owner.(type) {
	case *resource:
		s.resources.mu.Lock()
		defer s.resources.mu.Unlock()
		if owner.streams > 0 {
			write(appendResource(nil, owner.encoded))
		}
	case *open:
		shard := s.shardOf(owner.ID)
		shard.mu.Lock()
		defer shard.mu.Unlock()
		if shard.streams[owner.ID] != owner {
			return
		}
		if claim := owner.claim; claim != nil {
			claim.mu.Lock()
			defer claim.mu.Unlock()
			if claim.storing {
				return
			}
		}
		write(appendStream(nil, &owner.Stream, owner.resource, owner.client.client))
	}
}

// Size implements journal.Contents.
func (s *Store) Size() int64 { return s.memory.Load() }

// ready returns an error if the transaction changes open streams, which the journal could
// probably not store.
func (tx *Transaction) ready() error {
	if tx.store.journal == nil {
		return nil
	}
	err := tx.store.journal.Ready()
	if err == nil {
		return nil
	}
	for _, part := range tx.parts {
		if !part.rejected && !part.ended {
			return &StorageError{err}
		}
	}
	return nil
}

// persist stores the changes of open streams. Streams that end are delivered already, so
// that is no error if the transaction does nothing else.
func (tx *Transaction) persist() error {
	j := tx.store.journal
	if j == nil || len(tx.parts)+len(tx.expired) == 0 {
		return nil
	}
	tx.claim.beginStoring()
	changes := tx.store.changes.Get().(*journal.Changes)
	changed := false
	for _, part := range tx.parts {
		switch {
		case part.rejected:
		case part.ended:
			changes.Finish(part.open.entry)
		default:
			changed = tx.persistPart(changes, part) || changed
		}
	}
	for _, stream := range tx.expired {
		changes.Finish(stream.entry)
	}
	if changes.IsEmpty() {
		tx.store.changes.Put(changes)
		return nil
	}
	held := int64(changes.Size())
	tx.store.requests.Add(held)
	err := j.Write(changes, !changed)
	tx.store.requests.Add(-held)
	if !errors.Is(err, journal.ErrClosed) {
		changes.Reset()
		tx.store.changes.Put(changes)
	}
	if err != nil && changed {
		return &StorageError{err}
	}
	return nil
}

// persistPart adds what a part changes in its open stream. It reports whether that is
// anything.
func (tx *Transaction) persistPart(changes *journal.Changes, part *Part) bool {
	accepted := part.accepted()
	if !part.created && accepted.stored()&^hasAccepted == 0 {
		return false // such as a keep-alive
	}
	tx.persistResource(changes, part.shared)
	j, stream := tx.store.journal, part.open
	if part.created {
		stream.entry = j.NewEntry(stream)
		changes.Base(stream.entry, appendStream(changes.Content(), accepted, part.shared, tx.client.client))
		return true
	}
	if j.IsStale(stream.entry) {
		changes.Base(stream.entry, appendStream(changes.Content(), &stream.Stream, stream.resource, stream.client.client))
	}
	changes.Change(stream.entry, appendEvents(changes.Content(), accepted, part.shared))
	return true
}

// persistResource adds a resource, if no transaction has stored it yet.
func (tx *Transaction) persistResource(changes *journal.Changes, r *resource) {
	if r == nil || r.entry.IsStored() || tx.persisted[r] {
		return
	}
	if tx.persisted == nil {
		tx.persisted = map[*resource]bool{}
	}
	tx.persisted[r] = true
	changes.Base(r.entry, appendResource(changes.Content(), r.encoded))
}

// beginStoring keeps the journal from rewriting the claimed streams until they are released.
// Before, their transaction does not change them.
func (c *claim) beginStoring() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.storing = true
}

// number returns the number of the resource's entry, or 0.
func (r *resource) number() uint64 {
	if r == nil || r.entry == nil {
		return 0
	}
	return r.entry.Number()
}

// loader implements journal.Loader. Streams refer to resources by the numbers of their
// entries, which may follow in the journal.
type loader struct{ limits *Limits }

// loading is a stream that is being restored.
type loading struct {
	Stream
	resource uint64 // number of the resource's entry, valid with a start
	client   httpguard.Client
}

func (l *loader) Base(content []byte) (owner any, err error) {
	if len(content) == 0 {
		return nil, errStored
	}
	switch content[0] {
	case tagResource:
		return &resource{encoded: append([]byte(nil), content[1:]...)}, nil
	case tagStream:
		var events loading
		c := coder{b: content[1:], reading: true}
		c.stream(&events.Stream, &events.client, &events.resource)
		if err := c.end(); err != nil {
			return nil, err
		}
		stream := &loading{client: events.client}
		stream.ID = events.ID
		l.apply(stream, &events)
		return stream, nil
	default:
		return nil, fmt.Errorf("unknown kind of entry %d", content[0])
	}
}

func (l *loader) Change(owner any, content []byte) error {
	stream, ok := owner.(*loading)
	if !ok {
		return errStored
	}
	var events loading
	c := coder{b: content, reading: true}
	c.events(&events.Stream, &events.resource)
	if err := c.end(); err != nil {
		return err
	}
	l.apply(stream, &events)
	return nil
}

// apply does what the commit of the events did.
func (l *loader) apply(stream, events *loading) {
	if events.started() && !stream.started() {
		stream.resource = events.resource
	}
	stream.merge(&events.Stream, l.limits.MaxChunksPerStream)
	stream.Accepted = int32(min(int64(stream.Accepted)+int64(events.Accepted), math.MaxInt32))
}

// restore opens streams again, and returns the entries that are not in use.
func (s *Store) restore(entries []*journal.Entry, restored *Restored) (unused []*journal.Entry) {
	stored, used := map[uint64]*resource{}, map[uint64]bool{}
	for _, e := range entries {
		if r, ok := e.Owner().(*resource); ok {
			r.entry = e
			stored[e.Number()] = r
		}
	}
	for _, e := range entries {
		stream, ok := e.Owner().(*loading)
		if !ok {
			continue
		}
		of := stored[stream.resource]
		switch {
		case of == nil && stream.resource != 0 || !stream.started():
			restored.Damaged++
		case !s.reopen(stream, of, e):
			restored.Full++
		default:
			restored.Streams++
			restored.Events += int64(stream.Accepted)
			used[stream.resource] = true
			continue
		}
		unused = append(unused, e)
	}
	for number, r := range stored {
		if !used[number] {
			unused = append(unused, r.entry)
		}
	}
	return unused
}

// reopen opens a restored stream. It reports whether the limits leave room for it.
func (s *Store) reopen(stream *loading, of *resource, e *journal.Entry) bool {
	reopened := &open{Stream: stream.Stream, entry: e}
	shard := s.shardOf(reopened.ID)
	if shard.streams[reopened.ID] != nil || s.streams.Load() >= int64(s.limits.MaxStreams) {
		return false
	}
	memory := reopened.size()
	more := memory
	if of != nil && of.streams == 0 {
		more += of.size()
	}
	if s.memory.Load()+more > s.maxStreamMemory() {
		return false
	}
	if of != nil {
		reopened.resource = s.resources.restore(of)
		reopened.Resource = reopened.resource.encoded
	}
	e.SetOwner(reopened)
	reopened.client = s.clients.add(stream.client, 1)
	s.streams.Add(1)
	s.memory.Add(memory)
	s.accepted.Add(int64(stream.Accepted))
	shard.mu.Lock() // Visit may run
	defer shard.mu.Unlock()
	shard.streams[reopened.ID] = reopened
	shard.touch(reopened, s.now(), true)
	return true
}
