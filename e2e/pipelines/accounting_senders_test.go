// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package pipelines

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	commonv1 "go.opentelemetry.io/proto/otlp/common/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tokenpulse/tokenpulse/e2e/internal/collector"
	"github.com/tokenpulse/tokenpulse/e2e/internal/tokenevents"
	"github.com/tokenpulse/tokenpulse/proto/tokenpulse/v1"
)

// ledger is what the senders know about their events.
type ledger struct {
	// gate stops the senders: each request holds the read lock.
	gate sync.RWMutex
	// begun and settled count the events of requests that were begun and answered. Requests
	// that a sender breaks off are never settled.
	begun, settled atomic.Int64
	accepted       atomic.Int64 // events that answers say are accepted
	brokenOff      atomic.Int64 // events of requests that a sender broke off
}

// faultySenders are senders that do everything that a Collector must survive.
type faultySenders struct {
	ledger
	collector *collector.Collector
	grpc      tokenpulsev1.TokenStreamServiceClient
	stop      chan struct{}
	number    atomic.Int64
}

func (s *faultySenders) stopped() bool {
	select {
	case <-s.stop:
		return true
	default:
		return false
	}
}

// pause waits for a time, or until the senders stop.
func (s *faultySenders) pause(d time.Duration) {
	select {
	case <-s.stop:
	case <-time.After(d):
	}
}

// newID returns the ID of a stream that no other sender has.
func (s *faultySenders) newID(kind string) string { return fmt.Sprintf("%s-%d", kind, s.number.Add(1)) }

// post sends a body that holds a number of events, and returns the status of the answer.
func (s *faultySenders) post(contentType, body string, events int) int {
	s.gate.RLock()
	defer s.gate.RUnlock()
	s.begun.Add(int64(events))
	response, err := http.Post("http://"+s.collector.HTTP+"/v1/tokens", contentType, strings.NewReader(body))
	if err != nil {
		s.brokenOff.Add(int64(events))
		return 0
	}
	defer response.Body.Close()
	var answer struct{ Accepted int64 }
	_ = json.NewDecoder(response.Body).Decode(&answer)
	s.accepted.Add(answer.Accepted)
	s.settled.Add(int64(events))
	return response.StatusCode
}

// tokenevents.PostLines sends lines, and sends them again while they are temporarily refused.
func (s *faultySenders) postLines(lines ...string) (status int) {
	for !s.stopped() {
		status = s.post("application/x-ndjson", strings.Join(lines, "\n")+"\n", len(lines))
		if status != http.StatusTooManyRequests && status != http.StatusServiceUnavailable {
			break
		}
		s.pause(20 * time.Millisecond)
	}
	return status
}

// sendWhole sends whole streams, some of them twice. They hold repeated events and
// chunks without tokens.
func (s *faultySenders) sendWhole() {
	id, begin := s.newID("whole"), time.Now().Add(-time.Second)
	lines := []string{tokenevents.Line("start", id, begin, `,"attributes":{"`+extraEvents+`":4}`)}
	lines = append(lines, tokenevents.Chunks(id, begin, 1, 8)...)
	lines = append(lines, tokenevents.Chunks(id, begin, 3, 2)...)
	lines = append(lines,
		tokenevents.Line("chunk", id, begin.Add(time.Millisecond), `,"tokens":0`),
		tokenevents.Line("scheduled", id, begin, ""),
		tokenevents.Line("end", id, begin.Add(time.Second), ""))
	if s.postLines(lines...) == http.StatusOK && rand.IntN(4) == 0 {
		s.postLines(lines...)
	}
}

// sendLong sends streams with more chunks than max_chunks_per_stream, in one request or
// two, with and without an end.
func (s *faultySenders) sendLong() {
	id, begin := s.newID("long"), time.Now().Add(-time.Second)
	lines := append([]string{tokenevents.Line("start", id, begin, "")}, tokenevents.Chunks(id, begin, 1, 30)...)
	rest := tokenevents.Chunks(id, begin, 31, 30)
	if rand.IntN(2) == 0 {
		rest = append(rest, tokenevents.Line("end", id, begin.Add(time.Second), ""))
	}
	if rand.IntN(2) == 0 {
		s.postLines(append(lines, rest...)...)
		return
	}
	s.postLines(lines...)
	s.postLines(rest...)
}

// sendUnreadable sends lines and bodies that are rejected, beside a stream that is not.
func (s *faultySenders) sendUnreadable() {
	id, begin := s.newID("good"), time.Now().Add(-time.Second)
	s.postLines(
		`{"event":`,
		tokenevents.Line("chunk", "never-started", begin, ""),
		tokenevents.Line("nonsense", id, begin, ""),
		tokenevents.Line("start", id, begin, ""),
		tokenevents.Line("chunk", id, begin.Add(48*time.Hour), ""),
		tokenevents.Line("chunk", id, begin.Add(time.Millisecond), `,"note":"`+strings.Repeat("x", 70<<10)+`"`),
		tokenevents.Line("chunk", id, begin.Add(time.Millisecond), ""),
		tokenevents.Line("end", id, begin.Add(time.Second), ""))
	s.post("application/x-protobuf", "\xff\xff\xff", 1)
	s.post("application/json", "{", 1)
}

// sendAbandoned opens streams that never end.
func (s *faultySenders) sendAbandoned() {
	id, begin := s.newID("abandoned"), time.Now().Add(-time.Second)
	s.postLines(append([]string{tokenevents.Line("start", id, begin, "")}, tokenevents.Chunks(id, begin, 1, 2)...)...)
}

