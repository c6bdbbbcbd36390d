// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"

	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/recording"
	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/send"
	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/stream"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
)

const begin = int64(1_795_233_292_181_556_789)

var resource = &stream.Resource{Attributes: stream.Attributes{"service.name": "chat", "replicas": int64(3)}}

// everything returns streams that use every field.
func everything() []*stream.Stream {
	return []*stream.Stream{
		{
			ID: `quo"ted ☃`, Resource: resource, Vantage: timeline.VantageGateway,
			TraceID: []byte("0123456789abcdef"), SpanID: []byte("01234567"), ParentSpanID: []byte("89abcdef"),
			Attributes: stream.Attributes{
				"gen_ai.request.model": "m", "stream": true, "temperature": 0.7, "tries": int64(1) << 60,
				"stop": []any{"a", int64(2)}, "nested": map[string]any{"deep": "value"},
			},
			Start: begin, Scheduled: begin + 1_000_001,
			Chunks: []stream.Chunk{
				{Time: begin + 20_000_001, Tokens: 1, Channel: timeline.Reasoning, Sequence: 0, Sequenced: true},
				{Time: begin + 40_000_003, Tokens: 3, Channel: timeline.Reasoning, Sequence: 1, Sequenced: true},
				{Time: begin + 40_000_002, Tokens: 1, Channel: timeline.Content, Sequence: 2, Sequenced: true},
				{Time: begin + 90_000_000, Tokens: 0, Channel: timeline.Content, Sequence: 9, Sequenced: true},
				{Time: begin + 95_000_000, Tokens: 1, Channel: timeline.ToolCall},
			},
			End: &stream.End{
				Time: begin + 99_000_000, FinishReason: "tool_calls",
				Usage:      &stream.Usage{InputTokens: new(uint64(7)), OutputTokens: new(uint64(6)), ReasoningTokens: new(uint64(0))},
				Attributes: stream.Attributes{"late": "yes"},
			},
		},
		{ID: "failed", Resource: resource, Start: begin + 1, End: &stream.End{Time: begin + 2, Error: "boom"}},
		{ID: "cancelled", Resource: &stream.Resource{Attributes: stream.Attributes{"service.name": "other"}}, Start: begin + 2, End: &stream.End{Cancelled: true}},
		{
			ID: "without an end", Resource: resource, Start: begin + 3,
			Chunks: []stream.Chunk{{Time: begin + 1_003, Tokens: 1}, {Time: begin + 5_003, Tokens: 1}, {Time: begin + 2_003, Tokens: 1}},
		},
	}
}

// wholeParts returns one part per stream.
func wholeParts(streams []*stream.Stream) []stream.Part {
	var parts []stream.Part
	for _, s := range streams {
		parts = append(parts, stream.Whole(s))
	}
	return parts
}

func newSender(t *testing.T, receiver *fakeReceiver, transport send.Transport) (send.Sender, *send.Stats) {
	t.Helper()
	stats := &send.Stats{}
	sender, err := send.New(send.Config{
		Transport: transport, Endpoint: receiver.Endpoint(transport), Stats: stats,
		Headers: map[string]string{"Authorization": "Bearer secret"},
	})
	require.NoError(t, err)
	return sender, stats
}

// live are the transports that send each event when it happens.
var live = []send.Transport{send.NDJSON, send.GRPCStream}

// eachTransport runs a test with a receiver of its own for each transport.
func eachTransport(t *testing.T, transports []send.Transport, test func(*testing.T, send.Transport, *fakeReceiver)) {
	t.Helper()
	for _, transport := range transports {
		t.Run(string(transport), func(t *testing.T) {
			t.Parallel()
			test(t, transport, startReceiver(t))
		})
	}
}

// sendAll sends parts and waits until they are acknowledged.
func sendAll(ctx context.Context, sender send.Sender, parts []stream.Part) error {
	return errors.Join(sender.Send(ctx, parts), sender.Close(ctx))
}

func TestSend_EveryTransportSendsSameStreams(t *testing.T) {
	eachTransport(t, send.Transports, func(t *testing.T, transport send.Transport, receiver *fakeReceiver) {
		sender, stats := newSender(t, receiver, transport)
		require.NoError(t, sendAll(t.Context(), sender, wholeParts(everything())))
		require.Equal(t, everything(), receiver.Streams())
		require.Equal(t, []string{"Bearer secret"}, receiver.Authorizations())
		require.Zero(t, stats.Rejected.Load())
		require.Zero(t, stats.Retries.Load())
	})
}

