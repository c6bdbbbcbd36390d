// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokenstreamreceiver

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/assembly"
)

// The times of the documentation of the receiver.
const (
	refusedTimeout = 5 * time.Minute // of expired streams
	longestRetry   = time.Minute
	scarceRetry    = 5 * time.Second // the longest while memory is scarce
	refusalHold    = 5 * time.Second // of starts
)

// pipe is a pipeline that keeps each delivery, also those that it refuses.
type pipe struct {
	refuse    func() error
	attempts  int
	size      int      // spans of the last attempt
	delivered []string // the encoded spans
	refused   []string
}

func (*pipe) Capabilities() consumer.Capabilities { return consumer.Capabilities{MutatesData: true} }

func (p *pipe) ConsumeTraces(_ context.Context, traces ptrace.Traces) error {
	p.attempts++
	p.size = traces.SpanCount()
	encoded, _ := new(ptrace.ProtoMarshaler).MarshalTraces(traces)
	if err := p.refuse(); err != nil {
		p.refused = append(p.refused, string(encoded))
		return err
	}
	p.delivered = append(p.delivered, string(encoded))
	return nil
}

// still is a receiver without servers and with a clock that only the test advances.
type still struct {
	bench
	pipe  *pipe
	clock time.Duration
}

func newStill(t testing.TB, change ...func(*Config)) *still {
	t.Helper()
	cfg := configOn("localhost:0", change...)
	require.NoError(t, cfg.Validate())
	s := &still{pipe: &pipe{refuse: func() error { return nil }}, clock: time.Hour}
	telemetry, settings := withTelemetry(t)
	s.telemetry = telemetry
	r, err := newReceiverWithClock(cfg, settings, func() time.Duration { return s.clock })
	require.NoError(t, err)
	r.sendTraces(s.pipe)
	s.tokenStreamReceiver = r
	return s
}

// send sends lines of NDJSON and returns the HTTP status.
func (s *still) send(lines ...string) int {
	answer := httptest.NewRecorder()
	req := httptest.NewRequest(http.MethodPost, tokensPath, strings.NewReader(strings.Join(lines, "\n")+"\n"))
	req.Header.Set("Content-Type", typeNDJSON)
	s.server.Handle(answer, req)
	return answer.Code
}

// advance advances the clock and expires streams every second, as the sweep does.
func (s *still) advance(t testing.TB, d time.Duration) {
	for end := s.clock + d; s.clock < end; {
		s.clock += time.Second
		_ = s.expirer.Expire(t.Context())
	}
}

func (s *still) refusedStreams(t *testing.T) int64 {
	t.Helper()
	return metricValue(t, &s.bench, "streams_lost", map[string]string{"cause": "refused"})
}

func refuseWith(err error) func() error { return func() error { return err } }

// A pipeline that refuses gets a few attempts, not one every second. Then the streams are
// dropped.
func TestExpiry_BacksOffAndDropsRefusedStreams(t *testing.T) {
	s := newStill(t)
	s.pipe.refuse = refuseWith(errFull)
	const streams = 100
	for i := range streams {
		require.Equal(t, 200, s.send(startLine(strconv.Itoa(i)), chunkLine(strconv.Itoa(i), time.Millisecond)))
	}
	s.advance(t, time.Minute+refusedTimeout-time.Second)
	require.EqualValues(t, streams, s.ingester.Store.Streams(), "they wait for a retry")
	require.Zero(t, s.refusedStreams(t))
	s.advance(t, 2*longestRetry)
	require.Zero(t, s.ingester.Store.Streams())
	require.Zero(t, s.ingester.Store.Memory())
	require.EqualValues(t, streams, s.refusedStreams(t))
	requireMetric(t, &s.bench, "events_lost", map[string]string{"cause": "refused"}, 2*streams)
	require.Less(t, s.pipe.attempts, 15)
	require.Greater(t, s.pipe.attempts, 5)
	spans := 0
	for _, encoded := range s.pipe.refused {
		traces, err := new(ptrace.ProtoUnmarshaler).UnmarshalTraces([]byte(encoded))
		require.NoError(t, err)
		spans += traces.SpanCount()
	}
	require.Less(t, spans, 3*streams)
	require.Empty(t, s.pipe.delivered)
}

