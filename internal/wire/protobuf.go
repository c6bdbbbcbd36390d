package wire

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/bits"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/tokenpulse/tokenpulse/internal/assembly"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
)

// Field numbers of proto/tokenpulse/v1/token_stream.proto.
const (
	requestResourceTokenStreams = 1

	resourceTokenStreamsResource     = 1
	resourceTokenStreamsTokenStreams = 2

	streamID        = 1
	streamStart     = 2
	streamScheduled = 3
	streamChunkRuns = 4
	streamEnd       = 5

	startTime         = 1
	startTraceID      = 2
	startSpanID       = 3
	startParentSpanID = 4
	startVantage      = 5
	startAttributes   = 6

	runChannel   = 1
	runTime      = 2
	runUnit      = 3
	runDeltas    = 4
	runTokens    = 5
	runFirstSeq  = 6
	endTime      = 1
	endUsage     = 2
	endFinish    = 3
	endError     = 4
	endCancelled = 5
	endAttribute = 6

	usageInput       = 1
	usageOutput      = 2
	usageReasoning   = 3
	usageCachedInput = 4
)

// Protobuf reads ExportTokenStreamsRequest messages, without building them in
// memory. It keeps scratch space between messages and is not safe for
// concurrent use.
type Protobuf struct {
	attributes     []byte
	resource       []byte // of the streams that are being read, which share it
	deltas, tokens []byte
	times          [timesAtOnce]int64
}

// timesAtOnce is how many times of a run are decoded before they are added: few
// enough that they stay in the processor's cache.
const timesAtOnce = 128

// Decode adds a request to the batch. A request that is no such message is an
// error, and then the batch is good for nothing but Reset. A token_stream with
// something in it that makes no sense is rejected, and the others are taken.
func (p *Protobuf) Decode(request []byte, batch *assembly.Batch, reject Reject) error {
	for f := range fields(&request) {
		if f.is(requestResourceTokenStreams, protowire.BytesType) {
			if err := p.resourceTokenStreams(f.bytes, batch, reject); err != nil {
				return err
			}
		}
	}
	return truncated(request, "the request")
}

func (p *Protobuf) resourceTokenStreams(message []byte, batch *assembly.Batch, reject Reject) error {
	p.resource = nil // batches keep it
	rest := message
	for f := range fields(&rest) {
		if f.is(resourceTokenStreamsResource, protowire.BytesType) {
			var err error
			if p.resource, err = appendResource(p.resource, f.bytes); err != nil {
				return err
			}
		}
	}
	if err := truncated(rest, "resource_token_streams"); err != nil {
		return err
	}
	p.resource = bytes.Clone(p.resource) // no room to grow is held with it
	for f := range fields(&message) {
		if f.is(resourceTokenStreamsTokenStreams, protowire.BytesType) {
			if err := p.tokenStream(f.bytes, batch, reject); err != nil {
				return err
			}
		}
	}
	return nil
}

// tokenStream reads a message whole even after something in it made no sense,
// because what follows may still be malformed.
func (p *Protobuf) tokenStream(message []byte, batch *assembly.Batch, reject Reject) error {
	var id []byte
	rest := message
	for f := range fields(&rest) {
		if f.is(streamID, protowire.BytesType) {
			id = f.bytes
			if !utf8.Valid(id) {
				return errUTF8("stream_id")
			}
		}
	}
	if err := truncated(rest, "token_streams"); err != nil {
		return err
	}
	part, first := batch.Part(id)
	if first != nil {
		part = batch.Discard()
	}
	before := part.Snapshot()
	keep := func(err error) error {
		if err != nil && assembly.ReasonOf(err) == assembly.Malformed {
			return err
		}
		if first == nil {
			first = err
		}
		return nil
	}
	if err := p.events(message, part, keep); err != nil {
		return err
	}
	if first != nil {
		part.Restore(&before)
		reject(0, string(id), first)
		return nil
	}
	part.Count(0)
	return nil
}

