package send

import (
	"context"
	"errors"
	"fmt"
	"time"
)

const (
	maxAttempts  = 8
	firstBackoff = 250 * time.Millisecond
	maxBackoff   = 5 * time.Second
	// maxRetryAfter bounds what a receiver can ask for.
	maxRetryAfter = 30 * time.Second
)

// refusal is an error that may not happen again.
type refusal struct {
	cause error
	// after is how long the receiver wants to be left alone. 0: it did not say.
	after time.Duration
	// taken is how many events of the request the receiver has dealt with all the same.
	taken int
}

func (r *refusal) Error() string { return r.cause.Error() }
func (r *refusal) Unwrap() error { return r.cause }

// retrier sends again what was refused for now.
type retrier struct {
	tally *Tally
}

func newRetrier(tally *Tally) retrier { return retrier{tally: tally} }

// do calls attempt until it succeeds, fails for good, or has been refused too often.
func (r retrier) do(ctx context.Context, attempt func(context.Context) (answer, error)) error {
	backoff := firstBackoff
	for try := 1; ; try++ {
		a, err := attempt(ctx)
		r.tally.add(a) // a refused request may have been taken in part
		if err == nil {
			return nil
		}
		var refused *refusal
		if !errors.As(err, &refused) {
			return err
		}
		if try == maxAttempts {
			return fmt.Errorf("gave up after %d attempts: %w", try, err)
		}
		wait := min(refused.after, maxRetryAfter)
		if wait <= 0 {
			wait, backoff = backoff, min(2*backoff, maxBackoff)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("stopped while waiting to send again: %w", err)
		case <-time.After(wait):
		}
		r.tally.Retries.Add(1)
	}
}
