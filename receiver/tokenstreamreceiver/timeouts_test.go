// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokenstreamreceiver

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/config/configopaque"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/config/configtls"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"google.golang.org/protobuf/proto"

	tokenpulsev1 "github.com/tokenpulse/tokenpulse/proto/tokenpulse/v1"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/servertest"
)

// shutdown stops a receiver without a deadline, as the Collector does.
func shutdown(t *testing.T, b *bench) {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- b.Shutdown(context.Background()) }()
	select {
	case err := <-done:
		require.NoError(t, err)
	case <-time.After(30 * time.Second):
		require.Fail(t, "Shutdown does not return")
	}
}

// half sends a part of a request with a Content-Length over a new connection.
func (b *bench) half(t *testing.T, contentType, body string) {
	t.Helper()
	conn, err := net.Dial("tcp", b.server.AddrHTTP.String())
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	_, err = fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: %s\r\nContent-Length: 100\r\n\r\n%s", tokensPath, contentType, body)
	require.NoError(t, err)
}

// A stalled client must not keep the receiver from emitting its open streams.
func TestShutdown_DoesNotWaitForStalledClients(t *testing.T) {
	tests := map[string]func(t *testing.T, b *bench){
		"half a gRPC message": func(t *testing.T, b *bench) {
			transport := &http.Transport{Protocols: new(http.Protocols)}
			transport.Protocols.SetUnencryptedHTTP2(true)
			t.Cleanup(transport.CloseIdleConnections)
			call := open(t, &http.Client{Transport: transport},
				"http://"+b.server.AddrGRPC.String()+tokenpulsev1.TokenStreamService_Export_FullMethodName, "application/grpc", "TE", "trailers")
			_, err := call.Write([]byte{0, 0, 0, 0, 100, 10}) // 100 bytes are announced
			require.NoError(t, err)
			time.Sleep(100 * time.Millisecond)
		},
		"an answer without a reader": func(t *testing.T, b *bench) {
			b.half(t, "text/plain", "")
			time.Sleep(100 * time.Millisecond)
		},
		"a pipeline that is stuck": func(t *testing.T, b *bench) {
			var calls atomic.Int64
			b.sink.fail = func(ctx context.Context) error {
				if calls.Add(1) > 1 {
					return nil
				}
				<-ctx.Done()
				time.Sleep(100 * time.Millisecond) // the stream is not to be forgotten meanwhile
				return ctx.Err()
			}
			l := b.live(t)
			l.send(t, endLine("open"))
			eventually(t, func() bool { return calls.Load() == 1 }, "the client is stalled")
		},
	}
	for name, stall := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := start(t)
			require.Equal(t, 200, b.lines(t, startLine("open")).status)
			stall(t, b)
			shutdown(t, b)
			require.Equal(t, "incomplete", b.sink.one(t).Attributes["tokenpulse.outcome"])
		})
	}
}

// A pipeline that blocks must not hold up a shutdown that has no deadline.
func TestShutdown_DoesNotWaitForBlockedPipeline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStill(t)
		require.Equal(t, 200, s.send(startLine("open")))
		var err error
		s.ingester.Next, err = consumer.NewTraces(func(ctx context.Context, _ ptrace.Traces) error {
			<-ctx.Done()
			return ctx.Err()
		})
		require.NoError(t, err)
		require.NoError(t, s.Shutdown(context.Background()), "the Collector would exit with status 1")
		requireMetric(t, &s.bench, "streams_lost", map[string]string{"cause": "shutdown"}, 1)
		requireMetric(t, &s.bench, "events_lost", map[string]string{"cause": "shutdown"}, 1)
	})
}

// Requests in progress get half of the time to the deadline.
func TestShutdown_WithDeadline(t *testing.T) {
	b := start(t)
	require.Equal(t, 200, b.lines(t, startLine("open")).status)
	b.half(t, "text/plain", "")
	time.Sleep(50 * time.Millisecond)
	b.sink.fail = func(ctx context.Context) error { return ctx.Err() }
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	require.NoError(t, b.Shutdown(ctx))
	require.Len(t, b.sink.all(), 1)
}

func TestStalledBody_IsClosed(t *testing.T) {
	gzipped := string(servertest.Compress(t, "gzip", []byte(" ")))
	tests := map[string]struct {
		contentType, body string
		header            []string
	}{
		"protobuf":                    {typeProtobuf, "\x0a", nil},
		"JSON":                        {typeJSON, "{", nil},
		"gzip, truncated":             {typeProtobuf, gzipped[:len(gzipped)-4], []string{"Content-Encoding", "gzip"}},
		"gzip, NDJSON, half a header": {typeNDJSON, gzipped[:4], []string{"Content-Encoding", "gzip"}},
	}
	for name, tt := range tests {
		stall := func(t *testing.T, b *bench) *live {
			l := open(t, http.DefaultClient, b.url(), tt.contentType, tt.header...)
			_, err := l.Write([]byte(tt.body))
			require.NoError(t, err)
			return l
		}
		t.Run(name, func(t *testing.T) {
			b := start(t, func(c *Config) { c.IdleTimeout = 100 * time.Millisecond })
			got := stall(t, b).wait(t)
			require.Equal(t, 400, got.status)
			require.Contains(t, got.answer.Errors[0].Message, "no data for 100ms (idle_timeout)")
		})
		t.Run(name+", shutdown", func(t *testing.T) {
			b := start(t)
			l := stall(t, b)
			eventually(t, func() bool { return b.ingester.Store.Memory() > 0 }, "the body is read")
			shutdown(t, b)
			got := l.wait(t)
			require.Equal(t, 503, got.status)
			require.Equal(t, "1", got.header.Get("Retry-After"))
			require.Contains(t, got.answer.Errors[0].Message, "the receiver is shutting down")
		})
	}
}

