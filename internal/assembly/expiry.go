// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package assembly

import "time"

// Expire begins a transaction that ends up to limit streams without events for at
// least idle, in each shard those idle longest first. Streams that other transactions
// have claimed are skipped. If Finished is empty, no other stream is left to expire.
func (s *Store) Expire(idle time.Duration, limit int) *Transaction {
	tx := s.newTransaction()
	now := s.now()
	for i := range s.shards {
		s.shards[i].expire(tx, now-idle, limit)
	}
	return tx
}

func (s *shard) expire(tx *Transaction, before time.Duration, limit int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for stream := s.idle.newer; stream != &s.idle && stream.lastActive <= before; stream = stream.newer {
		if len(tx.expired) == limit {
			return
		}
		if stream.claim != nil { // a transaction is adding events to it
			continue
		}
		stream.claim = tx.claim
		tx.expired = append(tx.expired, stream)
		tx.Finished = append(tx.Finished, Finished{Stream: &stream.Stream})
	}
}
