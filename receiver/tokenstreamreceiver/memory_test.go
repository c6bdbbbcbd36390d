// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokenstreamreceiver

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/servertest"
)

// heap returns the bytes of live objects and stacks.
func heap() int64 {
	runtime.GC()
	runtime.GC() // the first one only ages pools
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}

// The bytes of buffers for bodies.
const (
	minBuffer  = 4 << 10
	smallReads = 64 // in a row until a large buffer of a live body shrinks
)

// raw opens a connection and sends the headers of a POST.
func (b *bench) raw(t *testing.T, header ...string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", b.server.AddrHTTP.String())
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	_, err = fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: x\r\n%s\r\n\r\n", tokensPath, strings.Join(header, "\r\n"))
	require.NoError(t, err)
	return conn
}

// answered returns the status of the answer on a connection.
func answered(t *testing.T, conn net.Conn) *http.Response {
	t.Helper()
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(time.Minute)))
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	return response
}

// block blocks the pipeline until the returned function is called.
func (b *bench) block(t *testing.T) (release func()) {
	t.Helper()
	released := make(chan struct{})
	b.sink.fail = func(context.Context) error {
		<-released
		return nil
	}
	release = sync.OnceFunc(func() { close(released) })
	t.Cleanup(release)
	return release
}

func (b *bench) requests() int64 {
	b.sink.mu.Lock()
	defer b.sink.mu.Unlock()
	return int64(b.sink.calls)
}

// A declared size takes no memory.
func TestMemory_DeclaredBodiesThatNeverArrive(t *testing.T) {
	const connections = 200
	for name, contentType := range map[string]string{"protobuf": typeProtobuf, "JSON": typeJSON, "NDJSON": typeNDJSON} {
		for kind, beginning := range map[string]string{"nothing": "", "a byte": "{", "5 kB": strings.Repeat(" ", 5000)} {
			t.Run(name+", "+kind, func(t *testing.T) {
				b := start(t)
				before := heap()
				for range connections {
					conn := b.raw(t, "Content-Type: "+contentType, "Content-Length: 1048576")
					_, err := conn.Write([]byte(beginning))
					require.NoError(t, err)
				}
				least := int64(minBuffer)
				if len(beginning) > minBuffer {
					least *= 2
				}
				eventually(t, func() bool { return b.ingester.Store.Memory() >= connections*least }, "all bodies are open")
				held := b.ingester.Store.Memory() / connections
				perBody := (heap() - before) / connections
				t.Logf("%d bytes per connection, %d held", perBody, held)
				if len(beginning) > minBuffer {
					perBody -= 64 << 10
					held -= 64 << 10
				}
				require.Less(t, perBody, int64(80<<10))
				require.Less(t, held, int64(20<<10))
				requireMetric(t, b, "memory_held", nil, b.ingester.Store.Memory())
			})
		}
	}
}

// Unfinished bodies count with what has arrived, and are refused at the limit.
func TestMemory_UnfinishedBodies(t *testing.T) {
	const arrived, buffer = 5 << 20, 8 << 20 // it doubles as data arrives
	b := start(t, func(c *Config) {
		c.MaxMemoryMiB = 20
		c.Protocols.HTTP.Get().MaxRequestBodySize = 100 << 20
	})
	before := heap()
	body := make([]byte, arrived)
	answered := make(chan *http.Response, 5)
	var connections []net.Conn
	refused := int64(0)
	for sent := range int64(cap(answered)) {
		conn := b.raw(t, "Content-Type: "+typeProtobuf, "Content-Length: 100000000")
		connections = append(connections, conn)
		go func() {
			response, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err == nil {
				_ = response.Body.Close()
				answered <- response
			}
		}()
		_, _ = conn.Write(body) // fails if the body is refused
		eventually(t, func() bool {
			refused = metricValue(t, b, "streams_refused", map[string]string{"limit": "max_memory_mib"})
			return b.ingester.Store.Memory() == (sent+1-refused)*buffer
		}, "the body has arrived or is refused")
	}
	requireMetric(t, b, "memory_held", nil, (5-refused)*buffer)
	require.GreaterOrEqual(t, refused, int64(2))
	require.Less(t, refused, int64(5))
	for range refused {
		select {
		case r := <-answered:
			require.Equal(t, 429, r.StatusCode)
			require.Equal(t, "1", r.Header.Get("Retry-After"))
		case <-time.After(time.Minute):
			require.Fail(t, "a refused body has no answer")
		}
	}
	require.Empty(t, answered)
	require.Less(t, heap()-before, int64(30<<20))
	for _, conn := range connections {
		require.NoError(t, conn.Close())
	}
	eventually(t, func() bool { return b.ingester.Store.Memory() == 0 }, "the memory is released")

	got := b.post(t, typeProtobuf, bytes.NewReader(make([]byte, 30<<20)))
	require.Equal(t, 413, got.status, "it never fits, so a retry is in vain")
	requireMetric(t, b, "events_rejected", map[string]string{"reason": "limit"}, 1)
	require.Contains(t, got.answer.Errors[0].Message, "the request needs more memory than max_memory_mib")
}

