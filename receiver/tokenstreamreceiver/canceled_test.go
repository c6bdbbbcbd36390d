// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokenstreamreceiver

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"google.golang.org/grpc"

	"github.com/tokenpulse/tokenpulse/internal/testenv"
	tokenpulsev1 "github.com/tokenpulse/tokenpulse/proto/tokenpulse/v1"
)

// canceler breaks off requests.
type canceler struct {
	*bench
	blocked chan struct{} // gets an element for each call of the pipeline
	connect func() tokenpulsev1.TokenStreamServiceClient
}

// calls is the number of requests that each test breaks off.
const calls = 50

// repeat makes concurrent calls, each with a number.
func (*canceler) repeat(do func(i int)) {
	var running sync.WaitGroup
	for i := range calls {
		running.Go(func() { do(i) })
	}
	running.Wait()
}

// block makes the pipeline block until the context of a call ends.
func (c *canceler) block() {
	c.sink.mu.Lock()
	defer c.sink.mu.Unlock()
	c.sink.fail = func(ctx context.Context) error {
		c.blocked <- struct{}{}
		<-ctx.Done()
		return ctx.Err()
	}
}

// liveBody sends two lines of a live body until cancel is called.
func (c *canceler) liveBody(client *http.Client, i int) (cancel func()) {
	ctx, stop := context.WithCancel(context.Background())
	reader, writer := io.Pipe()
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		if resp, err := client.Do(post(c.url(), typeNDJSON, reader).WithContext(ctx)); err == nil {
			_ = resp.Body.Close()
		}
	}()
	id := fmt.Sprint("live", i)
	_, _ = io.WriteString(writer, startLine(id)+"\n"+chunkLine(id, time.Millisecond)+"\n")
	return func() {
		stop()
		_ = writer.Close()
		<-answered
	}
}

// A client that breaks off a request, in any way, leaves no goroutine and no memory
// behind while the receiver runs on. The simulation breaks off bodies over HTTP/1, too.
func TestCanceledRequests_LeaveNothingBehind(t *testing.T) {
	cases := map[string]func(t *testing.T, c *canceler){
		"live bodies over HTTP/2 cancelled": func(_ *testing.T, c *canceler) {
			transport := &http.Transport{Protocols: new(http.Protocols)}
			transport.Protocols.SetUnencryptedHTTP2(true)
			client := &http.Client{Transport: transport}
			c.repeat(func(i int) { c.liveBody(client, i)() })
			client.CloseIdleConnections()
		},
		"live bodies reset": func(_ *testing.T, c *canceler) {
			c.repeat(func(i int) {
				conn, err := net.Dial("tcp", c.server.AddrHTTP.String())
				if err != nil {
					return
				}
				id := fmt.Sprint("reset", i)
				fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: %s\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\n\r\n40\r\n{",
					tokensPath, typeNDJSON, len(startLine(id))+1, startLine(id))
				_ = conn.(*net.TCPConn).SetLinger(0)
				_ = conn.Close()
			})
		},
		"live bodies abandoned": func(t *testing.T, c *canceler) {
			client := &http.Client{Transport: new(http.Transport)}
			cancels := make([]func(), calls)
			c.repeat(func(i int) { cancels[i] = c.liveBody(client, i) })
			eventually(t, func() bool { return metricValue(t, c.bench, "events_accepted", nil) == 2*calls }, "all are read")
			eventually(t, func() bool { return c.server.LiveShares.Held() == 0 }, "they end after idle_timeout")
			for _, cancel := range cancels {
				cancel()
			}
			client.CloseIdleConnections()
		},
		"whole bodies cancelled in the middle": func(_ *testing.T, c *canceler) {
			c.repeat(func(int) {
				conn, err := net.Dial("tcp", c.server.AddrHTTP.String())
				if err != nil {
					return
				}
				fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: %s\r\nContent-Length: 100\r\n\r\n{", tokensPath, typeNDJSON)
				_ = conn.Close()
			})
		},
		"Export cancelled in the pipeline, and behind it": func(t *testing.T, c *canceler) {
			// All have the same stream, so that one is in the pipeline and the others wait.
			require.Equal(t, 200, c.lines(t, startLine("shared")).status)
			http.DefaultClient.CloseIdleConnections()
			c.block()
			client := c.connect()
			ctx, cancel := context.WithCancel(context.Background())
			go func() {
				<-c.blocked
				time.Sleep(50 * time.Millisecond) // for the others; with fewer the test is weaker, and passes
				c.sink.failWith(nil)
				cancel()
			}()
			c.repeat(func(int) {
				_, _ = client.Export(ctx, &tokenpulsev1.ExportTokenStreamsRequest{ResourceTokenStreams: []*tokenpulsev1.ResourceTokenStreams{{
					TokenStreams: []*tokenpulsev1.TokenStream{{StreamId: "shared", End: &tokenpulsev1.StreamEnd{}}},
				}}})
			})
		},
		"Stream cancelled": func(_ *testing.T, c *canceler) {
			client := c.connect()
			c.repeat(func(i int) {
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				if call, err := client.Stream(ctx); err == nil && i%2 == 0 {
					_ = call.Send(wholeMessage())
				}
			})
		},
		"Stream cancelled in the pipeline": func(_ *testing.T, c *canceler) {
			c.block()
			client := c.connect()
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			c.repeat(func(int) {
				if call, err := client.Stream(ctx); err == nil {
					_ = call.Send(wholeMessage())
				}
			})
			for range calls {
				<-c.blocked
			}
		},
		"Stream abandoned": func(t *testing.T, c *canceler) {
			client := c.connect()
			c.repeat(func(int) {
				if call, err := client.Stream(context.Background()); err == nil {
					_ = call.Send(wholeMessage())
				}
			})
			eventually(t, func() bool { return metricValue(t, c.bench, "events_accepted", nil) >= calls }, "all are read")
			eventually(t, func() bool { return c.server.LiveShares.Held() == 0 }, "they end after idle_timeout")
		},
	}
	for name, breakOff := range cases {
		t.Run(name, func(t *testing.T) {
			b := start(t, func(cfg *Config) {
				cfg.IdleTimeout, cfg.FirstTokenTimeout = time.Second, time.Second
			})
			before := goleak.IgnoreCurrent()
			var connections []*grpc.ClientConn
			breakOff(t, &canceler{bench: b, blocked: make(chan struct{}, 2*calls), connect: func() tokenpulsev1.TokenStreamServiceClient {
				connections = append(connections, b.dialGRPC(t))
				return tokenpulsev1.NewTokenStreamServiceClient(connections[len(connections)-1])
			}})
			for _, connection := range connections {
				_ = connection.Close()
			}
			testenv.RequireNoLeak(t, before)
			b.sink.failWith(nil)
			eventually(t, func() bool { return b.ingester.Store.Streams() == 0 }, "open streams expire")
			require.Zero(t, b.server.LiveShares.Held())
			require.Zero(t, b.ingester.Store.Memory())
			require.Zero(t, b.ingester.Store.Accepted())
			require.Equal(t, 200, b.lines(t, startLine("after"), endLine("after")).status)
		})
	}
}
