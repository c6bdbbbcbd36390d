// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package assembly

import "github.com/tokenpulse/tokenpulse/internal/httpguard"

// Transaction applies a batch, or expires idle streams. Every transaction must end
// with either Commit or Rollback.
type Transaction struct {
	// Finished holds the streams that a commit ends.
	Finished []Finished
	// Rejected holds the events that cannot be applied.
	Rejected []Rejection
	// Units is the number of the batch's units that a commit applies.
	Units int

	byEvent bool              // of the batch
	sender  *httpguard.Client // of the batch
	store   *Store
	claim   *claim
	parts   []*Part // parts with a claimed stream
	expired []*open
	streams int64 // reserved in the store
	memory  int64 // reserved in the store

	created        int          // parts that open a stream
	client         *clientUsage // counts them already
	endedOfClient  int          // open streams of that client that a commit ends
	resource       *resource    // of the last part that shares one
	resourceMemory int64        // of new resources
	persisted      map[*resource]bool
}

// Rejection reports events of a stream that were rejected, and why.
type Rejection struct {
	ID    string
	Line  int // number of the first unit in the body, or 0
	Units int // rejected ones; 0 for some events of a message
	// Events is 0 if all units were rejected. Otherwise it is the number of rejected
	// events, such as chunks beyond a limit, and the rest of the units is applied.
	Events int
	Err    error
}

func (s *Store) newTransaction() *Transaction {
	return &Transaction{store: s, claim: &claim{released: make(chan struct{})}}
}

// Commit applies the transaction. With a journal, it first stores the changes of open streams.
// If that fails, Commit rolls back and returns a StorageError. A transaction that only ends
// streams never fails.
func (tx *Transaction) Commit() error {
	if err := tx.persist(); err != nil {
		tx.Rollback()
		return err
	}
	tx.commit()
	return nil
}

func (tx *Transaction) commit() {
	var streams, memory, accepted int64
	now := tx.store.now()
	tx.store.witnessEnds(tx.Finished, now)
	for _, part := range tx.parts {
		switch {
		case part.rejected:
			part.shard.release(part.open)
		case part.ended:
			streams--
			memory -= part.open.size()
			accepted -= int64(part.open.Accepted)
			tx.store.remove(part.shard, part.open)
		default:
			if part.created {
				streams++
				part.open.client = tx.client
			} else {
				memory -= part.open.size()
			}
			if part.shared != nil {
				tx.store.resources.release(part.open.resource)
				part.open.resource, part.Resource = part.shared, part.shared.encoded
			}
			before := part.open.arrived()
			part.open.mergeEvents(part.accepted(), tx.store.limits.MaxChunksPerStream)
			part.open.Accepted += part.Accepted
			accepted += int64(part.Accepted)
			progress := part.open.arrived() > before
			tx.store.witness(part, now, progress)
			memory += part.shard.update(part, now, progress)
		}
	}
	for _, stream := range tx.expired {
		streams--
		memory -= stream.size()
		accepted -= int64(stream.Accepted)
		tx.store.remove(tx.store.shardOf(stream.ID), stream)
	}
	tx.settle(streams, memory)
	tx.store.accepted.Add(accepted)
	close(tx.claim.released)
}

// Rollback ends the transaction and leaves the store as it was before.
func (tx *Transaction) Rollback() {
	tx.settle(0, 0)
	if tx.client != nil {
		tx.store.clients.remove(tx.client, tx.created)
	}
	for _, part := range tx.parts {
		tx.store.resources.release(part.shared)
	}
	tx.release()
}

// accepted returns the events of the part to merge into the open stream.
func (p *Part) accepted() *Stream {
	if !p.noAttributes {
		return &p.Stream
	}
	accepted := p.Stream
	accepted.Attributes = nil
	return &accepted
}

// reserve reserves room for the net growth of the batch. It rolls back and returns a
// FullError if a limit is exceeded. memory includes the new resources, which the store
// holds already.
func (tx *Transaction) reserve(streams, memory int64) error {
	tx.streams, tx.memory = max(0, streams), max(0, memory-tx.resourceMemory)
	limits := &tx.store.limits
	open := tx.store.streams.Add(tx.streams)
	held := tx.store.memory.Add(tx.memory)
	var full FullError
	switch {
	case open > int64(limits.MaxStreams) && streams > 0:
		full.Setting = SettingMaxStreams
	case 2*open > int64(limits.MaxStreams) && tx.exceedsClientLimit():
		full.Setting, full.Of = SettingMaxSharePerClient, SettingMaxStreams
	case held > tx.store.maxStreamMemory() && memory > 0:
		full.Setting = SettingMaxMemory
	default:
		return nil
	}
	tx.Rollback()
	return &full
}

// exceedsClientLimit reports whether the batch increases the open streams of its client
// beyond MaxStreamsPerClient.
func (tx *Transaction) exceedsClientLimit() bool {
	limit := tx.store.limits.MaxStreamsPerClient
	return limit > 0 && tx.created > tx.endedOfClient && tx.store.clients.streams(tx.client)-tx.endedOfClient > limit
}

// settle replaces the reservation with the actual change.
func (tx *Transaction) settle(streams, memory int64) {
	tx.store.streams.Add(streams - tx.streams)
	tx.store.memory.Add(memory - tx.memory)
}

// release releases all claims, and removes streams that the transaction created.
func (tx *Transaction) release() {
	for _, part := range tx.parts {
		if part.created {
			part.shard.remove(part.open)
		} else {
			part.shard.release(part.open)
		}
	}
	for _, stream := range tx.expired {
		tx.store.shardOf(stream.ID).release(stream)
	}
	close(tx.claim.released)
}