// Events must arrive when they are sent, before the request is finished.
func TestSend_LiveTransportSendsEventsImmediately(t *testing.T) {
	eachTransport(t, live, func(t *testing.T, transport send.Transport, receiver *fakeReceiver) {
		sender, _ := newSender(t, receiver, transport)
		s := everything()[0]
		parts := []stream.Part{{Stream: s, Start: true}, {Stream: s, Scheduled: true}}
		for i := range s.Chunks {
			parts = append(parts, stream.Part{Stream: s, From: i, To: i + 1})
		}
		parts = append(parts, stream.Part{Stream: s, From: len(s.Chunks), To: len(s.Chunks), End: true})
		for i, p := range parts {
			require.NoError(t, sender.Send(t.Context(), []stream.Part{p}))
			require.Eventually(t, func() bool { return receiver.Received() == i+1 }, 10*time.Second, time.Millisecond)
		}
		require.Zero(t, receiver.Requests(), "the only request is still open")
		require.NoError(t, sender.Close(t.Context()))
		require.Equal(t, 1, receiver.Requests())
		require.Equal(t, everything()[:1], receiver.Streams())
	})
}

// A request that never ends would never be acknowledged.
func TestSend_LiveTransportStartsNewRequestAt5000Events(t *testing.T) {
	eachTransport(t, live, func(t *testing.T, transport send.Transport, receiver *fakeReceiver) {
		sender, _ := newSender(t, receiver, transport)
		s := &stream.Stream{ID: "long", Resource: resource, Start: begin}
		for i := range 12_000 {
			s.Chunks = append(s.Chunks, stream.Chunk{Time: begin + int64(i), Tokens: 1})
		}
		require.NoError(t, sender.Send(t.Context(), []stream.Part{{Stream: s, Start: true, To: 1}}))
		for i := 1; i < len(s.Chunks); i++ {
			require.NoError(t, sender.Send(t.Context(), []stream.Part{{Stream: s, From: i, To: i + 1}}))
		}
		require.NoError(t, sender.Close(t.Context()))
		require.Equal(t, 3, receiver.Requests(), "12,001 events in requests of 5,000")
		require.Equal(t, []*stream.Stream{s}, receiver.Streams())
	})
}

func TestSend_ActsOnTheResponse(t *testing.T) {
	busy := refusal{Status: http.StatusTooManyRequests, Code: codes.ResourceExhausted}
	down := refusal{Status: http.StatusServiceUnavailable, Code: codes.Unavailable}
	for name, test := range map[string]struct {
		refusals          []refusal
		rejects           int64
		err               string
		retries, rejected int64
		takes             time.Duration
	}{
		"too many requests, twice":    {refusals: []refusal{busy, busy}, retries: 2},
		"unavailable, twice":          {refusals: []refusal{down, down}, retries: 2},
		"busy for two seconds":        {refusals: []refusal{{busy.Status, busy.Code, 2 * time.Second, 0}}, retries: 1, takes: 2 * time.Second},
		"an error that stays":         {refusals: []refusal{{Status: http.StatusUnauthorized, Code: codes.Unauthenticated}}, err: "not now"},
		"accepted, with 3 rejections": {rejects: 3, rejected: 3},
	} {
		t.Run(name, func(t *testing.T) {
			eachTransport(t, send.Transports, func(t *testing.T, transport send.Transport, receiver *fakeReceiver) {
				receiver.Refuse(test.refusals...)
				receiver.Reject(test.rejects)
				sender, stats := newSender(t, receiver, transport)
				began := time.Now()
				// A live sender notices a failure in the second Send and must repeat the parts of the first.
				parts := wholeParts(everything())
				err := sender.Send(t.Context(), parts[:1])
				if err == nil {
					err = sendAll(t.Context(), sender, parts[1:])
				} else {
					_ = sender.Close(t.Context())
				}
				require.GreaterOrEqual(t, time.Since(began), test.takes)
				require.Equal(t, test.retries, stats.Retries.Load())
				if test.err != "" {
					require.ErrorContains(t, err, test.err)
					return
				}
				require.NoError(t, err)
				require.Equal(t, everything(), receiver.Streams())
				requests := int64(receiver.Requests())
				require.Equal(t, test.rejected*requests, stats.Rejected.Load())
				if test.rejected > 0 {
					require.Equal(t, "wrong", stats.LastRejection())
				}
			})
		})
	}
}

// The receiver reports how many lines it processed. They must not be sent again,
// wherever in a part they end.
func TestSend_ContinuesAfterProcessedLines(t *testing.T) {
	parts := wholeParts(everything())
	events := 0
	for _, p := range parts {
		events += p.Events()
	}
	for after := 1; after <= events; after++ {
		t.Run(fmt.Sprint(after, " lines"), func(t *testing.T) {
			t.Parallel()
			receiver := startReceiver(t)
			receiver.Refuse(refusal{Status: http.StatusTooManyRequests, AfterLines: after})
			sender, stats := newSender(t, receiver, send.NDJSON)
			require.NoError(t, sendAll(t.Context(), sender, parts))
			require.Equal(t, everything(), receiver.Streams())
			require.EqualValues(t, 1, stats.Rejected.Load())
		})
	}
}

