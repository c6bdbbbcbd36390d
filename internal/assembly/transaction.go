package assembly

import "context"

// Transaction is a batch, or the expiry of some streams, under way. It ends
// with either Accept or Refuse.
type Transaction struct {
	// Finished are the streams that are over, if the transaction is accepted.
	Finished []Finished
	// Rejected are the events that cannot be applied, whatever becomes of the
	// others.
	Rejected []Rejection
	// Units counts what of the batch is applied if the transaction is accepted.
	Units int

	store   *Store
	claim   *claim
	parts   []*Part // whose stream is claimed
	expired []*open
	streams int64 // reserved in the store, as is memory
	memory  int64
}

// Rejection tells which units of a batch, the first of them in Line, were
// rejected.
type Rejection struct {
	ID    string
	Line  int
	Units int
	// Events is not zero where only so many of the events (chunks past a limit,
	// a time far off, attributes without room) were not taken, and all else in
	// the units was.
	Events int
	Err    error
}

func (s *Store) newTransaction() *Transaction {
	return &Transaction{store: s, claim: &claim{released: make(chan struct{})}}
}

// Begin starts to apply a batch. It waits while other transactions hold a
// stream that the batch has a part of. A FullError means that a limit leaves no
// room for the batch, ErrTooManyParts that the batch did not take all.
func (s *Store) Begin(ctx context.Context, batch *Batch) (*Transaction, error) {
	if batch.tooMany {
		return nil, ErrTooManyParts
	}
	for {
		tx := s.newTransaction()
		other := tx.claimParts(batch.parts[:batch.used])
		if other == nil {
			return tx, tx.begin()
		}
		tx.release()
		select {
		case <-other.released:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// claimParts claims the streams that are open or that the batch opens, and sorts
// out the parts that need none. It returns another transaction's claim that is
// in the way, if there is one.
func (tx *Transaction) claimParts(parts []*Part) *claim {
	for _, part := range parts {
		part.open, part.created, part.rejected = nil, false, false
		part.noAttributes, part.noEndAttributes = false, false
		part.takeBackStart()
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
	case !part.started() && !tx.startAtFirstChunk(part):
		tx.reject(part, Errorf(UnknownStream,
			"stream %s is not open: it never started, or it is over; send its start event first, or in the same request", quoteID(part.ID)))
		return nil
	case part.ended:
		tx.finish(part, &part.Stream, part.dropped)
		return nil
	default: // stays empty until the transaction is accepted
		part.created = true
		stream = &open{claim: tx.claim, start: part.Start}
		stream.ID = part.ID
		part.shard.streams[part.ID] = stream
	}
	part.open = stream
	tx.parts = append(tx.parts, part)
	return nil
}

// startAtFirstChunk starts a part whose start is implied, and reports whether it
// is. Attributes of its end that leave no room for those of the start are not
// taken.
func (tx *Transaction) startAtFirstChunk(part *Part) bool {
	if !part.startAtFirstChunk() {
		return false
	}
	if part.encodedSize()+len(part.end.Attributes) > tx.store.limits.MaxStreamBytes {
		part.noEndAttributes = true
		tx.rejectSome(part, 1, part.errTooLarge())
	}
	return true
}

// begin works out what becomes of the claimed streams, and reserves room.
func (tx *Transaction) begin() error {
	var streams, memory int64
	for _, part := range tx.parts {
		switch {
		case part.created:
			streams++
			memory += int64(overhead) + part.need()
			tx.take(part, part.dropped)
		case !tx.belongs(part):
		case part.ended:
			streams--
			memory -= part.open.size()
			whole := part.open.fork()
			whole.merge(part.taken(), tx.store.limits.MaxChunksPerStream)
			tx.finish(part, whole, whole.dropped-part.open.dropped)
		default:
			memory += part.need()
			tx.take(part, part.dropped+part.open.tooMany(&part.Stream, tx.store.limits.MaxChunksPerStream))
		}
	}
	return tx.reserve(streams, memory)
}

// belongs reports whether a part can belong to the open stream of its id. If not,
// it is rejected. What of it the stream cannot take is not taken.
func (tx *Transaction) belongs(part *Part) bool {
	if err := part.checkStart(); err != nil {
		tx.reject(part, err)
		return false
	}
	part.anchor(part.open.Start.UnixNano)
	room := tx.store.limits.MaxStreamBytes - part.open.encodedSize()
	if part.started() && part.open.Start.Implied {
		room += len(part.open.Resource) - len(part.Resource)
	}
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

// checkStart checks the part's start, if it has one, against that of the open
// stream, which may have begun after the part did.
func (p *Part) checkStart() error {
	switch {
	case !p.started():
		return nil
	case p.open.Start.Implied:
		return p.checkReplaces(&p.open.Stream)
	default:
		return p.open.Start.checkSame(&p.Start, p.ID)
	}
}

// taken returns what of the part goes into the open stream.
func (p *Part) taken() *Stream {
	if !p.noAttributes {
		return &p.Stream
	}
	taken := p.Stream
	taken.Attributes = nil
	return &taken
}

func (tx *Transaction) finish(part *Part, whole *Stream, tooMany int) {
	end := &part.end
	if part.noEndAttributes {
		without := part.end
		without.Attributes = nil
		end = &without
	}
	tx.Finished = append(tx.Finished, Finished{whole, end})
	tx.take(part, tooMany)
}

// take counts a part that is applied, and tells of its events that are not.
func (tx *Transaction) take(part *Part, tooMany int) {
	tx.Units += part.Units
	if tooMany > 0 {
		tx.rejectSome(part, tooMany, Errorf(Limit,
			"stream %s has more than %d chunks: %d were dropped; raise max_chunks_per_stream if it is meant to",
			quoteID(part.ID), tx.store.limits.MaxChunksPerStream, tooMany))
	}
	if part.farOff > 0 {
		tx.rejectSome(part, part.farOff, part.errFarOff)
	}
}

func (tx *Transaction) rejectSome(part *Part, events int, err error) {
	tx.Rejected = append(tx.Rejected, Rejection{part.ID, part.Line, part.Units, events, err})
}

func (tx *Transaction) reject(part *Part, err error) {
	part.rejected = true
	tx.Rejected = append(tx.Rejected, Rejection{part.ID, part.Line, part.Units, 0, err})
}

// reserve makes sure that there is room for what the batch adds. What it ends
// makes room.
func (tx *Transaction) reserve(streams, memory int64) error {
	tx.streams, tx.memory = max(0, streams), max(0, memory)
	limits := &tx.store.limits
	fullOfStreams := tx.store.streams.Add(tx.streams) > int64(limits.MaxStreams) && tx.streams > 0
	fullOfMemory := tx.store.memory.Add(tx.memory) > limits.MaxMemory && tx.memory > 0
	switch {
	case fullOfStreams:
		tx.Refuse()
		return &FullError{SettingMaxStreams}
	case fullOfMemory:
		tx.Refuse()
		return &FullError{SettingMaxMemory}
	default:
		return nil
	}
}

// Accept applies the transaction.
func (tx *Transaction) Accept() {
	var streams, memory int64
	now := tx.store.now()
	for _, part := range tx.parts {
		switch {
		case part.rejected:
			part.shard.release(part.open)
		case part.ended:
			streams--
			memory -= part.open.size()
			part.shard.remove(part.open)
		default:
			if part.created {
				streams++
			} else {
				memory -= part.open.size()
			}
			part.open.merge(part.taken(), tx.store.limits.MaxChunksPerStream)
			memory += part.open.size()
			part.shard.heard(part.open, now)
		}
	}
	for _, stream := range tx.expired {
		streams--
		memory -= stream.size()
		tx.store.shardOf(stream.ID).remove(stream)
	}
	tx.settle(streams, memory)
	close(tx.claim.released)
}

// Refuse leaves everything as it was before the transaction.
func (tx *Transaction) Refuse() {
	tx.settle(0, 0)
	tx.release()
}

// settle replaces what was reserved with the change in what is held.
func (tx *Transaction) settle(streams, memory int64) {
	tx.store.streams.Add(streams - tx.streams)
	tx.store.memory.Add(memory - tx.memory)
}

// release gives up all claims.
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
