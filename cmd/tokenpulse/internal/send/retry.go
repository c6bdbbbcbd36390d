// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package send

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/stream"
)

const (
	maxAttempts  = 8
	firstBackoff = 250 * time.Millisecond
	maxBackoff   = 5 * time.Second
	// maxRetryAfter bounds the delay that a receiver may ask for.
	maxRetryAfter = 30 * time.Second
)

// retryableError is a failure that may be temporary.
type retryableError struct {
	cause error
	// retryAfter is the delay that the receiver asks for; 0 means none.
	retryAfter time.Duration
	// processed is how many events of the request the receiver accepted or rejected.
	processed int
}

func (e *retryableError) Error() string { return e.cause.Error() }
func (e *retryableError) Unwrap() error { return e.cause }

// sendAgain is retry for parts that attempt sends. If the receiver refuses them for good
// although it acknowledged earlier requests, they are counted and dropped: traffic goes
// on through a longer outage. parts is called after the last attempt.
func sendAgain(ctx context.Context, stats *Stats, parts func() []stream.Part, attempt func(context.Context) (response, error)) error {
	err := retry(ctx, stats, attempt)
	if errors.Is(err, errGaveUp) && stats.acknowledged.Load() {
		stats.addRefused(parts(), err)
		return nil
	}
	if err == nil {
		stats.acknowledged.Store(true)
	}
	return err
}

var errGaveUp = fmt.Errorf("gave up after %d attempts", maxAttempts)

// retry calls attempt until it succeeds, fails with an error that is not retryable, or
// has failed maxAttempts times.
func retry(ctx context.Context, stats *Stats, attempt func(context.Context) (response, error)) error {
	backoff := firstBackoff
	for try := 1; ; try++ {
		r, err := attempt(ctx)
		stats.addRejected(r.rejected, r.message) // a failed request may have been processed in part
		if err == nil {
			return nil
		}
		var retryable *retryableError
		if !errors.As(err, &retryable) {
			return err
		}
		if try == maxAttempts {
			return fmt.Errorf("%w: %w; check --endpoint and the receiver's log", errGaveUp, err)
		}
		wait := min(retryable.retryAfter, maxRetryAfter)
		if wait <= 0 {
			wait, backoff = backoff, min(2*backoff, maxBackoff)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("stopped while waiting for a retry: %w", err)
		case <-time.After(wait):
		}
		stats.Retries.Add(1)
	}
}
