// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"cmp"
	"math"

	"github.com/tokenpulse/tokenpulse/internal/optional"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/assembly"
)

// NDJSON decodes events that are one JSON object each. It reuses its buffers and is
// not safe for concurrent use.
type NDJSON struct {
	template             lineTemplate // of the chunk lines so far
	fields               [fieldCount]jsonValue
	present              uint32         // has a bit for each of fields that is set
	order                []fieldIndex   // of the fields that are set
	usual                bool           // all members are known, and no value has escape sequences
	last                 assembly.Chunk // the last one decoded without the template
	scratch              []byte
	attributes, resource []byte
	shared               []byte // the last resource, which batches keep
}

// Decode adds the event of one line to the batch, or returns why it rejects the
// line. number is the line number. Decode keeps no reference to line.
func (n *NDJSON) Decode(line []byte, number int, batch *assembly.Batch) error {
	var chunk assembly.Chunk
	id, ok := n.template.match(line, &chunk)
	if !ok {
		if err := n.decodePlain(line, number, batch); err != nil {
			return err
		}
		n.template.learn(line, n)
		return nil
	}
	part, err := batch.Part(id)
	if err != nil {
		return err
	}
	if err := part.AddChunk(chunk); err != nil {
		return err
	}
	part.Count(number)
	return nil
}

// decodePlain is Decode without the template, for lines of any form.
func (n *NDJSON) decodePlain(line []byte, number int, batch *assembly.Batch) error {
	n.scratch = n.scratch[:0]
	if err := n.scan(line); err != nil {
		return err
	}
	addTo, err := n.event()
	if err != nil {
		return err
	}
	var id []byte
	if n.has(fieldStreamID) {
		var ok bool
		if id, ok = n.fields[fieldStreamID].unquote(&n.scratch); !ok {
			return invalid("`stream_id` is %s; send a string", n.fields[fieldStreamID].describe())
		}
	}
	part, err := batch.Part(id)
	if err != nil {
		return err
	}
	if err := addTo(n, part); err != nil {
		return err
	}
	part.Count(number)
	return nil
}

// scan locates the fields of an event.
func (n *NDJSON) scan(line []byte) error {
	n.present, n.order, n.usual = 0, n.order[:0], true
	o := openObject(line)
	for o.next() {
		name, ok := o.key.unquote(&n.scratch)
		if !ok {
			o.bad = true
			break
		}
		index, known := fieldNamed(name)
		n.usual = n.usual && known && !o.value.escaped
		if !known {
			continue
		}
		if n.present&(1<<index) != 0 {
			return malformed("`%s` is set twice; send it once", name)
		}
		if o.value.isNested() && !o.value.isStrict() {
			o.bad = true
			break
		}
		n.present |= 1 << index
		n.fields[index] = o.value
		n.order = append(n.order, index)
	}
	if !o.end() {
		return malformed("the line is not a valid JSON object at byte %d; send one object a line, as UTF-8", o.at+1)
	}
	return nil
}

// has reports whether a field is present and not null.
func (n *NDJSON) has(index fieldIndex) bool {
	return n.present&(1<<index) != 0 && n.fields[index].kind != 'n'
}

// event returns the function that adds an event of this name to its part.
func (n *NDJSON) event() (addTo func(*NDJSON, *assembly.Part) error, err error) {
	if !n.has(fieldEvent) {
		return nil, invalid("`event` is missing; send start, scheduled, chunk or end")
	}
	name, _ := n.fields[fieldEvent].unquote(&n.scratch)
	switch string(name) {
	case "chunk":
		return (*NDJSON).chunk, nil
	case "start":
		return (*NDJSON).start, nil
	case "scheduled":
		return (*NDJSON).scheduled, nil
	case "end":
		return (*NDJSON).end, nil
	default:
		return nil, invalid("`event` is unknown; send start, scheduled, chunk or end")
	}
}

func (n *NDJSON) scheduled(part *assembly.Part) error {
	at, err := n.time()
	if err != nil {
		return err
	}
	return part.AddScheduled(at)
}

func (n *NDJSON) chunk(part *assembly.Part) error {
	at, err := n.time()
	if err != nil {
		return err
	}
	chunk := &n.last
	*chunk = assembly.Chunk{UnixNano: at, Tokens: 1}
	if n.has(fieldTokens) {
		tokens, ok := n.fields[fieldTokens].uint()
		if !ok || tokens > math.MaxUint32 {
			return assembly.ErrTokens(n.fields[fieldTokens].describe())
		}
		chunk.Tokens = uint32(tokens)
	}
	if n.has(fieldChannel) {
		name, _ := n.fields[fieldChannel].unquote(&n.scratch)
		var ok bool
		if chunk.Channel, ok = timeline.ParseChannel(name); !ok {
			return errChannel
		}
	}
	if n.has(fieldSeq) {
		if chunk.Seq, chunk.Numbered = n.fields[fieldSeq].uint(); !chunk.Numbered {
			return invalid("`seq` is %s; send an integer from 0", n.fields[fieldSeq].describe())
		}
	}
	return part.AddChunk(*chunk)
}

