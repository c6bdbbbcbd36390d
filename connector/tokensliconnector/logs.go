package tokensliconnector

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/zap"

	"github.com/tokenpulse/tokenpulse/internal/spanreader"
)

// tracesToLogs sends an event for each request that breached an objective, and one
// whenever the condition of a burn-rate alert begins or ceases to hold.
type tracesToLogs struct {
	*core
	next consumer.Logs
	// watch is touched by one flush at a time.
	watch watch
}

func newTracesToLogs(set connector.Settings, config *Config, next consumer.Logs) (*tracesToLogs, error) {
	core, err := newCore(set, config, "logs")
	if err != nil {
		return nil, err
	}
	l := &tracesToLogs{core: core, next: next, watch: watch{dimensions: config.Series.Dimensions}}
	l.core.flush, l.notes = l.flush, l.watch.encode
	return l, nil
}

// ConsumeTraces sends the events of requests, and counts their verdicts. Events that
// are refused are lost, and counted: an error would have all of the traces sent
// again, and counted twice.
func (l *tracesToLogs) ConsumeTraces(ctx context.Context, traces ptrace.Traces) error {
	now := l.now()
	if len(l.config.Objectives) > 0 {
		tally := spanreader.RecordVerdicts(traces, l.engine, l.config.Series.Dimensions, now)
		l.telemetry.consumed(ctx, &tally)
	}
	breaches := breachEvents(traces, l.config.Series.Dimensions, now)
	if events := breaches.LogRecordCount(); events > 0 {
		if err := l.next.ConsumeLogs(ctx, breaches); err != nil {
			l.telemetry.lost(ctx, events)
			l.logger.Warn("The next consumer refused events of requests that breached an SLO; they are lost",
				zap.Int("events", events), zap.Error(err))
		}
	}
	return nil
}

// Start begins to watch. What has been told of before a restart is not told again.
func (l *tracesToLogs) Start(ctx context.Context, host component.Host) error {
	notes, err := l.restore(ctx, host)
	if err != nil {
		return err
	}
	if err := l.watch.decode(notes); err != nil {
		l.logger.Error("The alerts that were told of before are not known, and may be told of again", zap.Error(err))
	}
	l.begin()
	return nil
}

func (l *tracesToLogs) flush(ctx context.Context) error {
	events, told := l.watch.look(l.engine, l.now())
	if events.LogRecordCount() > 0 {
		if err := l.next.ConsumeLogs(ctx, events); err != nil {
			l.telemetry.refused(ctx)
			return err
		}
	}
	l.watch.told = told
	return nil
}
