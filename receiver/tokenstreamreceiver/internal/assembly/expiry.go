// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package assembly

import (
	"math"
	"time"
)

// Timeouts are the times without an event after which a stream expires.
type Timeouts struct {
	// Idle is the timeout of a stream with chunks.
	Idle time.Duration
	// FirstToken is the timeout of a stream that waits for its first chunk.
	FirstToken time.Duration
}

// Plus returns timeouts that are longer by d.
func (t Timeouts) Plus(d time.Duration) Timeouts { return Timeouts{t.Idle + d, t.FirstToken + d} }

// Expire begins a transaction that ends up to limit expired streams, in each shard those
// idle longest first. Streams that other transactions have claimed are skipped. If
// Finished is empty, no other stream has expired.
func (s *Store) Expire(timeouts Timeouts, limit int) *Transaction {
	tx := s.newTransaction()
	now := s.now()
	// Each call starts with another shard, so that no stream waits behind streams that
	// are refused again and again.
	first := s.expireFrom.Add(1)
	for i := range uint64(shards) {
		shard := &s.shards[(first+i)%shards]
		shard.mu.Lock()
		shard.idle.end(tx, now-timeouts.Idle, now-timeouts.Idle, limit)
		shard.waiting.end(tx, now-timeouts.FirstToken, now-timeouts.FirstToken, limit)
		shard.mu.Unlock()
	}
	return tx
}

// Cut begins a transaction that ends up to limit streams. Those that had not expired at
// the time now are marked as Cut.
func (s *Store) Cut(timeouts Timeouts, now time.Duration, limit int) *Transaction {
	tx := s.newTransaction()
	for i := range s.shards {
		shard := &s.shards[i]
		shard.mu.Lock()
		shard.idle.end(tx, math.MaxInt64, now-timeouts.Idle, limit)
		shard.waiting.end(tx, math.MaxInt64, now-timeouts.FirstToken, limit)
		shard.mu.Unlock()
	}
	return tx
}

// end adds streams of the ring without events since the time before. Those with events
// since the time expired are cut.
func (r *ring) end(tx *Transaction, before, expired time.Duration, limit int) {
	for stream := r.newer; stream != (*open)(r) && stream.lastActive <= before; stream = stream.newer {
		if len(tx.expired) == limit {
			return
		}
		if stream.claim != nil { // a transaction is adding events to it
			continue
		}
		stream.claim = tx.claim
		tx.expired = append(tx.expired, stream)
		ended := &stream.Stream
		if ended.Chunks.spilled { // Timeline sorts them, while the journal may rewrite the stream
			ended = stream.fork()
		}
		tx.Finished = append(tx.Finished, Finished{Stream: ended, Cut: stream.lastActive > expired})
	}
}
