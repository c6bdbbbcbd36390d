package tokensliconnector

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/internal/spanreader"
)

// tracesToMetrics adds spans up to series, and sends these as metrics from time to
// time.
type tracesToMetrics struct {
	*core
	next consumer.Metrics

	// Only one flush is under way at a time, and has these to itself.
	sent  sent              // what the next consumer has
	since pcommon.Timestamp // when it took the last batch
}

func newTracesToMetrics(set connector.Settings, config *Config, next consumer.Metrics) (*tracesToMetrics, error) {
	core, err := newCore(set, config, "metrics")
	if err != nil {
		return nil, err
	}
	m := &tracesToMetrics{core: core, next: next, since: pcommon.NewTimestampFromTime(core.now())}
	m.core.flush = m.flush
	return m, nil
}

// ConsumeTraces adds spans to their series. It never fails.
func (m *tracesToMetrics) ConsumeTraces(ctx context.Context, traces ptrace.Traces) error {
	tally := spanreader.Record(traces, m.engine, m.config.Series.Dimensions, m.now())
	m.telemetry.consumed(ctx, &tally)
	return nil
}

// Start begins to flush.
func (m *tracesToMetrics) Start(ctx context.Context, host component.Host) error {
	if _, err := m.restore(ctx, host); err != nil {
		return err
	}
	m.since = pcommon.NewTimestampFromTime(m.now())
	m.begin()
	return nil
}

func (m *tracesToMetrics) flush(ctx context.Context) error {
	now := m.now()
	b := newBatch(m.config, m.sent, m.since, pcommon.NewTimestampFromTime(now))
	m.engine.Collect(now, b.series)
	b.dropEmpty()
	if b.metrics.DataPointCount() > 0 {
		if err := m.next.ConsumeMetrics(ctx, b.metrics); err != nil {
			m.telemetry.refused(ctx)
			return err
		}
	}
	m.sent, m.since = b.sending, b.now
	return nil
}
