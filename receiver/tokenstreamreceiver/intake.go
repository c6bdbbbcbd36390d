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

// retryAfter is what refused clients are told to wait.
const retryAfter = time.Second

// refusal says that nothing of a batch was applied, and why.
type refusal struct {
	http    int
	grpc    codes.Code
	retry   bool
	message string
}

func (r *refusal) Error() string { return r.message }

var (
	errShutdown = &refusal{http.StatusServiceUnavailable, codes.Unavailable, true, "the receiver is shutting down: send what was not accepted again"}
	errCanceled = &refusal{http.StatusServiceUnavailable, codes.Unavailable, true, "the request was canceled while it waited for another one with the same streams"}
)

func pipelineRefusal(err error) *refusal {
	if consumererror.IsPermanent(err) {
		return &refusal{http.StatusBadRequest, codes.InvalidArgument, false, "the pipeline rejects what the request completes: " + err.Error()}
	}
	return &refusal{http.StatusServiceUnavailable, codes.Unavailable, true, "the pipeline refuses data for now: " + err.Error()}
}

// intake takes batches: what they complete becomes spans, what they do not stays
// in the store.
type intake struct {
	store     *assembly.Store
	next      consumer.Traces
	telemetry *metadata.TelemetryBuilder
}

// commit applies a batch whole, or returns a refusal.
func (in *intake) commit(ctx context.Context, report *receiverhelper.ObsReport, batch *assembly.Batch) (*assembly.Transaction, *refusal) {
	tx, err := in.store.Begin(ctx, batch)
	if full, ok := errors.AsType[*assembly.FullError](err); ok {
		in.telemetry.ReceiverTokenStreamStreamsRefused.Add(ctx, 1, with("limit", full.Setting))
		return nil, &refusal{http.StatusTooManyRequests, codes.ResourceExhausted, true, full.Error()}
	}
	if errors.Is(err, assembly.ErrTooManyParts) {
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

// deliver hands finished streams to the pipeline.
func (in *intake) deliver(ctx context.Context, report *receiverhelper.ObsReport, finished []assembly.Finished) error {
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

func (in *intake) count(ctx context.Context, finished []assembly.Finished) {
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

// expireBatch bounds how many streams expire in one call of the pipeline.
const expireBatch = 1000

// expire hands over, as incomplete, the streams that nothing was heard of for
// idle. If the pipeline refuses them for now they stay, and the error says why.
func (in *intake) expire(ctx context.Context, report *receiverhelper.ObsReport, idle time.Duration) error {
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
			return fmt.Errorf("the pipeline refuses %d streams that are over: %w", len(tx.Finished), err)
		}
		if len(tx.Finished) == 0 {
			return nil
		}
	}
}

func (in *intake) lost(ctx context.Context, streams int64, cause string) {
	in.telemetry.ReceiverTokenStreamStreamsLost.Add(ctx, streams, with("cause", cause))
}

func with(key, value string) metric.MeasurementOption {
	return metric.WithAttributeSet(attribute.NewSet(attribute.String(key, value)))
}