// Dropped streams make room, so the others are sent again soon.
func TestExpiry_RetriesWithin20SecondsOfADrop(t *testing.T) {
	s := newStill(t)
	s.pipe.refuse = refuseWith(errFull)
	require.Equal(t, 200, s.send(startLine("early"), startLine("late"), chunkLine("early", time.Millisecond)))
	s.advance(t, 3*time.Minute)
	require.Equal(t, 200, s.send(chunkLine("late", time.Millisecond)), "it goes on meanwhile")
	for deadline := s.clock + refusedTimeout + 2*longestRetry; s.refusedStreams(t) == 0; {
		require.Less(t, s.clock, deadline)
		s.advance(t, time.Second)
	}
	require.EqualValues(t, 1, s.ingester.Store.Streams(), "the late one waits")
	s.pipe.refuse = refuseWith(nil)
	s.advance(t, 20*time.Second)
	require.Zero(t, s.ingester.Store.Streams())
	require.EqualValues(t, 1, s.refusedStreams(t))
}

func TestExpiry_DeliversOnceThePipelineAccepts(t *testing.T) {
	s := newStill(t)
	const streams = 3000
	for i := range streams {
		require.Equal(t, 200, s.send(startLine(strconv.Itoa(i)), chunkLine(strconv.Itoa(i), time.Millisecond)))
	}
	s.pipe.refuse = refuseWith(errFull)
	s.advance(t, 3*time.Minute)
	require.EqualValues(t, streams, s.ingester.Store.Streams())
	s.pipe.refuse = refuseWith(nil)
	s.advance(t, longestRetry*5/4)
	require.Zero(t, s.ingester.Store.Streams())
	require.EqualValues(t, streams, metricValue(t, &s.bench, "streams_finished", map[string]string{"outcome": "incomplete"}))
	require.Zero(t, s.refusedStreams(t))

	// The next refusal starts with a short delay again.
	require.Equal(t, 200, s.send(startLine("next"), chunkLine("next", time.Millisecond)))
	s.pipe.refuse = refuseWith(errFull)
	s.advance(t, time.Minute)
	require.EqualValues(t, 1, s.ingester.Store.Streams())
	s.pipe.refuse = refuseWith(nil)
	s.advance(t, 2*time.Second)
	require.Zero(t, s.ingester.Store.Streams())
}

// A queue may be too small for all expired streams at once.
func TestExpiry_HalvesRefusedBatches(t *testing.T) {
	s := newStill(t)
	for i := range 100 {
		require.Equal(t, 200, s.send(startLine(strconv.Itoa(i)), chunkLine(strconv.Itoa(i), time.Millisecond)))
	}
	s.pipe.refuse = func() error {
		if s.pipe.size > 12 {
			return errFull
		}
		return nil
	}
	s.advance(t, 2*time.Minute)
	require.Zero(t, s.ingester.Store.Streams())
}

// The processor of a redelivered span can recognise it.
func TestExpiry_RedeliveryIsIdentical(t *testing.T) {
	for name, lines := range map[string][]string{
		"in order":            {startLine("s"), chunkLine("s", time.Millisecond), chunkLine("s", 2*time.Millisecond)},
		"out of order":        {startLine("s"), chunkLine("s", 2*time.Millisecond), chunkLine("s", time.Millisecond), chunkLine("s", time.Millisecond)},
		"repeated sequence":   {startLine("s"), chunkLine("s", 2, `"seq":2`), chunkLine("s", 1, `"seq":1`), chunkLine("s", 1, `"seq":1`), chunkLine("s", 5)},
		"with a trace":        {fmt.Sprintf(`{"event":"start","stream_id":"s","time_unix_nano":"%d","trace_id":%q,"resource":{"service.name":"chat"}}`, at(0), traceHex), chunkLine("s", 1)},
		"without a chunk":     {startLine("s")},
		"with a repeat start": {startLine("s"), startLine("s"), chunkLine("s", 1)},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStill(t, func(c *Config) { c.FirstTokenTimeout = c.IdleTimeout })
			require.Equal(t, 200, s.send(lines...))
			s.pipe.refuse = refuseWith(errFull)
			s.advance(t, 3*time.Minute)
			require.Greater(t, len(s.pipe.refused), 4)
			s.pipe.refuse = refuseWith(nil)
			lost, err := s.expirer.Flush(t.Context()) // as at a shutdown, which sends the same span, too
			require.NoError(t, err)
			require.Zero(t, lost)
			require.Len(t, s.pipe.delivered, 1)
			for _, refused := range s.pipe.refused {
				require.Equal(t, s.pipe.delivered[0], refused)
			}
			require.Zero(t, metricValue(t, &s.bench, "duplicates_dropped", nil)/2, "counted once")
		})
	}
}

