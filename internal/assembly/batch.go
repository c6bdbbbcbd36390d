package assembly

import (
	"fmt"
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
	// MaxParts bounds the streams that one batch has a part of. One of them can
	// come in ten bytes, and becomes a span of two thousand.
	MaxParts = 1 << 17
)

// The times that are accepted of a stream as long as its start is not known: the
// years 2000 to 2199. Seconds and milliseconds, taken for nanoseconds, are far
// from it.
const (
	earliestTime = 946_684_800_000_000_000
	latestTime   = 7_258_118_400_000_000_000 - 1
)

// ErrTooManyParts is the error of parts past MaxParts, and of such a batch.
var ErrTooManyParts = Errorf(Limit, "the request has more than %d streams: send them in smaller requests", MaxParts)

// Batch is what one request says, stream by stream. It is where events are
// checked, whatever wire they came over. It is not safe for concurrent use.
type Batch struct {
	store   *Store
	parts   []*Part // those past used are there for their memory
	used    int
	index   map[string]int // of a part in parts, by its id
	recent  recentParts
	events  int
	spilled int // chunks in lists, of all parts
	tooMany bool

	discarded Part
}

// NewBatch returns an empty batch for the store.
func (s *Store) NewBatch() *Batch {
	return &Batch{store: s, index: map[string]int{}}
}

// Reset empties the batch and keeps the memory of a common request.
func (b *Batch) Reset() {
	const keep = 1024
	if len(b.parts) > keep || b.spilled > keep {
		*b = Batch{store: b.store, index: map[string]int{}}
		return
	}
	clear(b.index)
	b.used, b.events, b.spilled, b.tooMany = 0, 0, 0, false
}

// Events returns how many events were added: starts, chunks and so on.
func (b *Batch) Events() int { return b.events }

// Part returns what the batch says of a stream, to add to it.
func (b *Batch) Part(id []byte) (*Part, error) {
	recent := b.recent.slot(id)
	if at := int(*recent); at < b.used && b.parts[at].ID == string(id) {
		return b.parts[at], nil
	}
	at, known := b.index[string(id)]
	if !known {
		switch {
		case len(id) == 0:
			return nil, Errorf(Invalid, "stream_id is missing")
		case len(id) > MaxIDBytes:
			return nil, Errorf(Invalid, "stream_id has %d bytes, at most %d are allowed", len(id), MaxIDBytes)
		case b.used == MaxParts:
			b.tooMany = true
			return nil, ErrTooManyParts
		}
		at = b.used
		part := b.newPart(string(id))
		b.index[part.ID] = at
	}
	*recent = uint32(at)
	return b.parts[at], nil
}

func (b *Batch) newPart(id string) *Part {
	if b.used == len(b.parts) {
		b.parts = append(b.parts, new(Part))
	}
	part := b.parts[b.used]
	b.used++
	part.reset()
	*part = Part{Stream: part.Stream, batch: b, end: End{Attributes: part.end.Attributes[:0]}}
	part.ID = id
	part.shard = b.store.shardOf(id)
	part.known = part.shard.startOf(id)
	part.accept(part.known.UnixNano)
	return part
}

// Part is what a batch says of one stream. Each of its methods takes an event
// whole or returns an EventError and leaves the part as it was.
type Part struct {
	Stream
	batch *Batch
	shard *shard
	known Start // of the open stream, if there is one

	// Times from earliest to latest are accepted. They are close to the start
	// when it is known, as anchored says.
	earliest, latest int64
	anchored         bool

	ended bool
	end   End

	implied implied

	// Events that a start which came after them turned out to be far off, and
	// why. They are not in the part any more.
	farOff    int
	errFarOff error

	// Units counts what the sender counts: lines, or messages. Line is that of
	// the first, where there are lines.
	Units, Line int

	// Transaction's:
	open     *open // the claimed stream, if there is one
	created  bool  // by the transaction
	rejected bool
	// What of the attributes the open stream has no room for.
	noAttributes, noEndAttributes bool
}

// implied is how a stream starts that nobody tells the start of. Its time is that
// of the first chunk, and its attributes and resource are those of a Stream.
type implied struct {
	there                bool
	start                Start
	attributes, resource []byte
}

