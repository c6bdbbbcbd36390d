package assembly

import (
	"fmt"
	"math"
	"time"

	"github.com/tokenpulse/tokenpulse/internal/timeline"
)

const (
	// MaxIDBytes bounds a stream id.
	MaxIDBytes = 256
	// MaxDuration bounds how far from its start anything of a stream may be.
	MaxDuration = 24 * time.Hour
	// MaxCount bounds reported token counts.
	MaxCount = 1_000_000_000
	// maxSpilled bounds the chunks out of order in one batch. They take ten
	// times the memory of those in order.
	maxSpilled = 1 << 20
)

// Batch is what one request says, stream by stream. It is where events are
// checked, whatever wire they came over. It is not safe for concurrent use.
type Batch struct {
	store   *Store
	parts   []*Part // those past used are there for their memory
	used    int
	index   map[string]*Part
	last    *Part
	events  int
	spilled int // chunks in lists, of all parts
}

// NewBatch returns an empty batch for the store.
func (s *Store) NewBatch() *Batch {
	return &Batch{store: s, index: map[string]*Part{}}
}

// Reset empties the batch and keeps the memory of a common request.
func (b *Batch) Reset() {
	const keep = 1024
	if len(b.parts) > keep || b.spilled > keep {
		*b = Batch{store: b.store, index: map[string]*Part{}}
		return
	}
	clear(b.index)
	b.used, b.last, b.events, b.spilled = 0, nil, 0, 0
}

// Events returns how many events were added: starts, chunks and so on.
func (b *Batch) Events() int { return b.events }

// Part returns what the batch says of a stream, to add to it.
func (b *Batch) Part(id []byte) (*Part, error) {
	if b.last != nil && b.last.ID == string(id) {
		return b.last, nil
	}
	part := b.index[string(id)]
	if part == nil {
		switch {
		case len(id) == 0:
			return nil, Errorf(Invalid, "stream_id is missing")
		case len(id) > MaxIDBytes:
			return nil, Errorf(Invalid, "stream_id has %d bytes, at most %d are allowed", len(id), MaxIDBytes)
		}
		part = b.newPart(string(id))
		b.index[part.ID] = part
	}
	b.last = part
	return part, nil
}

func (b *Batch) newPart(id string) *Part {
	if b.used == len(b.parts) {
		b.parts = append(b.parts, new(Part))
	}
	part := b.parts[b.used]
	b.used++
	part.reset()
	*part = Part{Stream: part.Stream, batch: b}
	part.ID = id
	part.shard = b.store.shardOf(id)
	part.accept(part.shard.startOf(id))
	return part
}

// Part is what a batch says of one stream. Each of its methods takes an event
// whole or returns an EventError and leaves the part as it was.
type Part struct {
	Stream
	batch *Batch
	shard *shard

	// Times from earliest to latest are accepted. They are close to the start
	// when it is known, as anchored says.
	earliest, latest int64
	anchored         bool

	ended bool
	end   End

	// Units counts what the sender counts: lines, or messages. Line is that of
	// the first, where there are lines.
	Units, Line int

	// Transaction's:
	open     *open // the claimed stream, if there is one
	created  bool  // by the transaction
	rejected bool
}

// accept sets which times are accepted: any, while the start is unknown.
func (p *Part) accept(start int64) {
	if start == 0 {
		p.earliest, p.latest = 1, math.MaxInt64
		return
	}
	p.anchored = true
	p.earliest = max(1, start-int64(MaxDuration))
	p.latest = start + min(int64(MaxDuration), math.MaxInt64-start)
}

// Count notes that a unit of the request was taken. line is zero where there
// are none.
func (p *Part) Count(line int) {
	if p.Units == 0 {
		p.Line = line
	}
	p.Units++
}

// Snapshot returns the part as it is, for Restore.
func (p *Part) Snapshot() Part { return *p }

// Restore takes back what was added since the snapshot.
func (p *Part) Restore(snapshot *Part) { *p = *snapshot }

// AddStart adds a start. attributes and resource are encoded KeyValueLists, and
// are copied.
func (p *Part) AddStart(start Start, attributes, resource []byte) error {
	if start.UnixNano <= 0 {
		return errNotPositive("time")
	}
	if start.Vantage >= vantages {
		return Errorf(Invalid, "vantage must be client, gateway, server or engine")
	}
	if err := p.fits(len(attributes) + len(resource)); err != nil {
		return err
	}
	if !p.anchored {
		if err := p.checkChunks(start.UnixNano); err != nil {
			return err
		}
		p.accept(start.UnixNano)
	}
	p.batch.events++
	p.Attributes = append(p.Attributes, attributes...)
	if p.started() {
		p.duplicates++
		return nil
	}
	p.Start = start
	p.Resource = append(p.Resource, resource...)
	return nil
}

// AddScheduled adds when the engine took the request out of its queue.
func (p *Part) AddScheduled(unixNano int64) error {
	if err := p.checkTime(unixNano); err != nil {
		return err
	}
	p.batch.events++
	p.addScheduled(unixNano)
	return nil
}

