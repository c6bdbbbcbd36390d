// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package assembly

import (
	"time"

	"github.com/tokenpulse/tokenpulse/internal/timeline"
)

// Visited is an open stream as Visit shows it.
type Visited struct {
	// Resource and Attributes are encoded OTLP KeyValueLists, which do not change.
	Resource, Attributes []byte
	Vantage              timeline.Vantage
	// Decoding is set once a chunk has arrived.
	Decoding bool
	// Silent is the time since a new chunk arrived or, before the first one, the start. Its
	// clock is that of the store.
	Silent time.Duration
	// Start is the time of the start event or, without one, of the first chunk: Unix time in nanoseconds.
	Start int64
	// Tokens are those that have arrived. Chunks beyond MaxChunksPerStream are not counted, repeats may be.
	Tokens int64
}

// Visit calls visit with each open stream that has not expired. A stream whose end the pipeline has
// not accepted yet is still open. Each shard is locked while its streams are copied, and not during
// the calls.
func (s *Store) Visit(timeouts Timeouts, visit func(*Visited)) {
	var copied []Visited
	for i := range s.shards {
		copied = s.shards[i].appendOpen(copied[:0], timeouts, s.now)
		for j := range copied {
			visit(&copied[j])
		}
	}
}

func (s *shard) appendOpen(to []Visited, timeouts Timeouts, clock func() time.Duration) []Visited {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := clock()
	to = s.idle.appendSince(to, now, now-timeouts.Idle, true)
	return s.waiting.appendSince(to, now, now-timeouts.FirstToken, false)
}

// appendSince appends the streams that were active after the time expired.
func (r *ring) appendSince(to []Visited, now, expired time.Duration, decoding bool) []Visited {
	for o := r.older; o != (*open)(r) && o.lastActive > expired; o = o.older {
		to = append(to, Visited{o.Resource, o.Attributes, o.Start.Vantage.OrDefault(), decoding, now - o.lastToken, o.Start.UnixNano, o.tokens})
	}
	return to
}
