// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokentapreceiver

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/textproto"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumertest"
)

// requestTo sends a request as raw bytes and returns the answer as raw bytes, up to the end of the
// connection.
func requestTo(t *testing.T, p *tap, raw string) string {
	t.Helper()
	connection := p.dial()
	defer connection.Close()
	_, err := io.WriteString(connection, raw)
	require.NoError(t, err)
	answer, err := io.ReadAll(connection)
	require.NoError(t, err)
	return string(answer)
}

// Nothing is added to a request but trace context, and nothing is taken away.
func TestForward_LeavesRequestsUntouched(t *testing.T) {
	var seen *http.Request
	var body []byte
	p := start(t, func(_ http.ResponseWriter, req *http.Request) {
		seen = req
		body, _ = io.ReadAll(req.Body)
	}, func(cfg *Config) { cfg.Propagate = false })
	requestTo(t, p, "PUT //v1/a%2Fb/%7Ec;x?b=1&&a=%zz;x&key=secret HTTP/1.1\r\nHost: client.example\r\nContent-Length: 5\r\n"+
		"X-Forwarded-For: 192.0.2.1\r\nForwarded: for=192.0.2.1\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: h\r\n"+
		"Authorization: Bearer secret\r\nContent-Encoding: gzip\r\nX-Many: 1\r\nX-Many: 2\r\n"+
		"Connection: close, X-Hop\r\nX-Hop: 1\r\nKeep-Alive: 5\r\n\r\n\x1f\x8b123")
	require.Equal(t, "//v1/a%2Fb/%7Ec;x?b=1&&a=%zz;x&key=secret", seen.RequestURI)
	require.Equal(t, "PUT", seen.Method)
	require.Equal(t, "\x1f\x8b123", string(body))
	require.Equal(t, p.receiver.cfg.Upstream.Endpoint, "http://"+seen.Host)
	require.Equal(t, http.Header{
		"Content-Length": {"5"}, "X-Forwarded-For": {"192.0.2.1"}, "Forwarded": {"for=192.0.2.1"}, "X-Forwarded-Proto": {"https"},
		"X-Forwarded-Host": {"h"}, "Authorization": {"Bearer secret"}, "Content-Encoding": {"gzip"}, "X-Many": {"1", "2"},
	}, seen.Header, "without the fields of the connection")
}

// A field that Connection names is for the next hop only, whatever its name is.
func TestForward_DropsTheFieldsOfTheConnection(t *testing.T) {
	var seen http.Header
	p := start(t, func(_ http.ResponseWriter, req *http.Request) { seen = req.Header }, func(cfg *Config) { cfg.Propagate = false })
	requestTo(t, p, "GET / HTTP/1.1\r\nHost: h\r\nConnection: close, x-forwarded-for\r\nConnection: X-Hop,,Forwarded\r\nX-Hop: 1\r\n"+
		"X-Forwarded-For: 192.0.2.1\r\nForwarded: for=192.0.2.1\r\nX-Forwarded-Proto: https\r\nProxy-Authorization: Basic x\r\nTE: gzip, trailers\r\n\r\n")
	require.Equal(t, http.Header{"X-Forwarded-Proto": {"https"}, "Te": {"trailers"}}, seen)
}

// A path may have bytes that it should not have: unescaped UTF-8, quotes, a mere byte.
func TestForward_LeavesPathsUntouched(t *testing.T) {
	var seen string
	p := start(t, func(_ http.ResponseWriter, req *http.Request) { seen = req.RequestURI }, func(cfg *Config) {
		route := RouteConfig{Prefix: "/route", Upstream: cfg.Upstream}
		route.Upstream.Endpoint += "/at"
		cfg.Routes = []RouteConfig{route}
	})
	for path, expected := range map[string]string{
		"/v1/m\u00e9/\"x\"|^`{}<>[]":    "",
		"/v1/%e9\u00e9%2f?q=\u00e9":     "",
		"/v1/\xff":                      "",
		"//v1/%41":                      "",
		"/route/m\u00e9%2f?\u00e9":      "/at/m\u00e9%2f?\u00e9",
		"/route//v1/\u00e9":             "/at//v1/\u00e9",
		"//evil.example/m\u00e9?\u00e9": "//evil.example/m%C3%A9?\u00e9", // without the escapes, a host would follow
	} {
		requestTo(t, p, "GET "+path+" HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
		require.Equal(t, cmp.Or(expected, path), seen)
	}
}

// A forward proxy needs the whole URL: the path alone names no host.
func TestForward_ThroughAForwardProxy(t *testing.T) {
	var target string
	forward := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) { target = req.RequestURI }))
	t.Cleanup(forward.Close)
	p := startAt(t, new(consumertest.TracesSink), func(cfg *Config) {
		cfg.Upstream.Endpoint = "http://llm.example:8000/at"
		cfg.Upstream.ProxyURL = forward.URL
	})
	for _, path := range []string{"/v1/a?q=1", "/v1/m\u00e9?\u00e9", "/v1/%e9\u00e9%2f", "//evil.example/m\u00e9"} {
		requestTo(t, p, "GET "+path+" HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
		require.Equal(t, "http://llm.example:8000/at"+path, target)
	}
}