// AddChunk adds an arrival. One without tokens is none, and orders nothing.
// Chunks past MaxChunksPerStream are dropped without an error: Begin tells.
func (p *Part) AddChunk(k Chunk) error {
	if k.UnixNano < p.earliest || k.UnixNano > p.latest {
		return p.checkTime(k.UnixNano)
	}
	if k.Tokens > timeline.MaxTokensPerChunk {
		return ErrTokens
	}
	if k.Numbered && k.Seq > maxSeq {
		return Errorf(Invalid, "seq must be between 0 and %d", uint64(maxSeq))
	}
	p.batch.events++
	if k.Tokens == 0 {
		return nil
	}
	if p.Chunks.Len() < p.batch.store.limits.MaxChunksPerStream && p.Chunks.append(&k) {
		return nil
	}
	return p.addOutOfOrder(&k)
}

func (p *Part) addOutOfOrder(k *Chunk) error {
	more := 1
	if !p.Chunks.spilled {
		more += p.Chunks.Len()
	}
	if p.batch.spilled+more > maxSpilled {
		return Errorf(Limit, "the request has more than %d chunks out of order: send them in order or in smaller requests", maxSpilled)
	}
	p.addChunk(k, p.batch.store.limits.MaxChunksPerStream)
	if p.Chunks.spilled {
		p.batch.spilled += more
	}
	return nil
}

// AddEnd adds the end. attributes is an encoded KeyValueList, and is copied.
func (p *Part) AddEnd(end End, attributes []byte) error {
	if end.UnixNano != 0 {
		if err := p.checkTime(end.UnixNano); err != nil {
			return err
		}
	}
	for _, count := range [...]struct {
		name string
		Count
	}{
		{"input_tokens", end.Usage.Input},
		{"output_tokens", end.Usage.Output},
		{"reasoning_tokens", end.Usage.Reasoning},
		{"cached_input_tokens", end.Usage.CachedInput},
	} {
		if count.N < 0 || count.N > MaxCount {
			return Errorf(Invalid, "usage.%s must be between 0 and %d", count.name, MaxCount)
		}
	}
	if err := p.fits(len(attributes) + len(end.FinishReason) + len(end.Error)); err != nil {
		return err
	}
	p.batch.events++
	p.Attributes = append(p.Attributes, attributes...)
	if p.ended {
		p.duplicates++
		return nil
	}
	p.ended, p.end = true, end
	return nil
}

// ErrTokens is the error of a chunk with an impossible number of tokens.
var ErrTokens = Errorf(Invalid, "tokens must be an integer between 0 and %d", timeline.MaxTokensPerChunk)

// fits checks that there is room for more bytes of attributes and the like.
func (p *Part) fits(more int) error {
	if len(p.ID)+len(p.Attributes)+len(p.Resource)+more > p.batch.store.limits.MaxStreamBytes {
		return p.errTooLarge()
	}
	return nil
}

func (p *Part) errTooLarge() *EventError {
	return Errorf(Limit, "the attributes and resource of stream %s take more than %d bytes (max_event_bytes)",
		quoteID(p.ID), p.batch.store.limits.MaxStreamBytes)
}

func (p *Part) checkTime(unixNano int64) error {
	switch {
	case unixNano <= 0:
		return errNotPositive("time")
	case unixNano > p.latest:
		return p.errFarOff(time.Duration(unixNano-p.latest)+MaxDuration, "after")
	case unixNano < p.earliest:
		return p.errFarOff(time.Duration(p.earliest-unixNano)+MaxDuration, "before")
	default:
		return nil
	}
}

// checkChunks checks what was added before the stream's start was known.
func (p *Part) checkChunks(start int64) error {
	known := Part{Stream: Stream{ID: p.ID}}
	known.accept(start)
	for _, unixNano := range [...]int64{p.Scheduled, p.end.UnixNano} {
		if unixNano == 0 {
			continue
		}
		if err := known.checkTime(unixNano); err != nil {
			return err
		}
	}
	for k := range p.Chunks.all {
		if err := known.checkTime(k.UnixNano); err != nil {
			return err
		}
	}
	return nil
}

func errNotPositive(field string) *EventError {
	return Errorf(Invalid, "%s must be a positive count of nanoseconds since 1970", field)
}

func (p *Part) errFarOff(gap time.Duration, side string) *EventError {
	return Errorf(Invalid, "time is %s %s the start of stream %s, at most 24 hours are allowed: check that times are nanoseconds since 1970",
		inWords(gap), side, quoteID(p.ID))
}

func inWords(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d < 0: // overflowed
		return "more than 292 years"
	case d >= 730*day:
		return fmt.Sprintf("%d years", d/(365*day))
	default:
		return fmt.Sprintf("%d hours", d/time.Hour)
	}
}

// Discard returns a part that no transaction sees, to read events into that have
// no stream.
func (b *Batch) Discard() *Part {
	part := &Part{batch: b}
	part.accept(0)
	return part
}
