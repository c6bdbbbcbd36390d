// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package assembly

import (
	"github.com/tokenpulse/tokenpulse/internal/timeline"

	"github.com/tokenpulse/tokenpulse/internal/optional"
)

const (
	// maxCount bounds reported token counts.
	maxCount = 1_000_000_000
	// maxSpilled bounds the chunks out of order in one batch. They take ten times the
	// memory of chunks in order.
	maxSpilled = 1 << 20
)

// ErrTokens returns the error of a chunk whose token count, got, is out of range.
func ErrTokens(got any) *EventError {
	return Errorf(Invalid, "`tokens` is %v; send an integer from 0 to %d", got, timeline.MaxTokensPerChunk)
}

// ErrUsage returns the error of a reported token count, got, that is out of range.
func ErrUsage(name string, got any) *EventError {
	return Errorf(Invalid, "`usage.%s` is %v; send an integer from 0 to %d", name, got, maxCount)
}

// batchState is the state of a batch that its parts share.
type batchState struct {
	limits    *Limits
	events    int
	spilled   int                     // chunks of all parts that are stored out of order
	starts    bool                    // a start event was added
	reserve   func(bytes int64) error // nil without LimitMemory
	errMemory error                   // of reserve
}

// Part holds the events of one stream in a batch. Its Add methods either add the whole
// event, or return an EventError and leave the part unchanged.
type Part struct {
	Stream
	batch *batchState
	shard *shard
	known Start // start of the open stream; zero if the stream is not open
	times timeRange

	ended bool
	end   End

	// Events that were added before the start was known and turned out to be too far
	// from it. They are removed from the part.
	outOfRange    int
	errOutOfRange error

	// Units counts the sender's units in this part: lines or messages. Line is the
	// number of the first line, or 0 for messages.
	Units, Line int

	// The fields below are set by the transaction.
	open     *open // the claimed stream; nil if the part needs none
	created  bool  // open was created by the transaction
	rejected bool
	shared   *resource // of the start, if a commit stores that; acquired
	// The stream has no room for these attributes of the part.
	noAttributes, noEndAttributes bool
}

// reset empties the part, keeps its buffers, and assigns it to a batch.
func (p *Part) reset(batch *batchState) {
	attributes, chunks, endAttributes := p.Attributes[:0], p.Chunks, p.end.Attributes[:0]
	*p = Part{} // in place, which is faster than to copy a large value
	p.Attributes, p.Chunks, p.end.Attributes = attributes, chunks, endAttributes
	p.Chunks.reset()
	p.batch, p.times = batch, rangeAround(0)
}

// Count adds a unit of the request. line is its number in the body, or 0 of a message.
func (p *Part) Count(line int) {
	if p.Units == 0 {
		p.Line = line
	}
	p.Units++
}

// Snapshot returns the current state of the part, for Restore.
func (p *Part) Snapshot() Part { return *p }

// Restore reverts the part to a snapshot.
func (p *Part) Restore(snapshot *Part) { *p = *snapshot }

// AddStart adds a start event. attributes and resource are encoded KeyValueLists.
// attributes is copied. resource is shared between streams and must not change any
// more.
func (p *Part) AddStart(start Start, attributes, resource []byte) error {
	if err := checkPlausible(start.UnixNano); err != nil {
		return err
	}
	if err := start.checkVantage(); err != nil {
		return err
	}
	for _, earlier := range [...]*Start{&p.known, &p.Start} {
		if err := earlier.checkRepeat(&start, p.ID); err != nil {
			return err
		}
	}
	if err := p.checkRoom(len(attributes) + len(resource)); err != nil {
		return err
	}
	p.anchor(start.UnixNano)
	p.batch.events++
	p.batch.starts = true
	p.Attributes = append(p.Attributes, attributes...)
	if p.started() {
		p.Chunks.duplicates++
		return nil
	}
	p.Start = start
	p.Resource = resource
	return nil
}

// AddScheduled adds the time at which the engine scheduled the request.
func (p *Part) AddScheduled(unixNano int64) error {
	if err := p.times.check(unixNano, p.ID); err != nil {
		return err
	}
	p.batch.events++
	p.addScheduled(unixNano)
	return nil
}

// AddChunk adds an arrival of tokens, or of audio, whose tokens are ignored. Other zero-token chunks are accepted
// but not recorded.
// Chunks beyond MaxChunksPerStream are dropped without an error: Begin reports them.
func (p *Part) AddChunk(k Chunk) error {
	if k.UnixNano < p.times.earliest || k.UnixNano > p.times.latest {
		return p.times.check(k.UnixNano, p.ID)
	}
	if k.Tokens > timeline.MaxTokensPerChunk {
		return ErrTokens(k.Tokens)
	}
	if k.Numbered && k.Seq > maxSeq {
		return Errorf(Invalid, "`seq` is %d; send an integer from 0 to %d", k.Seq, uint64(maxSeq))
	}
	p.batch.events++
	if k.Channel == timeline.Audio {
		k.Tokens = 0
	} else if k.Tokens == 0 {
		return nil
	}
	if p.Chunks.Len() < p.batch.limits.MaxChunksPerStream && p.Chunks.append(&k) {
		return nil
	}
	return p.addOutOfOrder(&k)
}

