// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokenstreamreceiver

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/receiver/receiverhelper"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"google.golang.org/grpc/codes"

	"github.com/tokenpulse/tokenpulse/internal/assembly"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/metadata"
)

// ingester applies batches to the store and sends the streams that they finish to the
// pipeline as spans.
type ingester struct {
	store     *assembly.Store
	next      consumer.Traces
	telemetry *metadata.TelemetryBuilder
}

// commit applies the whole batch, or nothing of it and returns a refusal.
func (in *ingester) commit(ctx context.Context, report *receiverhelper.ObsReport, batch *assembly.Batch) (*assembly.Transaction, *refusal) {
	tx, err := in.store.Begin(ctx, batch)
	if full, ok := errors.AsType[*assembly.FullError](err); ok {
		return nil, in.full(ctx, full)
	}
	if assembly.ReasonOf(err) == assembly.Limit {
		in.telemetry.ReceiverTokenStreamEventsRejected.Add(ctx, 1, with("reason", string(assembly.Limit)))
		return nil, &refusal{http.StatusRequestEntityTooLarge, codes.ResourceExhausted, false, err.Error()}
	}
	if err != nil {
		return nil, errCanceled
	}
	if err := in.deliver(ctx, report, tx.Finished); err != nil {
		tx.Rollback()
		return nil, pipelineRefusal(err)
	}
	tx.Commit()
	return tx, nil
}

// deliver sends finished streams to the pipeline.
func (in *ingester) deliver(ctx context.Context, report *receiverhelper.ObsReport, finished []assembly.Finished) error {
	if len(finished) == 0 {
		return nil
	}
	traces := toTraces(finished)
	operation := report.StartTracesOp(ctx)
	err := in.next.ConsumeTraces(operation, traces)
	report.EndTracesOp(operation, metadata.Type.String(), len(finished), err)
	if err == nil {
		in.count(ctx, finished)
	}
	return err
}

func (in *ingester) count(ctx context.Context, finished []assembly.Finished) {
	var dropped, duplicates int64
	outcomes := map[string]int64{}
	for _, stream := range finished {
		outcomes[outcomeOf(stream.End)]++
		dropped += int64(stream.Dropped())
		duplicates += int64(stream.Duplicates())
	}
	for outcome, n := range outcomes {
		in.telemetry.ReceiverTokenStreamStreamsFinished.Add(ctx, n, with("outcome", outcome))
	}
	in.telemetry.ReceiverTokenStreamChunksDropped.Add(ctx, dropped)
	in.telemetry.ReceiverTokenStreamDuplicatesDropped.Add(ctx, duplicates)
}

// expireBatch is the maximum number of streams that expire in one call of the
// pipeline.
const expireBatch = 1000

// expire sends the streams that have been idle for so long to the pipeline, as
// incomplete. They stay open if the pipeline temporarily refuses them, which is an
// error.
func (in *ingester) expire(ctx context.Context, report *receiverhelper.ObsReport, idle time.Duration) error {
	for {
		tx := in.store.Expire(idle, expireBatch)
		err := in.deliver(ctx, report, tx.Finished)
		switch {
		case err == nil:
			tx.Commit()
		case consumererror.IsPermanent(err):
			tx.Commit()
			in.lost(ctx, int64(len(tx.Finished)), "permanent_error")
		default:
			tx.Rollback()
			return fmt.Errorf("the pipeline temporarily refuses %d expired streams: %w", len(tx.Finished), err)
		}
		if len(tx.Finished) == 0 {
			return nil
		}
	}
}

func (in *ingester) lost(ctx context.Context, streams int64, cause string) {
	in.telemetry.ReceiverTokenStreamStreamsLost.Add(ctx, streams, with("cause", cause))
}

func with(key, value string) metric.MeasurementOption {
	return metric.WithAttributeSet(attribute.NewSet(attribute.String(key, value)))
}