// sendStarts opens many streams in one request, with attributes of a size, until a limit
// refuses them.
func (s *faultySenders) sendStarts(streams, size int) {
	attributes := fmt.Sprintf(`,"attributes":{"test.filler":%q}`, strings.Repeat("x", size))
	for range 20 {
		var lines []string
		for range streams {
			lines = append(lines, tokenevents.Line("start", s.newID("start"), time.Now(), attributes))
		}
		if s.stopped() || s.post("application/x-ndjson", strings.Join(lines, "\n")+"\n", streams) != http.StatusOK {
			return
		}
	}
}

const chunksPerMessage = 10

// message is one of three messages of a stream.
func message(id string, begin time.Time, part int) *tokenpulsev1.ExportTokenStreamsRequest {
	stream := &tokenpulsev1.TokenStream{StreamId: id, ChunkRuns: []*tokenpulsev1.ChunkRun{{
		TimeUnixNano: uint64(begin.Add(time.Duration(part) * time.Second).UnixNano()), DeltaUnitNanos: 1000,
		TimeDeltas: []int64{0, 9, 8, 7, 6, 5, 4, 3, 2, 1},
	}}}
	if part == 0 {
		stream.Start = &tokenpulsev1.StreamStart{TimeUnixNano: uint64(begin.UnixNano()), Attributes: []*commonv1.KeyValue{{
			Key: chunksOfMessage, Value: &commonv1.AnyValue{Value: &commonv1.AnyValue_IntValue{IntValue: chunksPerMessage}},
		}}}
	}
	if part == 2 {
		stream.End = &tokenpulsev1.StreamEnd{}
	}
	return &tokenpulsev1.ExportTokenStreamsRequest{ResourceTokenStreams: []*tokenpulsev1.ResourceTokenStreams{{TokenStreams: []*tokenpulsev1.TokenStream{stream}}}}
}

// sendMessages sends a stream in three messages over gRPC.
func (s *faultySenders) sendMessages() {
	id, begin := s.newID("messages"), time.Now().Add(-3*time.Second)
	for part := 0; part < 3 && !s.stopped(); {
		switch s.export(message(id, begin, part)) {
		case codes.OK:
			part++
		case codes.Unavailable, codes.ResourceExhausted:
			s.pause(20 * time.Millisecond)
		default: // a permanent error, or the stream has expired
			return
		}
	}
}

func (s *faultySenders) export(message *tokenpulsev1.ExportTokenStreamsRequest) codes.Code {
	s.gate.RLock()
	defer s.gate.RUnlock()
	s.begun.Add(1)
	_, err := s.grpc.Export(context.Background(), message)
	if err == nil {
		s.accepted.Add(1)
	}
	s.settled.Add(1)
	return status.Code(err)
}

// breakOff opens a live body or call, sends a part of a stream, and cuts the connection
// or resets the call. The Collector may have read any number of the events.
func (s *faultySenders) breakOff() {
	s.gate.RLock()
	defer s.gate.RUnlock()
	if rand.IntN(2) == 0 {
		const messages = 2
		s.begun.Add(messages)
		s.brokenOff.Add(messages)
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		call, err := s.grpc.Stream(ctx)
		if err != nil {
			return
		}
		id, begin := s.newID("reset"), time.Now().Add(-2*time.Second)
		for part := range messages {
			_ = call.Send(message(id, begin, part))
		}
		time.Sleep(rand.N(20 * time.Millisecond))
		return
	}
	id, begin := s.newID("cut"), time.Now().Add(-time.Second)
	lines := append([]string{tokenevents.Line("start", id, begin, "")}, tokenevents.Chunks(id, begin, 1, 9)...)
	s.begun.Add(int64(len(lines)))
	s.brokenOff.Add(int64(len(lines)))
	connection, err := net.Dial("tcp", s.collector.HTTP)
	if err != nil {
		return
	}
	defer connection.Close()
	_ = connection.(*net.TCPConn).SetLinger(rand.IntN(2) - 1) // a reset, or an orderly end
	fmt.Fprintf(connection, "POST /v1/tokens HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-ndjson\r\nTransfer-Encoding: chunked\r\n\r\n")
	for _, line := range lines {
		fmt.Fprintf(connection, "%x\r\n%s\n\r\n", len(line)+1, line)
		time.Sleep(rand.N(2 * time.Millisecond))
	}
	_, _ = io.WriteString(connection, "40\r\n{\"event\":")
}

// run runs the senders until close.
func (s *faultySenders) run(t *testing.T) (stop func()) {
	t.Helper()
	var running sync.WaitGroup
	repeat := func(pause time.Duration, send func()) {
		running.Go(func() {
			for !s.stopped() {
				send()
				s.pause(pause)
			}
		})
	}
	for range 3 {
		repeat(2*time.Millisecond, s.sendWhole)
		repeat(2*time.Millisecond, s.sendMessages)
	}
	repeat(10*time.Millisecond, s.sendLong)
	repeat(20*time.Millisecond, s.sendUnreadable)
	repeat(20*time.Millisecond, s.sendAbandoned)
	repeat(50*time.Millisecond, s.breakOff)
	turn := 0
	repeat(1500*time.Millisecond, func() { // fill max_memory_mib and max_streams in turn
		if turn++; turn%2 == 1 {
			s.sendStarts(8, 50<<10)
		} else {
			s.sendStarts(50, 1)
		}
	})
	return func() {
		close(s.stop)
		running.Wait()
	}
}