func (n *NDJSON) start(part *assembly.Part) (err error) {
	var start assembly.Start
	start.UnixNano, err = n.time()
	err = cmp.Or(err,
		n.hexID(start.TraceID[:], fieldTraceID),
		n.hexID(start.SpanID[:], fieldSpanID),
		n.hexID(start.ParentSpanID[:], fieldParentSpanID),
		n.keyValues(&n.resource, fieldResource),
		n.keyValues(&n.attributes, fieldAttributes),
	)
	if err != nil {
		return err
	}
	if n.has(fieldVantage) {
		name, _ := n.fields[fieldVantage].unquote(&n.scratch)
		start.Vantage = vantageOf(name)
	}
	if !bytes.Equal(n.shared, n.resource) { // streams of one service share it
		n.shared = bytes.Clone(n.resource)
	}
	return part.AddStart(start, n.attributes, n.shared)
}

func (n *NDJSON) end(part *assembly.Part) (err error) {
	var end assembly.End
	if n.has(fieldTime) || n.has(fieldTimeUnixNano) {
		if end.UnixNano, err = n.time(); err != nil {
			return err
		}
	}
	err = cmp.Or(
		n.usage(&end.Usage),
		n.text(&end.FinishReason, fieldFinishReason),
		n.text(&end.Error, fieldError),
		n.flag(&end.Cancelled, fieldCancelled),
		n.flag(&end.Interrupted, fieldInterrupted),
		n.keyValues(&n.attributes, fieldAttributes),
	)
	if err != nil {
		return err
	}
	return part.AddEnd(end, n.attributes)
}

func (n *NDJSON) flag(flag *bool, field fieldIndex) error {
	if !n.has(field) {
		return nil
	}
	kind := n.fields[field].kind
	*flag = kind == 't'
	if kind != 't' && kind != 'f' {
		return invalid("`%v` is %s; send true or false", field, n.fields[field].describe())
	}
	return nil
}

func (n *NDJSON) usage(usage *assembly.Usage) error {
	if !n.has(fieldUsage) {
		return nil
	}
	if n.fields[fieldUsage].kind != '{' {
		return invalid("`usage` is %s; send an object of token counts", n.fields[fieldUsage].describe())
	}
	for o := openTrusted(n.fields[fieldUsage].raw); o.next(); {
		var count *optional.Value[int64]
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
		case "cache_write_input_tokens":
			count = &usage.CacheWrite
		}
		if count == nil || o.value.kind == 'n' {
			continue
		}
		reported, ok := o.value.uint()
		if !ok {
			return assembly.ErrUsage(string(name), o.value.describe())
		}
		*count = optional.Of(int64(min(reported, math.MaxInt64)))
	}
	return nil
}

// time returns the time of the event in nanoseconds since 1970.
func (n *NDJSON) time() (int64, error) {
	switch unix, text := n.has(fieldTimeUnixNano), n.has(fieldTime); {
	case unix && text:
		return 0, invalid("`time` and `time_unix_nano` are both set; send one of them")
	case unix:
		at, ok := n.fields[fieldTimeUnixNano].uint()
		if !ok || at > math.MaxInt64 {
			return 0, invalid("`time_unix_nano` is %s; send a positive integer, or a string of its decimal digits", n.fields[fieldTimeUnixNano].describe())
		}
		return int64(at), nil
	case text:
		text, ok := n.fields[fieldTime].unquote(&n.scratch)
		if !ok {
			text = nil // not a time either
		}
		return parseTime(text)
	default:
		return 0, invalid("`time_unix_nano` is missing; send it, or `time` as RFC 3339 text")
	}
}

func (n *NDJSON) hexID(dst []byte, index fieldIndex) error {
	if !n.has(index) {
		return nil
	}
	text, ok := n.fields[index].unquote(&n.scratch)
	if !ok {
		return invalid("`%s` is %s; send a string of %d hexadecimal digits", index, n.fields[index].describe(), 2*len(dst))
	}
	return hexID(dst, text, index.String())
}

func (n *NDJSON) text(into *string, index fieldIndex) error {
	if !n.has(index) {
		return nil
	}
	text, ok := n.fields[index].unquote(&n.scratch)
	if !ok {
		return invalid("`%s` is %s; send a string", index, n.fields[index].describe())
	}
	*into = string(text)
	return nil
}

func (n *NDJSON) keyValues(list *[]byte, index fieldIndex) (err error) {
	*list = (*list)[:0]
	if !n.has(index) {
		return nil
	}
	if n.fields[index].kind != '{' {
		return invalid("`%s` is %s; send an object", index, n.fields[index].describe())
	}
	*list, err = appendObject(*list, n.fields[index].raw, &n.scratch, 0)
	return err
}