// accept sets which times are accepted. start is zero while it is not known.
func (p *Part) accept(start int64) {
	if start == 0 {
		p.earliest, p.latest = earliestTime, latestTime
		return
	}
	p.anchored = true
	p.earliest = start - int64(MaxDuration)
	p.latest = start + int64(MaxDuration)
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

// AddStart adds a start. attributes and resource are encoded KeyValueLists.
// attributes is copied. resource is kept, for streams to share: nobody may change
// it any more.
func (p *Part) AddStart(start Start, attributes, resource []byte) error {
	if err := checkPlausible(start.UnixNano); err != nil {
		return err
	}
	if err := start.checkVantage(); err != nil {
		return err
	}
	for _, before := range [...]*Start{&p.known, &p.Start} {
		if err := before.checkSame(&start, p.ID); err != nil {
			return err
		}
	}
	if err := p.fits(len(attributes) + len(resource)); err != nil {
		return err
	}
	p.anchor(start.UnixNano)
	p.batch.events++
	p.Attributes = append(p.Attributes, attributes...)
	if p.started() {
		p.duplicates++
		return nil
	}
	p.Start = start
	p.Resource = resource
	return nil
}

// HasStart reports whether the part has a start, told or implied.
func (p *Part) HasStart() bool { return p.started() || p.implied.there }

// ImplyStart says how the stream starts if nobody tells: at the first chunk of
// the part, whatever start's time. Without a chunk it does not start. attributes
// and resource are as those of AddStart, and nobody may change them any more. The
// part must not have a start.
func (p *Part) ImplyStart(start Start, attributes, resource []byte) error {
	if err := start.checkVantage(); err != nil {
		return err
	}
	if len(p.ID)+len(attributes)+len(resource) > p.batch.store.limits.MaxStreamBytes {
		return p.errTooLarge()
	}
	p.implied = implied{true, start, attributes, resource}
	return nil
}

// startAtFirstChunk starts the part as implied, if it is, and reports whether it
// was.
func (p *Part) startAtFirstChunk() bool {
	first := p.Chunks.earliest()
	if !p.implied.there || first == 0 {
		return false
	}
	p.Start, p.Resource = p.implied.start, p.implied.resource
	p.Start.UnixNano, p.Start.Implied = first, true
	p.Attributes = append(p.Attributes, p.implied.attributes...)
	p.anchored = false
	p.anchor(first)
	return true
}

// takeBackStart undoes startAtFirstChunk.
func (p *Part) takeBackStart() {
	if p.Start.Implied {
		p.Start, p.Resource, p.Attributes = Start{}, nil, p.Attributes[:0]
		p.anchored = false
	}
}

// checkReplaces checks whether the part's start can take the place of an implied
// one: it has to be close to what is known of the stream.
func (p *Part) checkReplaces(stream *Stream) error {
	for _, known := range [...]int64{stream.Start.UnixNano, stream.Chunks.latest} {
		if gap := known - p.Start.UnixNano; gap > int64(MaxDuration) || gap < -int64(MaxDuration) {
			return Errorf(Invalid, "the start of stream %s is more than 24 hours from its chunks: check that times are nanoseconds since 1970", quoteID(p.ID))
		}
	}
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

// AddEach adds an arrival of one token without a sequence number for each time,
// as AddChunk does, and faster where they are in order.
func (p *Part) AddEach(unixNanos []int64, channel timeline.Channel) error {
	if len(unixNanos) == 0 {
		return nil
	}
	// Of times in order only the ends need a look.
	accepted := unixNanos[0] >= p.earliest && unixNanos[len(unixNanos)-1] <= p.latest
	room := p.Chunks.Len()+len(unixNanos) <= p.batch.store.limits.MaxChunksPerStream
	if accepted && room && p.Chunks.appendEach(unixNanos, channel) {
		p.batch.events += len(unixNanos)
		return nil
	}
	for _, unixNano := range unixNanos {
		if err := p.AddChunk(Chunk{UnixNano: unixNano, Tokens: 1, Channel: channel}); err != nil {
			return err
		}
	}
	return nil
}

// AddGaps adds an arrival of one token without a sequence number at unixNano, and one
// after each of the gaps, which are packed as a timeline packs them. It reports
// whether it did: gaps that have to be looked at one by one it leaves to AddEach.
func (p *Part) AddGaps(unixNano int64, gaps []byte, channel timeline.Channel) bool {
	chunks, ticks, ok := timeline.ScanGaps(gaps)
	// Of times in order only the ends need a look.
	if !ok || unixNano < p.earliest || unixNano > p.latest-ticks*int64(timeline.Tick) {
		return false
	}
	room := p.Chunks.Len()+chunks < p.batch.store.limits.MaxChunksPerStream
	if !room || !p.Chunks.appendGaps(unixNano, gaps, chunks, ticks, channel) {
		return false
	}
	p.batch.events += chunks + 1
	return true
}

func (p *Part) addOutOfOrder(k *Chunk) error {
	limit := p.batch.store.limits.MaxChunksPerStream
	if p.Chunks.repeats(k) || p.Chunks.Len() >= limit {
		p.addChunk(k, limit)
		return nil
	}
	more := 1
	if !p.Chunks.spilled {
		more += p.Chunks.Len()
	}
	if p.batch.spilled+more > maxSpilled {
		return Errorf(Limit, "the request has more than %d chunks out of order: send them in order or in smaller requests", maxSpilled)
	}
	p.Chunks.add(k)
	p.batch.spilled += more
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
	p.end.Attributes = append(p.end.Attributes, attributes...)
	if p.ended {
		p.duplicates++
		return nil
	}
	end.Attributes = p.end.Attributes
	p.ended, p.end = true, end
	return nil
}

// ErrTokens is the error of a chunk with an impossible number of tokens.
var ErrTokens = Errorf(Invalid, "tokens must be an integer between 0 and %d", timeline.MaxTokensPerChunk)

// fits checks that there is room for more bytes of attributes and the like.
func (p *Part) fits(more int) error {
	if p.encodedSize()+len(p.end.Attributes)+more > p.batch.store.limits.MaxStreamBytes {
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
	case !p.anchored || unixNano <= 0:
		return checkPlausible(unixNano)
	case unixNano > p.latest:
		return p.tooFar(time.Duration(unixNano-p.latest)+MaxDuration, "after")
	case unixNano < p.earliest:
		return p.tooFar(time.Duration(p.earliest-unixNano)+MaxDuration, "before")
	default:
		return nil
	}
}

// anchor sets when the stream started, and drops what was added before that was
// known and is too far off.
func (p *Part) anchor(start int64) {
	if p.anchored {
		return
	}
	p.accept(start)
	if p.Scheduled != 0 && p.isFarOff(p.Scheduled) {
		p.Scheduled = 0
	}
	if p.end.UnixNano != 0 && p.isFarOff(p.end.UnixNano) {
		p.ended, p.end = false, End{}
	}
	if p.Chunks.any(func(k Chunk) bool { return p.checkTime(k.UnixNano) != nil }) {
		p.Chunks = p.Chunks.without(func(k Chunk) bool { return p.isFarOff(k.UnixNano) })
	}
}

// isFarOff checks the time of an event that was added already.
func (p *Part) isFarOff(unixNano int64) bool {
	err := p.checkTime(unixNano)
	if err == nil {
		return false
	}
	p.farOff++
	p.errFarOff = err
	return true
}

// checkPlausible checks a time that cannot be compared with the stream's start.
func checkPlausible(unixNano int64) error {
	switch {
	case unixNano <= 0:
		return Errorf(Invalid, "time must be a positive count of nanoseconds since 1970")
	case unixNano < earliestTime || unixNano > latestTime:
		return Errorf(Invalid, "time is %s: times count nanoseconds since 1970; is this seconds or milliseconds?",
			time.Unix(0, unixNano).UTC().Format(time.RFC3339))
	default:
		return nil
	}
}

func (p *Part) tooFar(gap time.Duration, side string) *EventError {
	return Errorf(Invalid, "time is %s %s the start of stream %s, at most 24 hours are allowed: check that times are nanoseconds since 1970",
		inWords(gap), side, quoteID(p.ID))
}

func inWords(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d >= 730*day:
		return fmt.Sprintf("%d years", d/(365*day))
	default:
		return fmt.Sprintf("%d hours", d/time.Hour)
	}
}

// Discard returns a part that no transaction sees, to read events into that have
// no stream. It is good until the next call.
func (b *Batch) Discard() *Part {
	part := &b.discarded
	part.reset()
	*part = Part{Stream: part.Stream, batch: b}
	part.accept(0)
	return part
}
