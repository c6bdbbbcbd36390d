// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokentapreceiver

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/config/configauth"
	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/config/configopaque"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/confmap"

	"github.com/tokenpulse/tokenpulse/internal/diagnostics"
)

// None of these requests reaches the upstream.
func TestRefusal_IsNoOpenProxy(t *testing.T) {
	var reached atomic.Int64
	p := start(t, func(http.ResponseWriter, *http.Request) { reached.Add(1) })
	host := p.receiver.address.String()
	for name, c := range map[string]struct{ head, status string }{
		"CONNECT":                     {"CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443", "405"},
		"an absolute target":          {"GET http://example.com/ HTTP/1.1\r\nHost: example.com", "400"},
		"an absolute target, this":    {"GET http://" + host + "/ HTTP/1.1\r\nHost: " + host, "400"},
		"another scheme":              {"GET file:///etc/passwd HTTP/1.1\r\nHost: h", "400"},
		"dot segments":                {"GET /a/../b HTTP/1.1\r\nHost: h", "400"},
		"encoded dot segments":        {"GET /a/%2e%2E/b HTTP/1.1\r\nHost: h", "400"},
		"dot segments, backslashes":   {`GET /a\..\b HTTP/1.1` + "\r\nHost: h", "400"},
		"dot segments, parameters":    {"GET /a/..;/b HTTP/1.1\r\nHost: h", "400"},
		"dot segments, a parameter":   {"GET /a/..;x=y/b HTTP/1.1\r\nHost: h", "400"},
		"dot segments, encoded all":   {"GET /a%2f%2e.%3bx/b HTTP/1.1\r\nHost: h", "400"},
		"a dot and a parameter":       {"GET /.;/a HTTP/1.1\r\nHost: h", "400"},
		"dot segments, a fragment":    {"GET /a/..# HTTP/1.1\r\nHost: h", "400"},
		"dot segments, encoded, a #":  {"GET /a/.%2e# HTTP/1.1\r\nHost: h", "400"},
		"dot segments, an encoded #":  {"GET /a/..%23 HTTP/1.1\r\nHost: h", "400"},
		"dot segments, an encoded ?":  {"GET /a/%2e.%3fb HTTP/1.1\r\nHost: h", "400"},
		"dot segments, a null byte":   {"GET /a/..%00b HTTP/1.1\r\nHost: h", "400"},
		"a fragment after a query":    {"GET /a?b#/../c HTTP/1.1\r\nHost: h", "400"},
		"an asterisk":                 {"OPTIONS * HTTP/1.1\r\nHost: h", "400"},
		"two lengths":                 {"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nContent-Length: 2", "400"},
		"an unknown transfer coding":  {"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: xchunked", "501"},
		"a space before a colon":      {"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding : chunked", "400"},
		"a line feed in a field name": {"GET / HTTP/1.1\r\nHost: h\r\nX\n: y", "400"},
		"no host":                     {"GET / HTTP/1.1", "400"},
	} {
		t.Run(name, func(t *testing.T) {
			answer := requestTo(t, p, c.head+"\r\nConnection: close\r\n\r\n")
			require.True(t, strings.HasPrefix(answer, "HTTP/1.1 "+c.status), answer)
		})
	}
	require.Zero(t, reached.Load())
}

