// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokenstreamreceiver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pipeline"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tokenpulse/tokenpulse/internal/testenv"
	tokenpulsev1 "github.com/tokenpulse/tokenpulse/proto/tokenpulse/v1"
)

var errFull = errors.New("queue is full")

// The simulation sends no malformed line.
func TestRefusedRequest_ReportsRejectedLinesWithTheRetry(t *testing.T) {
	b := start(t)
	lines := []string{"nonsense", startLine("s"), endLine("s")}
	b.sink.failWith(errFull)
	got := b.lines(t, lines...)
	require.Equal(t, 503, got.status)
	require.Equal(t, "1", got.header.Get("Retry-After"))
	require.Zero(t, got.answer.Accepted+got.answer.Rejected)
	require.Contains(t, got.answer.Errors[0].Message, "queue is full")
	b.sink.failWith(nil)
	got = b.lines(t, lines...)
	require.Equal(t, []int{200, 2, 1}, []int{got.status, got.answer.Accepted, got.answer.Rejected})
}

func TestPermanentError_Returns400(t *testing.T) {
	b := start(t)
	b.sink.failWith(consumererror.NewPermanent(errors.New("bad data")))
	got := b.lines(t, startLine("s"), endLine("s"))
	require.Equal(t, 400, got.status)
	require.Empty(t, got.header.Get("Retry-After"))
	require.Contains(t, got.answer.Errors[0].Message, "bad data")
	_, err := b.grpc(t).Export(t.Context(), wholeMessage())
	require.Equal(t, codes.InvalidArgument, status.Code(err))
	require.Zero(t, b.ingester.Store.Streams())
}

func requireRetryInfo(t *testing.T, err error, code codes.Code) {
	t.Helper()
	require.Equal(t, code, status.Code(err))
	require.Len(t, status.Convert(err).Details(), 1)
	info, ok := status.Convert(err).Details()[0].(*errdetails.RetryInfo)
	require.True(t, ok)
	require.Equal(t, time.Second, info.GetRetryDelay().AsDuration())
}

func TestGRPC_Refusals(t *testing.T) {
	b := start(t, func(c *Config) { c.MaxStreams = 1 })
	b.sink.failWith(errFull)
	_, err := b.grpc(t).Export(t.Context(), wholeMessage())
	requireRetryInfo(t, err, codes.Unavailable)
	b.sink.failWith(nil)
	_, err = b.grpc(t).Export(t.Context(), wholeMessage())
	require.NoError(t, err)

	startOf := func(ids ...string) *tokenpulsev1.ExportTokenStreamsRequest {
		r := &tokenpulsev1.ResourceTokenStreams{}
		for _, id := range ids {
			r.TokenStreams = append(r.TokenStreams, &tokenpulsev1.TokenStream{StreamId: id, Start: &tokenpulsev1.StreamStart{TimeUnixNano: t0}})
		}
		return &tokenpulsev1.ExportTokenStreamsRequest{ResourceTokenStreams: []*tokenpulsev1.ResourceTokenStreams{r}}
	}
	_, err = b.grpc(t).Export(t.Context(), startOf("a", "b"))
	requireRetryInfo(t, err, codes.ResourceExhausted)
	require.Zero(t, b.ingester.Store.Streams(), "nothing was applied")
	_, err = b.grpc(t).Export(t.Context(), startOf("a"))
	require.NoError(t, err)

	stream, err := b.grpc(t).Stream(t.Context())
	require.NoError(t, err)
	require.NoError(t, stream.Send(startOf("b")))
	_, err = stream.CloseAndRecv()
	requireRetryInfo(t, err, codes.ResourceExhausted)
	require.EqualValues(t, 1, b.ingester.Store.Streams())
}

// read_timeout, write_timeout and max_request_body_size do not apply to live bodies.
func TestLiveBody_OutlivesLimitsOfOtherBodies(t *testing.T) {
	b := start(t, func(c *Config) {
		c.Protocols.HTTP.Get().ReadTimeout = 50 * time.Millisecond
		c.Protocols.HTTP.Get().WriteTimeout = 50 * time.Millisecond
		c.Protocols.HTTP.Get().MaxRequestBodySize = 1000
	})
	l := b.live(t)
	l.send(t, startLine("s"))
	time.Sleep(150 * time.Millisecond)
	for range 10 {
		l.send(t, strings.Repeat(" ", 1000))
	}
	l.send(t, endLine("s"))
	require.NoError(t, l.Close())
	require.Equal(t, reply{200, nil, answer{Accepted: 2}}, func() reply { r := l.wait(t); r.header = nil; return r }())
}

