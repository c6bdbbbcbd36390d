package tokenstreamreceiver

import (
	"bytes"
	"cmp"
	"context"
	"slices"

	"go.opentelemetry.io/collector/receiver/receiverhelper"

	"github.com/tokenpulse/tokenpulse/internal/assembly"
	"github.com/tokenpulse/tokenpulse/internal/wire"
)

// maxErrors bounds the errors listed in an answer.
const maxErrors = 10

// answer is what a client learns. Its numbers count lines of NDJSON, log records,
// and token_streams of the other formats.
type answer struct {
	Accepted int           `json:"accepted"`
	Rejected int           `json:"rejected"`
	Errors   []answerError `json:"errors,omitempty"`
}

type answerError struct {
	Line     int    `json:"line,omitempty"`
	StreamID string `json:"stream_id,omitempty"`
	Message  string `json:"message"`
	units    int
}

// list lists an error, or counts it if it is there already.
func (a *answer) list(e answerError) {
	for i := range a.Errors {
		same := &a.Errors[i]
		if same.Line == e.Line && same.StreamID == e.StreamID && same.Message == e.Message {
			same.units += e.units
			return
		}
	}
	if len(a.Errors) < maxErrors {
		a.Errors = append(a.Errors, e)
	}
}

// conclude lists what the request ended with, if need be in place of another.
func (a *answer) conclude(message string) {
	a.Errors = append(a.Errors[:min(len(a.Errors), maxErrors-1)], answerError{Message: message})
}

// request is one request under way: its batch, and what has been applied so far.
// It is reused for others, for its memory.
type request struct {
	intake   *intake
	report   *receiverhelper.ObsReport
	batch    *assembly.Batch
	protobuf wire.Protobuf
	ndjson   wire.NDJSON
	body     bytes.Buffer
	lines    *lineReader
	byEvent  bool // units are events: lines, or log records

	applied answer
	// pending is what of the batch was rejected as it was read. It does not
	// count before the batch does.
	pending  answer
	rejected map[assembly.Reason]int64
}

func newRequest(in *intake, maxLine int) *request {
	return &request{
		intake:   in,
		batch:    in.store.NewBatch(),
		lines:    newLineReader(maxLine),
		rejected: map[assembly.Reason]int64{},
	}
}

// keepBody bounds the memory that a request keeps for the next one's body.
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

// reject notes that a unit was rejected as it was read.
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
	r.pending.list(e)
}

// readProtobuf reads a request message into the batch, or returns why it cannot.
func (r *request) readProtobuf(message []byte) error {
	return r.protobuf.Decode(message, r.batch, r.reject)
}

// readLines reads the lines that are there into the batch.
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

// commit applies the batch whole and empties it, or returns a refusal.
func (r *request) commit(ctx context.Context) *refusal {
	if r.batch.Events() == 0 && r.pending.Rejected == 0 {
		return nil
	}
	tx, refused := r.intake.commit(ctx, r.report, r.batch)
	if refused != nil {
		return refused
	}
	accepted := tx.Units
	for _, rejection := range tx.Rejected {
		units := rejection.Units
		if rejection.Events > 0 {
			units = 0 // some chunks of a message are not the message
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

// apply makes what is pending count.
func (r *request) apply(ctx context.Context, accepted int) {
	slices.SortStableFunc(r.pending.Errors, func(a, b answerError) int { return cmp.Compare(a.Line, b.Line) })
	r.applied.Accepted += accepted
	r.applied.Rejected += r.pending.Rejected
	for _, e := range r.pending.Errors {
		r.applied.list(e)
	}
	r.pending = answer{}
	telemetry := r.intake.telemetry
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

// unreadable counts a body or message that cannot be read at all.
func (r *request) unreadable(ctx context.Context) {
	r.intake.telemetry.ReceiverTokenStreamEventsRejected.Add(ctx, 1, with("reason", string(assembly.Malformed)))
}