// A body with a Content-Length that arrives byte by byte must not hold its request for hours.
func TestDrippingBody_IsClosed(t *testing.T) {
	b := prepare(t)
	b.server.SlowBodyTime = 300 * time.Millisecond
	require.NoError(t, b.Start(t.Context(), componenttest.NewNopHost()))
	connection, err := net.Dial("tcp", b.server.AddrHTTP.String())
	require.NoError(t, err)
	defer connection.Close()
	_, err = io.WriteString(connection, "POST "+tokensPath+" HTTP/1.1\r\nHost: localhost\r\nContent-Type: "+typeNDJSON+"\r\nContent-Length: 60000\r\n\r\n")
	require.NoError(t, err)
	dripping, stop := context.WithCancel(t.Context())
	defer stop()
	go func() {
		for dripping.Err() == nil {
			time.Sleep(20 * time.Millisecond)
			_, _ = connection.Write([]byte(" "))
		}
	}()
	require.NoError(t, connection.SetReadDeadline(time.Now().Add(20*time.Second)))
	answer, _ := io.ReadAll(connection) // perhaps with a reset, since more bytes follow
	require.Contains(t, string(answer), "the body arrives at less than 1024 bytes a second")
}

// A live body may be slow, and any body may take long that keeps the minimum rate.
func TestDrippingBody_OthersStayOpen(t *testing.T) {
	b := prepare(t)
	b.server.SlowBodyTime = 100 * time.Millisecond
	require.NoError(t, b.Start(t.Context(), componenttest.NewNopHost()))
	lines := startLine("s") + "\n" + endLine("s") + "\n"
	for name, c := range map[string]struct {
		piece    int // bytes every 20 ms
		declared bool
	}{
		"live":               {1, false},
		"at 25 KiB a second": {512, true},
	} {
		reader, writer := io.Pipe()
		go func() {
			for range 20 {
				_, _ = io.WriteString(writer, strings.Repeat(" ", c.piece))
				time.Sleep(20 * time.Millisecond)
			}
			_, _ = io.WriteString(writer, lines)
			_ = writer.Close()
		}()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+b.server.AddrHTTP.String()+tokensPath, reader)
		require.NoError(t, err)
		req.Header.Set("Content-Type", typeNDJSON)
		if c.declared {
			req.ContentLength = int64(20*c.piece + len(lines))
		}
		response, err := http.DefaultClient.Do(req)
		require.NoError(t, err, name)
		require.NoError(t, response.Body.Close())
		require.Equal(t, http.StatusOK, response.StatusCode, name)
	}
}

// idle_timeout limits the pauses of a message, not its duration.
func TestSlowMessage_IsAccepted(t *testing.T) {
	b := start(t, func(c *Config) { c.IdleTimeout = 3 * time.Second })
	encoded, err := proto.Marshal(wholeMessage())
	require.NoError(t, err)
	l := open(t, http.DefaultClient, b.url(), typeProtobuf)
	for part := range slices.Chunk(encoded, len(encoded)/8) {
		time.Sleep(400 * time.Millisecond)
		_, err := l.Write(part)
		require.NoError(t, err)
	}
	require.NoError(t, l.Close())
	require.Equal(t, answer{Accepted: 2}, l.wait(t).answer)
}

// idle_timeout of a body does not limit the pipeline.
func TestSlowPipeline_IsNotATimeout(t *testing.T) {
	encoded, err := proto.Marshal(wholeMessage())
	require.NoError(t, err)
	bodies := map[string]string{typeNDJSON: strings.Join(wholeLines(), "\n"), typeProtobuf: string(encoded)}
	for contentType, body := range bodies {
		t.Run(contentType, func(t *testing.T) {
			b := start(t, func(c *Config) { c.IdleTimeout = 50 * time.Millisecond })
			b.sink.fail = func(ctx context.Context) error {
				time.Sleep(250 * time.Millisecond)
				return ctx.Err()
			}
			require.Equal(t, 200, b.post(t, contentType, strings.NewReader(body)).status)
			require.Len(t, b.sink.all(), 2)
		})
		t.Run(contentType+", shutdown", func(t *testing.T) {
			b := start(t)
			b.sink.fail = func(ctx context.Context) error {
				<-b.closing.Done()
				time.Sleep(100 * time.Millisecond)
				return ctx.Err()
			}
			answered := make(chan int, 1)
			go func() {
				resp, err := http.Post(b.url(), contentType, strings.NewReader(body))
				if err != nil {
					answered <- -1
					return
				}
				_ = resp.Body.Close()
				answered <- resp.StatusCode
			}()
			eventually(t, func() bool { b.sink.mu.Lock(); defer b.sink.mu.Unlock(); return b.sink.calls == 1 }, "the pipeline blocks")
			shutdown(t, b)
			require.Equal(t, 200, <-answered)
			require.Len(t, b.sink.all(), 2)
		})
	}
}