// An outage longer than all attempts costs its events; the traffic after it arrives.
func TestSend_GoesOnAfterOutage(t *testing.T) {
	withShortDelay := []send.Transport{send.GRPC, send.GRPCStream}
	eachTransport(t, withShortDelay, func(t *testing.T, transport send.Transport, receiver *fakeReceiver) {
		outage := slices.Repeat([]refusal{{Code: codes.Unavailable, RetryAfter: time.Millisecond}}, 8)
		parts := wholeParts(everything())
		stats := &send.Stats{}
		connect := func() send.Sender {
			sender, err := send.New(send.Config{Transport: transport, Endpoint: receiver.Endpoint(transport), Stats: stats})
			require.NoError(t, err)
			return sender
		}
		receiver.Refuse(outage...)
		require.ErrorContains(t, sendAll(t.Context(), connect(), parts[0:1]), "gave up after 8 attempts", "a wrong endpoint ends the run")
		require.NoError(t, sendAll(t.Context(), connect(), parts[1:2]))
		receiver.Refuse(outage...)
		require.NoError(t, sendAll(t.Context(), connect(), parts[2:3]))
		require.NoError(t, sendAll(t.Context(), connect(), parts[3:4]))
		require.Equal(t, []*stream.Stream{everything()[1], everything()[3]}, receiver.Streams())
		require.EqualValues(t, parts[2].Events(), stats.Refused.Load())
		require.Contains(t, stats.LastRefusal(), "not now")
	})
}

// A restarted receiver answers 400 or INVALID_ARGUMENT to a live request that has only events
// of streams it does not know any more.
func TestSend_GoesOnAfterARequestThatIsRejectedWhole(t *testing.T) {
	parts := wholeParts(everything())
	for transport, expected := range map[send.Transport]struct {
		rejected int
		message  string
	}{
		send.NDJSON:     {1, "full"},
		send.GRPC:       {len(parts), "not now"},
		send.GRPCStream: {len(parts), "not now"},
	} {
		t.Run(string(transport), func(t *testing.T) {
			receiver := startReceiver(t)
			receiver.Refuse(refusal{Status: http.StatusBadRequest, Code: codes.InvalidArgument, AfterLines: 1})
			sender, stats := newSender(t, receiver, transport)
			require.NoError(t, sendAll(t.Context(), sender, parts))
			require.EqualValues(t, expected.rejected, stats.Rejected.Load())
			require.Equal(t, expected.message, stats.LastRejection())
			require.Zero(t, stats.Retries.Load())
		})
	}
}

// Nothing listens on the port: the sender retries until the context is done.
func TestSend_StopsWhileWaitingForRetry(t *testing.T) {
	for _, transport := range send.Transports {
		t.Run(string(transport), func(t *testing.T) {
			t.Parallel()
			sender, err := send.New(send.Config{Transport: transport, Endpoint: "localhost:1", Stats: &send.Stats{}})
			require.NoError(t, err)
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			require.ErrorContains(t, sendAll(ctx, sender, wholeParts(everything())), "refused")
		})
	}
}

func TestNew_RejectsUnknownTransport(t *testing.T) {
	_, err := send.New(send.Config{Transport: "pigeon"})
	require.EqualError(t, err, `--transport is "pigeon"; valid values: ndjson, json, protobuf, grpc, grpc-stream`)
}

func TestFile_WritesRecording(t *testing.T) {
	path := filepath.Join(t.TempDir(), "recording.jsonl")
	out, err := os.Create(path)
	require.NoError(t, err)
	sender := send.NewFile(out)
	require.NoError(t, sendAll(t.Context(), sender, wholeParts(everything())))
	in, err := os.Open(path)
	require.NoError(t, err)
	defer in.Close()
	streams, err := recording.Read(t.Context(), in)
	require.NoError(t, err)
	require.Equal(t, everything(), streams)
}

func BenchmarkSend(b *testing.B) {
	const chunks = 1_000
	s := &stream.Stream{ID: "s", Resource: resource, Start: begin, End: &stream.End{}}
	for i := range chunks {
		s.Chunks = append(s.Chunks, stream.Chunk{Time: begin + int64(i)*20_000_000, Tokens: 1, Sequence: uint64(i), Sequenced: true})
	}
	part := stream.Whole(s)
	b.Run("ndjson", func(b *testing.B) {
		b.ReportAllocs()
		var buffer []byte
		for b.Loop() {
			var err error
			buffer, err = part.AppendNDJSON(buffer[:0])
			require.NoError(b, err)
		}
		streams, err := recording.Read(b.Context(), bytes.NewReader(buffer))
		require.NoError(b, err)
		require.Len(b, streams[0].Chunks, chunks)
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*chunks), "ns/token")
	})
	b.Run("proto", func(b *testing.B) {
		b.ReportAllocs()
		deltas := 0
		for b.Loop() {
			deltas = len(stream.ToProto([]stream.Part{part}).ResourceTokenStreams[0].TokenStreams[0].ChunkRuns[0].TimeDeltas)
		}
		require.Equal(b, chunks, deltas)
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*chunks), "ns/token")
	})
}