// Before an early answer, net/http reads the body, which these clients never send.
func TestRefusal_NoConnectionWaitsForABodyForEver(t *testing.T) {
	for name, c := range map[string]struct {
		path, body, status string
		change             func(*Config)
	}{
		"no route": {"/x", "Content-Length: 9\r\n\r\n", "404", func(cfg *Config) {
			cfg.Routes, cfg.Upstream = []RouteConfig{{Prefix: "/a", Upstream: cfg.Upstream}}, confighttp.ClientConfig{}
		}},
		"dot segments":                    {"/..", "Transfer-Encoding: chunked\r\n\r\n", "400", nil},
		"no upstream":                     {"/", "Content-Length: 9\r\n\r\n", "502", func(cfg *Config) { cfg.Upstream.Endpoint = "http://127.0.0.1:1" }},
		"no upstream, a copy":             {chatPath, "Content-Length: 9\r\n\r\n{", "502", func(cfg *Config) { cfg.Upstream.Endpoint = "http://127.0.0.1:1" }},
		"an answer that is early":         {"/", "Content-Length: 9\r\n\r\n", "200", nil},
		"an upstream that closes":         {"/close", "Content-Length: 9\r\n\r\n{", "502", nil},
		"an upstream that closes, a copy": {chatPath + "/close", "Content-Length: 9\r\n\r\n{", "502", nil},
		"an upstream that resets a stream": {"/close", "Content-Length: 9\r\n\r\n{", "502", func(cfg *Config) {
			upstream := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
			upstream.EnableHTTP2 = true
			upstream.StartTLS()
			t.Cleanup(upstream.Close)
			cfg.Upstream.Endpoint, cfg.Upstream.TLS.InsecureSkipVerify = upstream.URL, true
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := start(t, func(w http.ResponseWriter, req *http.Request) {
				if strings.HasSuffix(req.URL.Path, "/close") {
					connection, _, err := http.NewResponseController(w).Hijack()
					if assert.NoError(t, err) {
						_ = connection.Close()
					}
					return
				}
				_ = http.NewResponseController(w).EnableFullDuplex()
				w.Header().Set("Content-Length", "0")
				_ = http.NewResponseController(w).Flush()
				_, _ = io.Copy(io.Discard, req.Body) // else net/http panics once the body breaks off
			}, func(cfg *Config) {
				if c.change != nil {
					c.change(cfg)
				}
			})
			connection := p.dial()
			_, err := io.WriteString(connection, "POST "+c.path+" HTTP/1.1\r\nHost: h\r\n"+c.body)
			require.NoError(t, err)
			require.NoError(t, connection.SetReadDeadline(time.Now().Add(30*time.Second)))
			answer, err := io.ReadAll(connection)
			require.NoError(t, err, "the tap must close the connection")
			require.True(t, strings.HasPrefix(string(answer), "HTTP/1.1 "+c.status), string(answer))
		})
	}
}

// A forwarded body may take as long as the client needs.
func TestForward_SlowBodiesPass(t *testing.T) {
	t.Parallel()
	p := start(t, func(w http.ResponseWriter, req *http.Request) { _, _ = io.Copy(w, req.Body) })
	connection := p.dial()
	_, err := io.WriteString(connection, "POST / HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: 2\r\n\r\na")
	require.NoError(t, err)
	time.Sleep(6 * time.Second) // longer than the limit of a body that is not forwarded
	_, err = io.WriteString(connection, "b")
	require.NoError(t, err)
	answer, err := io.ReadAll(connection)
	require.NoError(t, err)
	require.True(t, strings.HasSuffix(string(answer), "\r\n\r\nab"), string(answer))
}

// net/http panics on statuses that HTTP does not have.
func TestRefusal_StatusesThatHTTPDoesNotHave(t *testing.T) {
	for _, status := range []string{"000", "099", "+12"} {
		p := start(t, func(w http.ResponseWriter, _ *http.Request) {
			connection, _, err := http.NewResponseController(w).Hijack()
			if assert.NoError(t, err) {
				_, _ = io.WriteString(connection, "HTTP/1.1 "+status+" Odd\r\nContent-Length: 0\r\n\r\n")
				_ = connection.Close()
			}
		})
		response, _ := p.post(chatPath, chatRequest)
		require.Equal(t, http.StatusBadGateway, response.StatusCode, status)
		require.Equal(t, "upstream_unreachable", attributesOf(p.span())["error.type"])
	}
}

// Over HTTP/2, a status may have any number of digits.
func TestRefusal_LongStatuses(t *testing.T) {
	p := start(t, func(http.ResponseWriter, *http.Request) {})
	for status, refused := range map[int]bool{99: true, 100: false, 999: false, 1000: true} {
		x := p.begin(http.MethodGet, "/")
		require.Equal(t, refused, x.answer(&http.Response{StatusCode: status, Body: http.NoBody}) != nil, status)
	}
}

// deadlines is the writer of a server that notes whether a read has a deadline.
type deadlines struct {
	http.ResponseWriter
	limited bool
}