// events adds the events of a token_stream to part. keep is given each error
// and returns those that end it all.
func (p *Protobuf) events(message []byte, part *assembly.Part, keep func(error) error) error {
	var start startMessage
	var end endMessage
	var scheduled int64
	p.attributes = p.attributes[:0]
	rest := message
	for f := range fields(&rest) {
		var err error
		switch {
		case f.is(streamStart, protowire.BytesType):
			err = start.read(f.bytes, &p.attributes)
		case f.is(streamScheduled, protowire.Fixed64Type):
			scheduled = int64(f.number)
		}
		if err := keep(err); err != nil {
			return err
		}
	}
	if start.there {
		if err := keep(start.add(part, p.attributes, p.resource)); err != nil {
			return err
		}
	}
	if scheduled != 0 {
		if err := keep(part.AddScheduled(scheduled)); err != nil {
			return err
		}
	}
	p.attributes = p.attributes[:0]
	for f := range fields(&message) {
		var err error
		switch {
		case f.is(streamChunkRuns, protowire.BytesType):
			err = p.chunkRun(f.bytes, part)
		case f.is(streamEnd, protowire.BytesType):
			err = end.read(f.bytes, &p.attributes)
		}
		if err := keep(err); err != nil {
			return err
		}
	}
	if end.there {
		return keep(end.add(part, p.attributes))
	}
	return nil
}

type startMessage struct {
	assembly.Start
	there                         bool
	traceID, spanID, parentSpanID []byte
}

func (s *startMessage) read(message []byte, attributes *[]byte) error {
	s.there = true
	for f := range fields(&message) {
		switch {
		case f.is(startTime, protowire.Fixed64Type):
			s.UnixNano = int64(f.number)
		case f.is(startTraceID, protowire.BytesType):
			s.traceID = f.bytes
		case f.is(startSpanID, protowire.BytesType):
			s.spanID = f.bytes
		case f.is(startParentSpanID, protowire.BytesType):
			s.parentSpanID = f.bytes
		case f.is(startVantage, protowire.VarintType):
			s.Vantage = assembly.Vantage(min(uint64(uint32(f.number)), math.MaxUint8))
		case f.is(startAttributes, protowire.BytesType):
			var err error
			if *attributes, err = appendKeyValue(*attributes, f.bytes); err != nil {
				return err
			}
		}
	}
	return truncated(message, "start")
}

func (s *startMessage) add(part *assembly.Part, attributes, resource []byte) error {
	if err := copyID(s.TraceID[:], s.traceID, "trace_id"); err != nil {
		return err
	}
	if err := copyID(s.SpanID[:], s.spanID, "span_id"); err != nil {
		return err
	}
	if err := copyID(s.ParentSpanID[:], s.parentSpanID, "parent_span_id"); err != nil {
		return err
	}
	if err := checkCount(attributes); err != nil {
		return err
	}
	if err := checkCount(resource); err != nil {
		return err
	}
	return part.AddStart(s.Start, attributes, resource)
}

type endMessage struct {
	assembly.End
	there bool
}

func (e *endMessage) read(message []byte, attributes *[]byte) error {
	e.there = true
	for f := range fields(&message) {
		var err error
		switch {
		case f.is(endTime, protowire.Fixed64Type):
			e.UnixNano = int64(f.number)
		case f.is(endUsage, protowire.BytesType):
			err = readUsage(&e.Usage, f.bytes)
		case f.is(endFinish, protowire.BytesType):
			e.FinishReason, err = text(f.bytes, "finish_reason")
		case f.is(endError, protowire.BytesType):
			e.Error, err = text(f.bytes, "error")
		case f.is(endCancelled, protowire.VarintType):
			e.Cancelled = f.number != 0
		case f.is(endAttribute, protowire.BytesType):
			*attributes, err = appendKeyValue(*attributes, f.bytes)
		}
		if err != nil {
			return err
		}
	}
	return truncated(message, "end")
}

func (e *endMessage) add(part *assembly.Part, attributes []byte) error {
	if err := checkCount(attributes); err != nil {
		return err
	}
	return part.AddEnd(e.End, attributes)
}

func readUsage(usage *assembly.Usage, message []byte) error {
	for f := range fields(&message) {
		if f.kind != protowire.VarintType {
			continue
		}
		count := assembly.Count{N: int64(min(f.number, math.MaxInt64)), Known: true}
		switch f.num {
		case usageInput:
			usage.Input = count
		case usageOutput:
			usage.Output = count
		case usageReasoning:
			usage.Reasoning = count
		case usageCachedInput:
			usage.CachedInput = count
		}
	}
	return truncated(message, "usage")
}

