package assembly

import "time"

// Expire starts to end streams that nothing was heard of for at least idle:
// those longest ago first in each shard, and not more than limit. When it
// returns a transaction without any, there are none left but those that other
// transactions hold.
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
	for stream := s.idle.newer; stream != &s.idle && stream.lastHeard <= before; stream = stream.newer {
		if len(tx.expired) == limit {
			return
		}
		if stream.claim != nil { // somebody hears of it just now
			continue
		}
		stream.claim = tx.claim
		tx.expired = append(tx.expired, stream)
		tx.Finished = append(tx.Finished, Finished{Stream: &stream.Stream})
	}
}
