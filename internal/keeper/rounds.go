// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package keeper

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"
)

// rounds are the rounds that Run started.
type rounds struct {
	// tasks is the context of flushes and saves. Shutdown cancels it last.
	tasks  context.Context
	cancel context.CancelFunc
	// end ends the rounds at once: they wait for no task any more.
	end   context.CancelFunc
	ended chan struct{}
}

// Run starts the rounds. They end with Stop or Shutdown.
func (k *Keeper) Run() {
	r := &rounds{ended: make(chan struct{})}
	r.tasks, r.cancel = context.WithCancel(context.Background())
	var wait context.Context
	wait, r.end = context.WithCancel(r.tasks)
	k.rounds = r
	go func() {
		defer close(r.ended)
		ticker := time.NewTicker(k.settings.Interval)
		defer ticker.Stop()
		for {
			select {
			case <-wait.Done():
				return
			case <-ticker.C:
				k.round(wait, r.tasks)
			}
		}
	}()
}

// Round flushes, expires and saves once. Run does so at every interval.
func (k *Keeper) Round(ctx context.Context) { k.round(ctx, ctx) }

// minPatience is the shortest time that a round waits for a consumer or storage that
// blocks.
const minPatience = 5 * time.Second

// round ends when wait is done, or after k.patience for each of its tasks. A flush that blocks delays
// neither the saves nor the next round. The next flush waits for it.
func (k *Keeper) round(wait, tasks context.Context) {
	err := within(wait, k.patience, func(wait context.Context) error { return k.flush(wait, tasks) })
	switch {
	case err == nil:
		k.expireSeries()
	case wait.Err() == nil:
		k.frequent.Warn("the next consumer refused or blocks a flush, whose data the next flush sends again; check the exporters of the pipeline", zap.Error(err))
	}
	k.expireRest()
	err = within(wait, k.patience, func(wait context.Context) error { return k.save(wait, tasks) })
	if err != nil && wait.Err() == nil {
		k.telemetry.TokenSliSavesFailed.Add(tasks, 1, k.telemetry.owner)
		k.frequent.Warn("the storage refused a save, whose changes the next save writes again; check the storage extension and its disk", zap.Error(err))
	}
	k.doubtObjectives()
	k.doubtDimensions()
}

func within(ctx context.Context, limit time.Duration, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return do(ctx)
}

// flush sends what the next consumer does not have. It returns when wait is done at the
// latest.
func (k *Keeper) flush(wait, task context.Context) error {
	if k.settings.Flush == nil {
		return nil
	}
	return k.flushes.do(wait, func() error { return k.settings.Flush(task) })
}

// save saves the error budgets. It returns when wait is done at the latest.
func (k *Keeper) save(wait, task context.Context) error {
	return k.saves.do(wait, func() error {
		err := k.store.Save(task, k.settings.Notes())
		for _, also := range k.settings.Also {
			err = errors.Join(err, also.Save(task))
		}
		return err
	})
}

func (k *Keeper) expireSeries() {
	expired := k.admission.Expire(k.settings.Now())
	if k.Engine != nil {
		k.telemetry.TokenSliSeriesExpired.Add(context.Background(), int64(expired), k.telemetry.owner)
	}
}

func (k *Keeper) expireRest() {
	now := k.settings.Now()
	k.Tracker.Expire(now)
	k.recorded.Expire(now)
	k.settings.Delivered.Expire(now)
	if k.points != nil {
		k.points.Expire(now)
	}
}
