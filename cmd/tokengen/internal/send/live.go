package send

import (
	"context"
	"errors"
	"time"

	"github.com/tokenpulse/tokenpulse/cmd/tokengen/internal/stream"
)

// A live request is finished, and the next one begun, when it is this old or
// holds this many events. Streams go on across requests. It is how the
// receiver's acknowledgements come in while traffic runs, and it bounds what
// must be told again when the receiver refuses a request.
const (
	maxRequestAge    = 10 * time.Second
	maxRequestEvents = 5_000
)

// conversation is one open request.
type conversation interface {
	// tell sends parts now. An error means that the receiver has stopped
	// listening; its answer says why.
	tell(ctx context.Context, parts []stream.Part) error
	// answer finishes the request and waits for what the receiver says to it.
	answer(ctx context.Context) (answer, error)
}

// live tells about events as they happen, in requests that stay open.
type live struct {
	retrier retrier
	open    func(context.Context) (conversation, error)
	close   func() error

	current  conversation
	openedAt time.Time
	// told is what the current request holds: not acknowledged yet.
	told   []stream.Part
	events int
}

func (l *live) Send(ctx context.Context, parts []stream.Part) error {
	l.told = append(l.told, parts...)
	for _, p := range parts {
		l.events += p.Events()
	}
	var err error
	if l.current == nil {
		l.openedAt = time.Now()
		l.current, err = l.open(ctx)
	}
	if err == nil {
		err = l.current.tell(ctx, parts)
	}
	if err != nil || l.events >= maxRequestEvents || time.Since(l.openedAt) >= maxRequestAge {
		return l.finish(ctx)
	}
	return nil
}

// finish gets the current request acknowledged. Where the receiver refuses it in
// the middle, what it has not taken is told again in a new one. Where it does not
// say what it took, that is all of it: chunks carry sequence numbers, so the
// receiver can drop those of open streams that it knows already.
func (l *live) finish(ctx context.Context) error {
	if len(l.told) == 0 {
		return nil
	}
	err := l.retrier.do(ctx, func(ctx context.Context) (answer, error) {
		a, err := l.attempt(ctx)
		l.current = nil
		var refused *refusal
		if errors.As(err, &refused) && refused.taken > 0 {
			if l.told = stream.Skip(l.told, refused.taken); len(l.told) == 0 {
				return a, nil
			}
		}
		return a, err
	})
	l.told, l.events = l.told[:0], 0
	return err
}

// attempt finishes the current request, or tells everything in one of its own.
func (l *live) attempt(ctx context.Context) (answer, error) {
	if l.current == nil {
		var err error
		if l.current, err = l.open(ctx); err != nil {
			return answer{}, err
		}
		_ = l.current.tell(ctx, l.told) // the answer has the reason of a failure
	}
	return l.current.answer(ctx)
}

func (l *live) Close(ctx context.Context) error {
	err := l.finish(ctx)
	if closeErr := l.close(); err == nil {
		err = closeErr
	}
	return err
}
