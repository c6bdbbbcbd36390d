// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package play

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/recording"
	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/send"
	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/stream"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const begin = int64(1_795_233_292_181_556_789)

// sent is a part and the time at which it was sent.
type sent struct {
	part stream.Part
	at   time.Time
}

// fakeSender records the parts.
type fakeSender struct {
	sent    []sent
	batches int
	closed  int
	fail    error
}

func (f *fakeSender) Send(_ context.Context, parts []stream.Part) error {
	if f.fail != nil {
		return f.fail
	}
	f.batches++
	for _, p := range parts {
		f.sent = append(f.sent, sent{p, time.Now()})
	}
	return nil
}

func (f *fakeSender) Close(context.Context) error {
	f.closed++
	return nil
}

// streams returns the streams of all sent parts.
func (f *fakeSender) streams(t *testing.T) []*stream.Stream {
	t.Helper()
	var written []byte
	for _, s := range f.sent {
		var err error
		written, err = s.part.AppendNDJSON(written)
		require.NoError(t, err)
	}
	streams, err := recording.Read(t.Context(), bytes.NewReader(written))
	require.NoError(t, err)
	return streams
}

func chunk(ms int64) stream.Chunk { return stream.Chunk{Time: begin + ms*1e6, Tokens: 1} }

// three returns overlapping streams: b starts and ends within a, and c starts when b
// ends. The times of c go back, and it has no end.
func three() []*stream.Stream {
	return []*stream.Stream{
		{ID: "a", Start: begin, Scheduled: begin + 1e6, Chunks: []stream.Chunk{chunk(100), chunk(200), chunk(400)}, End: &stream.End{Time: begin + 401e6}},
		{ID: "b", Start: begin + 150e6, Chunks: []stream.Chunk{chunk(160)}, End: &stream.End{Time: begin + 300e6, Error: "boom"}},
		{ID: "c", Start: begin + 300e6, Chunks: []stream.Chunk{chunk(350), chunk(340), chunk(500)}},
	}
}

// liveAndWhole runs a test with single events and with whole streams, each with a clock of its own.
func liveAndWhole(t *testing.T, test func(t *testing.T, live bool)) {
	t.Helper()
	for name, live := range map[string]bool{"live": true, "whole streams": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { test(t, live) })
		})
	}
}

func newPlayer(sender send.Sender, live, realTime bool) *Player {
	return &Player{Sender: sender, Stats: &send.Stats{}, Live: live, RealTime: realTime}
}

func play(t *testing.T, ctx context.Context, p *Player, streams []*stream.Stream) {
	t.Helper()
	require.NoError(t, p.Play(ctx, slices.Values(streams)))
}

// labels describes each sent part by its stream and events.
func labels(all []sent) []string {
	var out []string
	for _, s := range all {
		p := s.part
		label := []string{p.Stream.ID}
		if p.Start {
			label = append(label, "start")
		}
		if p.Scheduled {
			label = append(label, "scheduled")
		}
		for _, c := range p.Chunks() {
			label = append(label, time.Duration(c.Time-begin).String())
		}
		if p.End {
			label = append(label, "end")
		}
		out = append(out, strings.Join(label, " "))
	}
	return out
}

func TestPlay_LiveEventsInTimeOrder(t *testing.T) {
	sender := &fakeSender{}
	player := newPlayer(sender, true, false)
	play(t, t.Context(), player, three())
	require.Equal(t, []string{
		"a start", "a scheduled", "a 100ms", "b start", "b 160ms", "a 200ms", "b end",
		"c start", "c 350ms", "c 340ms", "a 400ms", "a end", "c 500ms",
	}, labels(sender.sent))
	require.Equal(t, three(), sender.streams(t))
	require.Equal(t, 1, sender.closed)
	require.EqualValues(t, 2, player.Stats.Requests.Load(), "c has no end")
	require.EqualValues(t, 7, player.Stats.Tokens.Load())
}

func TestPlay_WholeStreamsInOrderOfEnds(t *testing.T) {
	sender := &fakeSender{}
	play(t, t.Context(), newPlayer(sender, false, false), three())
	require.Equal(t, []string{
		"b start 160ms end", "a start scheduled 100ms 200ms 400ms end", "c start 350ms 340ms 500ms",
	}, labels(sender.sent))
}

func TestPlay_RealTimeSendsWhenDue(t *testing.T) {
	liveAndWhole(t, func(t *testing.T, live bool) {
		began := time.Now()
		sender := &fakeSender{}
		play(t, t.Context(), newPlayer(sender, live, true), three())
		require.Equal(t, 500*time.Millisecond, time.Since(began))
		latest := began
		for _, s := range sender.sent {
			// An event is sent at its time, but never before the events that
			// precede it in its stream. A whole stream is sent at its last time.
			source := *s.part.Stream
			last := source.LastTime()
			if live {
				switch {
				case s.part.Start:
					last = source.Start
				case s.part.Scheduled:
					last = source.Scheduled
				case s.part.End:
					last = source.End.Time
				default:
					last = max(s.part.Chunks()[0].Time, latest.UnixNano())
				}
			}
			require.Equal(t, last, s.at.UnixNano())
			latest = s.at
		}
		// All times are shifted by the same duration.
		shift := time.Duration(began.UnixNano() - begin)
		expected := three()
		for _, s := range expected {
			s.Shift(shift)
		}
		streams := sender.streams(t)
		require.Equal(t, expected, streams)
	})
}

