// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"cmp"
	"encoding/hex"

	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/assembly"
)

// logEvent is the kind of token event that a log record is.
type logEvent int

const (
	noEvent logEvent = iota

	// Events of tokenpulse. They have the fields of NDJSON events.
	startEvent
	scheduledEvent
	chunkEvent
	endEvent

	// Events of other instrumentation, each one chunk. Only tokens is a field.
	tokenEvent
	frameEvent // a part of an answer, also one with a role or the usage instead of tokens
)

func eventOf(name []byte) logEvent {
	switch string(name) {
	case names.LogStreamStart:
		return startEvent
	case names.LogStreamScheduled:
		return scheduledEvent
	case names.LogStreamChunk:
		return chunkEvent
	case names.LogStreamEnd:
		return endEvent
	case names.LogTokenGenerated:
		return tokenEvent
	case names.LogCompletionChunk, names.LogLLMCompletionChunk, names.LogContentChunk, names.LogGenAIStreamChunk:
		return frameEvent
	default:
		return noEvent
	}
}

// isOwn reports whether the event is one of tokenpulse.
func (e logEvent) isOwn() bool { return e >= startEvent && e <= endEvent }

// logEvents adds the events of log records to batches. Its buffers are reused for every
// record.
type logEvents struct {
	record     logRecord
	resource   logResource
	attributes []byte
	id         []byte
}

// add adds the current record to the batch as an event, or returns why it rejects it.
func (l *logEvents) add(batch *assembly.Batch) error {
	event := eventOf(l.record.name)
	if event == noEvent {
		return errNotTokenEvent
	}
	id, err := l.streamID(event)
	if err != nil {
		return err
	}
	at, field := l.record.unixNano, "time_unix_nano"
	if at == 0 {
		at, field = l.record.observed, "observed_time_unix_nano"
	}
	switch {
	case at == 0:
		return invalid("`time_unix_nano` and `observed_time_unix_nano` are missing; set one of them")
	case at < 0: // beyond the int64 range
		return invalid("`%s` is %d; send nanoseconds since 1970", field, uint64(at))
	}
	part, err := batch.Part(id)
	if err != nil {
		return err
	}
	switch event {
	case startEvent:
		err = l.addStart(part, at)
	case scheduledEvent:
		err = part.AddScheduled(at)
	case endEvent:
		err = l.addEnd(part, at)
	default:
		err = l.addChunk(part, event, at)
	}
	if err != nil {
		return err
	}
	part.Count(0)
	return nil
}

// streamID returns the ID of the record's stream: trace_id/span_id, or the attribute
// stream_id of an own event without these.
func (l *logEvents) streamID(event logEvent) ([]byte, error) {
	r := &l.record
	switch {
	case r.hasTrace() && r.hasSpan():
		l.id = hex.AppendEncode(l.id[:0], r.traceID[:])
		l.id = append(l.id, '/')
		l.id = hex.AppendEncode(l.id, r.spanID[:])
		return l.id, nil
	case !event.isOwn():
		return nil, invalid("record %s has no trace_id and span_id to identify its stream; log it in the span of its request", r.name)
	}
	id, err := r.text(names.LogStreamID)
	if err == nil && len(id) == 0 {
		err = invalid("record %s has no trace_id and span_id to identify its stream; log it in the span of its request, or set the attribute `%s`",
			r.name, names.LogStreamID)
	}
	return id, err
}

func (l *logEvents) addStart(part *assembly.Part, at int64) error {
	start, resource, err := l.start(startEvent)
	if err != nil {
		return err
	}
	start.UnixNano = at
	return part.AddStart(start, l.attributes, resource)
}

// addChunk adds a chunk. The chunk implies the start of a stream without one.
func (l *logEvents) addChunk(part *assembly.Part, event logEvent, at int64) error {
	chunk, err := l.chunk(event)
	if err != nil {
		return err
	}
	if !part.HasStart() {
		start, resource, err := l.start(event)
		if err != nil {
			return err
		}
		if err := part.ImplyStart(start, bytes.Clone(l.attributes), resource); err != nil {
			return err
		}
	}
	chunk.UnixNano = at
	if err := part.AddChunk(chunk); err != nil {
		return err
	}
	if event == frameEvent && chunk.Tokens > 0 {
		part.Chunks.Frames = true
	}
	return nil
}

// start returns the start of the record's stream without its time, and leaves the
// attributes in l.attributes. The stream is a child of the record's span, unless an
// own event has other IDs.
func (l *logEvents) start(event logEvent) (start assembly.Start, resource []byte, err error) {
	start.TraceID = l.record.traceID
	start.ParentSpanID = l.record.spanID
	if event.isOwn() {
		if err := l.ownStart(&start); err != nil {
			return start, nil, err
		}
	}
	if err := l.startAttributes(event); err != nil {
		return start, nil, err
	}
	resource, err = l.resource.attributes()
	return start, resource, err
}

