// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"cmp"
	"math"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/tokenpulse/tokenpulse/internal/optional"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/assembly"
)

// Field numbers of proto/tokenpulse/v1/token_stream.proto. Those of ChunkRun are in
// chunkruns.go.
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

	endTime      = 1
	endUsage     = 2
	endFinish    = 3
	endError     = 4
	endCancelled = 5
	endAttribute = 6
	endInterrupt = 7

	usageInput       = 1
	usageOutput      = 2
	usageReasoning   = 3
	usageCachedInput = 4
	usageCacheWrite  = 5
)

// TokenStreams decodes encoded ExportTokenStreamsRequest messages without building
// them in memory. It reuses its buffers and is not safe for concurrent use.
type TokenStreams struct {
	attributes []byte
	resource   []byte // shared by the streams of one ResourceTokenStreams
	runs       chunkRuns
	position   int // of the current token_stream in the request
}

// Decode adds a request to the batch. It returns an error if the request is
// malformed; the batch must then be reset. A token_stream with an invalid value is
// rejected, and decoding continues with the next one.
func (d *TokenStreams) Decode(request []byte, batch *assembly.Batch, reject Reject) error {
	d.position = 0
	f := fieldsOf(request)
	for f.next() {
		if f.is(requestResourceTokenStreams, bytesType) {
			if err := d.resourceTokenStreams(f.bytes, batch, reject); err != nil {
				return err
			}
		}
	}
	return f.truncated("the request")
}

func (d *TokenStreams) resourceTokenStreams(message []byte, batch *assembly.Batch, reject Reject) error {
	d.resource = nil // batches keep the previous one
	f := fieldsOf(message)
	for f.next() {
		if f.is(resourceTokenStreamsResource, bytesType) {
			var err error
			if d.resource, err = appendResource(d.resource, f.bytes); err != nil {
				return err
			}
		}
	}
	if err := f.truncated("resource_token_streams"); err != nil {
		return err
	}
	d.resource = bytes.Clone(d.resource) // trims spare capacity
	f = fieldsOf(message)
	for f.next() {
		if f.is(resourceTokenStreamsTokenStreams, bytesType) {
			d.position++
			if err := d.tokenStream(f.bytes, batch, reject); err != nil {
				return err
			}
		}
	}
	return nil
}

// tokenStream decodes the whole message even after an invalid value, because
// malformed bytes may follow and reject the whole request.
func (d *TokenStreams) tokenStream(message []byte, batch *assembly.Batch, reject Reject) error {
	var id []byte
	f := fieldsOf(message)
	for f.next() {
		if f.is(streamID, bytesType) {
			id = f.bytes
			if !utf8.Valid(id) {
				return errUTF8("stream_id")
			}
		}
	}
	if err := f.truncated("token_streams"); err != nil {
		return err
	}
	part, first := batch.Part(id)
	if first != nil {
		part = batch.Discard()
	}
	before := part.Snapshot()
	// invalidOnly keeps the first error and returns those of malformed bytes.
	invalidOnly := func(err error) error {
		if err != nil && assembly.ReasonOf(err) == assembly.Malformed {
			return err
		}
		if first == nil {
			first = err
		}
		return nil
	}
	if err := d.events(message, part, invalidOnly); err != nil {
		return err
	}
	if first != nil {
		part.Restore(&before)
		reject(d.position, string(id), first)
		return nil
	}
	part.Count(d.position)
	return nil
}

