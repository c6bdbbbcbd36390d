// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/tokenpulse/tokenpulse/internal/assembly"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
	"github.com/tokenpulse/tokenpulse/internal/vantage"
)

// ReadWhole reads a token_stream that is a whole stream in the usual form: a start, then at most
// one run of chunks of one token each, in microseconds and without sequence numbers, and an end
// with a time. It reports false for every other one, which TokenStreams decodes.
//
// The attributes are not checked: see Whole.Attributes.
func ReadWhole(message []byte, w *assembly.Whole) bool {
	var start, end, run bool
	*w = assembly.Whole{Message: message, Resource: w.Resource}
	for f := range fields(&message) {
		ok := false
		switch {
		case f.is(streamID, protowire.BytesType):
			ok = w.ID == nil && utf8.Valid(f.bytes)
			w.ID = f.bytes
		case f.is(streamStart, protowire.BytesType):
			ok = !start && readWholeStart(f.bytes, w)
			start = true
		case f.is(streamScheduled, protowire.Fixed64Type):
			ok = w.Scheduled == 0
			w.Scheduled = int64(f.number)
		case f.is(streamChunkRuns, protowire.BytesType):
			ok = start && !run && readWholeRun(f.bytes, w)
			run = true
		case f.is(streamEnd, protowire.BytesType):
			ok = !end && readWholeEnd(f.bytes, w)
			end = true
		}
		if !ok {
			return false
		}
	}
	return len(message) == 0 && start && end
}

func readWholeStart(message []byte, w *assembly.Whole) bool {
	for len(message) > 0 {
		rest := message // its own statement: Go may evaluate a call before a variable beside it
		f := firstField(&message)
		ok := false
		switch {
		case f.is(startTime, protowire.Fixed64Type):
			w.Start.UnixNano, ok = int64(f.number), true
		case f.is(startTraceID, protowire.BytesType):
			ok = readID(w.Start.TraceID[:], f.bytes)
		case f.is(startSpanID, protowire.BytesType):
			ok = readID(w.Start.SpanID[:], f.bytes)
		case f.is(startParentSpanID, protowire.BytesType):
			ok = readID(w.Start.ParentSpanID[:], f.bytes)
		case f.is(startVantage, protowire.VarintType):
			ok = f.number <= uint64(vantage.Engine)
			w.Start.Vantage = vantage.Vantage(f.number)
		case f.is(startAttributes, protowire.BytesType):
			w.Attributes = rest
			return onlyAttributes(rest, startAttributes)
		}
		if !ok {
			return false
		}
	}
	return true
}

// onlyAttributes reports whether a message consists of a repeated field.
func onlyAttributes(message []byte, num protowire.Number) bool {
	for f := range fields(&message) {
		if !f.is(num, protowire.BytesType) {
			return false
		}
	}
	return len(message) == 0
}

// readID reads an ID that is set once.
func readID(into, id []byte) bool {
	if len(id) != len(into) || !isZero(into) || isZero(id) {
		return false
	}
	copy(into, id)
	return true
}

func readWholeRun(message []byte, w *assembly.Whole) bool {
	var unit, channel uint64
	var deltas []byte
	for f := range fields(&message) {
		switch {
		case f.is(runChannel, protowire.VarintType):
			channel = f.number
		case f.is(runTime, protowire.Fixed64Type):
			w.FirstChunk = int64(f.number)
		case f.is(runUnit, protowire.VarintType):
			unit = f.number
		case f.is(runDeltas, protowire.BytesType) && deltas == nil:
			deltas = f.bytes
		default:
			return false
		}
	}
	w.Gaps, w.Channel = deltas, timeline.Channel(channel&0xff)
	w.Chunks = len(deltas) // counted by Batch.Accepts
	return len(message) == 0 && unit == uint64(timeline.Tick) && channel <= uint64(timeline.ToolCall) && len(deltas) > 0
}

func readWholeEnd(message []byte, w *assembly.Whole) bool {
	var finish, failure bool
	for len(message) > 0 {
		rest := message
		f := firstField(&message)
		ok := false
		switch {
		case f.is(endTime, protowire.Fixed64Type):
			w.End.UnixNano, ok = int64(f.number), true
		case f.is(endUsage, protowire.BytesType):
			ok = readUsage(&w.End.Usage, f.bytes) == nil
		case f.is(endFinish, protowire.BytesType):
			ok = !finish && utf8.Valid(f.bytes)
			finish = true
			w.End.Text += len(f.bytes)
		case f.is(endError, protowire.BytesType):
			ok = !failure && utf8.Valid(f.bytes)
			failure = true
			w.End.Text += len(f.bytes)
			w.End.Failed = len(f.bytes) > 0
		case f.is(endCancelled, protowire.VarintType):
			w.End.Cancelled, ok = f.number != 0, true
		case f.is(endAttribute, protowire.BytesType):
			w.EndAttributes = rest
			return onlyAttributes(rest, endAttribute)
		}
		if !ok {
			return false
		}
	}
	return true
}

// AppendAttributes appends attributes of a whole stream to a KeyValueList, in the form in which
// a part has them. It reports false if they are not valid.
func AppendAttributes(list, attributes []byte) (_ []byte, ok bool) {
	before := len(list)
	for f := range fields(&attributes) {
		var err error
		if list, err = appendKeyValue(list, f.bytes); err != nil {
			return list, false
		}
	}
	return list, len(attributes) == 0 && checkCount(list[before:]) == nil
}

// CheckAttributes returns an error if a well-formed KeyValueList has too many attributes.
func CheckAttributes(list []byte) error { return checkCount(list) }

// StreamID returns the ID of a token_stream, or nil if it has none.
func StreamID(message []byte) (id []byte) {
	for f := range fields(&message) {
		if f.is(streamID, protowire.BytesType) {
			id = f.bytes
		}
	}
	return id
}