// After 250 ms, a and b are in flight and c has not started.
func TestPlay_StopEndsOpenStreamsAsCancelled(t *testing.T) {
	liveAndWhole(t, func(t *testing.T, live bool) {
		ctx, cancel := context.WithTimeout(t.Context(), 250*time.Millisecond)
		defer cancel()
		sender := &fakeSender{}
		shift := time.Duration(time.Now().UnixNano() - begin)
		play(t, ctx, newPlayer(sender, live, true), three())
		a, b := three()[0], three()[1]
		a.Chunks = a.Chunks[:2]
		a.End = &stream.End{Time: begin + 250e6, Cancelled: true}
		b.End = &stream.End{Time: begin + 250e6, Cancelled: true}
		a.Shift(shift)
		b.Shift(shift)
		require.Equal(t, []*stream.Stream{a, b}, sender.streams(t))
		require.Equal(t, 1, sender.closed)
	})
}

// stopping stops the player after its first batch.
type stopping struct {
	fakeSender
	stop context.CancelFunc
}

func (s *stopping) Send(ctx context.Context, parts []stream.Part) error {
	s.stop()
	return s.fakeSender.Send(ctx, parts)
}

// Without a clock, streams end at their last sent event.
func TestPlay_StopAtFullSpeed(t *testing.T) {
	s := &stream.Stream{ID: "long", Start: begin, End: &stream.End{Time: begin + 1e12}}
	for i := range int64(2_000) {
		s.Chunks = append(s.Chunks, chunk(i))
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	sender := &stopping{stop: cancel}
	play(t, ctx, newPlayer(sender, true, false), []*stream.Stream{s})
	got := sender.streams(t)[0]
	require.Equal(t, s.Chunks[:maxLiveEvents-1], got.Chunks)
	require.Equal(t, &stream.End{Time: s.Chunks[maxLiveEvents-2].Time, Cancelled: true}, got.End)
}

// hanging never finishes a Send.
type hanging struct{ fakeSender }

func (h *hanging) Send(ctx context.Context, _ []stream.Part) error {
	<-ctx.Done()
	return ctx.Err()
}

func TestPlay_StopsAfterGracePeriod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		require.ErrorIs(t, newPlayer(&hanging{}, true, true).Play(ctx, slices.Values(three())), context.Canceled)
		require.Equal(t, time.Second+GracePeriod, time.Since(began))
	})
}

func TestPlay_StreamsSpanBatches(t *testing.T) {
	var streams []*stream.Stream
	for _, id := range []string{"a", "b", "c"} {
		s := &stream.Stream{ID: id, Start: begin, End: &stream.End{Time: begin + 1e12}}
		for i := range int64(1_000) {
			s.Chunks = append(s.Chunks, chunk(i))
		}
		streams = append(streams, s)
	}
	sender := &fakeSender{}
	play(t, t.Context(), newPlayer(sender, true, false), streams)
	require.Equal(t, 7, sender.batches, "3,006 events in batches of 500")
}

func TestPlay_StopsAtFailure(t *testing.T) {
	sender := &fakeSender{fail: errors.New("no")}
	player := newPlayer(sender, true, false)
	require.EqualError(t, player.Play(t.Context(), slices.Values(three())), "no")
	require.Equal(t, 1, sender.closed)
	require.Zero(t, player.Stats.Requests.Load())
}

func TestProgress_FileAndTerminal(t *testing.T) {
	tests := map[string]struct {
		terminal bool
		expected string
	}{
		"in a file":     {false, "    5s  3 requests  500 tokens  100 tokens/s  1 rejected  2 retries\n    7s  3 requests  500 tokens  71 tokens/s  1 rejected  2 retries\n"},
		"on a terminal": {true, "\r\x1b[K    0s  3 requests  500 tokens  2000 tokens/s  1 rejected  2 retries\r\x1b[K    0s  3 requests  500 tokens  1250 tokens/s  1 rejected  2 retries\n"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				stats := &send.Stats{}
				stats.Requests.Store(3)
				stats.Tokens.Store(500)
				stats.Rejected.Store(1)
				stats.Retries.Store(2)
				lasting := 7 * time.Second
				if test.terminal {
					lasting = 400 * time.Millisecond
				}
				ctx, cancel := context.WithTimeout(t.Context(), lasting)
				defer cancel()
				var out bytes.Buffer
				ShowProgress(ctx, &out, test.terminal, stats)
				require.Equal(t, test.expected, out.String())
			})
		})
	}
}