// AddGaps adds a one-token chunk without a sequence number at unixNano, and one after
// each gap. The gaps are packed as in a timeline. It returns false and adds nothing if
// the gaps have to be checked one by one: use AddChunk then.
func (p *Part) AddGaps(unixNano int64, gaps []byte, channel timeline.Channel) bool {
	chunks, ticks, ok := timeline.ScanGaps(gaps)
	// The gaps are not negative, so checking the first and last time is enough.
	if !ok || unixNano < p.times.earliest || unixNano > p.times.latest-ticks*int64(timeline.Tick) {
		return false
	}
	room := p.Chunks.Len()+chunks < p.batch.limits.MaxChunksPerStream
	if !room || !p.Chunks.appendGaps(unixNano, gaps, chunks, ticks, channel) {
		return false
	}
	p.batch.events += chunks + 1
	return true
}

func (p *Part) addOutOfOrder(k *Chunk) error {
	limit := p.batch.limits.MaxChunksPerStream
	if p.Chunks.repeats(k) || p.Chunks.Len() >= limit {
		p.addChunk(k, limit)
		return nil
	}
	more := 1
	if !p.Chunks.spilled {
		more += p.Chunks.Len()
	}
	if p.batch.spilled+more > maxSpilled {
		return Errorf(Limit, "the request has more than %d chunks out of order; send them in order, or in smaller requests", maxSpilled)
	}
	if !p.batch.grows(int64(more) * spilledMemory) {
		return p.batch.errMemory
	}
	p.Chunks.add(k)
	p.batch.spilled += more
	return nil
}

// AddEnd adds the end event. attributes is an encoded KeyValueList, which is copied.
func (p *Part) AddEnd(end End, attributes []byte) error {
	if end.UnixNano != 0 {
		if err := p.times.check(end.UnixNano, p.ID); err != nil {
			return err
		}
	}
	for _, count := range [...]struct {
		name   string
		tokens optional.Value[int64]
	}{
		{"input_tokens", end.Usage.Input},
		{"output_tokens", end.Usage.Output},
		{"reasoning_tokens", end.Usage.Reasoning},
		{"cached_input_tokens", end.Usage.CachedInput},
		{"cache_write_input_tokens", end.Usage.CacheWrite},
	} {
		if count.tokens.Value < 0 || count.tokens.Value > maxCount {
			return ErrUsage(count.name, count.tokens.Value)
		}
	}
	if err := p.checkRoom(len(attributes) + len(end.FinishReason) + len(end.Error)); err != nil {
		return err
	}
	p.batch.events++
	p.end.Attributes = append(p.end.Attributes, attributes...)
	if p.ended {
		p.Chunks.duplicates++
		return nil
	}
	end.Attributes = p.end.Attributes
	p.ended, p.end = true, end
	return nil
}

// checkRoom checks that the part has room for more bytes.
func (p *Part) checkRoom(more int) error {
	if p.encodedSize()+len(p.end.Attributes)+more > p.batch.limits.MaxStreamBytes {
		return p.errTooLarge()
	}
	return nil
}

func (p *Part) errTooLarge() *EventError {
	return Errorf(Limit, "the attributes, resource, finish_reason and error of stream %s take more than %d bytes; send fewer or shorter values, or raise max_event_bytes",
		quoteID(p.ID), p.batch.limits.MaxStreamBytes)
}

// anchor sets the stream's start. It removes events added before that are too far
// from it.
func (p *Part) anchor(start int64) {
	if p.times.anchored {
		return
	}
	p.times = rangeAround(start)
	if p.Scheduled != 0 && p.rejectOutOfRange(p.Scheduled) {
		p.Scheduled = 0
	}
	if p.end.UnixNano != 0 && p.rejectOutOfRange(p.end.UnixNano) {
		p.ended, p.end = false, End{}
	}
	for k := range p.Chunks.all {
		if p.times.check(k.UnixNano, p.ID) != nil {
			p.Chunks = p.Chunks.without(func(k Chunk) bool { return p.rejectOutOfRange(k.UnixNano) })
			return
		}
	}
}

// rejectOutOfRange reports whether the time of an added event is out of range, and
// counts the event if so.
func (p *Part) rejectOutOfRange(unixNano int64) bool {
	err := p.times.check(unixNano, p.ID)
	if err == nil {
		return false
	}
	p.outOfRange++
	p.errOutOfRange = err
	return true
}
