// Package play sends streams in time: as if they happened now, or as fast as
// the receiver takes them.
package play

import (
	"context"
	"time"

	"github.com/tokenpulse/tokenpulse/cmd/tokengen/internal/send"
	"github.com/tokenpulse/tokenpulse/cmd/tokengen/internal/stream"
)

const (
	// Sent at once: enough to be cheap, and so few that the streams of a
	// recording cross from one batch into the next where events are sent alone.
	maxLiveEvents  = 500
	maxWholeEvents = 20_000
	// Grace is how long a player that is stopped takes to end what is open.
	Grace = 5 * time.Second
)

// Player sends the streams of a source.
type Player struct {
	Sender send.Sender
	Tally  *send.Tally
	// Live sends every event by itself instead of whole streams at their end.
	Live bool
	// RealTime waits until each event is due, with all times shifted so that the
	// first stream starts now. Otherwise times stay and nothing waits.
	RealTime bool
}

// Play sends all that the source has and waits until it is acknowledged. When
// ctx is done it cuts the open streams short and ends them as cancelled, and
// returns nil: being stopped is no failure.
func (p *Player) Play(ctx context.Context, source Source) error {
	sending, stop := outlive(ctx, Grace)
	defer stop()
	m := newMerge(p.shifted(source), p.Live)
	err := p.play(ctx, sending, m)
	if closeErr := p.Sender.Close(sending); err == nil {
		err = closeErr
	}
	return err
}

func (p *Player) play(ctx, sending context.Context, m *merge) error {
	b := batch{player: p}
	now := int64(0) // in the time of the streams
	for ctx.Err() == nil {
		due, more := m.peek()
		if !more {
			return b.flush(sending)
		}
		if p.RealTime && due > time.Now().UnixNano() {
			if err := b.flush(sending); err != nil {
				return err
			}
			if !sleepUntil(ctx, due) {
				break
			}
		}
		now = due
		b.add(m.pop())
		if b.full() {
			if err := b.flush(sending); err != nil {
				return err
			}
		}
	}
	if p.RealTime {
		now = time.Now().UnixNano()
	}
	for _, told := range m.underWay() {
		if told.Stream.Start <= now {
			b.add(cancelled(told, now))
		}
	}
	return b.flush(sending)
}

// cancelled returns what is left to tell about a stream whose client goes away.
func cancelled(told stream.Part, at int64) stream.Part {
	cut := told.Stream.Cancelled(at)
	rest := stream.Whole(cut)
	rest.Start = !told.Start
	rest.Scheduled = rest.Scheduled && !told.Scheduled
	// What has been told stays told, also where its time is after the cut.
	cut.Chunks = told.Stream.Chunks[:max(told.To, rest.To)]
	rest.From, rest.To = told.To, len(cut.Chunks)
	cut.End.Time = max(cut.End.Time, cut.LastTime())
	return rest
}

// shifted moves the source's streams to the present when they are played in
// real time.
func (p *Player) shifted(source Source) Source {
	if !p.RealTime {
		return source
	}
	return &shifted{source: source}
}

type shifted struct {
	source Source
	by     time.Duration
	begun  bool
}

func (s *shifted) Next() (*stream.Stream, bool) {
	next, ok := s.source.Next()
	if !ok {
		return nil, false
	}
	if !s.begun {
		s.by, s.begun = time.Duration(time.Now().UnixNano()-next.Start), true
	}
	next.Shift(s.by)
	return next, true
}

// batch is what is to be sent at once.
type batch struct {
	player *Player
	parts  []stream.Part
	events int
}

func (b *batch) add(p stream.Part) {
	b.parts = append(b.parts, p)
	b.events += p.Events()
}

func (b *batch) full() bool {
	if b.player.Live {
		return b.events >= maxLiveEvents
	}
	return b.events >= maxWholeEvents
}

func (b *batch) flush(ctx context.Context) error {
	if len(b.parts) == 0 {
		return nil
	}
	if err := b.player.Sender.Send(ctx, b.parts); err != nil {
		return err
	}
	for _, part := range b.parts {
		b.player.Tally.Tokens.Add(int64(part.Tokens()))
		if part.End {
			b.player.Tally.Requests.Add(1)
		}
	}
	b.parts, b.events = b.parts[:0], 0
	return nil
}

// sleepUntil reports whether the Unix time in nanoseconds came before ctx was done.
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

// outlive returns a context that is done some time after ctx is.
func outlive(ctx context.Context, grace time.Duration) (context.Context, context.CancelFunc) {
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		select {
		case <-longer.Done():
		case <-time.After(grace):
			cancel()
		}
	})
	return longer, func() {
		stop()
		cancel()
	}
}