// The simulation checks which events are refused. It does not know for how long.
func TestRefusingPipeline_RefusesStartsUntilItAcceptsOrFiveSeconds(t *testing.T) {
	s := newStill(t)
	require.Equal(t, 200, s.send(startLine("open"), startLine("other")))
	s.pipe.refuse = refuseWith(errFull)
	require.Equal(t, 503, s.send(endLine("other")))

	require.Equal(t, 429, s.send(startLine("new")))
	s.pipe.refuse = refuseWith(nil)
	require.Equal(t, 200, s.send(endLine("other")))
	require.Equal(t, 200, s.send(startLine("new")), "the pipeline accepts streams again")

	s.pipe.refuse = refuseWith(errFull)
	require.Equal(t, 503, s.send(endLine("open")))
	require.Equal(t, 429, s.send(startLine("newer")))
	s.clock += refusalHold
	require.Equal(t, 200, s.send(startLine("newer")), "without another attempt")
}

// A client that disconnects is no refusal of the pipeline.
func TestRefusingPipeline_IgnoresDisconnectedClients(t *testing.T) {
	s := newStill(t)
	ctx, cancel := context.WithCancel(t.Context())
	s.pipe.refuse = func() error { cancel(); return ctx.Err() }
	answer := httptest.NewRecorder()
	req := httptest.NewRequestWithContext(ctx, http.MethodPost, tokensPath, strings.NewReader(startLine("s")+"\n"+endLine("s")))
	req.Header.Set("Content-Type", typeNDJSON)
	s.server.Handle(answer, req)
	require.Equal(t, 503, answer.Code)
	require.Equal(t, 200, s.send(startLine("s")))
}

// A memory_limiter refuses finished streams while the open ones take too much memory.
// They are dropped after a while, so that the pipeline and then the receiver recover.
func TestMemoryLimiter_Recovers(t *testing.T) {
	const soft, limit = 1 << 20, 4 << 20 // the memory_limiter acts below max_memory_mib
	s := newStill(t, func(c *Config) { c.MaxMemoryMiB = limit >> 20 })
	s.pipe.refuse = func() error {
		if s.ingester.Store.Memory() > soft {
			return errors.New("data refused due to high memory usage")
		}
		return nil
	}
	attributes := fmt.Sprintf(`"attributes":{"a":%q}`, strings.Repeat("x", 40_000))
	opened := 0
	open := func() int {
		opened++
		id := fmt.Sprint("s", opened)
		status := s.send(fmt.Sprintf(`{"event":"start","stream_id":%q,"time_unix_nano":"%d",%s}`, id, at(0), attributes), chunkLine(id, time.Millisecond))
		require.LessOrEqual(t, s.ingester.Store.Memory(), int64(limit+64<<10))
		return status
	}
	for s.ingester.Store.Memory() <= soft*2 {
		require.Equal(t, 200, open())
	}
	first := opened
	require.Equal(t, 503, s.send(endLine("s1")))
	require.Equal(t, 429, open())

	// Senders go on: they open streams and end them, and give up.
	began := s.clock
	for s.ingester.Store.Memory() > soft {
		s.advance(t, time.Second)
		if open() == 200 {
			s.send(endLine(fmt.Sprint("s", opened)))
		}
		require.Less(t, s.clock-began, 10*time.Minute, "memory falls")
	}
	require.Greater(t, s.refusedStreams(t), int64(first/2))
	s.advance(t, 20*time.Second)
	require.Equal(t, 200, open(), "the room that the dropped streams leave is tried soon")
	require.Equal(t, 200, s.send(endLine(fmt.Sprint("s", opened))))
	s.advance(t, 10*time.Minute)
	require.Zero(t, s.ingester.Store.Streams())
	require.Zero(t, s.ingester.Store.Memory())
}