// Decoded requests count while the pipeline processes them.
func TestMemory_CompressedBatches(t *testing.T) {
	const requests, streams = 16, 10_000
	b := start(t, func(c *Config) { c.MaxMemoryMiB = 64 })
	release := b.block(t)
	message, err := proto.Marshal(manyStreams(streams, "chat"))
	require.NoError(t, err)
	zipped := servertest.Compress(t, "gzip", message)
	require.Less(t, len(zipped), 100_000)

	before := heap()
	statuses := make(chan int, requests)
	var sent sync.WaitGroup
	for i := range requests {
		if i == 1 { // if all came at once, all could be refused
			eventually(t, func() bool { return b.requests() == 1 }, "the first one is in the pipeline")
		}
		sent.Go(func() {
			got := b.post(t, typeProtobuf, bytes.NewReader(zipped), "Content-Encoding", "gzip")
			if got.status == 429 && got.header.Get("Retry-After") != "1" {
				got.status = -1
			}
			statuses <- got.status
		})
	}
	eventually(t, func() bool { return b.requests()+int64(len(statuses)) == requests }, "all are in the pipeline or refused")
	accepted := b.requests()
	grown := heap() - before
	held := b.ingester.Store.Memory()
	t.Logf("%d of %d requests in progress: heap %d, held %d", accepted, requests, grown, held)
	require.Positive(t, accepted)
	require.Less(t, accepted, int64(4))
	require.LessOrEqual(t, held, int64(64<<20))
	require.Less(t, grown, held*3/2)
	require.Greater(t, grown, held/2)
	requireMetric(t, b, "streams_refused", map[string]string{"limit": "max_memory_mib"}, requests-accepted)
	release()
	sent.Wait()
	close(statuses)
	counts := map[int]int64{}
	for status := range statuses {
		counts[status]++
	}
	require.Equal(t, map[int]int64{200: accepted, 429: requests - accepted}, counts)
	require.Zero(t, b.ingester.Store.Memory())

	response := b.post(t, typeProtobuf, bytes.NewReader(zipped), "Content-Encoding", "gzip")
	require.Equal(t, answer{Accepted: streams}, response.answer, "a retry is accepted")
}

func TestMemory_OfGRPC(t *testing.T) {
	for name, options := range map[string][]grpc.CallOption{"plain": nil, "compressed": {grpc.UseCompressor("gzip")}} {
		t.Run(name, func(t *testing.T) {
			b := start(t, func(c *Config) { c.MaxMemoryMiB = 64 })
			release := b.block(t)
			client := b.grpc(t)
			large := manyStreams(15_000, "chat")
			first := make(chan error, 1)
			go func() {
				_, err := client.Export(context.Background(), large, options...)
				first <- err
			}()
			eventually(t, func() bool { return b.requests() == 1 }, "the first request is in the pipeline")
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			_, err := client.Export(ctx, large, options...)
			requireRetryInfo(t, err, codes.ResourceExhausted)
			require.ErrorContains(t, err, "max_memory_mib is reached; send the request again later")
			release()
			require.NoError(t, <-first)
			_, err = client.Export(t.Context(), large, options...)
			require.NoError(t, err)
			require.Zero(t, b.ingester.Store.Memory())

			_, err = client.Export(t.Context(), manyStreams(40_000, "chat"), options...)
			require.Equal(t, codes.ResourceExhausted, status.Code(err))
			require.ErrorContains(t, err, "the request needs more memory than max_memory_mib; send smaller requests")
			require.Empty(t, status.Convert(err).Details(), "it never fits, so a retry is in vain")
		})
	}
}

