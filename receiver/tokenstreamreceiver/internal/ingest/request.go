// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package ingest

import (
	"bytes"
	"context"
	"fmt"
	"net/http"

	"go.opentelemetry.io/collector/receiver/receiverhelper"
	"google.golang.org/grpc/codes"

	"github.com/tokenpulse/tokenpulse/internal/diagnostics"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/assembly"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/wire"
)

// Request decodes and commits one message, or lines of a body. Requests are pooled for
// their buffers and are in use only while they have data: bodies and calls that wait for
// more hold none.
type Request struct {
	ingester     *Ingester
	report       *receiverhelper.ObsReport
	batch        *assembly.Batch
	tokenStreams wire.TokenStreams
	ndjson       wire.NDJSON
	Memory       Reservation
	byEvent      bool // units are events: lines

	applied *Answer // of the body or call
	// pending is the units rejected while the batch was read. They count once the
	// batch is committed.
	pending  Answer
	rejected map[assembly.Reason]int64
}

func newRequest(in *Ingester) *Request {
	r := &Request{
		ingester: in,
		batch:    in.Store.NewBatch(),
		Memory:   Reservation{Store: in.Store},
		rejected: map[assembly.Reason]int64{},
	}
	r.batch.LimitMemory(r.Memory.Add)
	return r
}

// Take returns a request from the pool, whose units add to applied. They are lines if byEvent is set.
func (in *Ingester) Take(report *receiverhelper.ObsReport, byEvent bool, applied *Answer) *Request {
	r := in.requests.Get().(*Request)
	r.reset(report, byEvent, applied)
	return r
}

// Put returns a request to the pool.
func (in *Ingester) Put(r *Request) {
	r.applied = nil
	r.Memory.Free()
	in.requests.Put(r)
}

// reset begins a message, or more lines of a body, whose answer so far is applied.
func (r *Request) reset(report *receiverhelper.ObsReport, byEvent bool, applied *Answer) {
	r.batch.Reset()
	r.report, r.byEvent = report, byEvent
	r.applied, r.pending = applied, Answer{}
	clear(r.rejected)
}

// reject notes that a unit was rejected while it was read.
func (r *Request) reject(position int, id string, err error) {
	r.rejectUnits(1, position, id, err)
}

// rejectUnits notes that units were rejected for the same reason.
func (r *Request) rejectUnits(units, position int, id string, err error) {
	r.pending.Rejected += units
	r.rejected[assembly.ReasonOf(err)] += int64(units)
	e := AnswerError{Message: err.Error(), position: position}
	if r.byEvent {
		e.Line = position
	} else {
		e.StreamID = id[:min(len(id), assembly.MaxIDBytes)]
	}
	r.pending.add(e)
}

// Bytes of memory that a body takes while it is decoded and applied, besides itself and
// what its streams take. Measured: 3.6 per byte of token streams in protobuf, whose
// chunks are packed already, 0.2 per byte of NDJSON, and 7 if the body
// consists of empty attributes.
const (
	memoryPerPackedByte = 4 // of protobuf
	memoryPerLineByte   = 1 // of NDJSON
	memoryPerJSONByte   = 4 // while JSON is converted to protobuf
	memoryPerJSONValue  = 256
)

// largeMessage is the size in bytes from which messages wait for a CPU before they are
// decoded. If all were decoded at the same time, each would get a part of the memory that
// it needs, and all would be refused.
const largeMessage = 64 << 10

// The functions below read a body into the batch. They return an error if they reject
// the whole body.

// Read reads a message into the batch with ReadProtobuf or ReadJSON.
func (r *Request) Read(message []byte, read func(*Request, []byte) error) error {
	if len(message) >= largeMessage {
		r.ingester.decoding <- struct{}{}
		defer func() { <-r.ingester.decoding }()
	}
	return read(r, message)
}

// ReadProtobuf reads a message of protobuf.
func (r *Request) ReadProtobuf(message []byte) error {
	if err := r.Memory.Add(memoryPerPackedByte * int64(len(message))); err != nil {
		return err
	}
	return r.tokenStreams.Decode(message, r.batch, r.reject)
}