// withTLS enables TLS and returns an HTTP/2 client.
func withTLS(t *testing.T) (func(*Config), *http.Client) {
	t.Helper()
	other := httptest.NewUnstartedServer(nil)
	other.StartTLS()
	defer other.Close()
	key, err := x509.MarshalPKCS8PrivateKey(other.TLS.Certificates[0].PrivateKey)
	require.NoError(t, err)
	encode := func(kind string, der []byte) configopaque.String {
		return configopaque.String(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
	}
	transport := &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{RootCAs: x509.NewCertPool()}}
	transport.TLSClientConfig.RootCAs.AddCert(other.Certificate())
	t.Cleanup(transport.CloseIdleConnections)
	return func(c *Config) {
		c.Protocols.HTTP.Get().NetAddr.Endpoint = "127.0.0.1:0"
		c.Protocols.HTTP.Get().TLS = configoptional.Some(configtls.ServerConfig{Config: configtls.Config{
			CertPem: encode("CERTIFICATE", other.Certificate().Raw), KeyPem: encode("PRIVATE KEY", key),
		}})
	}, &http.Client{Transport: transport}
}

// HTTP/2 resets a stream after its write deadline, also while it reads.
func TestHTTP2_BodyOutlivesServerTimeouts(t *testing.T) {
	encoded, err := proto.Marshal(wholeMessage())
	require.NoError(t, err)
	bodies := map[string]string{typeNDJSON: strings.Join(wholeLines(), "\n"), typeProtobuf: string(encoded)}
	for contentType, body := range bodies {
		t.Run(contentType, func(t *testing.T) {
			secure, client := withTLS(t)
			b := start(t, secure, func(c *Config) {
				c.Protocols.HTTP.Get().ReadTimeout = time.Second // also of the TLS handshake
				c.Protocols.HTTP.Get().WriteTimeout = time.Second
			})
			l := open(t, client, strings.Replace(b.url(), "http:", "https:", 1), contentType)
			_, err := l.Write([]byte(body[:100]))
			require.NoError(t, err)
			time.Sleep(2 * time.Second)
			_, err = l.Write([]byte(body[100:]))
			require.NoError(t, err)
			require.NoError(t, l.Close())
			got := l.wait(t)
			require.Equal(t, 200, got.status)
			require.Equal(t, "HTTP/2.0", l.protocol)
			require.Len(t, b.sink.all(), 2)
		})
	}
}

// The shutdown also interrupts reads over HTTP/2.
func TestHTTP2_Shutdown(t *testing.T) {
	secure, client := withTLS(t)
	b := start(t, secure)
	l := open(t, client, strings.Replace(b.url(), "http:", "https:", 1), typeNDJSON)
	l.send(t, startLine("s"))
	eventually(t, func() bool { return b.ingester.Store.Streams() == 1 }, "the start is applied")
	shutdown(t, b)
	got := l.wait(t)
	require.Equal(t, 503, got.status)
	require.Equal(t, 1, got.answer.Accepted)
	require.Equal(t, "incomplete", b.sink.one(t).Attributes["tokenpulse.outcome"])
}

// The answer to a refused or idle live body comes while it is open, with the lines applied so far. The
// reason is listed even if the list of errors is full.
func TestErrors_RefusalReplacesTenth(t *testing.T) {
	b := start(t)
	b.sink.failWith(errFull)
	l := b.live(t)
	l.send(t, strings.Split(strings.Repeat("nonsense\n", 12)+startLine("s"), "\n")...)
	eventually(t, func() bool { return b.ingester.Store.Streams() == 1 }, "the bad line is rejected")
	l.send(t, endLine("s"))
	got := l.wait(t)
	require.Equal(t, 503, got.status)
	require.Equal(t, 1, got.answer.Accepted)
	require.Equal(t, 12, got.answer.Rejected)
	require.Len(t, got.answer.Errors, 10)
	require.Contains(t, got.answer.Errors[9].Message, "queue is full")

	b = start(t, func(c *Config) { c.IdleTimeout = 2 * time.Second })
	l = b.live(t)
	l.send(t, strings.Split(strings.Repeat("nonsense\n", 12)+startLine("s"), "\n")...)
	got = l.wait(t)
	require.Equal(t, 200, got.status)
	require.Equal(t, 1, got.answer.Accepted)
	require.Len(t, got.answer.Errors, 10)
	require.Contains(t, got.answer.Errors[9].Message, "idle_timeout")
}