func (d *deadlines) SetReadDeadline(deadline time.Time) error {
	d.limited = !deadline.IsZero()
	return nil
}

// The limit of a body whose upstream left must end neither a further attempt nor the wait for the answer.
func TestRequestCopy_LimitIsLifted(t *testing.T) {
	for situation, lift := range map[string]func(*requestCopy){
		"another connection": (*requestCopy).lift,
		"the body's end":     func(c *requestCopy) { _, _ = io.ReadAll(c) },
	} {
		server := &deadlines{}
		body := &requestCopy{ReadCloser: io.NopCloser(strings.NewReader("x")), server: server}
		body.limit()
		require.True(t, server.limited, situation)
		lift(body)
		require.False(t, server.limited, situation)
	}
	server := &deadlines{}
	body := &requestCopy{ReadCloser: io.NopCloser(strings.NewReader("")), server: server}
	body.release()
	body.limit()
	require.False(t, server.limited, "after the handler has returned")
}

// net/http cancels the request of a body that is overdue a moment before the read returns. An answer that
// fails meanwhile must not take this for a client that left.
func TestRequestCopy_IsOverdueBeforeTheReadReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		body := &requestCopy{ReadCloser: io.NopCloser(strings.NewReader("x")), server: &deadlines{}}
		time.Sleep(time.Minute)
		require.False(t, body.isOverdue(), "without a limit")
		body.limit()
		time.Sleep(5*time.Second - time.Millisecond)
		require.False(t, body.isOverdue())
		time.Sleep(time.Millisecond)
		require.True(t, body.isOverdue())
		body.lift()
		require.False(t, body.isOverdue(), "on another connection")
	})
}

// What an upstream writes in place of a type or a reason may be text of a prompt.
func TestSpan_FreeTextOfAnUpstreamIsNoCategory(t *testing.T) {
	p := start(t, func(w http.ResponseWriter, req *http.Request) {
		if w.Header().Set("Content-Type", "application/json"); req.Header.Get("X-Fail") != "" {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `{"error":{"type":"bad: my secret prompt","message":"x"}}`)
			return
		}
		_, _ = io.WriteString(w, `{"object":"chat.completion","choices":[{"index":0,"finish_reason":"my secret prompt","message":{"content":"a"}}]}`)
	})
	requestTo(t, p, "POST "+chatPath+" HTTP/1.1\r\nHost: h\r\nX-Fail: 1\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}")
	p.post(chatPath, `{"model":"m"}`)
	spans := p.spansAfter(2)
	require.Equal(t, "_OTHER", attributesOf(spans[0])["error.type"])
	require.Equal(t, []any{"_OTHER"}, attributesOf(spans[1])["gen_ai.response.finish_reasons"])
}

func TestForward_NotModifiedKeepsItsContentType(t *testing.T) {
	p := start(t, func(w http.ResponseWriter, _ *http.Request) {
		connection, _, err := http.NewResponseController(w).Hijack()
		if assert.NoError(t, err) { // net/http would not send it
			_, _ = io.WriteString(connection, "HTTP/1.1 304 Not Modified\r\nContent-Type: text/x\r\nEtag: \"a\"\r\n\r\n")
			_ = connection.Close()
		}
	})
	answer := requestTo(t, p, "GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
	require.Equal(t, 1, strings.Count(strings.ToLower(answer), "content-type: text/x"), answer)
}

// HTTP/2 allows a space in the target, which ends it in HTTP/1.1.
func TestRefusal_SpacesInTheTarget(t *testing.T) {
	p := start(t, func(_ http.ResponseWriter, req *http.Request) { t.Error("the upstream was reached: " + req.RequestURI) })
	transport := &http.Transport{Protocols: new(http.Protocols)}
	transport.Protocols.SetUnencryptedHTTP2(true)
	t.Cleanup(transport.CloseIdleConnections)
	for _, target := range []string{"/a?b HTTP/1.1", "/a b"} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.url, http.NoBody)
		require.NoError(t, err)
		request.URL.Opaque = target
		response, err := transport.RoundTrip(request)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		require.Equal(t, http.StatusBadRequest, response.StatusCode)
	}
	require.EqualValues(t, 2, p.counter("exchanges_rejected"), "not by the upstream's server")
}