// Streams that start and never go on fill the memory. Senders are served again within a minute after they
// expire, if they hold most of max_memory_mib, whatever the pipeline refuses for.
func TestMemoryPressure_EndsWithinAMinuteAfterStreamsExpire(t *testing.T) {
	const limit = 4 << 20
	for _, reason := range []string{"data refused due to high memory usage", "the backend is down"} {
		t.Run(reason, func(t *testing.T) {
			s := newStill(t, func(cfg *Config) { cfg.MaxMemoryMiB, cfg.FirstTokenTimeout = limit>>20, 5*time.Second })
			s.pipe.refuse = func() error {
				if s.ingester.Store.Memory() > limit*5/8 {
					return errors.New(reason)
				}
				return nil
			}
			require.Equal(t, 200, s.send(startLine("goes on"), chunkLine("goes on", time.Millisecond)))
			status := http.StatusOK
			for i := 0; status == http.StatusOK; i++ {
				status = s.send(heavyStart(fmt.Sprint("s", i)))
			}
			s.advance(t, 5*time.Second) // they expire
			began := s.clock
			for s.send(startLine("new"), endLine("new")) != http.StatusOK {
				require.Less(t, s.clock-began, time.Minute)
				s.advance(t, time.Second)
			}
			require.Positive(t, s.refusedStreams(t))
			require.Equal(t, 200, s.send(endLine("goes on")), "a stream with a chunk stays")
		})
	}
}

// heavyStart is the start of a stream that holds 40 kB.
func heavyStart(id string) string {
	return fmt.Sprintf(`{"event":"start","stream_id":%q,"time_unix_nano":"%d","attributes":{"a":%q}}`, id, at(0), strings.Repeat("x", 40_000))
}

// heavyStreams opens streams of 40 kB each, and sends a chunk of each if withChunks is set.
func (s *still) heavyStreams(t *testing.T, prefix string, count int, withChunks bool) {
	t.Helper()
	for i := range count {
		id := fmt.Sprint(prefix, i)
		require.Equal(t, 200, s.send(heavyStart(id)))
		if withChunks {
			require.Equal(t, 200, s.send(chunkLine(id, time.Millisecond)))
		}
	}
}

// requireOpen checks that streams of one kind, and no others, are open.
func (s *still) requireOpen(t *testing.T, count int, isKind func(*assembly.Visited) bool) {
	t.Helper()
	var all, ofKind int
	s.ingester.Store.Visit(assembly.Timeouts{FirstToken: time.Hour, Idle: time.Hour}, func(open *assembly.Visited) {
		all++
		if isKind(open) {
			ofKind++
		}
	})
	require.Equal(t, []int{count, count}, []int{all, ofKind})
}

// Under pressure, streams without a chunk are dropped first, and others if that is not enough.
func TestMemoryPressure_StreamsWithoutAChunkGoFirst(t *testing.T) {
	for name, c := range map[string]struct{ with, without, left int }{
		"those without a chunk are enough":     {10, 10, 10},
		"those without a chunk are not enough": {18, 2, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStill(t, func(cfg *Config) {
				cfg.MaxMemoryMiB, cfg.FirstTokenTimeout, cfg.IdleTimeout = 1, 5*time.Second, 5*time.Second
			})
			s.pipe.refuse = refuseWith(errors.New("the backend is down"))
			s.heavyStreams(t, "with", c.with, true)
			s.heavyStreams(t, "without", c.without, false)
			s.advance(t, 20*time.Second)
			require.EqualValues(t, 20, s.ingester.Store.Streams(), "they wait for a retry")
			s.advance(t, 5*time.Second+2*scarceRetry)
			require.EqualValues(t, c.left, s.ingester.Store.Streams())
			s.requireOpen(t, c.left, func(open *assembly.Visited) bool { return open.Decoding })
			require.EqualValues(t, 20-c.left, s.refusedStreams(t))
		})
	}
}

// Under pressure, no more streams are dropped than needed, and the first to expire before others.
func TestMemoryPressure_TheFirstToExpireGoFirst(t *testing.T) {
	s := newStill(t, func(cfg *Config) { cfg.MaxMemoryMiB, cfg.IdleTimeout = 1, 5*time.Second })
	s.pipe.refuse = refuseWith(errors.New("the backend is down"))
	s.heavyStreams(t, "first", 8, true)
	s.heavyStreams(t, "later", 8, true)
	for range 15 {
		s.advance(t, 4*time.Second)
		for i := range 8 {
			require.Equal(t, 200, s.send(chunkLine(fmt.Sprint("later", i), s.clock)))
		}
	}
	require.EqualValues(t, 16, s.ingester.Store.Streams(), "memory is not scarce")
	s.clock += 30 * time.Second // both expired more than 20 s ago
	for deadline := s.clock + longestRetry; s.refusedStreams(t) == 0; {
		require.Less(t, s.clock, deadline)
		s.advance(t, time.Second)
	}
	require.EqualValues(t, 8, s.ingester.Store.Streams())
	s.requireOpen(t, 8, func(open *assembly.Visited) bool { return open.Tokens > 1 })
	require.EqualValues(t, 8, s.refusedStreams(t))
}