func TestForward_LeavesAnswersUntouched(t *testing.T) {
	p := start(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["Content-Type"] = nil
		w.Header()["Date"] = []string{"Mon, 02 Jan 2006 15:04:05 GMT"}
		w.Header()["X-Many"] = []string{"1", "2"}
		w.Header().Set("Location", "http://elsewhere.example/")
		w.Header().Set("Set-Cookie", "a=b")
		w.Header().Set("Trailer", "X-Announced")
		w.WriteHeader(http.StatusTemporaryRedirect)
		_, _ = io.WriteString(w, "<html>")
		w.Header().Set("X-Announced", "1")
		w.Header().Set(http.TrailerPrefix+"X-Not-Announced", "2")
	})
	answer := requestTo(t, p, "GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\nTE: trailers\r\n\r\n")
	head, rest, _ := strings.Cut(answer, "\r\n\r\n")
	lines := strings.Split(head, "\r\n")
	require.ElementsMatch(t, []string{
		"HTTP/1.1 307 Temporary Redirect", "Date: Mon, 02 Jan 2006 15:04:05 GMT", "X-Many: 1", "X-Many: 2", "Set-Cookie: a=b",
		"Location: http://elsewhere.example/", "Trailer: X-Announced", "Transfer-Encoding: chunked", "Connection: close",
	}, lines)
	require.Equal(t, "6\r\n<html>\r\n0\r\nX-Announced: 1\r\nX-Not-Announced: 2\r\n\r\n", rest)
}

func TestForward_AddsNoContentType(t *testing.T) {
	p := start(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusEarlyHints)
		w.Header()["Content-Type"] = nil
		_, _ = io.WriteString(w, "<html>")
	})
	response, body := p.post("/x", "")
	require.NotContains(t, response.Header, "Content-Type")
	require.Equal(t, "<html>", body)
	// The server guesses only if the body arrives before the header is flushed.
	w := &answerWriter{httptest.NewRecorder(), &exchange{request: httptest.NewRequest(http.MethodGet, "/", http.NoBody)}}
	w.WriteHeader(http.StatusOK)
	require.Contains(t, w.Header(), "Content-Type")
}

// 24 MiB is more than confighttp's limit, and each MiB differs.
func TestForward_LargeBodiesPass(t *testing.T) {
	request := numbered(24 << 20)
	p := start(t, func(w http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		_, _ = w.Write(bytes.ToUpper(body))
	})
	_, answer := p.post(chatPath, request)
	require.Equal(t, hash(request), hash(answer)) // digits and commas have no upper case
	require.EqualValues(t, 1, p.counter("requests_truncated"))
}

func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// A compressed answer to a client that did not ask for one stays compressed.
func TestForward_DoesNotDecompress(t *testing.T) {
	var compressed bytes.Buffer
	zip := gzip.NewWriter(&compressed)
	_, _ = io.WriteString(zip, "text")
	require.NoError(t, zip.Close())
	var asked []string
	p := start(t, func(w http.ResponseWriter, req *http.Request) {
		asked = req.Header.Values("Accept-Encoding")
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(compressed.Bytes())
	})
	response, body := p.post("/x", "")
	require.Empty(t, asked)
	require.Equal(t, "gzip", response.Header.Get("Content-Encoding"))
	require.Equal(t, compressed.String(), body)
}

func TestForward_DoesNotFollowRedirects(t *testing.T) {
	p := start(t, func(w http.ResponseWriter, req *http.Request) { http.Redirect(w, req, "/again", http.StatusFound) })
	no := client(t)
	no.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	response, err := no.Get(p.url)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Equal(t, http.StatusFound, response.StatusCode)
}

