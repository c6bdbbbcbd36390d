// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package assembly

import "context"

// Begin begins a transaction that applies a batch. It waits for other transactions
// that have claimed the same streams. It returns a FullError if a limit leaves no room
// for the batch, a StorageError if the journal fails, an EventError such as ErrTooManyParts if the batch is too large, and the
// context's error if the context ends first.
func (s *Store) Begin(ctx context.Context, batch *Batch) (*Transaction, error) {
	if batch.tooManyParts {
		return nil, ErrTooManyParts
	}
	if batch.errMemory != nil {
		return nil, batch.errMemory
	}
	for {
		tx := s.newTransaction()
		tx.byEvent, tx.sender = batch.ByEvent, &batch.Client
		other := tx.claimParts(batch.parts[:batch.used])
		if other == nil {
			return tx, tx.begin(batch)
		}
		tx.release()
		select {
		case <-other.released:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// claimParts claims the open streams and those that the batch opens. Parts of unknown
// streams are rejected, and whole streams finished, without a claim. If another
// transaction has claimed a stream, claimParts stops and returns that claim.
func (tx *Transaction) claimParts(parts []*Part) *claim {
	for _, part := range parts {
		part.open, part.created, part.rejected, part.shared = nil, false, false, nil
		part.noAttributes, part.noEndAttributes, part.Accepted = false, false, 0
		if part.Units == 0 {
			continue
		}
		if other := tx.claimPart(part); other != nil {
			return other
		}
	}
	return nil
}

func (tx *Transaction) claimPart(part *Part) *claim {
	part.shard.mu.Lock()
	defer part.shard.mu.Unlock()
	stream := part.shard.streams[part.ID]
	switch {
	case stream != nil && stream.claim != nil:
		return stream.claim
	case stream != nil:
		stream.claim = tx.claim
	case !part.started():
		tx.reject(part, Errorf(UnknownStream,
			"stream %s is not open: it has not started, or it has ended; send its start event first, or in the same request", quoteID(part.ID)))
		return nil
	case part.ended:
		tx.finish(part, &part.Stream, part.Dropped())
		return nil
	default: // the new stream has only its start until the commit
		part.created = true
		tx.created++
		stream = &open{claim: tx.claim}
		stream.ID, stream.Start = part.ID, part.Start
		part.shard.streams[part.ID] = stream
	}
	part.open = stream
	tx.parts = append(tx.parts, part)
	return nil
}

// begin prepares the changes to the claimed streams and reserves room for them.
func (tx *Transaction) begin(batch *Batch) error {
	if tx.created > 0 {
		tx.client = tx.store.clients.add(batch.Client, tx.created)
	}
	var streams, memory int64
	for _, part := range tx.parts {
		switch {
		case part.created:
			streams++
			memory += int64(openOverhead) + part.estimate() + tx.shareResource(part)
			tx.accept(part, part.Dropped())
		case !tx.check(part):
		case part.ended:
			streams--
			memory -= part.open.size()
			if part.open.client == tx.client {
				tx.endedOfClient++
			}
			whole := part.open.fork()
			whole.merge(part.accepted(), tx.store.limits.MaxChunksPerStream)
			tx.finish(part, whole, whole.Dropped()-part.open.Dropped())
		default:
			memory += part.estimate()
			tx.accept(part, part.Dropped()+part.open.overflow(&part.Stream, tx.store.limits.MaxChunksPerStream))
		}
	}
	if batch.RefuseStarts && tx.created > 0 && len(tx.Finished) == 0 {
		tx.Rollback()
		return &FullError{Setting: SettingPipeline}
	}
	if err := tx.ready(); err != nil {
		tx.Rollback()
		return err
	}
	return tx.reserve(streams, memory)
}

// shareResource acquires the resource of a part's start. It returns the memory that the
// store holds for it already, if it is new.
func (tx *Transaction) shareResource(part *Part) (added int64) {
	part.shared, added = tx.store.resources.acquire(part.Resource, tx.resource)
	if part.shared != nil {
		tx.resource = part.shared
	}
	tx.resourceMemory += added
	return added
}

// check checks a part against its open stream. It rejects the part and returns false
// if their starts conflict. Otherwise it rejects only events out of range and
// attributes without room.
func (tx *Transaction) check(part *Part) bool {
	if err := part.checkStart(); err != nil {
		tx.reject(part, err)
		return false
	}
	part.anchor(part.open.Start.UnixNano)
	room := tx.store.limits.MaxStreamBytes - part.open.encodedSize()
	if part.open.addsAttributes(part.Attributes) {
		if part.noAttributes = len(part.Attributes) > room; !part.noAttributes {
			room -= len(part.Attributes)
		}
	}
	part.noEndAttributes = len(part.end.Attributes) > room && part.open.addsAttributes(part.end.Attributes)
	if events := boolToInt(part.noAttributes) + boolToInt(part.noEndAttributes); events > 0 {
		tx.rejectSome(part, events, part.errTooLarge())
	}
	return true
}

// checkStart checks the part's start, if any, against that of the open stream, which
// may have been opened after the event was added.
func (p *Part) checkStart() error {
	if !p.started() {
		return nil
	}
	return p.open.Start.checkRepeat(&p.Start, p.ID)
}

// finish adds a stream that the part ends.
func (tx *Transaction) finish(part *Part, whole *Stream, dropped int) {
	end := &part.end
	if part.noEndAttributes {
		without := part.end
		without.Attributes = nil
		end = &without
	}
	client := tx.sender
	if part.open != nil {
		client = &part.open.client.client
	}
	tx.Finished = append(tx.Finished, Finished{Stream: whole, End: end, Client: client, open: part.open})
	tx.accept(part, dropped)
	if part.open != nil {
		whole.Accepted += part.Accepted
	}
}

// accept counts the units of a part, and reports its events that are rejected.
func (tx *Transaction) accept(part *Part, dropped int) {
	tx.Units += part.Units
	part.Accepted += int32(part.Units)
	if dropped > 0 {
		tx.rejectSome(part, dropped, Errorf(Limit,
			"stream %s has more than %d chunks: %d were dropped; if such long streams are expected, raise max_chunks_per_stream",
			quoteID(part.ID), tx.store.limits.MaxChunksPerStream, dropped))
	}
	if part.outOfRange > 0 {
		tx.rejectSome(part, part.outOfRange, part.errOutOfRange)
	}
}

// rejectSome rejects some events of a part; the rest is applied.
func (tx *Transaction) rejectSome(part *Part, events int, err error) {
	units := 0
	if tx.byEvent {
		units = events
	}
	tx.Units -= units
	part.Accepted -= int32(units)
	tx.Rejected = append(tx.Rejected, Rejection{part.ID, part.Line, units, events, err})
}

// reject rejects a whole part.
func (tx *Transaction) reject(part *Part, err error) {
	part.rejected = true
	tx.Rejected = append(tx.Rejected, Rejection{part.ID, part.Line, part.Units, 0, err})
}