// chunkRun adds the chunks of a run. It finds the packed fields first, because
// two of them are read side by side.
func (p *Protobuf) chunkRun(message []byte, part *assembly.Part) error {
	var channel, unit, firstSeq uint64
	var numbered bool
	var at int64
	p.deltas, p.tokens = p.deltas[:0], p.tokens[:0]
	deltas, tokens := packed{own: p.deltas}, packed{own: p.tokens}
	for f := range fields(&message) {
		switch {
		case f.is(runChannel, protowire.VarintType):
			channel = uint64(uint32(f.number))
		case f.is(runTime, protowire.Fixed64Type):
			at = int64(f.number)
		case f.is(runUnit, protowire.VarintType):
			unit = f.number
		case f.num == runDeltas:
			deltas.add(f)
		case f.num == runTokens:
			tokens.add(f)
		case f.is(runFirstSeq, protowire.VarintType):
			firstSeq, numbered = f.number, true
		}
	}
	p.deltas, p.tokens = deltas.own, tokens.own
	if err := truncated(message, "chunk_runs"); err != nil {
		return err
	}
	if !numbered && len(tokens.bytes) == 0 && unit == uint64(timeline.Tick) && channel <= uint64(timeline.ToolCall) && p.addGaps(part, at, deltas.bytes, timeline.Channel(channel)) {
		return nil // as nearly all runs
	}
	// Both have to be well-formed before anything else is said of them.
	count, err := deltas.count("time_deltas")
	if err != nil {
		return err
	}
	tokenCount, err := tokens.count("tokens")
	if err != nil {
		return err
	}
	switch {
	case at < 0:
		return invalid("time must be a positive count of nanoseconds since 1970")
	case channel > uint64(timeline.ToolCall):
		return invalid("channel must be content, reasoning or tool_call")
	case unit > uint64(assembly.MaxDuration):
		return invalid("delta_unit_nanos is more than a day")
	case tokenCount != 0 && tokenCount != count:
		return invalid("tokens has %d entries for %d time_deltas: give one for each chunk, or none if each chunk is one token", tokenCount, count)
	case firstSeq > math.MaxInt64-uint64(count):
		return invalid("first_sequence_number is too large")
	}
	chunk := assembly.Chunk{
		UnixNano: at, Seq: firstSeq, Tokens: 1, Numbered: numbered,
		Channel: timeline.Channel(channel),
	}
	run := run{deltas: deltas.bytes, at: at, unit: int64(max(1, unit))}
	if !numbered && tokenCount == 0 {
		return p.addEach(part, &run, chunk.Channel)
	}
	return p.addChunks(part, &run, chunk, tokens.bytes)
}

// addGaps adds a chunk of one token for each delta, which are as a timeline has them,
// and reports whether it did. It does not where there is anything to say about them.
func (p *Protobuf) addGaps(part *assembly.Part, at int64, deltas []byte, channel timeline.Channel) bool {
	encoded, width := binary.Uvarint(deltas)
	if width <= 0 {
		return false
	}
	first := protowire.DecodeZigZag(encoded)
	if first < 0 || first > int64(assembly.MaxDuration/timeline.Tick) { // so that nothing overflows
		return false
	}
	return part.AddGaps(at+first*int64(timeline.Tick), deltas[width:], channel)
}

// addEach adds a chunk of one token for each delta.
func (p *Protobuf) addEach(part *assembly.Part, run *run, channel timeline.Channel) error {
	for len(run.deltas) > 0 {
		n, tooLong := run.next(p.times[:])
		if err := part.AddEach(p.times[:n], channel); err != nil {
			return err
		}
		if tooLong != nil {
			return tooLong
		}
	}
	return nil
}

// addChunks adds a chunk for each delta, beginning with chunk.
func (p *Protobuf) addChunks(part *assembly.Part, run *run, chunk assembly.Chunk, tokens []byte) error {
	for len(run.deltas) > 0 {
		n, tooLong := run.next(p.times[:])
		for _, chunk.UnixNano = range p.times[:n] {
			if len(tokens) > 0 {
				held, width := binary.Uvarint(tokens)
				tokens = tokens[width:]
				chunk.Tokens = uint32(held)
			}
			if err := part.AddChunk(chunk); err != nil {
				return err
			}
			chunk.Seq++
		}
		if tooLong != nil {
			return tooLong
		}
	}
	return nil
}

// run is the times of a ChunkRun that are still to come.
type run struct {
	deltas []byte // well-formed
	at     int64
	unit   int64
}