// A zstd frame declares how much memory its decoder needs.
func TestMemory_ZstdWindow(t *testing.T) {
	frame := func(windowLog byte) []byte {
		// magic number, no content size, window, and a raw block of one byte that is not the last
		return []byte{0x28, 0xb5, 0x2f, 0xfd, 0, (windowLog - 10) << 3, 0x08, 0, 0, '{'}
	}
	for name, contentType := range map[string]string{"message": typeProtobuf, "lines": typeNDJSON} {
		t.Run(name, func(t *testing.T) {
			b := start(t, func(c *Config) { c.MaxMemoryMiB = 64 })
			header := []string{"Content-Type: " + contentType, "Content-Encoding: zstd", "Content-Length: 1000"}
			for _, windowLog := range []byte{24, 29} {
				var conn net.Conn
				used := allocated(func() {
					conn = b.raw(t, header...)
					_, err := conn.Write(append(frame(windowLog), make([]byte, 990)...))
					require.NoError(t, err)
					require.Equal(t, 400, answered(t, conn).StatusCode)
				})
				require.Less(t, used, int64(1<<20), "a window of 2^%d", windowLog)
			}
			before := heap()
			var open []net.Conn
			for range 20 {
				conn := b.raw(t, header...)
				_, err := conn.Write(frame(23))
				require.NoError(t, err)
				open = append(open, conn)
			}
			refused := func() int64 {
				return metricValue(t, b, "streams_refused", map[string]string{"limit": "max_memory_mib"})
			}
			eventually(t, func() bool { return refused() >= 12 && b.ingester.Store.Memory() > 55<<20 }, "seven decoders fit")
			require.Less(t, heap()-before, int64(80<<20))
			for _, conn := range open {
				require.NoError(t, conn.Close())
			}
			eventually(t, func() bool { return b.ingester.Store.Memory() == 0 }, "the memory is released")
		})
	}
}

// A live body holds 4 KiB while it waits, also some time after a burst.
func TestMemory_IdleLiveBodyHoldsFourKiB(t *testing.T) {
	b := start(t)
	body := b.live(t)
	read := func(line string, streams int64) {
		body.send(t, line)
		eventually(t, func() bool { return b.ingester.Store.Streams() == streams }, "the line was read")
	}
	idle := func() bool { return b.ingester.Store.Memory() == minBuffer }
	read(startLine("s"), 1)
	read(endLine("s"), 0)
	eventually(t, idle, "the buffer is small")
	body.send(t, strings.Repeat(" ", 1<<20)) // one line
	eventually(t, func() bool { return b.ingester.Store.Memory() > 8*minBuffer }, "the buffer is large")
	for range smallReads {
		read(startLine("s"), 1)
		read(endLine("s"), 0)
	}
	eventually(t, idle, "the buffer is small again")
}

func TestCompressedBody_TruncatedHeader(t *testing.T) {
	b := start(t)
	for _, encoding := range []string{"gzip", "zstd", "zlib"} {
		whole := servertest.Compress(t, encoding, []byte(startLine("s")+"\n"))
		for _, length := range []int{0, 1, 4, 5} {
			for _, contentType := range []string{typeNDJSON, typeProtobuf} {
				got := b.post(t, contentType, bytes.NewReader(whole[:length]), "Content-Encoding", encoding)
				require.Equal(t, 400, got.status, "%d bytes of %s", length, encoding)
			}
		}
	}
	require.Zero(t, b.ingester.Store.Memory())
}

// Streams at their limit leave room for the requests that end them.
func TestMemory_EndsAreAcceptedAtTheLimit(t *testing.T) {
	b := start(t, func(c *Config) { c.MaxMemoryMiB = 1 })
	opened := 0
	var got reply
	for got.status != 429 {
		got = b.lines(t, startLine(strconv.Itoa(opened)))
		opened++
		require.Less(t, opened, 10_000)
	}
	require.Contains(t, got.answer.Errors[0].Message, "max_memory_mib")
	require.LessOrEqual(t, b.ingester.Store.Memory(), int64(1<<20))
	requireMetric(t, b, "streams_refused", map[string]string{"limit": "max_memory_mib"}, 1)
	requireMetric(t, b, "memory_limit", nil, 1<<20)
	var ends []string
	for i := range 10 {
		ends = append(ends, endLine(strconv.Itoa(i)))
	}
	require.Equal(t, answer{Accepted: 10}, b.lines(t, ends...).answer)
	require.Equal(t, 200, b.lines(t, startLine("next")).status)
}