// Over HTTP/2, no deadline limits a body that no handler reads: the answer ends the stream, and the connection goes on.
func TestRefusal_HTTP2WithoutTheRestOfTheBody(t *testing.T) {
	p := start(t, answerChat, func(cfg *Config) {
		cfg.Upstream, cfg.Routes = defaultUpstream(), []RouteConfig{{Prefix: "/known", Upstream: cfg.Upstream}}
	})
	var dials atomic.Int32
	transport := &http.Transport{Protocols: new(http.Protocols), DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		dials.Add(1)
		return new(net.Dialer).DialContext(ctx, network, address)
	}}
	transport.Protocols.SetUnencryptedHTTP2(true)
	t.Cleanup(transport.CloseIdleConnections)
	rest, never := io.Pipe()
	t.Cleanup(func() { _ = never.Close() })
	for _, c := range []struct {
		path string
		body io.Reader
		want int
	}{{"/unknown", rest, http.StatusNotFound}, {"/known" + chatPath, strings.NewReader(chatRequest), http.StatusOK}} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.url+c.path, c.body)
		require.NoError(t, err)
		began := time.Now()
		response, err := transport.RoundTrip(request)
		require.NoError(t, err)
		require.Equal(t, c.want, response.StatusCode)
		_, err = io.Copy(io.Discard, response.Body)
		require.NoError(t, err)
		require.Less(t, time.Since(began), 4*time.Second, "before the limit of HTTP/1.1")
	}
	require.EqualValues(t, 1, dials.Load())
	_, err := rest.Read(nil)
	require.ErrorIs(t, err, io.ErrClosedPipe, "the client stopped sending")
}

// A request with both a length and chunks is read as chunks by this proxy, which sends only these on.
func TestRefusal_LengthAndChunksCannotSmuggleARequest(t *testing.T) {
	var paths []string
	p := start(t, func(_ http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		paths = append(paths, req.URL.Path+" "+string(body)+strings.Join(req.Header["Content-Length"], ","))
	})
	requestTo(t, p, "POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 35\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"+
		"1\r\nx\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: h\r\n\r\n")
	require.Equal(t, []string{"/a x"}, paths)
}

// A damaged body is the fault of the client, and nothing after it is a request.
func TestRefusal_DamagedBodies(t *testing.T) {
	for name, c := range map[string]struct{ body, status, kind string }{
		"chunks":             {"Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\nzz\r\n", "400", "malformed_body"},
		"chunks of any size": {"Transfer-Encoding: chunked\r\n\r\n10000000000000000\r\n", "400", "malformed_body"},
		"a large body":       {"Content-Length: 2000\r\n\r\n" + strings.Repeat(" ", 2000), "413", "request_too_large"},
	} {
		t.Run(name, func(t *testing.T) {
			p := start(t, func(_ http.ResponseWriter, req *http.Request) {
				_, err := io.Copy(io.Discard, req.Body)
				assert.Error(t, err, req.URL.Path)
			}, func(cfg *Config) { cfg.Server.MaxRequestBodySize = 1000 })
			answer := requestTo(t, p, "POST "+chatPath+" HTTP/1.1\r\nHost: h\r\n"+c.body+"GET /smuggled HTTP/1.1\r\nHost: h\r\n\r\n")
			require.True(t, strings.HasPrefix(answer, "HTTP/1.1 "+c.status+" "), answer)
			require.Equal(t, 1, strings.Count(answer, "HTTP/1.1"), answer)
			require.Contains(t, answer, c.kind)
			require.Equal(t, c.kind, attributesOf(p.span())["error.type"])
			require.Empty(t, p.logs.FilterMessage(diagnostics.UpstreamUnreachable.Message()).All())
		})
	}
}

