// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokenstreamreceiver

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/receiver/receiverhelper"

	"github.com/tokenpulse/tokenpulse/internal/diagnostics"
	"github.com/tokenpulse/tokenpulse/internal/httpguard"
	"github.com/tokenpulse/tokenpulse/internal/judge"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/assembly"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/latencyreport"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/metadata"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/streamseries"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/streamspan"
)

// ingester applies batches to the store. It sends the streams that they finish to a traces
// pipeline as spans, and adds them to the series of a metrics pipeline.
type ingester struct {
	store     *assembly.Store
	next      consumer.Traces        // nil without a traces pipeline
	selection *streamspan.Selection  // nil without a metrics pipeline
	series    *streamseries.Recorder // nil without a metrics pipeline
	telemetry *metadata.TelemetryBuilder
	reporter  *latencyreport.Reporter
	now       func() time.Duration // the clock of the store
	storageID *component.ID        // nil without a storage
	makers    sync.Pool            // of *streamspan.Maker
	// unapplied warns of SLOs that apply to no stream. It is nil without SLOs.
	unapplied *judge.Unapplied

	// refusedUntil is the time until which no streams are opened, because the pipeline
	// has refused others. It is 0 once the pipeline accepts streams.
	refusedUntil atomic.Int64
}

// refusalHold is how long no streams are opened after a refusal of the pipeline. It is
// longer while expired streams wait for a retry: see expirer.
const refusalHold = 5 * time.Second

// commit applies the whole batch, or nothing of it and returns a refusal.
func (in *ingester) commit(ctx context.Context, report *receiverhelper.ObsReport, batch *assembly.Batch) (*assembly.Transaction, *refusal) {
	if batch.HasStarts() {
		batch.Client = httpguard.ClientOf(ctx)
		batch.RefuseStarts = in.now() < time.Duration(in.refusedUntil.Load())
	}
	tx, err := in.store.Begin(ctx, batch)
	if refused := in.memoryRefusal(ctx, err); refused != nil {
		return nil, refused
	}
	var failed *assembly.StorageError
	if errors.As(err, &failed) {
		return nil, in.notStored(ctx)
	}
	if err != nil {
		return nil, errCancelled
	}
	spans, err := in.deliver(ctx, report, tx.Finished)
	if err != nil {
		tx.Rollback()
		return nil, pipelineRefusal(err)
	}
	if tx.Commit() != nil { // a StorageError
		return nil, in.notStored(ctx)
	}
	in.finish(ctx, tx.Finished, spans)
	return tx, nil
}

// deliver sends the spans of finished streams to the traces pipeline, if there is one. It returns
// their IDs by stream.
func (in *ingester) deliver(ctx context.Context, report *receiverhelper.ObsReport, finished []assembly.Finished) ([]streamspan.ID, error) {
	if len(finished) == 0 || in.next == nil {
		return nil, nil
	}
	var latencies *latencyreport.Tally // nil if the series report the latencies
	if in.series == nil {
		latencies = new(latencyreport.Tally)
	}
	spans := in.makeSpans(finished, latencies)
	if spans.Count == 0 {
		return nil, nil
	}
	operation := report.StartTracesOp(ctx)
	err := in.next.ConsumeTraces(operation, spans.Traces)
	report.EndTracesOp(operation, metadata.Type.String(), spans.Count, err)
	switch {
	case err == nil:
		if in.series == nil { // otherwise the series count them
			in.telemetry.ReceiverTokenStreamAttributesRemoved.Add(ctx, int64(spans.Removed))
			in.reporter.Report(ctx, latencies)
		}
		if in.refusedUntil.Load() != 0 { // usually not, and a store would contend
			in.refusedUntil.Store(0)
		}
	case consumererror.IsPermanent(err):
	case ctx.Err() == nil: // not because the client has disconnected
		in.refuseStarts(in.now() + refusalHold)
	}
	return spans.IDs, err
}

func (in *ingester) makeSpans(finished []assembly.Finished, latencies *latencyreport.Tally) streamspan.Made {
	maker := in.makers.Get().(*streamspan.Maker)
	defer in.makers.Put(maker)
	return maker.Make(finished, latencies)
}

// refuseStarts refuses to open streams until a time, or until the pipeline accepts some.
func (in *ingester) refuseStarts(until time.Duration) {
	if int64(until) > in.refusedUntil.Load() {
		in.refusedUntil.Store(int64(until))
	}
}

// finish adds streams to their series and counts them. It is called after the finished streams are
// delivered as spans and their transaction is committed. spans is nil if no span was sent.
func (in *ingester) finish(ctx context.Context, finished []assembly.Finished, spans []streamspan.ID) {
	if len(finished) == 0 {
		return
	}
	if in.series != nil {
		removed := in.series.Record(ctx, finished, spans)
		in.telemetry.ReceiverTokenStreamAttributesRemoved.Add(ctx, int64(removed))
	}
	if in.unapplied != nil {
		in.unapplied.Inspect()
	}
	in.count(ctx, finished)
}

func (in *ingester) count(ctx context.Context, finished []assembly.Finished) {
	var dropped, duplicates, events int64
	ended := map[string]int64{} // by outcome
	for _, stream := range finished {
		result, _ := stream.Outcome()
		ended[result]++
		dropped += int64(stream.Dropped())
		duplicates += int64(stream.Duplicates())
		events += int64(stream.Accepted)
	}
	for outcome, n := range ended {
		in.telemetry.ReceiverTokenStreamStreamsFinished.Add(ctx, n, diagnostics.Label("outcome", outcome))
	}
	in.telemetry.ReceiverTokenStreamChunksDropped.Add(ctx, dropped)
	in.telemetry.ReceiverTokenStreamDuplicatesDropped.Add(ctx, duplicates)
	in.telemetry.ReceiverTokenStreamEventsFinished.Add(ctx, events)
}

// lost counts streams that are not sent to the pipeline again.
func (in *ingester) lost(ctx context.Context, streams []assembly.Finished, cause string) {
	var events int64
	for _, stream := range streams {
		events += int64(stream.Accepted)
	}
	in.telemetry.ReceiverTokenStreamEventsLost.Add(ctx, events, diagnostics.Label("cause", cause))
	in.telemetry.ReceiverTokenStreamStreamsLost.Add(ctx, int64(len(streams)), diagnostics.Label("cause", cause))
}
