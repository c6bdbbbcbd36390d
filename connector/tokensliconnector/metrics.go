// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokensliconnector

import (
	"context"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/connector/tokensliconnector/internal/metadata"
	"github.com/tokenpulse/tokenpulse/internal/series"
	"github.com/tokenpulse/tokenpulse/internal/series/keeper"
)

// tracesToMetrics aggregates spans into series and sends these as metrics at every
// flush interval.
type tracesToMetrics struct {
	config    *Config
	next      consumer.Metrics
	telemetry *metadata.TelemetryBuilder
	keeper    *keeper.Keeper
	now       func() time.Time // replaced in tests

	// Used by flush, of which only one runs at a time.
	sent  sent              // what the next consumer has
	since pcommon.Timestamp // when it accepted the last batch
}

func newTracesToMetrics(set connector.Settings, config *Config, next consumer.Metrics) (*tracesToMetrics, error) {
	telemetry, err := metadata.NewTelemetryBuilder(set.TelemetrySettings)
	if err != nil {
		return nil, err
	}
	m := &tracesToMetrics{config: config, next: next, telemetry: telemetry, now: time.Now}
	m.since = pcommon.NewTimestampFromTime(m.now())
	m.keeper, err = keeper.New(keeper.Settings{
		Config:    &config.Shared,
		Telemetry: set.TelemetrySettings,
		Component: set.ID,
		Kind:      component.KindConnector,
		Output:    "metrics",
		Engine:    series.NewEngine(config.Shared.EngineOptions()),
		Interval:  config.FlushInterval,
		Flush:     m.flush,
		Now:       func() time.Time { return m.now() },
	})
	return m, err
}

// Capabilities returns that spans are not modified.
func (*tracesToMetrics) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }

// ConsumeTraces adds spans to their series. It never fails.
func (m *tracesToMetrics) ConsumeTraces(ctx context.Context, traces ptrace.Traces) error {
	m.keeper.Record(ctx, traces)
	return nil
}

// Start restores error budgets and begins to flush.
func (m *tracesToMetrics) Start(ctx context.Context, host component.Host) error {
	if _, err := m.keeper.Start(ctx, host); err != nil {
		return err
	}
	m.since = pcommon.NewTimestampFromTime(m.now())
	m.keeper.Run()
	return nil
}

// Shutdown flushes a last time.
func (m *tracesToMetrics) Shutdown(ctx context.Context) error {
	defer m.telemetry.Shutdown()
	return m.keeper.Shutdown(ctx)
}

// flush sends what the next consumer does not have yet. After an error, the next flush
// sends it again.
func (m *tracesToMetrics) flush(ctx context.Context) error {
	now := m.now()
	b := newBatch(m.config, m.sent, m.since, pcommon.NewTimestampFromTime(now))
	m.keeper.Engine.Collect(now, b.series)
	m.keeper.Tracker.Visit(now, b.budgets)
	b.prune()
	if b.metrics.DataPointCount() > 0 {
		if err := m.next.ConsumeMetrics(ctx, b.metrics); err != nil {
			m.telemetry.ConnectorTokenSliFlushesRefused.Add(ctx, 1)
			return err
		}
	}
	m.sent, m.since = b.sending, b.now
	return nil
}