// The rest of a body that the answer overtakes may be damaged. What follows it is no request.
func TestRefusal_NoRequestAfterAnAnswerThatOvertakesItsRequest(t *testing.T) {
	p := start(t, func(w http.ResponseWriter, req *http.Request) {
		_ = http.NewResponseController(w).EnableFullDuplex()
		_, _ = io.WriteString(w, req.URL.Path)
		_ = http.NewResponseController(w).Flush()
	})
	connection := p.dial()
	_, err := io.WriteString(connection, "POST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n")
	require.NoError(t, err)
	reader := bufio.NewReader(connection)
	response, err := http.ReadResponse(reader, nil)
	require.NoError(t, err)
	body := make([]byte, 2)
	_, err = io.ReadFull(response.Body, body)
	require.NoError(t, err)
	require.Equal(t, "/a", string(body))
	_, _ = io.WriteString(connection, "zz\r\nGET /smuggled HTTP/1.1\r\nHost: h\r\n\r\n") // perhaps after the end of the connection
	rest, _ := io.ReadAll(reader)
	require.NotContains(t, string(rest), "HTTP/1.1")
	require.True(t, response.Close)
}

// An upgrade that the client did not ask for is an error of the upstream.
func TestRefusal_UnaskedUpgrade(t *testing.T) {
	closed := make(chan error, 1)
	p := start(t, upgrade(func(connection net.Conn, reader *bufio.Reader) {
		_ = connection.SetDeadline(time.Now().Add(time.Minute))
		_, err := io.Copy(io.Discard, reader)
		closed <- err
	}))
	response, _ := p.post(chatPath, chatRequest)
	require.NoError(t, <-closed, "the tap must close the connection")
	require.Equal(t, http.StatusBadGateway, response.StatusCode)
	require.Equal(t, "unexpected_upgrade", attributesOf(p.span())["error.type"])
}

// Only WebSocket upgrades pass: over another protocol, requests could bypass the routes.
func TestRefusal_OtherUpgradesAreDropped(t *testing.T) {
	var header http.Header
	p := start(t, func(_ http.ResponseWriter, req *http.Request) { header = req.Header }, func(cfg *Config) { cfg.Propagate = false })
	requestTo(t, p, "GET / HTTP/1.1\r\nHost: h\r\nConnection: Upgrade, HTTP2-Settings, close\r\nUpgrade: h2c\r\nHTTP2-Settings: x\r\n\r\n")
	require.Empty(t, header)
}

// A foreign web page must not spend the key that the tap adds. Other routes leave browsers to the upstream.
func TestRefusal_ForeignPagesOnRoutesWithCredentials(t *testing.T) {
	p := start(t, func(http.ResponseWriter, *http.Request) {}, func(cfg *Config) {
		withKey := RouteConfig{Prefix: "/key", Upstream: cfg.Upstream}
		withKey.Upstream.Headers = configopaque.MapList{{Name: "Authorization", Value: "Bearer k"}}
		cfg.Routes = []RouteConfig{withKey}
		cfg.AllowedHosts = []string{"own.example"}
	})
	for head, status := range map[string]string{
		"POST /key HTTP/1.1\r\nHost: evil.example":                            "403",
		"POST /key HTTP/1.1\r\nHost: own.example":                             "200",
		"POST /key HTTP/1.1\r\nHost: localhost\r\nSec-Fetch-Site: cross-site": "403",
		"POST / HTTP/1.1\r\nHost: evil.example\r\nSec-Fetch-Site: cross-site": "200",
		"GET /key HTTP/1.1\r\nHost: localhost\r\nOrigin: http://evil.example\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13": "403",
	} {
		answer := requestTo(t, p, head+"\r\nConnection: close\r\n\r\n")
		require.True(t, strings.HasPrefix(answer, "HTTP/1.1 "+status), head+answer)
	}
	require.EqualValues(t, 3, p.counter("exchanges_rejected"))
}

// keyring is an extension that adds a key to requests to an upstream.
type keyring struct {
	component.StartFunc
	component.ShutdownFunc
}

func (keyring) RoundTripper(base http.RoundTripper) (http.RoundTripper, error) { return base, nil }

