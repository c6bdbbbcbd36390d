package wire

import (
	"bytes"
	"encoding/hex"
	"math"
	"time"

	"github.com/tokenpulse/tokenpulse/internal/assembly"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
)

// The fields of an event that mean something.
type fieldIndex int

const (
	fieldEvent fieldIndex = iota
	fieldStreamID
	fieldTimeUnixNano
	fieldTime
	fieldTokens
	fieldChannel
	fieldSeq
	fieldTraceID
	fieldSpanID
	fieldParentSpanID
	fieldVantage
	fieldResource
	fieldAttributes
	fieldUsage
	fieldFinishReason
	fieldError
	fieldCancelled
	fieldCount
)

func indexOf(name []byte) (fieldIndex, bool) {
	switch string(name) {
	case "event":
		return fieldEvent, true
	case "stream_id":
		return fieldStreamID, true
	case "time_unix_nano":
		return fieldTimeUnixNano, true
	case "time":
		return fieldTime, true
	case "tokens":
		return fieldTokens, true
	case "channel":
		return fieldChannel, true
	case "seq":
		return fieldSeq, true
	case "trace_id":
		return fieldTraceID, true
	case "span_id":
		return fieldSpanID, true
	case "parent_span_id":
		return fieldParentSpanID, true
	case "vantage":
		return fieldVantage, true
	case "resource":
		return fieldResource, true
	case "attributes":
		return fieldAttributes, true
	case "usage":
		return fieldUsage, true
	case "finish_reason":
		return fieldFinishReason, true
	case "error":
		return fieldError, true
	case "cancelled":
		return fieldCancelled, true
	default:
		return 0, false
	}
}

// NDJSON reads events that are one JSON object each. It keeps scratch space
// between events and is not safe for concurrent use.
type NDJSON struct {
	form                 chunkForm // of the chunks so far
	fields               [fieldCount]value
	there                uint32 // a bit for each of fields that is set
	scratch              []byte
	attributes, resource []byte
	shared               []byte // the last resource that batches keep
}

// Decode adds the event of one line to the batch, or returns why it cannot.
// Nothing of line is kept.
func (n *NDJSON) Decode(line []byte, number int, batch *assembly.Batch) error {
	var common commonChunk
	if !common.read(line, &n.form) {
		return n.decodeAny(line, number, batch)
	}
	part, err := batch.Part(common.id)
	if err != nil {
		return err
	}
	if err := part.AddChunk(common.chunk); err != nil {
		return err
	}
	part.Count(number)
	return nil
}

// decodeAny is Decode for lines of any kind.
func (n *NDJSON) decodeAny(line []byte, number int, batch *assembly.Batch) error {
	n.scratch = n.scratch[:0]
	if err := n.scan(line); err != nil {
		return err
	}
	var id []byte
	if n.has(fieldStreamID) {
		var ok bool
		if id, ok = n.fields[fieldStreamID].unquote(&n.scratch); !ok {
			return invalid("stream_id must be a string")
		}
	}
	part, err := batch.Part(id)
	if err != nil {
		return err
	}
	if err := n.event(part); err != nil {
		return err
	}
	part.Count(number)
	return nil
}

// scan finds the fields of an event.
func (n *NDJSON) scan(line []byte) error {
	n.there = 0
	o := open(line)
	for o.next() {
		name, ok := o.key.unquote(&n.scratch)
		if !ok {
			o.bad = true
			break
		}
		index, known := indexOf(name)
		if !known {
			continue
		}
		if n.there&(1<<index) != 0 {
			return malformed("field %s is given twice", name)
		}
		if o.value.isNested() && !o.value.isStrict() {
			o.bad = true
			break
		}
		n.there |= 1 << index
		n.fields[index] = o.value
	}
	if !o.end() {
		return malformed("not a valid JSON object, at byte %d", o.at+1)
	}
	return nil
}

// has reports whether a field is there and is not null.
func (n *NDJSON) has(index fieldIndex) bool {
	return n.there&(1<<index) != 0 && n.fields[index].kind != 'n'
}

