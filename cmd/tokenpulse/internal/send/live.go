// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package send

import (
	"context"
	"errors"
	"time"

	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/stream"
)

// A request is finished when it is this old or holds this many events, and the next
// one continues its streams. So the receiver acknowledges events while traffic runs,
// and a failed request repeats a limited number of events.
const (
	maxRequestAge    = 10 * time.Second
	maxRequestEvents = 5_000
)

// openRequest is a request whose body is still being sent. The context that it was
// opened with ends it.
type openRequest interface {
	// send sends parts now. An error means that the receiver has ended the request;
	// finish returns the reason.
	send(parts []stream.Part) error
	// finish ends the request and waits for the response.
	finish() (response, error)
}

// live sends events as they happen, in requests that stay open.
type live struct {
	stats *Stats
	open  func(context.Context) (openRequest, error)
	close func(context.Context) error

	current  openRequest
	cancel   context.CancelFunc // of current
	openedAt time.Time
	// unacknowledged holds what was sent in the current request.
	unacknowledged []stream.Part
	events         int
}

func (l *live) Send(ctx context.Context, parts []stream.Part) error {
	l.unacknowledged = append(l.unacknowledged, parts...)
	for _, p := range parts {
		l.events += p.Events()
	}
	if err := l.sendNow(ctx, parts); err != nil || l.events >= maxRequestEvents || time.Since(l.openedAt) >= maxRequestAge {
		return l.acknowledge(ctx)
	}
	return nil
}

// sendNow sends parts in the current request, which it opens if needed. A request
// may outlive the context of its first Send, so its own context ignores cancellation.
func (l *live) sendNow(ctx context.Context, parts []stream.Part) error {
	if l.current == nil {
		requestCtx, cancel := context.WithCancel(context.WithoutCancel(ctx))
		request, err := l.open(requestCtx)
		if err != nil {
			cancel()
			return err
		}
		l.current, l.cancel, l.openedAt = request, cancel, time.Now()
	}
	defer context.AfterFunc(ctx, l.cancel)()
	return l.current.send(parts)
}

// acknowledge finishes the current request. After a retryable failure, it sends the
// events that the receiver has not processed in a new request. A response without
// that number repeats all events: the receiver drops repeated chunks of open streams
// by their sequence numbers.
func (l *live) acknowledge(ctx context.Context) error {
	if len(l.unacknowledged) == 0 {
		return nil
	}
	err := sendAgain(ctx, l.stats, func() []stream.Part { return l.unacknowledged }, func(ctx context.Context) (response, error) {
		r, err := l.finish(ctx)
		l.current = nil
		var retryable *retryableError
		if errors.As(err, &retryable) && retryable.processed > 0 {
			if l.unacknowledged = stream.Skip(l.unacknowledged, retryable.processed); len(l.unacknowledged) == 0 {
				return r, nil
			}
		}
		return r, err
	})
	l.unacknowledged, l.events = l.unacknowledged[:0], 0
	return err
}

// finish finishes the current request, or a new one with everything unacknowledged.
func (l *live) finish(ctx context.Context) (response, error) {
	if l.current == nil {
		// If only sending fails, the response has the reason.
		if err := l.sendNow(ctx, l.unacknowledged); l.current == nil {
			return response{}, err
		}
	}
	defer l.cancel()
	defer context.AfterFunc(ctx, l.cancel)()
	return l.current.finish()
}

func (l *live) Close(ctx context.Context) error {
	return errors.Join(l.acknowledge(ctx), l.close(ctx))
}