func TestRoutes_KnowTheCredentialsOfAnExtension(t *testing.T) {
	id := component.MustNewID("keyring")
	for expected, change := range map[bool]func(*confighttp.ClientConfig){
		false: func(*confighttp.ClientConfig) {},
		true: func(upstream *confighttp.ClientConfig) {
			upstream.Auth = configoptional.Some(configauth.Config{AuthenticatorID: id})
		},
	} {
		cfg := createDefaultConfig().(*Config)
		cfg.Upstream.Endpoint = "http://localhost:8000"
		change(&cfg.Upstream)
		all, err := newRoutes(t.Context(), cfg, map[component.ID]component.Component{id: keyring{}}, componenttest.NewNopTelemetrySettings())
		require.NoError(t, err)
		require.Equal(t, expected, all[0].credentials)
	}
}

func TestRoutes_LongestPrefixWins(t *testing.T) {
	var path string
	p := start(t, func(_ http.ResponseWriter, req *http.Request) { path = req.RequestURI }, func(cfg *Config) {
		base := cfg.Upstream
		cfg.Upstream.Endpoint = ""
		for _, prefix := range []string{"/a", "/a/b", "/c"} {
			upstream := base
			upstream.Endpoint += "/at" + prefix + "/"
			cfg.Routes = append(cfg.Routes, RouteConfig{Prefix: prefix, Upstream: upstream})
		}
	})
	for request, expected := range map[string]string{
		"/a/x":           "/at/a/x",
		"/a":             "/at/a",
		"/a/":            "/at/a/",
		"/a/b":           "/at/a/b",
		"/a/b/x%2Fy?q=1": "/at/a/b/x%2Fy?q=1",
		"/a/bc":          "/at/a/bc",
		"/c?q":           "/at/c?q",
		"/ab":            "",
		"/":              "",
	} {
		path = ""
		response, _ := p.post(request, "")
		require.Equal(t, expected, path, request)
		require.Equal(t, expected == "", response.StatusCode == http.StatusNotFound, request)
	}
	require.EqualValues(t, 2, p.counter("exchanges_rejected"))
}

func TestConfig_Defaults(t *testing.T) {
	cfg := createDefaultConfig().(*Config)
	require.NoError(t, confmap.NewFromStringMap(map[string]any{
		"upstream": map[string]any{"endpoint": "http://localhost:8000"},
		"routes":   []any{map[string]any{"prefix": "/openai", "upstream": map[string]any{"endpoint": "https://api.openai.com"}}},
	}).Unmarshal(cfg))
	require.NoError(t, cfg.Validate())
	require.Equal(t, "localhost:4321", cfg.Server.NetAddr.Endpoint)
	require.Zero(t, cfg.Server.WriteTimeout)
	require.True(t, cfg.Propagate)
	require.Equal(t, "http://localhost:8000", cfg.Upstream.Endpoint)
	for _, upstream := range []confighttp.ClientConfig{cfg.Upstream, cfg.Routes[0].Upstream, createDefaultConfig().(*Config).Upstream} {
		transport, _, err := newTransport(t.Context(), upstream, nil, componenttest.NewNopTelemetrySettings())
		require.NoError(t, err)
		require.Equal(t, 1024, transport.(*http.Transport).MaxIdleConnsPerHost)
	}
	require.True(t, cfg.Routes[0].Upstream.ForceAttemptHTTP2)
}

