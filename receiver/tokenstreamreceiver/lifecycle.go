// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokenstreamreceiver

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.uber.org/zap"

	"github.com/tokenpulse/tokenpulse/internal/diagnostics"
	"github.com/tokenpulse/tokenpulse/internal/inprocess"
)

// Start starts the servers and the sweep for idle streams.
func (r *tokenStreamReceiver) Start(ctx context.Context, host component.Host) error {
	err := r.cfg.checkPipelines(r.publisher != nil)
	if err == nil && r.publisher != nil {
		err = r.publisher.Start(ctx, host)
	}
	if err == nil {
		err = r.openStorage(ctx, host)
	}
	if err == nil && r.engines != nil {
		err = r.engines.Start(ctx, host, r.cfg.StorageID, r.settings.ID)
	}
	if err == nil {
		err = errors.Join(r.observe(), r.server.Start(ctx, host))
	}
	if err != nil {
		// Stop whatever did start.
		return errors.Join(err, r.Shutdown(ctx))
	}
	r.sweeping.Go(func() { r.expirer.Run(r.closing, r.settings.Logger) })
	inprocess.OpenStreams.Set(r, r.open.visit)
	inprocess.Endpoints.Set(r, r.server.Endpoints())
	inprocess.SLOs.Set(r, r.rules.Definitions())
	inprocess.Doubts.Set(r, r.doubts)
	inprocess.ReportIdleExporters(r.settings.Logger)
	return nil
}

// Shutdown stops the servers, gives requests in progress a short time to finish, and
// ends all open streams as incomplete. With a storage, they stay there instead. The series
// are flushed last. What cannot be delivered or stored is logged and counted, and is no error.
func (r *tokenStreamReceiver) Shutdown(ctx context.Context) error {
	r.close()
	timeout := requestTimeoutOf(ctx)
	giveUp := time.AfterFunc(timeout, r.ingester.Store.AbandonJournal)
	requests, cancel := context.WithTimeout(ctx, timeout)
	err := r.server.Stop(requests)
	cancel()
	r.sweeping.Wait()
	giveUp.Stop()
	if r.ingester.Store.HasJournal() {
		r.closeStorage(ctx)
	} else if lost, err := r.expirer.Flush(ctx); lost > 0 {
		r.settings.Logger.Error("lost open streams, since the pipeline refused them until the shutdown timeout; check its exporters",
			zap.Int("streams", lost), zap.Error(err))
	}
	if r.engines != nil {
		err = errors.Join(err, r.engines.Shutdown(ctx))
	}
	if r.publisher != nil {
		r.publisher.Keeper.Shutdown(ctx)
	}
	inprocess.OpenStreams.Remove(r)
	inprocess.Endpoints.Remove(r)
	inprocess.SLOs.Remove(r)
	inprocess.Doubts.Remove(r)
	r.telemetry.Shutdown()
	return err
}

// observe registers the gauges.
func (r *tokenStreamReceiver) observe() error {
	limits := r.cfg.limits()
	if r.ingester.Series != nil {
		err := errors.Join(
			r.telemetry.RegisterReceiverTokenStreamIdentitiesEvictedCallback(diagnostics.Gauge(r.ingester.Series.Identities.Evicted)),
			r.telemetry.RegisterReceiverTokenStreamIdentitiesResolvedCallback(diagnostics.Gauge(r.ingester.Series.Identities.Resolved)),
		)
		if err != nil {
			return err
		}
	}
	if r.ingester.Cold != nil {
		if err := r.telemetry.RegisterReceiverTokenStreamReplicasEvictedCallback(diagnostics.Gauge(r.ingester.Cold.Evicted)); err != nil {
			return err
		}
	}
	return errors.Join(
		r.telemetry.RegisterReceiverTokenStreamStreamsOpenCallback(diagnostics.Gauge(r.ingester.Store.Streams)),
		r.telemetry.RegisterReceiverTokenStreamStreamsLimitCallback(diagnostics.Gauge(func() int64 { return int64(limits.MaxStreams) })),
		r.telemetry.RegisterReceiverTokenStreamEventsOpenCallback(diagnostics.Gauge(r.ingester.Store.Accepted)),
		r.telemetry.RegisterReceiverTokenStreamLiveRequestsOpenCallback(diagnostics.Gauge(r.server.LiveShares.Held)),
		r.telemetry.RegisterReceiverTokenStreamLiveRequestsLimitCallback(diagnostics.Gauge(r.server.LiveShares.Limit)),
		r.telemetry.RegisterReceiverTokenStreamStorageSizeCallback(diagnostics.Gauge(r.ingester.Store.Stored)),
		r.telemetry.RegisterReceiverTokenStreamMemoryHeldCallback(diagnostics.Gauge(r.ingester.Store.Memory)),
		r.telemetry.RegisterReceiverTokenStreamMemoryLimitCallback(diagnostics.Gauge(func() int64 { return limits.MaxMemory })),
	)
}

// requestTimeout limits requests in progress at shutdown. The Collector has no such
// limit, so that one stalled client would block it forever.
const requestTimeout = 5 * time.Second

// requestTimeoutOf returns the part of a shutdown's time that requests have.
func requestTimeoutOf(ctx context.Context) time.Duration {
	if deadline, ok := ctx.Deadline(); ok {
		return min(requestTimeout, time.Until(deadline)/2) // the rest is for the open streams
	}
	return requestTimeout
}