// ReadJSON reads the JSON mapping of a message.
func (r *Request) ReadJSON(body []byte) error {
	if err := r.reserveJSON(body); err != nil {
		return err
	}
	message, err := wire.JSONToProtobuf(body)
	if err != nil {
		return err
	}
	return r.ReadProtobuf(message)
}

// reserveJSON reserves the memory for converting a body to protobuf.
func (r *Request) reserveJSON(body []byte) error {
	values := bytes.Count(body, []byte{'{'}) + bytes.Count(body, []byte("null"))
	return r.Memory.Add(memoryPerJSONByte*int64(len(body)) + memoryPerJSONValue*int64(values))
}

// maxRejectedLines is the number of lines in a row after which a body of rejected lines
// is not read any further.
const maxRejectedLines = 1000

var errRejectedLines = &Refusal{http.StatusBadRequest, codes.InvalidArgument, false, fmt.Sprintf(
	"%d lines in a row were rejected, so the rest of the body was not read; fix the lines named above", maxRejectedLines)}

// ReserveLines reserves the memory for the lines that arrived last.
func (r *Request) ReserveLines(lines *LineReader) error {
	return r.Memory.Add(memoryPerLineByte * int64(lines.arrived))
}

// ReadLines reads the available lines into the batch. It returns errRejectedLines after
// too many rejected ones.
func (r *Request) ReadLines(lines *LineReader) *Refusal {
	for {
		line, ok := lines.next()
		if !ok {
			return nil
		}
		var err error
		if line == nil {
			err = assembly.Errorf(assembly.Limit, "the line is longer than %d bytes (max_event_bytes); send less in one event, or raise max_event_bytes", lines.longest)
		} else {
			err = r.ndjson.Decode(line, lines.number, r.batch)
		}
		if err == nil {
			lines.rejected = 0
			continue
		}
		r.reject(lines.number, "", err)
		if lines.rejected++; lines.rejected >= maxRejectedLines {
			return errRejectedLines
		}
	}
}

// IsEmpty reports whether nothing was read since the last commit.
func (r *Request) IsEmpty() bool {
	return r.batch.Events() == 0 && r.pending.Rejected == 0
}

// CommitRead commits a message. err is that of reading it, which counts as unreadable.
func (r *Request) CommitRead(ctx context.Context, err error) *Refusal {
	if err == nil {
		return r.Commit(ctx)
	}
	if refused := r.ingester.MemoryRefusal(ctx, err); refused != nil {
		return refused
	}
	r.ingester.Unreadable(ctx, assembly.Malformed)
	if assembly.ReasonOf(err) == assembly.Limit {
		return &Refusal{http.StatusRequestEntityTooLarge, codes.ResourceExhausted, false, err.Error()}
	}
	return &Refusal{http.StatusBadRequest, codes.InvalidArgument, false, err.Error()}
}

// Commit applies the whole batch and empties it, or returns a refusal.
func (r *Request) Commit(ctx context.Context) *Refusal {
	if r.IsEmpty() {
		return nil
	}
	r.batch.ByEvent = r.byEvent
	tx, refused := r.ingester.commit(ctx, r.report, r.batch)
	if refused != nil {
		return refused
	}
	for _, rejection := range tx.Rejected {
		r.rejectUnits(rejection.Units, rejection.Line, rejection.ID, rejection.Err)
	}
	r.apply(ctx, tx.Units)
	r.batch.Reset()
	return nil
}

// apply adds the pending units to the answer and the self-metrics.
func (r *Request) apply(ctx context.Context, accepted int) {
	r.applied.Accepted += accepted
	r.applied.Rejected += r.pending.Rejected
	for _, e := range r.pending.Errors {
		e.position = 0 // the next message begins again
		r.applied.add(e)
	}
	r.pending = Answer{}
	telemetry := r.ingester.Telemetry
	if accepted > 0 {
		telemetry.ReceiverTokenStreamEventsAccepted.Add(ctx, int64(accepted))
	}
	for reason, n := range r.rejected {
		if n > 0 {
			telemetry.ReceiverTokenStreamEventsRejected.Add(ctx, n, diagnostics.Label("reason", string(reason)))
		}
	}
	clear(r.rejected)
}
