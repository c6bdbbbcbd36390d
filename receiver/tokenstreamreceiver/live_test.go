// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokenstreamreceiver

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tokenpulse/tokenpulse/internal/httpguard"
	tokenpulsev1 "github.com/tokenpulse/tokenpulse/proto/tokenpulse/v1"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/servertest"
)

type liveCall = grpc.ClientStreamingClient[tokenpulsev1.ExportTokenStreamsRequest, tokenpulsev1.ExportTokenStreamsResponse]

// openCall opens a call of Stream that the server has accepted.
func (b *bench) openCall(t testing.TB, client tokenpulsev1.TokenStreamServiceClient) (liveCall, context.CancelFunc) {
	t.Helper()
	before := b.server.LiveShares.Held()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	call, err := client.Stream(ctx)
	require.NoError(t, err)
	eventually(t, func() bool { return b.server.LiveShares.Held() > before }, "the call is open")
	return call, cancel
}

// flood opens calls of Stream over one connection and resets each at once.
func (b *bench) flood(t *testing.T, duration time.Duration) (calls int) {
	t.Helper()
	a := b.attacker(t)
	headers := servertest.CallHeaders(t, streamMethodName)
	for until := time.Now().Add(duration); time.Now().Before(until) || calls < 1000; {
		for range 100 {
			id := uint32(2*calls + 1)
			require.NoError(t, a.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: headers, EndHeaders: true}))
			require.NoError(t, a.framer.WriteRSTStream(id, http2.ErrCodeCancel))
			calls++
		}
		require.True(t, a.flush())
	}
	require.NoError(t, a.Close())
	return calls
}

func TestStream_ResetFloodIsBounded(t *testing.T) {
	b := start(t)
	before := runtime.NumGoroutine()
	stop := make(chan struct{})
	peak := make(chan int, 1)
	go func() {
		most := 0
		for {
			select {
			case <-stop:
				peak <- most
				return
			case <-time.After(5 * time.Millisecond):
				most = max(most, runtime.NumGoroutine())
			}
		}
	}()
	calls := b.flood(t, 2*time.Second)
	close(stop)
	most := <-peak
	t.Logf("%d calls, at most %d goroutines", calls, most)
	require.Less(t, most, 5000, "max_concurrent_streams is 1000")
	eventually(t, func() bool { return b.server.LiveShares.Held() == 0 && runtime.NumGoroutine() <= before+5 }, "handlers end")
}

func TestStream_IdleCallEnds(t *testing.T) {
	b := start(t, func(c *Config) { c.IdleTimeout = 3 * time.Second })
	client := b.grpc(t)
	silent, _ := b.openCall(t, client)
	err := silent.RecvMsg(new(tokenpulsev1.ExportTokenStreamsResponse))
	require.Equal(t, codes.DeadlineExceeded, status.Code(err))
	require.ErrorContains(t, err, "no message for 3s (idle_timeout)")

	// Messages keep the call open, whether or not they have events.
	busy, _ := b.openCall(t, client)
	for range 8 {
		time.Sleep(400 * time.Millisecond)
		require.NoError(t, busy.Send(&tokenpulsev1.ExportTokenStreamsRequest{}))
	}
	require.NoError(t, busy.Send(wholeMessage()))
	response, err := busy.CloseAndRecv()
	require.NoError(t, err)
	require.Nil(t, response.PartialSuccess)
	require.Len(t, b.sink.all(), 2)
	eventually(t, func() bool { return b.server.LiveShares.Held() == 0 }, "both calls end")
}

func TestLiveRequests_LimitRefusesAndRecovers(t *testing.T) {
	b := start(t, func(c *Config) { c.MaxLiveRequests, c.MaxSharePerClient = 3, 1 })
	client := b.grpc(t)
	_, cancel := b.openCall(t, client)
	b.openCall(t, client)
	body := b.live(t)
	eventually(t, func() bool { return b.server.LiveShares.Held() == 3 }, "two calls and a body are open")
	requireMetric(t, b, "live_requests_open", nil, 3)
	requireMetric(t, b, "live_requests_limit", nil, 3)
	const message = "max_live_requests is reached; send the request again later, or raise max_live_requests"

	ctx, done := context.WithTimeout(t.Context(), 20*time.Second)
	defer done()
	refused, err := client.Stream(ctx)
	require.NoError(t, err)
	err = refused.RecvMsg(new(tokenpulsev1.ExportTokenStreamsResponse))
	requireRetryInfo(t, err, codes.ResourceExhausted)
	require.ErrorContains(t, err, message)

	got := b.live(t).wait(t)
	require.Equal(t, 429, got.status)
	require.Equal(t, "1", got.header.Get("Retry-After"))
	require.Equal(t, message, got.answer.Errors[0].Message)
	requireMetric(t, b, "streams_refused", map[string]string{"limit": "max_live_requests"}, 2)

	require.Equal(t, 200, b.lines(t, startLine("s"), endLine("s")).status, "a body with a Content-Length is not live")
	_, err = client.Export(t.Context(), wholeMessage())
	require.NoError(t, err, "Export is not live")

	cancel()
	eventually(t, func() bool { return b.server.LiveShares.Held() == 2 }, "a call ends")
	next := b.live(t)
	next.send(t, startLine("next"), endLine("next"))
	require.NoError(t, next.Close())
	require.Equal(t, answer{Accepted: 2}, next.wait(t).answer)
	require.NoError(t, body.Close())
	require.Equal(t, 200, body.wait(t).status)
}

// A live request that waits for events holds little memory.
func TestLiveRequests_IdleOnesAreSmall(t *testing.T) {
	const calls = 500
	b := start(t)
	client := b.grpc(t)
	_, cancel := b.openCall(t, client)
	defer cancel()
	before := heap()
	for range calls {
		_, err := client.Stream(t.Context())
		require.NoError(t, err)
	}
	eventually(t, func() bool { return b.server.LiveShares.Held() == calls+1 }, "all calls are open")
	perCall := (heap() - before) / calls
	t.Logf("%d bytes per call, of client and server", perCall)
	require.Less(t, perCall, int64(48<<10), "half of it is the client's")
}

// One client leaves live requests to others.
func TestLiveRequests_AClientHoldsItsShareOnceLessThanHalfIsFree(t *testing.T) {
	b := start(t, func(c *Config) { c.MaxLiveRequests = 10 })
	client := b.grpc(t)
	for range 6 {
		b.openCall(t, client)
	}
	got := b.live(t).wait(t)
	require.Equal(t, 429, got.status)
	require.Contains(t, got.answer.Errors[0].Message, "less than half of max_live_requests is free, and this client has its share open; send the request again later, or raise max_share_per_client")
	requireMetric(t, b, "streams_refused", map[string]string{"limit": "max_share_per_client"}, 1)
	require.Equal(t, httpguard.Accepted, b.server.LiveShares.Take(httpguard.Client{Subject: "another"}))
	b.server.LiveShares.Give(httpguard.Client{Subject: "another"})
}
