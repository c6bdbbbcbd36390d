// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokensliconnector

import (
	"context"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/zap"

	"github.com/tokenpulse/tokenpulse/connector/tokensliconnector/internal/metadata"
	"github.com/tokenpulse/tokenpulse/internal/dedup"
	"github.com/tokenpulse/tokenpulse/internal/keeper"
	"github.com/tokenpulse/tokenpulse/internal/slo"
)

// tracesToLogs sends an event for each request that breached an SLO, and an event when
// a burn-rate alert starts or ends.
type tracesToLogs struct {
	config    *Config
	next      consumer.Logs
	telemetry *metadata.TelemetryBuilder
	logger    *zap.Logger
	keeper    *keeper.Keeper
	now       func() time.Time // replaced in tests

	objectives slo.Names
	delivered  *dedup.Set // requests whose breach event the next consumer has
	// alerts is changed by flush, of which only one runs at a time.
	alerts alerts
}

func newTracesToLogs(set connector.Settings, config *Config, next consumer.Logs) (*tracesToLogs, error) {
	telemetry, err := metadata.NewTelemetryBuilder(set.TelemetrySettings)
	if err != nil {
		return nil, err
	}
	l := &tracesToLogs{
		config: config, next: next, telemetry: telemetry, logger: set.Logger, now: time.Now,
		objectives: config.Publish.Shared.ObjectiveNames(),
		delivered:  dedup.NewSet(config.Publish.Shared.Deduplication, time.Now()),
		alerts:     newAlerts(&config.Publish.Shared),
	}
	l.keeper, err = keeper.New(keeper.Settings{
		Config:    &config.Publish.Shared,
		Telemetry: set.TelemetrySettings,
		Component: set.ID,
		Kind:      component.KindConnector,
		Output:    "logs",
		Interval:  config.Publish.FlushInterval,
		Flush:     l.flush,
		Notes:     l.alerts.encode,
		Delivered: l.delivered,
		Now:       func() time.Time { return l.now() },
	})
	return l, err
}

// Capabilities returns that spans are not modified.
func (*tracesToLogs) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }

// ConsumeTraces sends breach events and records verdicts. Refused events are dropped and
// counted: returning the error would make the sender send all of the traces again, to all
// consumers. If the traces come again for another reason, so do the refused events.
func (l *tracesToLogs) ConsumeTraces(ctx context.Context, traces ptrace.Traces) error {
	l.keeper.Record(ctx, traces)
	b := breaches{
		dimensions: l.config.Publish.Shared.Series.Dimensions.Attributes(), attributes: l.config.EventAttributes, objectives: l.objectives,
		delivered: l.delivered, now: l.now(),
	}
	logs := b.events(traces)
	if events := logs.LogRecordCount(); events > 0 {
		if err := l.next.ConsumeLogs(ctx, logs); err != nil {
			b.refused()
			l.telemetry.ConnectorTokenSliEventsLost.Add(ctx, int64(events))
			l.logger.Warn("the next consumer refused breach events, which are lost unless their traces are sent again; check the exporters of the logs pipeline",
				zap.Int("events", events), zap.Error(err))
		}
	}
	return nil
}

// Start restores error budgets and the alerts that were active before the restart, and
// begins to check alerts.
func (l *tracesToLogs) Start(ctx context.Context, host component.Host) error {
	notes, err := l.keeper.Start(ctx, host)
	if err != nil {
		return err
	}
	if err := l.alerts.decode(notes); err != nil {
		l.logger.Error("cannot restore the active alerts, so their start events may be sent again; if this repeats, check the storage extension and its disk", zap.Error(err))
	}
	l.keeper.Run()
	return nil
}

// Shutdown checks alerts a last time. It never fails.
func (l *tracesToLogs) Shutdown(ctx context.Context) error {
	l.keeper.Shutdown(ctx)
	l.telemetry.Shutdown()
	return nil
}

// flush sends an event for each alert that started or ended. After an error, the next
// flush sends it again.
func (l *tracesToLogs) flush(ctx context.Context) error {
	events, active := l.alerts.check(l.keeper.Tracker, l.now())
	if events.LogRecordCount() > 0 {
		if err := l.next.ConsumeLogs(ctx, events); err != nil {
			l.telemetry.ConnectorTokenSliFlushesRefused.Add(ctx, 1)
			return err
		}
	}
	l.alerts.set(active)
	return nil
}