// Each piece reaches the client before the upstream sends the next one, also of an answer
// of known length, which httputil.ReverseProxy does not take for a stream.
func TestForward_BuffersNothing(t *testing.T) {
	pieces := []string{"d", "ata: ", "\xc3", "\xa9\n\n", doneEvent}
	for name, head := range map[string]http.Header{
		"a stream":                  {"Content-Type": {"text/event-stream"}},
		"an answer of known length": {"Content-Type": {"application/json"}, "Content-Length": {strconv.Itoa(len(strings.Join(pieces, "")))}},
	} {
		t.Run(name, func(t *testing.T) {
			next := make(chan string)
			p := start(t, func(w http.ResponseWriter, _ *http.Request) {
				maps.Copy(w.Header(), head)
				_ = http.NewResponseController(w).Flush()
				for piece := range next {
					_, _ = io.WriteString(w, piece)
					_ = http.NewResponseController(w).Flush()
				}
			})
			defer close(next)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			request, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url+chatPath, strings.NewReader(chatRequest))
			require.NoError(t, err)
			response, err := client(t).Do(request)
			require.NoError(t, err)
			defer response.Body.Close()
			for _, piece := range pieces {
				next <- piece
				got := make([]byte, len(piece))
				_, err := io.ReadFull(response.Body, got)
				require.NoError(t, err)
				require.Equal(t, piece, string(got))
			}
		})
	}
}

// The upstream may answer while the client still sends.
func TestForward_BothDirectionsAtOnce(t *testing.T) {
	p := start(t, func(w http.ResponseWriter, req *http.Request) {
		_ = http.NewResponseController(w).EnableFullDuplex()
		send := stream(w)
		buffer := make([]byte, 1)
		for {
			n, err := req.Body.Read(buffer)
			send(string(buffer[:n]))
			if err != nil {
				return
			}
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	body, pieces := io.Pipe()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url+"/x", body)
	require.NoError(t, err)
	response, err := client(t).Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	for _, piece := range []string{"a", "b"} {
		_, err := io.WriteString(pieces, piece)
		require.NoError(t, err)
		got := make([]byte, 1)
		_, err = io.ReadFull(response.Body, got)
		require.NoError(t, err)
		require.Equal(t, piece, string(got))
	}
	require.NoError(t, pieces.Close())
	_, err = response.Body.Read(make([]byte, 1))
	require.Equal(t, io.EOF, err)
}

// The head of an answer does not wait for its body.
func TestForward_SendsHeadersAtOnce(t *testing.T) {
	release := make(chan struct{})
	p := start(t, func(w http.ResponseWriter, _ *http.Request) {
		stream(w)
		<-release
	})
	response, err := client(t).Post(p.url+chatPath, "application/json", strings.NewReader(chatRequest))
	close(release)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
}

func TestForward_ExpectContinue(t *testing.T) {
	for name, refuse := range map[string]bool{"accepted": false, "refused": true} {
		t.Run(name, func(t *testing.T) {
			p := start(t, func(w http.ResponseWriter, req *http.Request) {
				if refuse {
					w.WriteHeader(http.StatusUnauthorized)
					return
				}
				body, _ := io.ReadAll(req.Body)
				_, _ = w.Write(body)
			})
			connection := p.dial()
			fmt.Fprint(connection, "POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\nExpect: 100-continue\r\nConnection: close\r\n\r\n")
			reader := bufio.NewReader(connection)
			first, err := reader.ReadString('\n')
			require.NoError(t, err)
			if refuse {
				require.Equal(t, "HTTP/1.1 401 Unauthorized\r\n", first)
				return
			}
			require.Equal(t, "HTTP/1.1 100 Continue\r\n", first)
			fmt.Fprint(connection, "body")
			rest, err := io.ReadAll(reader)
			require.NoError(t, err)
			require.Contains(t, string(rest), "HTTP/1.1 200 OK")
			require.True(t, strings.HasSuffix(string(rest), "\r\n\r\nbody"), string(rest))
		})
	}
}

// An upstream may refuse a body and keep the connection. The client must not be asked for the body.
func TestForward_ExpectContinueRefusedOnAKeptConnection(t *testing.T) {
	upstream := answerRaw(t, "HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n")
	p := startAt(t, new(consumertest.TracesSink), func(cfg *Config) { cfg.Upstream.Endpoint = upstream })
	connection := p.dial()
	fmt.Fprint(connection, "POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n")
	status, err := bufio.NewReader(connection).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "HTTP/1.1 401 Unauthorized\r\n", status)
}

// answerRaw starts an upstream that answers each connection with the same bytes once it has read the
// head of a request. It keeps the connection until the test ends.
func answerRaw(t *testing.T, answer string) (url string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { _ = connection.Close() })
			go func() {
				reader := bufio.NewReader(connection)
				for line := ""; line != "\r\n" && err == nil; {
					line, err = reader.ReadString('\n')
				}
				_, _ = io.WriteString(connection, answer)
			}()
		}
	}()
	return "http://" + listener.Addr().String()
}

