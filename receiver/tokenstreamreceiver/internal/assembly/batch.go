// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package assembly

import "github.com/tokenpulse/tokenpulse/internal/httpguard"

const (
	// MaxIDBytes bounds the length of a stream ID.
	MaxIDBytes = 256
	// MaxParts bounds the streams in one batch. A stream can arrive in ten bytes and
	// become a span of two thousand bytes.
	MaxParts = 1 << 17
)

// ErrTooManyParts is the error of a batch with more than MaxParts streams.
var ErrTooManyParts = Errorf(Limit, "the request has more than %d streams; send them in smaller requests", MaxParts)

// Batch holds the events of one request, grouped by stream. Events of all transports
// are checked here. It is not safe for concurrent use.
type Batch struct {
	// Client is the sender of the events. Set it before Begin if the batch has starts.
	Client httpguard.Client
	// RefuseStarts makes Begin refuse a batch that opens streams, unless it also ends
	// streams. Set it before Begin.
	RefuseStarts bool
	// ByEvent means that each unit is one event, so that a rejected event is a rejected
	// unit. Set it before Begin.
	ByEvent bool

	batchState
	store        *Store
	parts        []*Part // entries beyond used are kept for reuse
	used         int
	index        map[string]int // from stream ID to index in parts
	tooManyParts bool

	discarded Part
}

// NewBatch returns an empty batch for the store.
func (s *Store) NewBatch() *Batch {
	return &Batch{batchState: batchState{limits: &s.limits}, store: s, index: map[string]int{}}
}

// Reset empties the batch. It keeps the buffers unless the last request was unusually
// large.
func (b *Batch) Reset() {
	const keep = 1024
	if len(b.parts) > keep || b.spilled > keep {
		*b = Batch{batchState: batchState{limits: b.limits, reserve: b.reserve}, store: b.store, index: map[string]int{}}
		return
	}
	clear(b.index)
	b.used, b.events, b.spilled, b.starts, b.tooManyParts, b.errMemory = 0, 0, 0, false, false, nil
}

// HasStarts reports whether start events were added, so that the batch
// may open streams.
func (b *Batch) HasStarts() bool { return b.starts }

// Events returns how many events were added.
func (b *Batch) Events() int { return b.events }

// Part returns the part of a stream, to which events can be added. It returns an
// EventError for an invalid ID, ErrTooManyParts beyond MaxParts, and the error of
// LimitMemory without memory for it.
func (b *Batch) Part(id []byte) (*Part, error) {
	at, ok := b.index[string(id)]
	if !ok {
		switch {
		case len(id) == 0:
			return nil, Errorf(Invalid, "`stream_id` is missing; send one that is unique among all senders")
		case len(id) > MaxIDBytes:
			return nil, Errorf(Invalid, "`stream_id` has %d bytes; send at most %d", len(id), MaxIDBytes)
		case b.used >= MaxParts:
			b.tooManyParts = true
			return nil, ErrTooManyParts
		case !b.grows(partMemory):
			return nil, b.errMemory
		}
		at = b.used
		part := b.newPart(string(id))
		b.index[part.ID] = at
	}
	return b.parts[at], nil
}

func (b *Batch) newPart(id string) *Part {
	if b.used == len(b.parts) {
		b.parts = append(b.parts, new(Part))
	}
	part := b.parts[b.used]
	b.used++
	part.reset(&b.batchState)
	part.ID = id
	part.shard = b.store.shardOf(id)
	part.known = part.shard.startOf(id)
	part.times = rangeAround(part.known.UnixNano)
	return part
}

// Discard returns a part that no transaction applies, for decoding events without a
// stream. It is valid until the next call.
func (b *Batch) Discard() *Part {
	b.discarded.reset(&b.batchState)
	return &b.discarded
}
