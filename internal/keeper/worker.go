// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package keeper

import (
	"context"
	"fmt"
)

// worker runs one task at a time, each in a goroutine of its own, so that callers can stop
// waiting for a consumer or a storage that blocks.
type worker chan struct{}

func newWorker() worker { return make(worker, 1) }

// do runs a task after the one before has ended. It returns an error if that, or the task
// itself, takes longer than wait; the task goes on, and the next one waits for it.
func (w worker) do(wait context.Context, task func() error) error {
	select {
	case w <- struct{}{}:
	case <-wait.Done():
		return fmt.Errorf("the one before has not ended: %w", wait.Err())
	}
	done := make(chan error, 1)
	go func() {
		defer func() { <-w }()
		done <- task()
	}()
	select {
	case err := <-done:
		return err
	case <-wait.Done():
		return fmt.Errorf("it has not ended: %w", wait.Err())
	}
}
