// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokenstreamreceiver

import (
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	_ "google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	tokenpulsev1 "github.com/tokenpulse/tokenpulse/proto/tokenpulse/v1"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/servertest"
)

// attacker is an HTTP/2 client that never ends its messages. It respects flow control.
type attacker struct {
	net.Conn
	framer *http2.Framer
	out    bytes.Buffer

	mu      sync.Mutex
	changed *sync.Cond
	windows map[uint32]int
	ended   map[uint32]bool // calls that the server has answered
	closed  bool
}

func (b *bench) attacker(t *testing.T) *attacker {
	t.Helper()
	conn, err := net.Dial("tcp", b.server.AddrGRPC.String())
	require.NoError(t, err)
	return newAttacker(t, conn)
}

func newAttacker(t *testing.T, conn net.Conn) *attacker {
	t.Helper()
	t.Cleanup(func() { _ = conn.Close() })
	a := &attacker{Conn: conn, windows: map[uint32]int{0: 65535}, ended: map[uint32]bool{}}
	a.changed = sync.NewCond(&a.mu)
	a.framer = http2.NewFramer(&a.out, conn)
	a.out.WriteString(http2.ClientPreface)
	require.NoError(t, a.framer.WriteSettings())
	go a.drain()
	return a
}

// drain reads what the server sends.
func (a *attacker) drain() {
	for {
		frame, err := a.framer.ReadFrame()
		a.mu.Lock()
		switch frame := frame.(type) {
		case *http2.WindowUpdateFrame:
			a.windows[frame.StreamID] += int(frame.Increment)
		case *http2.HeadersFrame:
			a.ended[frame.StreamID] = a.ended[frame.StreamID] || frame.StreamEnded()
		case *http2.RSTStreamFrame:
			a.ended[frame.StreamID] = true
		}
		a.closed = err != nil
		a.changed.Broadcast()
		a.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func (a *attacker) flush() bool {
	_, err := a.Write(a.out.Bytes())
	a.out.Reset()
	return err == nil
}

// call opens a call and declares the size of its message.
func (a *attacker) call(t *testing.T, id uint32, method string, size int) bool {
	t.Helper()
	require.NoError(t, a.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: servertest.CallHeaders(t, method), EndHeaders: true}))
	a.mu.Lock()
	a.windows[id] = 65535
	a.mu.Unlock()
	return a.data(id, binary.BigEndian.AppendUint32([]byte{0}, uint32(size)))
}

// data sends one frame. It returns false if the server has closed the connection, or has ended the
// call and grants it no further window.
func (a *attacker) data(id uint32, data []byte) bool {
	a.mu.Lock()
	waits := func() bool { return a.windows[0] < len(data) || a.windows[id] < len(data) }
	for waits() && !a.closed && !a.ended[id] {
		a.changed.Wait()
	}
	if waits() || a.closed {
		a.mu.Unlock()
		return false
	}
	a.windows[0] -= len(data)
	a.windows[id] -= len(data)
	a.mu.Unlock()
	_ = a.framer.WriteData(id, false, data)
	return a.flush()
}

const (
	callMemory       = 32 << 10 // of a call of Export besides its message
	exportMethodName = tokenpulsev1.TokenStreamService_Export_FullMethodName
	streamMethodName = tokenpulsev1.TokenStreamService_Stream_FullMethodName
)

// gRPC holds the frames of unfinished messages. They count toward max_memory_mib however
// they are framed, and the connection that exceeds it is closed.
func TestMemory_UnfinishedMessagesOfGRPC(t *testing.T) {
	const limit, arrived = 8 << 20, 1 << 20
	for name, frameSize := range map[string]int{"large frames": 16 << 10, "frames outside of gRPC's buffer pool": 1000, "tiny frames": 40} {
		for _, method := range []string{exportMethodName, streamMethodName} {
			t.Run(name+" of "+method[strings.LastIndex(method, "/"):], func(t *testing.T) {
				t.Parallel()
				b := start(t, func(c *Config) { c.MaxMemoryMiB = limit >> 20 })
				data := make([]byte, frameSize)
				var attackers sync.WaitGroup
				for range 4 {
					a := b.attacker(t)
					attackers.Go(func() {
						for call := range uint32(3) {
							if !a.call(t, 2*call+1, method, 4<<20-1) {
								return
							}
							for range arrived / frameSize {
								if !a.data(2*call+1, data) {
									return
								}
							}
						}
					})
				}
				attackers.Wait()
				require.LessOrEqual(t, b.ingester.Store.Memory(), int64(limit))
				eventually(t, func() bool {
					return metricValue(t, b, "streams_refused", map[string]string{"limit": "max_memory_mib"}) >= 1
				}, "12 MiB do not fit")
				client := b.grpc(t)
				eventually(t, func() bool {
					_, err := client.Export(t.Context(), wholeMessage())
					return err == nil
				}, "others are served")
			})
		}
	}
}

