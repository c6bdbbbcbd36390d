// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package assembly

import "time"

// Timeouts are the times without an event after which a stream expires.
type Timeouts struct {
	// Idle is the timeout of a stream with chunks.
	Idle time.Duration
	// FirstToken is the timeout of a stream that waits for its first chunk.
	FirstToken time.Duration
}

// Plus returns timeouts that are longer by d.
func (t Timeouts) Plus(d time.Duration) Timeouts { return Timeouts{t.Idle + d, t.FirstToken + d} }

// ExpiredMemory returns the bytes that the expired streams hold, without their resources.
func (s *Store) ExpiredMemory(timeouts Timeouts) (bytes int64) {
	now := s.now()
	for i := range s.shards {
		shard := &s.shards[i]
		shard.mu.Lock()
		bytes += shard.idle.sizeUntil(now-timeouts.Idle) + shard.waiting.sizeUntil(now-timeouts.FirstToken)
		shard.mu.Unlock()
	}
	return bytes
}

// sizeUntil returns the bytes of the streams that were last active at the time expired or before.
// Those that a transaction has claimed are about to end, or to go on.
func (r *ring) sizeUntil(expired time.Duration) (bytes int64) {
	for stream := r.newer; stream != (*open)(r) && stream.lastActive <= expired; stream = stream.newer {
		if stream.claim == nil {
			bytes += stream.size()
		}
	}
	return bytes
}

// Expire begins a transaction that ends up to limit expired streams, in each shard those
// idle longest first. Streams that other transactions have claimed are skipped. If
// Finished is empty, no other stream has expired.
func (s *Store) Expire(timeouts Timeouts, limit int) *Transaction {
	// Each call starts with another shard, so that no stream waits behind streams that
	// are refused again and again.
	return s.end(s.expireFrom.Add(1), timeouts, s.now(), false, limit)
}

// Cut begins a transaction that ends up to limit streams. Those that had not expired at
// the time now are marked as Cut.
func (s *Store) Cut(timeouts Timeouts, now time.Duration, limit int) *Transaction {
	return s.end(0, timeouts, now, true, limit)
}

// end begins a transaction that ends the streams that had expired at the time now or, with
// cut, all streams.
func (s *Store) end(first uint64, timeouts Timeouts, now time.Duration, cut bool, limit int) *Transaction {
	tx := s.newTransaction()
	for i := range uint64(shards) {
		shard := &s.shards[(first+i)%shards]
		shard.mu.Lock()
		tx.end(&shard.idle, now-timeouts.Idle, cut, limit)
		tx.end(&shard.waiting, now-timeouts.FirstToken, cut, limit)
		shard.mu.Unlock()
	}
	return tx
}

// end ends streams that were last active at the time expired or before. With cut, it ends
// the others, too.
func (tx *Transaction) end(streams *ring, expired time.Duration, cut bool, limit int) {
	for stream := streams.newer; stream != (*open)(streams) && len(tx.expired) < limit; stream = stream.newer {
		if !cut && stream.lastActive > expired {
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
		tx.Finished = append(tx.Finished, Finished{Stream: ended, Cut: stream.lastActive > expired, Client: &stream.client.client, open: stream})
	}
}
