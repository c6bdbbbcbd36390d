// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package ingest

import (
	"context"
	"fmt"
	"time"

	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/receiverhelper"
	"go.uber.org/zap"

	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/assembly"
)

// Expirer sends expired streams, and at shutdown all streams, to the pipeline as
// incomplete. Streams that the pipeline temporarily refuses stay open for a retry.
type Expirer struct {
	ingester *Ingester
	report   *receiverhelper.ObsReport
	timeouts assembly.Timeouts

	// limit is the maximum number of streams in the next call of the pipeline.
	limit   int
	backoff backoff
	// retryAt is the time of the store's clock before which no expired streams are sent.
	retryAt time.Duration
}

const (
	// expireBatch is the maximum number of streams that expire in one call of the
	// pipeline.
	expireBatch = 1000
	// refusedTimeout is how long expired streams are retried.
	refusedTimeout = 5 * time.Minute

	firstRetry   = time.Second
	longestRetry = time.Minute

	// scarceTimeout replaces refusedTimeout, and scarceRetry limits longestRetry, while memory is scarce.
	scarceTimeout = 20 * time.Second
	scarceRetry   = 5 * time.Second
)

// NewExpirer returns an expirer of the streams of an ingester.
func NewExpirer(in *Ingester, set receiver.Settings, timeouts assembly.Timeouts) (*Expirer, error) {
	report, err := receiverhelper.NewObsReport(receiverhelper.ObsReportSettings{ReceiverID: set.ID, Transport: "expiry", ReceiverCreateSettings: set})
	return &Expirer{
		ingester: in, report: report, timeouts: timeouts, limit: expireBatch, backoff: backoff{first: firstRetry, longest: longestRetry},
	}, err
}

// interval returns the time between two calls of Expire.
func (e *Expirer) interval() time.Duration {
	return min(max(min(e.timeouts.Idle, e.timeouts.FirstToken)/10, time.Millisecond), time.Second)
}

// Run expires streams until ctx is done.
func (e *Expirer) Run(ctx context.Context, logger *zap.Logger) {
	ticker := time.NewTicker(e.interval())
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			if err := e.Expire(ctx); err != nil {
				logger.Warn("failed to send expired streams to the pipeline; check its exporters", zap.Error(err))
			}
		}
	}
}

// Expire sends the expired streams, unless it has to wait for a retry. It returns an error
// if the pipeline temporarily refuses some. It drops those that expired more than
// refusedTimeout ago, or earlier while memory is scarce.
func (e *Expirer) Expire(ctx context.Context) error {
	if e.ingester.Now() < e.retryAt {
		return nil
	}
	err := e.send(ctx, func(limit int) *assembly.Transaction { return e.ingester.Store.Expire(e.timeouts, limit) })
	if err == nil || ctx.Err() != nil { // the shutdown sends the others
		return nil
	}
	lost, after := e.dropExpired(ctx, e.timeouts.Plus(refusedTimeout)), refusedTimeout
	scarce := e.memoryIsScarce()
	if scarce && lost == 0 {
		lost, after = e.makeRoom(ctx), scarceTimeout
	}
	if lost > 0 { // a pipeline that lacked memory may accept streams now
		e.backoff.last = min(e.backoff.last, longestRetry/8)
	}
	delay := e.backoff.next()
	if scarce {
		delay = min(delay, scarceRetry)
	}
	e.retryAt = e.ingester.Now() + delay
	// Otherwise the streams opened until then could take the room that the expired ones
	// free, and a pipeline that lacks memory would never recover.
	e.ingester.refuseStarts(e.retryAt + e.interval())
	if lost > 0 {
		err = fmt.Errorf("%d expired streams are dropped, because the pipeline refused them for %s: %w", lost, after, err)
	}
	return fmt.Errorf("expired streams are sent again in %s: %w", delay.Round(time.Millisecond), err)
}

