// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Package play sends streams in real time or as fast as the receiver accepts them.
package play

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/send"
	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/stream"
)

// GracePeriod is how long a stopped player may take to end the open streams.
const GracePeriod = 5 * time.Second

// Player sends the streams of a source.
type Player struct {
	Sender send.Sender
	Stats  *send.Stats
	// Live sends each event as a part of its own instead of whole streams.
	Live bool
	// RealTime shifts all times so that the first stream starts now, and sends each
	// event when it is due. Otherwise times stay and the player never waits.
	RealTime bool
}

// Play sends all streams of the source and waits until they are acknowledged. When
// ctx is done, it ends the open streams as cancelled and returns nil.
func (p *Player) Play(ctx context.Context, source Source) error {
	sendCtx, stop := withGracePeriod(ctx)
	defer stop()
	if p.RealTime {
		source = shifted(source)
	}
	next, stopSource := iter.Pull(source)
	defer stopSource()
	err := p.play(ctx, sendCtx, newMerge(next, p.Live))
	return errors.Join(err, p.Sender.Close(sendCtx))
}

func (p *Player) play(ctx, sendCtx context.Context, m *merge) error {
	b := batch{sender: p.Sender, stats: p.Stats, maxEvents: maxWholeEvents}
	if p.Live {
		b.maxEvents = maxLiveEvents
	}
	now := int64(0) // in the time of the streams
	for ctx.Err() == nil {
		due, ok := m.peek()
		if !ok {
			return b.flush(sendCtx)
		}
		if p.RealTime && due > time.Now().UnixNano() {
			if err := b.flush(sendCtx); err != nil {
				return err
			}
			if !sleepUntil(ctx, due) {
				break
			}
		}
		now = due
		if err := b.add(sendCtx, m.pop()); err != nil {
			return err
		}
	}
	if p.RealTime {
		now = time.Now().UnixNano()
	}
	for _, sent := range m.inFlight() {
		if sent.Stream.Start <= now {
			if err := b.add(sendCtx, cancelled(sent, now)); err != nil {
				return err
			}
		}
	}
	return b.flush(sendCtx)
}

// cancelled returns the rest of a stream that its client cancels at a Unix time in
// nanoseconds.
func cancelled(sent stream.Part, at int64) stream.Part {
	cut := sent.Stream.Cancelled(at)
	rest := stream.Whole(cut)
	rest.Start = !sent.Start
	rest.Scheduled = rest.Scheduled && !sent.Scheduled
	// Chunks that were already sent stay, even if their times are after the cut.
	cut.Chunks = sent.Stream.Chunks[:max(sent.To, rest.To)]
	rest.From, rest.To = sent.To, len(cut.Chunks)
	cut.End.Time = max(cut.End.Time, cut.LastTime())
	return rest
}

// sleepUntil waits for a Unix time in nanoseconds. It returns false if ctx is done
// earlier.
func sleepUntil(ctx context.Context, unixNano int64) bool {
	timer := time.NewTimer(time.Until(time.Unix(0, unixNano)))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// withGracePeriod returns a context that is done one GracePeriod after ctx.
func withGracePeriod(ctx context.Context) (context.Context, context.CancelFunc) {
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		select {
		case <-longer.Done():
		case <-time.After(GracePeriod):
			cancel()
		}
	})
	return longer, func() {
		stop()
		cancel()
	}
}