// The connection of a client is kept after an answer that does not overtake its request.
func TestForward_KeepsTheConnectionOfTheClient(t *testing.T) {
	p := start(t, func(_ http.ResponseWriter, req *http.Request) { _, _ = io.Copy(io.Discard, req.Body) })
	connection := p.dial()
	reader := bufio.NewReader(connection)
	for _, request := range []string{
		"GET / HTTP/1.1\r\nHost: h\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: h\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\n\r\nbody",
		"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n",
	} {
		_, err := io.WriteString(connection, request)
		require.NoError(t, err)
		response, err := http.ReadResponse(reader, nil)
		require.NoError(t, err)
		_, err = io.Copy(io.Discard, response.Body)
		require.NoError(t, err)
		require.False(t, response.Close, request)
	}
}

// HTTP/1.0 has no informational answers: its clients take them for the answer.
func TestForward_NoInformationalAnswersToHTTP10(t *testing.T) {
	upstream := answerRaw(t, "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")
	p := startAt(t, new(consumertest.TracesSink), func(cfg *Config) { cfg.Upstream.Endpoint = upstream })
	answer := requestTo(t, p, "GET / HTTP/1.0\r\n\r\n")
	require.True(t, strings.HasPrefix(answer, "HTTP/1.0 200 OK\r\n"), answer)
	require.NotContains(t, answer, "Link")
	require.True(t, strings.HasSuffix(answer, "\r\n\r\nhi"), answer)
}

func TestForward_EarlyHints(t *testing.T) {
	p := start(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Link", "</a>")
		w.WriteHeader(http.StatusEarlyHints)
		w.WriteHeader(http.StatusOK)
	})
	var hints []string
	trace := &httptrace.ClientTrace{Got1xxResponse: func(code int, header textproto.MIMEHeader) error {
		hints = append(hints, fmt.Sprint(code, header.Get("Link")))
		return nil
	}}
	request, err := http.NewRequestWithContext(httptrace.WithClientTrace(t.Context(), trace), http.MethodGet, p.url, http.NoBody)
	require.NoError(t, err)
	response, err := client(t).Do(request)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Equal(t, []string{"103</a>"}, hints)
}

func TestForward_RequestTrailers(t *testing.T) {
	var trailer http.Header
	p := start(t, func(_ http.ResponseWriter, req *http.Request) {
		_, _ = io.Copy(io.Discard, req.Body)
		trailer = req.Trailer
	})
	requestTo(t, p, "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\nConnection: close\r\n\r\n4\r\nbody\r\n0\r\nX-Sum: 7\r\n\r\n")
	require.Equal(t, http.Header{"X-Sum": {"7"}}, trailer)
}

func TestForward_HTTP2OnBothSides(t *testing.T) {
	upstream := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		w.Header().Set("X-Protocol", req.Proto)
		answerChat(w, req)
	}))
	upstream.EnableHTTP2 = true
	upstream.StartTLS()
	t.Cleanup(upstream.Close)
	p := startAt(t, new(consumertest.TracesSink), func(cfg *Config) {
		cfg.Upstream.Endpoint = upstream.URL
		cfg.Upstream.TLS.InsecureSkipVerify = true
	})
	transport := &http.Transport{Protocols: new(http.Protocols)}
	transport.Protocols.SetUnencryptedHTTP2(true)
	t.Cleanup(transport.CloseIdleConnections)
	response, err := (&http.Client{Transport: transport}).Post(p.url+chatPath, "application/json", strings.NewReader(chatRequest))
	require.NoError(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.Equal(t, 2, response.ProtoMajor)
	require.Equal(t, "HTTP/2.0", response.Header.Get("X-Protocol"))
	require.Equal(t, chatAnswer(3), string(body))
	times, _ := arrivals(t, p.span())
	require.Len(t, times, 3)
}

// A client that does not read keeps the upstream from sending, and one that leaves ends its request.
func TestForward_BackPressureAndCancellation(t *testing.T) {
	sent, gone := make(chan int), make(chan struct{})
	p := start(t, func(w http.ResponseWriter, req *http.Request) {
		send := stream(w)
		piece := strings.Repeat(": x\n", 1<<18) // 1 MiB
		total := 0
		for ; total < 1<<10; total++ {
			select {
			case <-req.Context().Done():
				close(gone)
				return
			case sent <- total:
			}
			send(piece)
		}
		t.Error("a GiB was sent to a client that does not read")
	})
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url+chatPath, strings.NewReader(chatRequest))
	require.NoError(t, err)
	response, err := client(t).Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	// Buffers of the system take a few MiB.
	for stalled := false; !stalled; {
		select {
		case <-sent:
		case <-time.After(time.Second):
			stalled = true
		}
	}
	leave()
	select {
	case <-gone:
	case <-time.After(time.Minute):
		t.Fatal("the upstream's request was not cancelled")
	}
	require.Equal(t, "cancelled", attributesOf(p.span())["tokenpulse.outcome"])
}