func (n *NDJSON) event(part *assembly.Part) error {
	var name []byte
	if n.has(fieldEvent) {
		name, _ = n.fields[fieldEvent].unquote(&n.scratch)
	}
	switch string(name) {
	case "chunk":
		return n.chunk(part)
	case "start":
		return n.start(part)
	case "scheduled":
		at, err := n.time()
		if err != nil {
			return err
		}
		return part.AddScheduled(at)
	case "end":
		return n.end(part)
	default:
		return invalid("event must be start, scheduled, chunk or end")
	}
}

func (n *NDJSON) chunk(part *assembly.Part) error {
	at, err := n.time()
	if err != nil {
		return err
	}
	chunk := assembly.Chunk{UnixNano: at, Tokens: 1}
	if n.has(fieldTokens) {
		tokens, ok := n.fields[fieldTokens].uint()
		if !ok || tokens > math.MaxUint32 {
			return assembly.ErrTokens
		}
		chunk.Tokens = uint32(tokens)
	}
	if n.has(fieldChannel) {
		var ok bool
		if chunk.Channel, ok = n.channel(); !ok {
			return invalid("channel must be content, reasoning or tool_call")
		}
	}
	if n.has(fieldSeq) {
		if chunk.Seq, chunk.Numbered = n.fields[fieldSeq].uint(); !chunk.Numbered {
			return invalid("seq must be an integer, zero or more")
		}
	}
	return part.AddChunk(chunk)
}

func (n *NDJSON) channel() (timeline.Channel, bool) {
	name, _ := n.fields[fieldChannel].unquote(&n.scratch)
	switch string(name) {
	case "content":
		return timeline.Content, true
	case "reasoning":
		return timeline.Reasoning, true
	case "tool_call":
		return timeline.ToolCall, true
	default:
		return 0, false
	}
}

func (n *NDJSON) start(part *assembly.Part) (err error) {
	var start assembly.Start
	if start.UnixNano, err = n.time(); err != nil {
		return err
	}
	if err := n.hexID(start.TraceID[:], fieldTraceID, "trace_id"); err != nil {
		return err
	}
	if err := n.hexID(start.SpanID[:], fieldSpanID, "span_id"); err != nil {
		return err
	}
	if err := n.hexID(start.ParentSpanID[:], fieldParentSpanID, "parent_span_id"); err != nil {
		return err
	}
	if n.has(fieldVantage) {
		name, _ := n.fields[fieldVantage].unquote(&n.scratch)
		start.Vantage = vantageOf(name)
	}
	if n.resource, err = n.keyValues(n.resource[:0], fieldResource, "resource"); err != nil {
		return err
	}
	if n.attributes, err = n.keyValues(n.attributes[:0], fieldAttributes, "attributes"); err != nil {
		return err
	}
	if !bytes.Equal(n.shared, n.resource) { // a service tells the same again and again
		n.shared = bytes.Clone(n.resource)
	}
	return part.AddStart(start, n.attributes, n.shared)
}

// vantageOf returns a value that a Batch turns down if the name is unknown.
func vantageOf(name []byte) assembly.Vantage {
	switch string(name) {
	case "client":
		return assembly.VantageClient
	case "gateway":
		return assembly.VantageGateway
	case "server":
		return assembly.VantageServer
	case "engine":
		return assembly.VantageEngine
	default:
		return math.MaxUint8
	}
}

func (n *NDJSON) end(part *assembly.Part) (err error) {
	var end assembly.End
	if n.has(fieldTime) || n.has(fieldTimeUnixNano) {
		if end.UnixNano, err = n.time(); err != nil {
			return err
		}
	}
	if end.Usage, err = n.usage(); err != nil {
		return err
	}
	if end.FinishReason, err = n.text(fieldFinishReason, "finish_reason"); err != nil {
		return err
	}
	if end.Error, err = n.text(fieldError, "error"); err != nil {
		return err
	}
	if n.has(fieldCancelled) {
		cancelled := n.fields[fieldCancelled].kind
		if cancelled != 't' && cancelled != 'f' {
			return invalid("cancelled must be true or false")
		}
		end.Cancelled = cancelled == 't'
	}
	if n.attributes, err = n.keyValues(n.attributes[:0], fieldAttributes, "attributes"); err != nil {
		return err
	}
	return part.AddEnd(end, n.attributes)
}

