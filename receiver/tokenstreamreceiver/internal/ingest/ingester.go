// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Package ingest applies messages and lines to the open streams, and sends finished and expired streams on.
package ingest

import (
	"context"
	"errors"
	"runtime"
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

// Settings has what an Ingester works with. Pipelines are set before the first request.
type Settings struct {
	Store     *assembly.Store
	Telemetry *metadata.TelemetryBuilder
	Reporter  *latencyreport.Reporter
	Now       func() time.Duration // the clock of the store
	StorageID *component.ID        // nil without a storage

	Next   consumer.Traces        // nil without a traces pipeline
	Spans  streamspan.Settings    // of the spans for Next
	Series *streamseries.Recorder // nil without a metrics pipeline
	Cold   *ColdStarts            // of the streams for both, nil if off
	// Unapplied warns of SLOs that apply to no stream. It is nil without SLOs.
	Unapplied *judge.Unapplied
}

// Ingester applies batches to the store. It sends the streams that they finish to a traces
// pipeline as spans, and adds them to the series of a metrics pipeline.
type Ingester struct {
	Settings

	makers   sync.Pool // of *streamspan.Maker
	requests sync.Pool // of *Request
	// decoding is full when each CPU decodes a large message.
	decoding chan struct{}

	// refusedUntil is the time until which no streams are opened, because the pipeline
	// has refused others. It is 0 once the pipeline accepts streams.
	refusedUntil atomic.Int64
}

// New returns an ingester.
func New(settings *Settings) *Ingester {
	in := &Ingester{Settings: *settings, decoding: make(chan struct{}, runtime.GOMAXPROCS(0))}
	in.makers.New = func() any { return streamspan.New(&in.Spans) }
	in.requests.New = func() any { return newRequest(in) }
	return in
}

// refusalHold is how long no streams are opened after a refusal of the pipeline. It is
// longer while expired streams wait for a retry: see Expirer.
const refusalHold = 5 * time.Second

// commit applies the whole batch, or nothing of it and returns a refusal.
func (in *Ingester) commit(ctx context.Context, report *receiverhelper.ObsReport, batch *assembly.Batch) (*assembly.Transaction, *Refusal) {
	if batch.HasStarts() {
		batch.Client = httpguard.ClientOf(ctx)
		batch.RefuseStarts = in.Now() < time.Duration(in.refusedUntil.Load())
	}
	tx, err := in.Store.Begin(ctx, batch)
	if refused := in.MemoryRefusal(ctx, err); refused != nil {
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

// deliver decides which finished streams are cold, and sends the spans of all to the traces pipeline, if there is one. It
// returns their IDs by stream.
func (in *Ingester) deliver(ctx context.Context, report *receiverhelper.ObsReport, finished []assembly.Finished) ([]streamspan.ID, error) {
	in.Cold.decide(finished)
	if len(finished) == 0 || in.Next == nil {
		return nil, nil
	}
	var latencies *latencyreport.Tally // nil if the series report the latencies
	if in.Series == nil {
		latencies = new(latencyreport.Tally)
	}
	spans := in.makeSpans(finished, latencies)
	if spans.Count == 0 {
		return nil, nil
	}
	operation := report.StartTracesOp(ctx)
	err := in.Next.ConsumeTraces(operation, spans.Traces)
	report.EndTracesOp(operation, metadata.Type.String(), spans.Count, err)
	switch {
	case err == nil:
		if in.Series == nil { // otherwise the series count them
			in.Telemetry.ReceiverTokenStreamAttributesRemoved.Add(ctx, int64(spans.Removed))
			in.Reporter.Report(ctx, latencies)
		}
		if in.refusedUntil.Load() != 0 { // usually not, and a store would contend
			in.refusedUntil.Store(0)
		}
	case consumererror.IsPermanent(err):
	case ctx.Err() == nil: // not because the client has disconnected
		in.refuseStarts(in.Now() + refusalHold)
	}
	return spans.IDs, err
}

func (in *Ingester) makeSpans(finished []assembly.Finished, latencies *latencyreport.Tally) streamspan.Made {
	maker := in.makers.Get().(*streamspan.Maker)
	defer in.makers.Put(maker)
	return maker.Make(finished, latencies)
}

// refuseStarts refuses to open streams until a time, or until the pipeline accepts some.
func (in *Ingester) refuseStarts(until time.Duration) {
	if int64(until) > in.refusedUntil.Load() {
		in.refusedUntil.Store(int64(until))
	}
}

// finish adds streams to their series and counts them. It is called after the finished streams are
// delivered as spans and their transaction is committed. spans is nil if no span was sent.
func (in *Ingester) finish(ctx context.Context, finished []assembly.Finished, spans []streamspan.ID) {
	if len(finished) == 0 {
		return
	}
	if in.Series != nil {
		removed := in.Series.Record(ctx, finished, spans)
		in.Telemetry.ReceiverTokenStreamAttributesRemoved.Add(ctx, int64(removed))
	}
	if in.Unapplied != nil {
		in.Unapplied.Inspect()
	}
	in.count(ctx, finished)
}

func (in *Ingester) count(ctx context.Context, finished []assembly.Finished) {
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
		in.Telemetry.ReceiverTokenStreamStreamsFinished.Add(ctx, n, diagnostics.Label("outcome", outcome))
	}
	in.Telemetry.ReceiverTokenStreamChunksDropped.Add(ctx, dropped)
	in.Telemetry.ReceiverTokenStreamDuplicatesDropped.Add(ctx, duplicates)
	in.Telemetry.ReceiverTokenStreamEventsFinished.Add(ctx, events)
}

// lost counts streams that are not sent to the pipeline again.
func (in *Ingester) lost(ctx context.Context, streams []assembly.Finished, cause string) {
	var events int64
	for _, stream := range streams {
		events += int64(stream.Accepted)
	}
	in.Telemetry.ReceiverTokenStreamEventsLost.Add(ctx, events, diagnostics.Label("cause", cause))
	in.Telemetry.ReceiverTokenStreamStreamsLost.Add(ctx, int64(len(streams)), diagnostics.Label("cause", cause))
}
