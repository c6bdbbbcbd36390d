// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Package journal keeps entries, such as open streams, in a storage extension, so that they
// survive a crash. It is a write-ahead log: changes are acknowledged once they are stored.
//
// The changes of concurrent callers are stored together, as one numbered segment. A segment
// never changes. The journal deletes the oldest segments once they contain no part of an
// entry. It has entries in old segments written again, in full, so that the stored bytes
// stay within a small multiple of the memory of the entries: see Contents.Size.
//
// The content of an entry is opaque to the journal. It is stored as a base, which is the
// whole content, followed by changes. With one value per stream, written again with each
// change, n requests of a stream would write n²/2 bytes; a save of all streams every few
// seconds would lose acknowledged events. The price is that an acknowledgement waits for a
// write.
package journal

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/extension/xextension/storage"
)

// Contents are the entries as the owner of the journal holds them in memory.
type Contents interface {
	// Rewrite calls write with the whole content of an entry. No change of the entry may be
	// in progress from before the call of write until after it. Rewrite does nothing if a
	// change is in progress, or if the entry is finished.
	Rewrite(owner any, write func(content []byte))
	// Size returns the bytes of memory of all entries. A content takes no more bytes in the
	// storage than in memory.
	Size() int64
}

// Journal stores entries. A nil Journal stores nothing. It is safe for concurrent use.
type Journal struct {
	client   storage.Client
	contents Contents
	failed   func(error)

	numbers   atomic.Uint64 // number of the next entry
	threshold atomic.Uint64 // entries with a base in a segment before this one are rewritten
	stored    atomic.Int64  // bytes in the storage
	failure   atomic.Pointer[failure]

	mu sync.Mutex
	// mu guards everything declared below.
	pending *group // nil if empty
	closed  bool

	wake      chan struct{}
	abandoned chan struct{} // closed once nothing waits for the storage any more
	closing   chan struct{}
	done      chan struct{} // closed once the writer has ended

	log // of the writer
}

// failure is the last attempt to write, if it failed.
type failure struct {
	err error
	at  time.Time
}

// retryAfter is how long Ready returns an error after a failed write.
const retryAfter = time.Second

// ErrClosed is the error of changes after Close, or that waited at the time of Abandon.
var ErrClosed = errors.New("the journal is closed")

// Start starts to store changes. failed is called, from one goroutine, with each error of
// the storage.
func (j *Journal) Start(contents Contents, failed func(error)) {
	j.contents, j.failed = contents, failed
	go j.run()
}

// Ready returns the error of a write that failed a moment ago. Changes would probably fail
// too.
func (j *Journal) Ready() error {
	if j == nil {
		return nil
	}
	if last := j.failure.Load(); last != nil && time.Since(last.at) < retryAfter {
		return last.err
	}
	return nil
}

// Stored returns the bytes that the storage holds.
func (j *Journal) Stored() int64 {
	if j == nil {
		return 0
	}
	return j.stored.Load()
}

// Write stores changes and waits for the storage. If it returns an error, none of them is
// stored, except that finished entries are still finished by the next write if keep is set.
// After ErrClosed, the changes must not be used again: they may still be written.
func (j *Journal) Write(changes *Changes, keep bool) error {
	g, err := j.enqueue(changes, keep)
	if err != nil {
		return err
	}
	select {
	case <-g.written:
		return g.err
	case <-j.abandoned:
		return ErrClosed
	}
}

// Finish removes an entry with the next write, without waiting for it.
func (j *Journal) Finish(e *Entry) {
	if j == nil || !e.IsStored() {
		return
	}
	var changes Changes
	changes.Finish(e)
	_, _ = j.enqueue(&changes, true) // without a journal, nothing is left to do
}

// enqueue adds changes to the group that is written next.
func (j *Journal) enqueue(changes *Changes, keep bool) (*group, error) {
	j.mu.Lock()
	if j.closed {
		j.mu.Unlock()
		return nil, ErrClosed
	}
	changes.keep = keep
	g := j.add(changes)
	j.mu.Unlock()
	select {
	case j.wake <- struct{}{}:
	default:
	}
	return g, nil
}

// add adds changes to the pending group. The caller holds mu.
func (j *Journal) add(changes *Changes) *group {
	if j.pending == nil {
		j.pending = newGroup()
	}
	j.pending.changes = append(j.pending.changes, changes)
	return j.pending
}

// Abandon ends all calls of Write that wait for the storage, now and later. Use it to close a
// journal whose storage blocks.
func (j *Journal) Abandon() {
	if j == nil {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	select {
	case <-j.abandoned:
	default:
		close(j.abandoned)
	}
}

// Close writes the pending changes and closes the storage. If that takes longer than ctx,
// Close returns the error of ctx and goes on in the background. No other call may be in
// progress or follow, except of Stored.
func (j *Journal) Close(ctx context.Context) error {
	if j == nil {
		return nil
	}
	j.mu.Lock()
	again := j.closed
	j.closed = true
	j.mu.Unlock()
	if again {
		return nil
	}
	close(j.closing)
	closed := make(chan error, 1)
	go func() {
		<-j.done
		closed <- j.client.Close(context.WithoutCancel(ctx))
	}()
	select {
	case err := <-closed:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}