func (n *NDJSON) usage() (usage assembly.Usage, err error) {
	if !n.has(fieldUsage) {
		return usage, nil
	}
	if n.fields[fieldUsage].kind != '{' {
		return usage, invalid("usage must be an object of token counts")
	}
	for o := openTrusted(n.fields[fieldUsage].raw); o.next(); {
		var count *assembly.Count
		name, _ := o.key.unquote(&n.scratch)
		switch string(name) {
		case "input_tokens":
			count = &usage.Input
		case "output_tokens":
			count = &usage.Output
		case "reasoning_tokens":
			count = &usage.Reasoning
		case "cached_input_tokens":
			count = &usage.CachedInput
		}
		if count == nil || o.value.kind == 'n' {
			continue
		}
		reported, ok := o.value.uint()
		if !ok {
			return usage, invalid("usage.%s must be between 0 and %d", name, assembly.MaxCount)
		}
		*count = assembly.Count{N: int64(min(reported, math.MaxInt64)), Known: true}
	}
	return usage, nil
}

// time reads the event's time, in nanoseconds since 1970.
func (n *NDJSON) time() (int64, error) {
	switch unix, text := n.has(fieldTimeUnixNano), n.has(fieldTime); {
	case unix && text:
		return 0, invalid("time and time_unix_nano are both given: give one")
	case unix:
		at, ok := n.fields[fieldTimeUnixNano].uint()
		if !ok || at > math.MaxInt64 {
			return 0, invalid("time_unix_nano must be a positive integer, or one in decimal digits as a string")
		}
		return int64(at), nil
	case text:
		return n.textTime()
	default:
		return 0, invalid("time_unix_nano is missing (or time, as RFC 3339 text)")
	}
}

func (n *NDJSON) textTime() (int64, error) {
	text, ok := n.fields[fieldTime].unquote(&n.scratch)
	if !ok {
		text = nil // which is no time either
	}
	return parseTime(text)
}

// parseTime returns a time in RFC 3339 as nanoseconds since 1970.
func parseTime(text []byte) (int64, error) {
	var at time.Time
	if at.UnmarshalText(text) != nil {
		return 0, invalid("time must be RFC 3339, as in 2026-11-21T05:48:12.181556Z")
	}
	if at.Year() < 1970 || at.Year() > 2261 {
		return 0, invalid("time must be between 1970 and 2261")
	}
	return at.UnixNano(), nil
}

func (n *NDJSON) hexID(dst []byte, index fieldIndex, name string) error {
	if !n.has(index) {
		return nil
	}
	text, ok := n.fields[index].unquote(&n.scratch)
	if !ok {
		return invalid("%s must be a string of %d hexadecimal digits", name, 2*len(dst))
	}
	if len(text) == 0 {
		return nil
	}
	var id [16]byte
	if len(text) != 2*len(dst) {
		return invalid("%s has %d characters, not %d hexadecimal digits", name, len(text), 2*len(dst))
	}
	if _, err := hex.Decode(id[:], text); err != nil {
		return invalid("%s must be a string of %d hexadecimal digits", name, 2*len(dst))
	}
	return copyID(dst, id[:len(dst)], name)
}

func (n *NDJSON) text(index fieldIndex, name string) (string, error) {
	if !n.has(index) {
		return "", nil
	}
	text, ok := n.fields[index].unquote(&n.scratch)
	if !ok {
		return "", invalid("%s must be a string", name)
	}
	return string(text), nil
}

func (n *NDJSON) keyValues(list []byte, index fieldIndex, name string) ([]byte, error) {
	if !n.has(index) {
		return list, nil
	}
	if n.fields[index].kind != '{' {
		return list, invalid("%s must be an object", name)
	}
	return appendObject(list, n.fields[index].raw, &n.scratch, 0)
}
