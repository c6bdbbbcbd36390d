// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package keeper

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/tokenpulse/tokenpulse/internal/inprocess"
)

// stepTimeout limits a step of a shutdown that has no deadline.
const stepTimeout = 3 * time.Second

// ShutdownStep returns the context of one step of a shutdown. A step may take half of the
// time that is left, so that one that blocks leaves time for those after it.
func ShutdownStep(ctx context.Context) (context.Context, context.CancelFunc) {
	if deadline, ok := ctx.Deadline(); ok {
		return context.WithTimeout(ctx, time.Until(deadline)/2)
	}
	return context.WithTimeout(ctx, stepTimeout)
}

// Stop ends the rounds and saves the error budgets. Shutdown does so, too: a component
// calls Stop if it has to wait for something else before Shutdown.
func (k *Keeper) Stop(ctx context.Context) {
	if k.rounds == nil {
		return
	}
	k.rounds.end()
	<-k.rounds.ended
	step, cancel := ShutdownStep(ctx)
	defer cancel()
	_ = k.save(step, step) // Shutdown saves again, and logs an error
}

// Shutdown ends the rounds, saves, flushes a last time, saves what changed meanwhile, and
// closes the storage. No step takes longer than ShutdownStep allows: a flush that blocks
// is abandoned. What it cannot deliver or save is logged and counted, and is no error: the
// Collector ends if a component's shutdown fails, also at a reload.
func (k *Keeper) Shutdown(ctx context.Context) {
	k.Stop(ctx)
	inprocess.Doubts.Remove(k)
	k.lastFlush(ctx)
	k.close(ctx)
	k.telemetry.Shutdown()
}

func (k *Keeper) lastFlush(ctx context.Context) {
	if k.rounds == nil {
		return
	}
	step, cancel := ShutdownStep(ctx)
	defer cancel()
	if err := k.flush(step, step); err != nil {
		k.logger.Error("lost the data of the last flush, since the next consumer refused it or blocks; check the exporters of the pipeline", zap.Error(err))
	}
	k.rounds.cancel()
	k.rounds = nil
}

func (k *Keeper) close(ctx context.Context) {
	step, cancel := ShutdownStep(ctx)
	defer cancel()
	err := k.saves.do(step, func() error {
		store := k.store
		k.store = nil
		err := store.Close(step, k.settings.Notes())
		for _, also := range k.settings.Also {
			err = errors.Join(err, also.Close(step))
		}
		return err
	})
	if err != nil {
		k.telemetry.TokenSliSavesFailed.Add(ctx, 1, k.telemetry.owner)
		k.logger.Error("lost the error budgets since the last save, since the storage refused the last one or blocks; check the storage extension and its disk", zap.Error(err))
	}
}