func TestShutdown(t *testing.T) {
	t.Run("open streams are incomplete", func(t *testing.T) {
		b := start(t)
		l := b.live(t)
		l.send(t, startLine("http"), chunkLine("http", time.Millisecond))
		stream, err := b.grpc(t).Stream(t.Context())
		require.NoError(t, err)
		require.NoError(t, stream.Send(parts(wholeMessage())[0]))
		eventually(t, func() bool { return b.ingester.Store.Streams() == 2 }, "both are open")

		require.NoError(t, b.Shutdown(context.Background()))
		got := l.wait(t)
		require.Equal(t, 503, got.status)
		require.Equal(t, 2, got.answer.Accepted)
		_, err = stream.CloseAndRecv()
		requireRetryInfo(t, err, codes.Unavailable)
		require.Len(t, b.sink.all(), 2)
		for _, s := range b.sink.all() {
			require.Equal(t, "incomplete", s.Attributes["tokenpulse.outcome"])
		}
		require.NoError(t, b.Shutdown(context.Background()), "twice")
		require.Len(t, b.sink.all(), 2)
	})
	t.Run("without Start", func(t *testing.T) {
		r, err := newReceiver(createDefaultConfig().(*Config), receivertest.NewNopSettings(NewFactory().Type()))
		require.NoError(t, err)
		require.NoError(t, r.Shutdown(context.Background()))
		require.NoError(t, r.Shutdown(context.Background()))
	})
}

func TestMaxChunksPerStream_CountsDroppedChunks(t *testing.T) {
	b := start(t, func(c *Config) { c.MaxChunksPerStream = 3 })
	lines := []string{startLine("s")}
	for i := range 5 {
		lines = append(lines, chunkLine("s", time.Duration(i)*time.Millisecond))
	}
	got := b.lines(t, lines...)
	require.Equal(t, 4, got.answer.Accepted)
	require.Equal(t, 2, got.answer.Rejected)
	require.Contains(t, got.answer.Errors[0].Message, "more than 3 chunks: 2 were dropped")
	got = b.lines(t, chunkLine("s", 6*time.Millisecond), endLine("s"))
	require.Equal(t, 1, got.answer.Accepted)
	require.Len(t, b.sink.one(t).Chunks, 3)
	require.EqualValues(t, 3, b.sink.one(t).Attributes["tokenpulse.chunk.dropped"])
	requireMetric(t, b, "chunks_dropped", nil, 3)
	requireMetric(t, b, "events_rejected", map[string]string{"reason": "limit"}, 3)
}

// generator sends whole streams over NDJSON and retries refused requests.
type generator struct {
	t    *testing.T
	url  string
	next atomic.Int64
}

func (*generator) Start() {}
func (*generator) Stop()  { http.DefaultClient.CloseIdleConnections() }

func (g *generator) Generate() []receivertest.UniqueIDAttrVal {
	id := fmt.Sprintf("id-%d", g.next.Add(1))
	body := fmt.Sprintf(`{"event":"start","stream_id":%q,"time_unix_nano":1795233292181556000,"attributes":{%q:%q}}`+"\n"+`{"event":"end","stream_id":%q}`,
		id, receivertest.UniqueIDAttrName, id, id)
	for {
		resp, err := http.Post(g.url, typeNDJSON, strings.NewReader(body))
		require.NoError(g.t, err)
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusServiceUnavailable {
			return []receivertest.UniqueIDAttrVal{receivertest.UniqueIDAttrVal(id)}
		}
	}
}

func TestConsumeContract(t *testing.T) {
	endpoint := testenv.FreeAddress(t)
	receivertest.CheckConsumeContract(receivertest.CheckConsumeContractParams{
		T: t, Factory: NewFactory(), Signal: pipeline.SignalTraces, Config: configOn(endpoint),
		Generator: &generator{t: t, url: "http://" + endpoint + tokensPath}, GenerateCount: 300,
	})
}

// Clients concurrently send parts of the same streams while the pipeline refuses every
// third call. Every stream is emitted once, and complete.
func TestConcurrentClients(t *testing.T) {
	const clients, streams, chunks = 8, 40, 16
	b := start(t)
	var calls atomic.Int64
	b.sink.fail = func(context.Context) error {
		if calls.Add(1)%3 == 0 {
			return errFull
		}
		return nil
	}
	send := func(lines ...string) {
		for b.post(t, typeNDJSON, bytes.NewBufferString(strings.Join(lines, "\n"))).status == 503 {
		}
	}
	id := func(i int) string { return fmt.Sprintf("s%d", i) }
	for i := range streams {
		send(startLine(id(i)))
	}
	var wg sync.WaitGroup
	for client := range clients {
		wg.Go(func() {
			random := rand.New(rand.NewPCG(uint64(client), 1))
			for c := client; c < chunks; c += clients {
				for _, i := range random.Perm(streams) {
					lines := []string{chunkLine(id(i), time.Duration(c)*time.Millisecond, fmt.Sprintf(`"seq":%d`, c))}
					lines = append(lines, startLine(fmt.Sprintf("w%d-%d", c, i)), endLine(fmt.Sprintf("w%d-%d", c, i)))
					send(lines...)
				}
			}
		})
	}
	wg.Wait()
	for i := range streams {
		send(endLine(id(i)))
	}
	whole := 0
	for _, s := range b.sink.all() {
		if len(s.Chunks) == 0 {
			continue
		}
		whole++
		require.Len(t, s.Chunks, chunks)
		for i, c := range s.Chunks {
			require.Equal(t, time.Duration(i)*time.Millisecond, c.Offset)
		}
	}
	require.Equal(t, streams, whole)
	require.Len(t, b.sink.all(), streams+streams*chunks)
	require.Zero(t, b.ingester.Store.Streams())
	require.Zero(t, b.ingester.Store.Memory())
}