// events adds the events of a token_stream to the part, the start first. It passes
// every error to filter and stops at those that filter returns.
func (d *TokenStreams) events(message []byte, part *assembly.Part, filter func(error) error) error {
	var start startMessage
	var end endMessage
	var scheduled int64
	d.attributes = d.attributes[:0]
	f := fieldsOf(message)
	for f.next() {
		var err error
		switch {
		case f.is(streamStart, bytesType):
			err = start.read(f.bytes, &d.attributes)
		case f.is(streamScheduled, fixed64Type):
			scheduled = int64(min(f.number, math.MaxInt64))
		}
		if err := filter(err); err != nil {
			return err
		}
	}
	if start.present {
		if err := filter(start.add(part, d.attributes, d.resource)); err != nil {
			return err
		}
	}
	if scheduled != 0 {
		if err := filter(part.AddScheduled(scheduled)); err != nil {
			return err
		}
	}
	d.attributes = d.attributes[:0]
	f = fieldsOf(message)
	for f.next() {
		var err error
		switch {
		case f.is(streamChunkRuns, bytesType):
			err = d.runs.decode(f.bytes, part)
		case f.is(streamEnd, bytesType):
			err = end.read(f.bytes, &d.attributes)
		}
		if err := filter(err); err != nil {
			return err
		}
	}
	if end.present {
		return filter(end.add(part, d.attributes))
	}
	return nil
}

type startMessage struct {
	assembly.Start
	present                       bool
	traceID, spanID, parentSpanID []byte
}

func (s *startMessage) read(message []byte, attributes *[]byte) error {
	s.present = true
	f := fieldsOf(message)
	for f.next() {
		switch {
		case f.is(startTime, fixed64Type):
			s.UnixNano = int64(min(f.number, math.MaxInt64))
		case f.is(startTraceID, bytesType):
			s.traceID = f.bytes
		case f.is(startSpanID, bytesType):
			s.spanID = f.bytes
		case f.is(startParentSpanID, bytesType):
			s.parentSpanID = f.bytes
		case f.is(startVantage, varintType):
			s.Vantage = timeline.Vantage(min(uint64(uint32(f.number)), math.MaxUint8))
		case f.is(startAttributes, bytesType):
			var err error
			if *attributes, err = appendKeyValue(*attributes, f.bytes); err != nil {
				return err
			}
		}
	}
	return f.truncated("start")
}

func (s *startMessage) add(part *assembly.Part, attributes, resource []byte) error {
	err := cmp.Or(
		copyID(s.TraceID[:], s.traceID, "trace_id"),
		copyID(s.SpanID[:], s.spanID, "span_id"),
		copyID(s.ParentSpanID[:], s.parentSpanID, "parent_span_id"),
		checkCount(attributes),
		checkCount(resource),
	)
	if err != nil {
		return err
	}
	return part.AddStart(s.Start, attributes, resource)
}

type endMessage struct {
	assembly.End
	present bool
}

func (e *endMessage) read(message []byte, attributes *[]byte) error {
	e.present = true
	f := fieldsOf(message)
	for f.next() {
		var err error
		switch {
		case f.is(endTime, fixed64Type):
			e.UnixNano = int64(min(f.number, math.MaxInt64))
		case f.is(endUsage, bytesType):
			err = readUsage(&e.Usage, f.bytes)
		case f.is(endFinish, bytesType):
			e.FinishReason, err = text(f.bytes, "finish_reason")
		case f.is(endError, bytesType):
			e.Error, err = text(f.bytes, "error")
		case f.is(endCancelled, varintType):
			e.Cancelled = f.number != 0
		case f.is(endInterrupt, varintType):
			e.Interrupted = f.number != 0
		case f.is(endAttribute, bytesType):
			*attributes, err = appendKeyValue(*attributes, f.bytes)
		}
		if err != nil {
			return err
		}
	}
	return f.truncated("end")
}

func (e *endMessage) add(part *assembly.Part, attributes []byte) error {
	if err := checkCount(attributes); err != nil {
		return err
	}
	return part.AddEnd(e.End, attributes)
}

func readUsage(usage *assembly.Usage, message []byte) error {
	f := fieldsOf(message)
	for f.next() {
		if f.kind == varintType {
			setUsage(usage, f.num, f.number)
		}
	}
	return f.truncated("usage")
}

func setUsage(usage *assembly.Usage, num protowire.Number, number uint64) {
	count := optional.Of(int64(min(number, math.MaxInt64)))
	switch num {
	case usageInput:
		usage.Input = count
	case usageOutput:
		usage.Output = count
	case usageReasoning:
		usage.Reasoning = count
	case usageCachedInput:
		usage.CachedInput = count
	case usageCacheWrite:
		usage.CacheWrite = count
	}
}
