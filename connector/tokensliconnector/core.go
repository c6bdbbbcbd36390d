package tokensliconnector

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/consumer"
	"go.uber.org/zap"

	"github.com/tokenpulse/tokenpulse/internal/series"
	"github.com/tokenpulse/tokenpulse/internal/budgetstore"
)

// core is what the connector is into whatever kind of pipeline: an engine, and a
// round of work every flush interval.
type core struct {
	config    *Config
	owner     budgetstore.Owner
	logger    *zap.Logger
	telemetry *selfTelemetry
	engine    *series.Engine
	now       func() time.Time // replaced in tests
	// flush sends what the next consumer does not have yet. Where that refuses, which
	// is counted, it stays to be sent.
	flush func(context.Context) error
	// notes are saved with the error budgets.
	notes func() []byte

	// Set by start.
	budgets *budgetstore.Store
	cancel  context.CancelFunc // ends a round that is under way
	stop    chan struct{}      // ends the rounds
	rounds  sync.WaitGroup
}

func newCore(set connector.Settings, config *Config, signal string) (*core, error) {
	engine := series.NewEngine(series.Options{Series: config.Series, Objectives: config.Objectives})
	telemetry, err := newSelfTelemetry(set.TelemetrySettings, engine, config.Series.MaxSeries)
	if err != nil {
		return nil, err
	}
	return &core{
		config: config, logger: set.Logger, telemetry: telemetry, engine: engine, now: time.Now,
		notes: func() []byte { return nil },
		owner: budgetstore.Owner{Kind: component.KindConnector, ID: set.ID, Name: signal},
	}, nil
}

// Capabilities says that spans are only read.
func (*core) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }

// restore restores error budgets, and returns the notes that were saved with them.
func (c *core) restore(ctx context.Context, host component.Host) (notes []byte, err error) {
	if err = series.UndefinedObjectives(c.config.Objectives); err != nil {
		return nil, err
	}
	c.budgets, notes, err = budgetstore.Open(ctx, host, c.config.StorageID, c.owner, c.engine, c.config.Series.Dimensions, c.logger)
	return notes, err
}

// begin begins the rounds.
func (c *core) begin() {
	var ctx context.Context
	ctx, c.cancel = context.WithCancel(context.Background())
	stop := make(chan struct{})
	c.stop = stop
	c.rounds.Go(func() {
		ticker := time.NewTicker(c.config.FlushInterval)
		defer ticker.Stop()
		for {
			select {
			case <-stop:
				return
			case <-ticker.C:
				c.round(ctx)
			}
		}
	})
}

// round flushes, and saves error budgets. Series expire only when the next consumer
// has what they held.
func (c *core) round(ctx context.Context) {
	if err := c.flush(ctx); err != nil {
		c.logger.Warn("The next consumer refused what was sent; it goes with the next flush", zap.Error(err))
	} else {
		c.telemetry.expired(c.engine.Expire(c.now()))
	}
	if err := c.budgets.Save(ctx, c.notes()); err != nil && ctx.Err() == nil {
		c.telemetry.saveFailed()
		c.logger.Warn("Error budgets were not saved; they go with the next save", zap.Error(err))
	}
}

// Shutdown flushes and saves once more. A round that is under way may take as long
// as the context allows.
func (c *core) Shutdown(ctx context.Context) error {
	var errs []error
	if c.stop != nil {
		close(c.stop)
		c.stop = nil
		keep := context.AfterFunc(ctx, c.cancel)
		c.rounds.Wait()
		keep()
		c.cancel()
		if err := c.flush(ctx); err != nil {
			errs = append(errs, fmt.Errorf("what the last flush held is lost: %w", err))
		}
	}
	if err := c.budgets.Close(ctx, c.notes()); err != nil {
		errs = append(errs, fmt.Errorf("error budgets since the last save are lost: %w", err))
	}
	c.budgets = nil
	c.telemetry.shutdown()
	return errors.Join(errs...)
}