// next decodes as many times as there is room for and returns how many these are,
// also when it comes to a delta that is too long.
func (r *run) next(times []int64) (n int, err error) {
	// Within the limit no product overflows, and no sum with a time that is
	// accepted can come out as another: the first that is not is always seen.
	limit := protowire.EncodeZigZag(math.MaxInt64 / 4 / r.unit)
	deltas, at := r.deltas, r.at
	for ; n < len(times) && len(deltas) > 0; n++ {
		var encoded uint64
		var width int
		if len(deltas) >= 3 && deltas[0]&deltas[1] >= 0x80 && deltas[2] < 0x80 { // most are like this
			encoded, width = uint64(deltas[0]&0x7f)|uint64(deltas[1]&0x7f)<<7|uint64(deltas[2])<<14, 3
		} else {
			encoded, width = binary.Uvarint(deltas)
		}
		if encoded > limit {
			return n, invalid("a time_delta is more than 73 years")
		}
		deltas = deltas[width:]
		at += protowire.DecodeZigZag(encoded) * r.unit
		times[n] = at
	}
	r.deltas, r.at = deltas, at
	return n, nil
}

// packed is a repeated field of varints. It is usually one packed run, and read
// where it is; other forms are put together in own.
type packed struct {
	bytes []byte
	own   []byte
}

func (p *packed) add(f field) {
	switch {
	case f.kind == protowire.BytesType && len(p.bytes) == 0:
		p.bytes = f.bytes
		return
	case f.kind != protowire.BytesType && f.kind != protowire.VarintType:
		return // not this field, as protobuf sees it
	}
	if len(p.own) == 0 {
		p.own = append(p.own, p.bytes...)
	}
	if f.kind == protowire.BytesType {
		p.own = append(p.own, f.bytes...)
	} else {
		p.own = protowire.AppendVarint(p.own, f.number)
	}
	p.bytes = p.own
}

// count checks the varints and returns how many there are.
func (p *packed) count(name string) (int, error) {
	count, length, rest := countShort(p.bytes)
	for _, b := range rest {
		length++
		switch {
		case b < 0x80 && (length < binary.MaxVarintLen64 || length == binary.MaxVarintLen64 && b <= 1):
			count, length = count+1, 0
		case length >= binary.MaxVarintLen64:
			return 0, errTruncated(name)
		}
	}
	if length != 0 {
		return 0, errTruncated(name)
	}
	return count, nil
}

// countShort counts varints eight bytes at a time, as long as there is the end of
// one in each four bytes: none is too long then. It returns the bytes that are
// left, and how many bytes before these belong to their first varint.
func countShort(b []byte) (count, length int, rest []byte) {
	const continued = 0x8080808080808080 // the top bit of each byte
	for ; len(b) >= 8; b = b[8:] {
		ends := ^binary.LittleEndian.Uint64(b) & continued
		if uint32(ends) == 0 || ends>>32 == 0 {
			break
		}
		count += bits.OnesCount64(ends)
		length = bits.LeadingZeros64(ends) / 8
	}
	return count, length, b
}

func text(b []byte, name string) (string, error) {
	if !utf8.Valid(b) {
		return "", errUTF8(name)
	}
	return string(b), nil
}

func errUTF8(name string) error { return malformed("%s is not valid UTF-8", name) }

func errTruncated(name string) error {
	return malformed("%s is truncated or no protobuf message of tokenpulse.v1.ExportTokenStreamsRequest", name)
}

// truncated returns an error when a walk over fields left something over.
func truncated(rest []byte, name string) error {
	if len(rest) != 0 {
		return errTruncated(name)
	}
	return nil
}

// field is one field of a message.
type field struct {
	num    protowire.Number
	kind   protowire.Type
	number uint64 // of varints and fixed64
	bytes  []byte // of length-delimited fields
}

func (f *field) is(num protowire.Number, kind protowire.Type) bool {
	return f.num == num && f.kind == kind
}

// fields yields the fields of a message and takes them off it: what is left
// afterwards is malformed.
func fields(message *[]byte) func(yield func(field) bool) {
	return func(yield func(field) bool) {
		for rest := *message; len(rest) > 0; *message = rest {
			var f field
			var n int
			if f.num, f.kind, n = protowire.ConsumeTag(rest); n < 0 || f.num > protowire.MaxValidNumber {
				return
			}
			rest = rest[n:]
			switch f.kind {
			case protowire.VarintType:
				f.number, n = protowire.ConsumeVarint(rest)
			case protowire.Fixed64Type:
				f.number, n = protowire.ConsumeFixed64(rest)
			case protowire.BytesType:
				f.bytes, n = protowire.ConsumeBytes(rest)
			default:
				n = protowire.ConsumeFieldValue(f.num, f.kind, rest)
			}
			if n < 0 {
				return
			}
			rest = rest[n:]
			if !yield(f) {
				*message = rest
				return
			}
		}
	}
}