func TestConfig_ErrorsNameTheSetting(t *testing.T) {
	for message, settings := range map[string]map[string]any{
		"`upstream::endpoint` is missing; set it, or add `routes`":                                                                   {"upstream": map[string]any{"endpoint": ""}},
		"`upstream::endpoint` is not a valid URL; use one such as https://api.openai.com":                                            {"upstream": map[string]any{"endpoint": "localhost:8000"}},
		"`upstream::endpoint` has a user or password; set `headers` or `auth` instead":                                               {"upstream": map[string]any{"endpoint": "http://u:SECRET@h"}},
		"`upstream::endpoint` has a query or fragment; remove it":                                                                    {"upstream": map[string]any{"endpoint": "http://h?SECRET"}},
		"`write_timeout` would cut answers; remove it":                                                                               {"write_timeout": "30s"},
		"`compression_algorithms` would change requests; remove it":                                                                  {"compression_algorithms": []any{"gzip"}},
		"`upstream::timeout` would cut answers; remove it":                                                                           {"upstream": map[string]any{"endpoint": "http://h", "timeout": "1s"}},
		"`upstream::compression` would change requests; remove it":                                                                   {"upstream": map[string]any{"endpoint": "http://h", "compression": "gzip"}},
		"`upstream::cookies` would mix the cookies of all clients; remove it":                                                        {"upstream": map[string]any{"endpoint": "http://h", "cookies": map[string]any{}}},
		"`routes::0::prefix` is \"a\"; use one or more path segments, with a slash before each and none at the end, such as /openai": {"routes": []any{map[string]any{"prefix": "a", "upstream": map[string]any{"endpoint": "http://h"}}}},
		"`routes::1::prefix` is \"/a\", the prefix of another route; remove one": {"routes": []any{
			map[string]any{"prefix": "/a", "upstream": map[string]any{"endpoint": "http://h"}}, map[string]any{"prefix": "/a", "upstream": map[string]any{"endpoint": "http://i"}},
		}},
		"`attributes_from_headers` has \"Helicone-Auth\", which may carry a credential, by its name; use a header that names the caller, such as x-tenant-id": {"attributes_from_headers": map[string]any{"Helicone-Auth": "a"}},
		"`attributes_from_headers::x-a` is \"tokenpulse.outcome\"; use the name of an attribute that does not begin with tokenpulse.":                         {"attributes_from_headers": map[string]any{"x-a": "tokenpulse.outcome"}},
		"`max_streams` is 0; use at least 1":                                       {"max_streams": 0},
		"`max_stream_duration` is 60ns; use at least 1ms, with a unit, such as 1h": {"max_stream_duration": 60},
	} {
		t.Run(message, func(t *testing.T) {
			cfg := createDefaultConfig().(*Config)
			cfg.Upstream.Endpoint = "http://h"
			require.NoError(t, confmap.NewFromStringMap(settings).Unmarshal(cfg))
			err := cfg.Validate()
			require.EqualError(t, err, message)
			require.NotContains(t, err.Error(), "SECRET")
		})
	}
}

func TestConfig_RejectsAnUpstreamThatIsTheReceiverItself(t *testing.T) {
	for _, c := range []struct {
		receiver, upstream string
		rejected           bool
	}{
		{"localhost:4321", "http://localhost:4321/v1", true},
		{"localhost:4321", "http://127.0.0.1:4321", true},
		{"127.0.0.1:4321", "http://localhost:4321", true},
		{"0.0.0.0:4321", "http://[::1]:4321", true},
		{":443", "https://localhost", true},
		{"10.0.0.7:80", "http://10.0.0.7", true},
		{"localhost:4321", "http://localhost:8000", false},
		{"localhost:443", "https://api.openai.com", false},
		{"0.0.0.0:443", "https://api.openai.com", false},
		{"127.0.0.1:8000", "http://127.0.0.2:8000", false},
		{"[::1]:8000", "http://127.0.0.1:8000", false},
	} {
		cfg := createDefaultConfig().(*Config)
		cfg.Server.NetAddr.Endpoint, cfg.Routes = c.receiver, []RouteConfig{{Prefix: "/a", Upstream: defaultUpstream()}}
		cfg.Routes[0].Upstream.Endpoint = c.upstream
		if err := cfg.Validate(); c.rejected {
			require.ErrorContains(t, err, "`routes::0::upstream::endpoint` is the address of this receiver", "%+v", c)
		} else {
			require.NoError(t, err, "%+v", c)
		}
	}
}

func TestProviderOf(t *testing.T) {
	for host, expected := range map[string]string{
		"api.openai.com": "openai", "x.openai.azure.com": "azure.ai.openai", "api.x.ai": "x_ai", "openai.com.example": "openai",
		"bedrock-runtime.us-east-1.amazonaws.com": "aws.bedrock", "API.GROQ.COM": "groq", "notgroq.com": "openai", "localhost": "openai",
	} {
		require.Equal(t, expected, providerOf(host, "openai_chat"), host)
	}
	require.Equal(t, "ollama", providerOf("localhost", "ollama"))
}
