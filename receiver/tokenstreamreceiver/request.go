// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokenstreamreceiver

import (
	"bytes"
	"cmp"
	"context"
	"slices"

	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"go.opentelemetry.io/collector/receiver/receiverhelper"

	"github.com/tokenpulse/tokenpulse/internal/assembly"
	"github.com/tokenpulse/tokenpulse/internal/wire"
)

// request is the state of one request: its decoders, its batch and its answer so far.
// Requests are pooled for their buffers.
type request struct {
	ingester     *ingester
	report       *receiverhelper.ObsReport
	batch        *assembly.Batch
	tokenStreams wire.TokenStreams
	ndjson       wire.NDJSON
	logs         wire.Logs
	body         bytes.Buffer
	lines        *lineReader
	byEvent      bool // units are events: lines or log records

	applied answer
	// pending is the units rejected while the batch was read. They count once the
	// batch is committed.
	pending  answer
	rejected map[assembly.Reason]int64
}

func newRequest(in *ingester, maxLine int) *request {
	return &request{
		ingester: in,
		batch:    in.store.NewBatch(),
		lines:    newLineReader(maxLine),
		rejected: map[assembly.Reason]int64{},
	}
}

// keepBody is the maximum size of a body buffer that the next request reuses.
const keepBody = 1 << 20

func (r *request) reset(report *receiverhelper.ObsReport, byEvent bool) {
	r.batch.Reset()
	if r.body.Cap() > keepBody {
		r.body = bytes.Buffer{}
	}
	r.report, r.byEvent = report, byEvent
	r.applied, r.pending = answer{}, answer{}
	clear(r.rejected)
}

// reject notes that a unit was rejected while it was read.
func (r *request) reject(line int, id string, err error) {
	r.rejectUnits(1, line, id, err)
}

// rejectUnits notes that units were rejected for the same reason.
func (r *request) rejectUnits(units, line int, id string, err error) {
	r.pending.Rejected += units
	r.rejected[assembly.ReasonOf(err)] += int64(units)
	e := answerError{Line: line, Message: err.Error(), units: units}
	if !r.byEvent {
		e.StreamID = id[:min(len(id), assembly.MaxIDBytes)]
	}
	r.pending.add(e)
}

// The functions below read a body into the batch. They return an error if they reject
// the whole body.

func (r *request) readProtobuf(message []byte) error {
	return r.tokenStreams.Decode(message, r.batch, r.reject)
}

func (r *request) readJSON(body []byte) error {
	message, err := wire.JSONToProtobuf(body)
	if err != nil {
		return err
	}
	return r.readProtobuf(message)
}

func (r *request) readLogsProtobuf(message []byte) error {
	return r.logs.Decode(message, r.batch, r.reject)
}

// readLogsJSON converts OTLP/JSON to protobuf, so that there is one decoder of logs.
// Errors of the conversion may quote the body and are not passed on.
func (r *request) readLogsJSON(body []byte) error {
	if err := wire.CheckLogsJSON(body); err != nil {
		return err
	}
	export := plogotlp.NewExportRequest()
	if export.UnmarshalJSON(body) != nil {
		return wire.ErrNotLogs
	}
	message, err := export.MarshalProto()
	if err != nil {
		return wire.ErrNotLogs
	}
	return r.readLogsProtobuf(message)
}

// readLines reads the available lines into the batch.
func (r *request) readLines() {
	for {
		line, ok := r.lines.next()
		if !ok {
			return
		}
		if line == nil {
			r.reject(r.lines.number, "", assembly.Errorf(assembly.Limit,
				"the line is longer than %d bytes (max_event_bytes)", r.lines.longest))
			continue
		}
		if err := r.ndjson.Decode(line, r.lines.number, r.batch); err != nil {
			r.reject(r.lines.number, "", err)
		}
	}
}

// commit applies the whole batch and empties it, or returns a refusal.
func (r *request) commit(ctx context.Context) *refusal {
	if r.batch.Events() == 0 && r.pending.Rejected == 0 {
		return nil
	}
	tx, refused := r.ingester.commit(ctx, r.report, r.batch)
	if refused != nil {
		return refused
	}
	accepted := tx.Units
	for _, rejection := range tx.Rejected {
		units := rejection.Units
		if rejection.Events > 0 {
			units = 0 // a message counts as accepted if only some of its chunks are rejected
			if r.byEvent {
				units = rejection.Events
				accepted -= units
			}
		}
		r.rejectUnits(units, rejection.Line, rejection.ID, rejection.Err)
	}
	r.apply(ctx, accepted)
	r.batch.Reset()
	return nil
}

// apply adds the pending units to the answer and the self-metrics.
func (r *request) apply(ctx context.Context, accepted int) {
	slices.SortStableFunc(r.pending.Errors, func(a, b answerError) int { return cmp.Compare(a.Line, b.Line) })
	r.applied.Accepted += accepted
	r.applied.Rejected += r.pending.Rejected
	for _, e := range r.pending.Errors {
		r.applied.add(e)
	}
	r.pending = answer{}
	telemetry := r.ingester.telemetry
	if accepted > 0 {
		telemetry.ReceiverTokenStreamEventsAccepted.Add(ctx, int64(accepted))
	}
	for reason, n := range r.rejected {
		if n > 0 {
			telemetry.ReceiverTokenStreamEventsRejected.Add(ctx, n, with("reason", string(reason)))
		}
	}
	clear(r.rejected)
}

// unreadable counts a body or message that cannot be read.
func (r *request) unreadable(ctx context.Context) {
	r.ingester.telemetry.ReceiverTokenStreamEventsRejected.Add(ctx, 1, with("reason", string(assembly.Malformed)))
}
