// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package keeper

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/zap"

	"github.com/tokenpulse/tokenpulse/internal/budgetstore"
	"github.com/tokenpulse/tokenpulse/internal/series"
	"github.com/tokenpulse/tokenpulse/internal/slo"
	"github.com/tokenpulse/tokenpulse/internal/spanreader"
)

// Settings of a Keeper.
type Settings struct {
	Config    *Config
	Telemetry component.TelemetrySettings
	// Component owns the series and budgets.
	Component component.ID
	Kind      component.Kind
	// Output is what the component produces: scrape, metrics or logs.
	Output string
	// Engine aggregates the requests. Nil if the component needs only error budgets.
	Engine *series.Engine
	// Interval is the time between two rounds. A round flushes, expires and saves.
	Interval time.Duration
	// Flush sends what the next consumer does not have yet. Series expire only after a
	// flush without an error. Nil if there is nothing to send.
	Flush func(context.Context) error
	// Notes returns what to save with the error budgets; Start returns it after a restart.
	// Nil if there is nothing to save.
	Notes func() []byte
	// Now is the clock.
	Now func() time.Time
}

// Keeper owns the series and the error budgets of one component output. It records
// spans, expires series, saves budgets, and closes both.
type Keeper struct {
	// Engine holds the series. It is nil if the component needs only error budgets.
	Engine *series.Engine
	// Tracker holds the error budgets.
	Tracker *slo.Tracker

	settings  Settings
	logger    *zap.Logger
	telemetry *telemetry

	// Set by Start.
	store  *budgetstore.Store
	cancel context.CancelFunc // interrupts the round in progress
	stop   chan struct{}      // ends the rounds
	rounds sync.WaitGroup
	warned bool // about objectives without verdicts
}

// New returns a keeper without series.
func New(set Settings) (*Keeper, error) {
	if set.Notes == nil {
		set.Notes = func() []byte { return nil }
	}
	k := &Keeper{
		Engine: set.Engine,
		Tracker: slo.NewTracker(slo.TrackerOptions{
			Objectives: set.Config.objectives(),
			MaxSeries:  2 * set.Config.Series.MaxSeries, // as many idle ones as the engine has series
			IdleAfter:  set.Config.Series.SeriesExpiration,
		}, set.Now()),
		settings: set,
		logger:   set.Telemetry.Logger,
	}
	var err error
	k.telemetry, err = newTelemetry(k)
	return k, err
}

// Record adds the spans that carry latencies to their series and error budgets.
func (k *Keeper) Record(ctx context.Context, traces ptrace.Traces) {
	config := k.settings.Config
	if k.Engine == nil && len(config.Objectives) == 0 {
		return
	}
	tally := spanreader.Read(traces, config.Series.Dimensions, k.settings.Now(), k.recordOne)
	k.telemetry.recorded(ctx, &tally)
}

func (k *Keeper) recordOne(r *series.Request) (recorded series.Recorded) {
	if k.Engine != nil {
		recorded = k.Engine.Record(r)
	}
	if len(k.settings.Config.Objectives) > 0 {
		var buffer [512]byte
		key := buffer[:0]
		if !recorded.Overflow {
			key = r.AppendKey(key)
		}
		k.Tracker.Record(key, &r.Verdicts, r.Arrival)
	}
	return recorded
}

// Start restores the error budgets, and the series that had a verdict lately. It returns
// the notes saved with the budgets. Rounds begin with Run.
func (k *Keeper) Start(ctx context.Context, host component.Host) (notes []byte, err error) {
	set := &k.settings
	owner := budgetstore.Owner{Kind: set.Kind, ID: set.Component}
	if set.Kind == component.KindConnector {
		owner.Name = set.Output
	}
	k.store, notes, err = budgetstore.Open(ctx, host, set.Config.StorageID, owner, k.Tracker, set.Config.Series.Dimensions, k.logger)
	if err == nil && k.Engine != nil {
		k.restoreSeries()
	}
	return notes, err
}

func (k *Keeper) restoreSeries() {
	now := k.settings.Now()
	k.Tracker.Visit(now, func(b *slo.Budgets) {
		var slos []string
		for i := range b.Each {
			slos = append(slos, b.Each[i].SLO)
		}
		k.Engine.Restore(b.Key, slos, b.LastSeen, now)
	})
}

// Run starts the rounds. They end with Shutdown.
func (k *Keeper) Run() {
	var ctx context.Context
	ctx, k.cancel = context.WithCancel(context.Background())
	stop := make(chan struct{})
	k.stop = stop
	k.rounds.Go(func() {
		ticker := time.NewTicker(k.settings.Interval)
		defer ticker.Stop()
		for {
			select {
			case <-stop:
				return
			case <-ticker.C:
				k.Round(ctx)
			}
		}
	})
}

// Round flushes, expires and saves once. Run calls it at every interval.
func (k *Keeper) Round(ctx context.Context) {
	if err := k.flush(ctx); err != nil {
		k.logger.Warn("The next consumer refused a flush; the next flush sends its data again", zap.Error(err))
	} else {
		k.expire()
	}
	if err := k.store.Save(ctx, k.settings.Notes()); err != nil && ctx.Err() == nil {
		k.telemetry.saveFailed(ctx)
		k.logger.Warn("The storage refused the error budgets; the next save writes them again", zap.Error(err))
	}
	k.warnOfUnseen()
}

func (k *Keeper) flush(ctx context.Context) error {
	if k.settings.Flush == nil {
		return nil
	}
	return k.settings.Flush(ctx)
}

func (k *Keeper) expire() {
	now := k.settings.Now()
	if k.Engine != nil {
		k.telemetry.expired(k.Engine.Expire(now))
	}
	k.Tracker.Expire(now)
}

// warnOfUnseen logs objectives without a verdict, once.
func (k *Keeper) warnOfUnseen() {
	if k.warned {
		return
	}
	if objectives, seen := k.Tracker.Unseen(k.settings.Now()); len(objectives) > 0 {
		k.warned = true
		k.logger.Warn("No request had a verdict for these objectives: check the spelling of `objectives::slo` against `slos` of token_latency",
			zap.Strings("objectives", objectives), zap.Strings("slos_seen", seen))
	}
}

// Shutdown ends the rounds, flushes and saves a last time, and closes the storage. A
// round in progress may take as long as ctx allows.
func (k *Keeper) Shutdown(ctx context.Context) error {
	var errs []error
	if k.stop != nil {
		close(k.stop)
		k.stop = nil
		release := context.AfterFunc(ctx, k.cancel)
		k.rounds.Wait()
		release()
		k.cancel()
		if err := k.flush(ctx); err != nil {
			errs = append(errs, fmt.Errorf("the data of the last flush is lost: %w", err))
		}
	}
	if err := k.store.Close(ctx, k.settings.Notes()); err != nil {
		errs = append(errs, fmt.Errorf("the error budgets since the last save are lost: %w", err))
	}
	k.store = nil
	k.telemetry.shutdown()
	return errors.Join(errs...)
}