func (l *logEvents) ownStart(start *assembly.Start) error {
	r := &l.record
	if !r.hasTrace() {
		if err := r.hexID(start.TraceID[:], names.LogTraceID); err != nil {
			return err
		}
	}
	if err := r.hexID(start.SpanID[:], names.LogSpanID); err != nil {
		return err
	}
	if start.SpanID == start.ParentSpanID { // the record was logged in the stream's own span
		start.ParentSpanID = [8]byte{}
	}
	if err := r.hexID(start.ParentSpanID[:], names.LogParentSpanID); err != nil {
		return err
	}
	name, err := r.text(names.LogVantage)
	if len(name) > 0 {
		start.Vantage = vantageOf(name)
	}
	return err
}

// startAttributes sets l.attributes to the attributes for the stream's span: those of
// the record that isSpanAttribute accepts, then the field attributes.
func (l *logEvents) startAttributes(event logEvent) (err error) {
	l.attributes = l.attributes[:0]
	message := l.record.message
	f := fieldsOf(message)
	for f.next() {
		if !f.is(recordAttributes, bytesType) {
			continue
		}
		if key, value := readKeyValue(f.bytes); !isSpanAttribute(key, &value) {
			continue
		}
		if l.attributes, err = appendCanonical(l.attributes, f.bytes); err != nil {
			return err
		}
	}
	if err := checkCount(l.attributes); err != nil || !event.isOwn() {
		return err
	}
	return l.appendAttributesField()
}

// isSpanAttribute reports whether an attribute of a record may be copied to the span.
// Records also have prompts, under many names, so only names and values that cannot be
// text of a prompt are copied.
func isSpanAttribute(key []byte, value *Value) bool {
	return copied[string(key)] && isPlain(value)
}

// copied holds names.LogAttributesCopied.
var copied = func() map[string]bool {
	all := map[string]bool{}
	for _, name := range names.LogAttributesCopied {
		all[name] = true
	}
	return all
}()

// isPlain reports whether a value is a scalar or an array of scalars. Messages are
// maps.
func isPlain(value *Value) bool {
	e := value.Elements()
	for e.Next() {
		if e.Value.Kind == MapValue || e.Value.Kind == ArrayValue {
			return false
		}
	}
	return value.Kind != MapValue
}

func (l *logEvents) chunk(event logEvent) (assembly.Chunk, error) {
	chunk := assembly.Chunk{Tokens: 1}
	if value := l.record.field(names.LogTokens); value.Kind != EmptyValue {
		switch tokens, ok := value.integer(); {
		case ok && tokens >= 0 && tokens <= timeline.MaxTokensPerChunk:
			chunk.Tokens = uint32(tokens)
		case ok || event.isOwn(): // in other events, a value that is not a number has another meaning
			return chunk, assembly.ErrTokens(value.describe())
		}
	}
	if !event.isOwn() {
		return chunk, nil
	}
	channel, err := l.record.text(names.LogChannel)
	if err != nil {
		return chunk, err
	}
	if len(channel) > 0 {
		var ok bool
		if chunk.Channel, ok = timeline.ParseChannel(channel); !ok {
			return chunk, errChannel
		}
	}
	if value := l.record.field(names.LogSeq); value.Kind != EmptyValue {
		seq, ok := value.integer()
		if !ok || seq < 0 {
			return chunk, invalid("`seq` is %s; send an integer from 0", value.describe())
		}
		chunk.Seq, chunk.Numbered = uint64(seq), true
	}
	return chunk, nil
}

func (l *logEvents) addEnd(part *assembly.Part, at int64) error {
	end := assembly.End{UnixNano: at}
	usageErr := l.record.usage(&end.Usage)
	reason, reasonErr := l.record.finishReason()
	message, messageErr := l.record.text(names.LogError)
	l.attributes = l.attributes[:0]
	err := cmp.Or(usageErr, reasonErr, messageErr, l.record.cancelled(&end.Cancelled), l.appendAttributesField())
	if err != nil {
		return err
	}
	end.FinishReason, end.Error = reason, string(message)
	return part.AddEnd(end, l.attributes)
}

// appendAttributesField appends the field attributes to l.attributes.
func (l *logEvents) appendAttributesField() (err error) {
	value := l.record.field(names.LogAttributes)
	if value.Kind != EmptyValue && value.Kind != MapValue {
		return invalid("`attributes` is %s; send a map", value.describe())
	}
	l.attributes, err = appendAttributes(l.attributes, value.Bytes)
	return err
}
