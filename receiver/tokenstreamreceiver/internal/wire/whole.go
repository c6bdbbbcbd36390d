// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/tokenpulse/tokenpulse/internal/outcome"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/assembly"
)

// ReadWhole reads a token_stream that is a whole stream in the usual form: a start, then at most
// one run of chunks of one token each, in microseconds and without sequence numbers, and an end
// with a time. It reports false for every other one, which TokenStreams decodes.
//
// The attributes are not checked: see Whole.Attributes.
func ReadWhole(message, resource []byte, w *assembly.Whole) bool {
	var start, end, run bool
	*w = assembly.Whole{}
	w.Message, w.Resource = message, resource
	r := usualFields{rest: message}
	for {
		ok := false
		switch r.tag() {
		case streamID<<3 | bytesType:
			ok = w.ID == nil
			w.ID = r.bytes()
			ok = ok && utf8.Valid(w.ID)
		case streamStart<<3 | bytesType:
			ok = !start && readWholeStart(r.bytes(), w)
			start = true
		case streamScheduled<<3 | fixed64Type:
			ok = w.Scheduled == 0
			w.Scheduled = int64(r.fixed64())
		case streamChunkRuns<<3 | bytesType:
			ok = start && !run && readWholeRun(r.bytes(), w)
			run = true
		case streamEnd<<3 | bytesType:
			ok = !end && readWholeEnd(r.bytes(), w)
			end = true
		case noTag:
			return r.complete() && start && end
		}
		if !ok {
			return false
		}
	}
}

func readWholeStart(message []byte, w *assembly.Whole) bool {
	r := usualFields{rest: message}
	for {
		ok, at := true, r.rest
		switch r.tag() {
		case startTime<<3 | fixed64Type:
			w.Start.UnixNano = int64(r.fixed64())
		case startTraceID<<3 | bytesType:
			ok = readID(w.Start.TraceID[:], r.bytes())
		case startSpanID<<3 | bytesType:
			ok = readID(w.Start.SpanID[:], r.bytes())
		case startParentSpanID<<3 | bytesType:
			ok = readID(w.Start.ParentSpanID[:], r.bytes())
		case startVantage<<3 | varintType:
			number := r.varint()
			ok = number <= uint64(timeline.VantageEngine)
			w.Start.Vantage = timeline.Vantage(number)
		case startAttributes<<3 | bytesType:
			w.Attributes = at
			return true
		case noTag:
			return r.complete()
		default:
			return false
		}
		if !ok {
			return false
		}
	}
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
	r := usualFields{rest: message}
	for {
		switch r.tag() {
		case runChannel<<3 | varintType:
			channel = r.varint()
		case runTime<<3 | fixed64Type:
			w.FirstChunk = int64(r.fixed64())
		case runUnit<<3 | varintType:
			unit = r.varint()
		case runDeltas<<3 | bytesType:
			if w.Gaps != nil {
				return false
			}
			w.Gaps = r.bytes()
		case noTag:
			w.Chunks = len(w.Gaps) // counted by Batch.Accepts
			w.Channel = timeline.Channel(channel & 0xff)
			return r.complete() && unit == uint64(timeline.Tick) && channel <= uint64(timeline.ToolCall) && len(w.Gaps) > 0
		default:
			return false
		}
	}
}

func readWholeEnd(message []byte, w *assembly.Whole) bool {
	var finish, failure bool
	r := usualFields{rest: message}
	for {
		ok, at := true, r.rest
		switch r.tag() {
		case endTime<<3 | fixed64Type:
			w.End.UnixNano = int64(r.fixed64())
		case endUsage<<3 | bytesType:
			ok = readWholeUsage(r.bytes(), &w.End.Usage)
		case endFinish<<3 | bytesType:
			text := r.bytes()
			ok = !finish && utf8.Valid(text) && outcome.MeaningOf(string(text)) <= outcome.Filtered
			finish = true
			w.End.Text += len(text)
		case endError<<3 | bytesType:
			text := r.bytes()
			ok = !failure && utf8.Valid(text)
			failure = true
			w.End.Text += len(text)
			w.End.Failed = len(text) > 0
		case endCancelled<<3 | varintType:
			w.End.Cancelled = r.varint() != 0
		case endAttribute<<3 | bytesType:
			w.EndAttributes = at
			return true
		case noTag:
			return r.complete()
		default:
			return false
		}
		if !ok {
			return false
		}
	}
}

func readWholeUsage(message []byte, usage *assembly.Usage) bool {
	r := usualFields{rest: message}
	for {
		switch tag := r.tag(); tag {
		case usageInput<<3 | varintType, usageOutput<<3 | varintType, usageReasoning<<3 | varintType,
			usageCachedInput<<3 | varintType, usageCacheWrite<<3 | varintType:
			setUsage(usage, protowire.Number(tag>>3), r.varint())
		case noTag:
			return r.complete()
		default:
			return false
		}
	}
}

// StreamID returns the ID of a token_stream, or nil if it has none.
func StreamID(message []byte) (id []byte) {
	f := fieldsOf(message)
	for f.next() {
		if f.is(streamID, bytesType) {
			id = f.bytes
		}
	}
	return id
}
