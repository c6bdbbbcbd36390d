package tokensliconnector

import (
	"context"
	"fmt"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/zap"

	"github.com/tokenpulse/tokenpulse/internal/sli"
	"github.com/tokenpulse/tokenpulse/internal/sli/intake"
)

// tokenSLI adds spans up to series, and sends these as metrics from time to time.
type tokenSLI struct {
	config    *Config
	logger    *zap.Logger
	telemetry *selfTelemetry
	engine    *sli.Engine
	next      consumer.Metrics
	now       func() time.Time // replaced in tests

	// Set by Start.
	cancel   context.CancelFunc // ends a flush that is under way
	stop     chan struct{}      // ends the flushing
	flushing sync.WaitGroup

	// Only one flush is under way at a time, and has these to itself.
	sent  sent              // what the next consumer has
	since pcommon.Timestamp // when it took the last batch
}

func newTokenSLI(set connector.Settings, config *Config, next consumer.Metrics) (*tokenSLI, error) {
	engine := sli.NewEngine(sli.Options{Series: config.Series, Objectives: config.Objectives})
	telemetry, err := newSelfTelemetry(set.TelemetrySettings, engine, config.Series.MaxSeries)
	if err != nil {
		return nil, err
	}
	return &tokenSLI{
		config: config, logger: set.Logger, telemetry: telemetry, engine: engine, next: next, now: time.Now,
		since: pcommon.NewTimestampFromTime(time.Now()),
	}, nil
}

// Capabilities says that spans are only read.
func (*tokenSLI) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }

// ConsumeTraces adds spans to their series. It never fails.
func (c *tokenSLI) ConsumeTraces(ctx context.Context, traces ptrace.Traces) error {
	tally := intake.Record(traces, c.engine, c.config.Series.Dimensions, c.now())
	c.telemetry.consumed(ctx, &tally)
	return nil
}

// Start begins to flush.
func (c *tokenSLI) Start(context.Context, component.Host) error {
	var ctx context.Context
	ctx, c.cancel = context.WithCancel(context.Background())
	stop := make(chan struct{})
	c.stop = stop
	c.since = pcommon.NewTimestampFromTime(c.now())
	c.engine.Start(c.telemetry.expired)
	c.flushing.Go(func() { c.flushUntil(ctx, stop) })
	return nil
}

func (c *tokenSLI) flushUntil(ctx context.Context, stop <-chan struct{}) {
	ticker := time.NewTicker(c.config.FlushInterval)
	defer ticker.Stop()
	for {
		select {
		case <-stop:
			return
		case <-ticker.C:
			if err := c.flush(ctx); err != nil {
				c.logger.Warn("Metrics were refused; what they held goes with the next ones", zap.Error(err))
			}
		}
	}
}

// flush sends what the next consumer does not have yet. Where that refuses, it
// stays to be sent.
func (c *tokenSLI) flush(ctx context.Context) error {
	now := c.now()
	b := newBatch(c.config, c.sent, c.since, pcommon.NewTimestampFromTime(now))
	c.engine.Collect(now, b.series)
	if b.metrics.DataPointCount() > 0 {
		if err := c.next.ConsumeMetrics(ctx, b.metrics); err != nil {
			c.telemetry.refused(ctx)
			return err
		}
	}
	c.sent, c.since = b.sending, b.now
	return nil
}

// Shutdown flushes once more. A flush that is under way may take as long as the
// context allows.
func (c *tokenSLI) Shutdown(ctx context.Context) error {
	var err error
	if c.stop != nil {
		close(c.stop)
		c.stop = nil
		keep := context.AfterFunc(ctx, c.cancel)
		c.flushing.Wait()
		keep()
		c.cancel()
		if err = c.flush(ctx); err != nil {
			err = fmt.Errorf("metrics of the last flush are lost: %w", err)
		}
	}
	c.engine.Shutdown()
	c.telemetry.shutdown()
	return err
}
