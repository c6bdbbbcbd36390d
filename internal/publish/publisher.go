// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Package publish sends series as OTLP metrics, at every flush interval, to the next
// consumer of a pipeline.
package publish

import (
	"context"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/otel/metric"

	"github.com/tokenpulse/tokenpulse/internal/inprocess"
	"github.com/tokenpulse/tokenpulse/internal/keeper"
	"github.com/tokenpulse/tokenpulse/internal/liveness"
	"github.com/tokenpulse/tokenpulse/internal/series"
)

// Settings of a Publisher.
type Settings struct {
	Config *Config
	// MaxSeriesPerClient is that of series.Options.
	MaxSeriesPerClient int
	Telemetry          component.TelemetrySettings
	// Component owns the series and budgets.
	Component component.ID
	Kind      component.Kind
	// Scope is the name of the metrics' instrumentation scope.
	Scope string
	// Next receives the metrics.
	Next consumer.Metrics
	// OpenStreams is that of keeper.Settings.
	OpenStreams func() []inprocess.VisitOpenStreams
	// Engines is that of keeper.Settings.
	Engines func() []liveness.Status
	// Refused counts the batches that Next refused. Their data is sent again.
	Refused metric.Int64Counter
	// Now is the clock.
	Now func() time.Time
}

// Publisher aggregates requests into series and sends these as metrics at every flush
// interval.
type Publisher struct {
	// Keeper records requests.
	Keeper   *keeper.Keeper
	settings Settings

	// Used by flush, of which only one runs at a time.
	sent  sent              // what the next consumer has
	since pcommon.Timestamp // when it accepted the last batch
}

// New returns a publisher without series.
func New(set Settings) (*Publisher, error) {
	options := set.Config.Shared.EngineOptions()
	options.MaxSeriesPerClient = set.MaxSeriesPerClient
	p := &Publisher{settings: set, since: pcommon.NewTimestampFromTime(set.Now())}
	var err error
	p.Keeper, err = keeper.New(keeper.Settings{
		Config:    &set.Config.Shared,
		Telemetry: set.Telemetry,
		Component: set.Component,
		Kind:      set.Kind,
		Output:    "metrics",
		Engine:    series.NewEngine(options),
		Interval:  set.Config.FlushInterval,
		Flush:     p.flush,

		OpenStreams: set.OpenStreams,
		Engines:     set.Engines,
		Now:         set.Now,
	})
	return p, err
}

// Start restores error budgets and begins to flush.
func (p *Publisher) Start(ctx context.Context, host component.Host) error {
	if _, err := p.Keeper.Start(ctx, host); err != nil {
		return err
	}
	p.since = pcommon.NewTimestampFromTime(p.settings.Now())
	p.Keeper.Run()
	return nil
}

// flush sends what the next consumer does not have yet. After an error, the next flush
// sends it again.
func (p *Publisher) flush(ctx context.Context) error {
	now := p.settings.Now()
	b := newBatch(&p.settings, p.sent, p.since, pcommon.NewTimestampFromTime(now))
	keeper.Collect(p.Keeper, now, b)
	b.prune()
	if b.metrics.DataPointCount() > 0 {
		if err := p.settings.Next.ConsumeMetrics(ctx, b.metrics); err != nil {
			p.settings.Refused.Add(ctx, 1)
			return err
		}
	}
	p.sent, p.since = b.sending, b.now
	return nil
}