// The heap is what the account says.
func TestMemory_DeclaredMessagesOfGRPC(t *testing.T) {
	const connections, calls, sent = 50, 20, 8 << 10
	b := start(t, func(c *Config) { c.MaxMemoryMiB = 512 })
	before := heap()
	for range connections {
		a := b.attacker(t)
		for call := range uint32(calls) {
			require.True(t, a.call(t, 2*call+1, exportMethodName, 4<<20-1))
			require.True(t, a.data(2*call+1, make([]byte, sent)))
		}
	}
	const all = connections * calls
	eventually(t, func() bool { return b.ingester.Store.Memory() >= all*(callMemory+sent) }, "all calls are open")
	grown, held := heap()-before, b.ingester.Store.Memory()
	t.Logf("%d bytes per call, %d held", grown/all, held/all)
	require.Less(t, grown, held*5/4)
	require.Less(t, held, int64(all*(callMemory+2*sent)))
}

// A client cannot hold a call of Export without a message.
func TestExport_UnfinishedMessageEndsAfterIdleTimeout(t *testing.T) {
	b := start(t, func(c *Config) { c.IdleTimeout = 3 * time.Second })
	a := b.attacker(t)
	for call := range uint32(10) {
		require.True(t, a.call(t, 2*call+1, exportMethodName, 4<<20-1))
		require.True(t, a.data(2*call+1, make([]byte, 16<<10)))
	}
	eventually(t, func() bool { return b.ingester.Store.Memory() > 10*callMemory }, "the calls are open")
	eventually(t, func() bool { return b.ingester.Store.Memory() == 0 }, "the calls end")
	require.True(t, a.call(t, 99, exportMethodName, 9), "the connection stays open")
}

func TestMemory_LargeHeadersOfGRPC(t *testing.T) {
	b := start(t)
	client := b.grpc(t)
	_, err := client.Export(metadata.AppendToOutgoingContext(t.Context(), "authorization", strings.Repeat("a", 8<<10)), wholeMessage())
	require.NoError(t, err)
	_, err = client.Export(metadata.AppendToOutgoingContext(t.Context(), "x", strings.Repeat("a", 32<<10)), wholeMessage())
	require.Error(t, err)
}

// gRPC must not decompress outside of max_memory_mib.
func TestMemory_CompressedMessagesOfGRPC(t *testing.T) {
	b := start(t, func(c *Config) {
		c.MaxMemoryMiB = 64
		c.Protocols.GRPC.Get().MaxRecvMsgSizeMiB = 1
	})
	client := b.grpc(t)
	_, err := client.Export(t.Context(), manyStreams(1000, "chat"), grpc.UseCompressor("gzip"))
	require.NoError(t, err)
	require.Len(t, b.sink.all(), 1000)

	_, err = client.Export(t.Context(), wholeMessage(), grpc.UseCompressor("zstd"))
	require.Equal(t, codes.Unimplemented, status.Code(err))
	require.ErrorContains(t, err, `compression "zstd" is not supported; use gzip or none`)

	_, err = client.Export(t.Context(), manyStreams(100_000, "chat"), grpc.UseCompressor("gzip"))
	require.Equal(t, codes.ResourceExhausted, status.Code(err))
	require.ErrorContains(t, err, "the message is larger than 1048576 bytes after decompression (max_recv_msg_size_mib)")
	require.Zero(t, b.ingester.Store.Memory())
}

func TestGRPC_MetersAboveTLS(t *testing.T) {
	enable, https := withTLS(t)
	b := start(t, func(c *Config) {
		enable(c)
		c.Protocols.GRPC.Get().TLS = c.Protocols.HTTP.Get().TLS
	})
	roots := https.Transport.(*http.Transport).TLSClientConfig.RootCAs
	creds := credentials.NewClientTLSFromCert(roots, "example.com")
	conn, err := grpc.NewClient(b.server.AddrGRPC.String(), grpc.WithTransportCredentials(creds))
	require.NoError(t, err)
	defer conn.Close()
	client := tokenpulsev1.NewTokenStreamServiceClient(conn)
	_, err = client.Export(t.Context(), wholeMessage())
	require.NoError(t, err)
	call, err := client.Stream(t.Context())
	require.NoError(t, err)
	require.NoError(t, call.Send(wholeMessage()))
	_, err = call.CloseAndRecv()
	require.NoError(t, err)
	require.Zero(t, b.ingester.Store.Memory())

	secured, err := tls.Dial("tcp", b.server.AddrGRPC.String(), &tls.Config{RootCAs: roots, ServerName: "example.com", NextProtos: []string{"h2"}})
	require.NoError(t, err)
	a := newAttacker(t, secured)
	require.True(t, a.call(t, 1, exportMethodName, 4<<20-1))
	require.True(t, a.data(1, make([]byte, 16<<10)))
	eventually(t, func() bool { return b.ingester.Store.Memory() >= callMemory+16<<10 }, "the unfinished message counts")
}