// memoryIsScarce reports whether expired streams must give way: they hold more than half of max_memory_mib. Why
// the pipeline refuses them does not matter.
func (e *Expirer) memoryIsScarce() bool {
	return e.ingester.Store.ExpiredMemory(e.timeouts) > e.ingester.Store.MaxMemory()/2
}

// scarceAges are the times since the expiry by which streams are dropped while memory is scarce, so that
// the first to expire are the first to go.
var scarceAges = [...]time.Duration{8 * scarceTimeout, 4 * scarceTimeout, 2 * scarceTimeout, scarceTimeout}

// makeRoom drops streams that expired more than scarceTimeout ago, those without a chunk before the
// others. It stops where the next attempt may show that the room is enough.
func (e *Expirer) makeRoom(ctx context.Context) (lost int) {
	const never = 1 << 62
	withoutChunk := assembly.Timeouts{Idle: never, FirstToken: e.timeouts.FirstToken}
	for _, timeouts := range [...]assembly.Timeouts{withoutChunk, e.timeouts} {
		for _, age := range scarceAges {
			lost += e.dropExpired(ctx, timeouts.Plus(age))
			if lost > 0 && !e.memoryIsScarce() {
				return lost
			}
		}
	}
	return lost
}

// dropExpired drops the streams that expired by timeouts.
func (e *Expirer) dropExpired(ctx context.Context, timeouts assembly.Timeouts) (lost int) {
	return e.drop(ctx, "refused", func() *assembly.Transaction { return e.ingester.Store.Expire(timeouts, expireBatch) })
}

const (
	flushTimeout      = 5 * time.Second
	flushFirstRetry   = 50 * time.Millisecond
	flushLongestRetry = time.Second
)

// Flush sends all open streams. While the pipeline temporarily refuses them or blocks, it
// tries until the deadline of ctx or, if that has none, for flushTimeout. It returns how many are
// lost, and why.
func (e *Expirer) Flush(ctx context.Context) (lost int, err error) {
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, flushTimeout)
		defer cancel()
	}
	now := e.ingester.Now()
	cut := func(limit int) *assembly.Transaction { return e.ingester.Store.Cut(e.timeouts, now, limit) }
	retry := backoff{first: flushFirstRetry, longest: flushLongestRetry}
	for {
		err := e.send(ctx, cut)
		if err == nil {
			return 0, nil
		}
		select {
		case <-time.After(retry.next()):
			continue
		case <-ctx.Done():
		}
		return e.drop(context.WithoutCancel(ctx), "shutdown", func() *assembly.Transaction { return cut(expireBatch) }), err
	}
}

// send sends streams to the pipeline until begin finds no more. It returns the error of a
// temporary refusal. The next call then starts with half of the streams, because a queue
// may have room for fewer only.
func (e *Expirer) send(ctx context.Context, begin func(limit int) *assembly.Transaction) error {
	for {
		tx := begin(e.limit)
		spans, err := e.ingester.deliver(ctx, e.report, tx.Finished)
		switch {
		case err == nil:
			_ = tx.Commit() // never fails, like those below: it only ends streams
			e.ingester.finish(ctx, tx.Finished, spans)
			e.limit = min(2*e.limit, expireBatch)
			e.backoff.reset()
		case consumererror.IsPermanent(err):
			_ = tx.Commit()
			e.ingester.lost(ctx, tx.Finished, "permanent_error")
		default:
			tx.Rollback()
			e.limit = max(1, len(tx.Finished)/2)
			return fmt.Errorf("the pipeline temporarily refuses %d streams: %w", len(tx.Finished), err)
		}
		if len(tx.Finished) == 0 {
			return nil
		}
	}
}

// drop drops streams until begin finds no more, and counts them as lost.
func (e *Expirer) drop(ctx context.Context, cause string, begin func() *assembly.Transaction) (lost int) {
	for {
		tx := begin()
		_ = tx.Commit()
		if len(tx.Finished) == 0 {
			return lost
		}
		e.ingester.lost(ctx, tx.Finished, cause)
		lost += len(tx.Finished)
	}
}
