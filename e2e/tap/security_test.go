// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tap

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/e2e/internal/collector"
	"github.com/tokenpulse/tokenpulse/e2e/internal/llmservice"
)

// recordedUpstream remembers every whole request that reaches it.
type recordedUpstream struct {
	*httptest.Server
	mutex    sync.Mutex
	requests []string
}

func startRecordedUpstream(t *testing.T) *recordedUpstream {
	t.Helper()
	u := &recordedUpstream{}
	u.Server = llmservice.Start(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // broken off
		}
		u.mutex.Lock()
		u.requests = append(u.requests, strings.TrimSpace(fmt.Sprintf("%s %s %s %s", r.Method, r.RequestURI, r.Header.Get("Upgrade"), body)))
		u.mutex.Unlock()
		llmservice.WriteChunks(w, 1)
		_, _ = io.WriteString(w, llmservice.ChatEnd)
	})
	return u
}

// take returns the requests since the last call.
func (u *recordedUpstream) take() (requests []string) {
	u.mutex.Lock()
	defer u.mutex.Unlock()
	requests, u.requests = u.requests, nil
	return requests
}

// exchangeRaw writes a request that asks to close the connection, and returns the statuses of
// all answers.
func exchangeRaw(t *testing.T, c *collector.Tap, request string) (statuses []int) {
	t.Helper()
	connection, err := net.Dial("tcp", c.Address)
	require.NoError(t, err)
	defer connection.Close()
	require.NoError(t, connection.SetDeadline(time.Now().Add(collector.Patience)))
	_, err = io.WriteString(connection, request)
	require.NoError(t, err)
	reader := bufio.NewReader(connection)
	for {
		answer, err := http.ReadResponse(reader, nil)
		if err != nil {
			require.NotErrorIs(t, err, os.ErrDeadlineExceeded, "the tap must close the connection")
			return statuses
		}
		statuses = append(statuses, answer.StatusCode)
		_, err = io.Copy(io.Discard, answer.Body)
		require.NoError(t, err)
	}
}

// A request that the tap and an upstream could divide differently is refused. What is clear
// by RFC 9112 may pass. The upstream must see the expected requests and no other: also of what
// net/http answers, because only what the tap forwards can be divided differently.
func TestTapSecurity_RequestsAreNotSmuggled(t *testing.T) {
	t.Parallel()
	upstream := startRecordedUpstream(t)
	c := collector.StartTap(t, upstream.URL)
	const smuggled = "GET /smuggled HTTP/1.1\r\nHost: tap\r\n\r\n"
	post := func(headers, body string) string {
		return "POST " + llmservice.ChatPath + " HTTP/1.1\r\nHost: tap\r\nConnection: close\r\n" + headers + "\r\n" + body
	}
	const ok, invalid, unknown = http.StatusOK, http.StatusBadRequest, http.StatusNotImplemented
	for name, test := range map[string]struct {
		request  string
		statuses []int
		received []string
	}{
		// net/http's server reads the header and refuses it. The tap does not see the request.
		"two lengths":                     {post(fmt.Sprintf("Content-Length: 0\r\nContent-Length: %d\r\n", len(smuggled)), smuggled), []int{invalid}, nil},
		"a list of lengths":               {post(fmt.Sprintf("Content-Length: 0, %d\r\n", len(smuggled)), smuggled), []int{invalid}, nil},
		"a signed length":                 {post(fmt.Sprintf("Content-Length: +%d\r\n", len(smuggled)), smuggled), []int{invalid}, nil},
		"a space before the colon":        {post("Transfer-Encoding : chunked\r\nContent-Length: 5\r\n", "0\r\n\r\n"+smuggled), []int{invalid}, nil},
		"an unknown encoding":             {post("Transfer-Encoding: xchunked\r\nContent-Length: 0\r\n", smuggled), []int{unknown}, nil},
		"an encoding before chunks":       {post("Transfer-Encoding: gzip, chunked\r\n", "0\r\n\r\n"+smuggled), []int{unknown}, nil},
		"two encodings":                   {post("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n", "0\r\n\r\n"+smuggled), []int{unknown}, nil},
		"an encoding with a vertical tab": {post("Transfer-Encoding: \x0bchunked\r\nContent-Length: 0\r\n", smuggled), []int{invalid}, nil},
		"a bare CR in a header":           {post("X-A: b\rTransfer-Encoding: chunked\r\nContent-Length: 0\r\n", smuggled), []int{invalid}, nil},
		"a NUL in a header":               {post("X-A: b\x00c\r\nContent-Length: 0\r\n", smuggled), []int{invalid}, nil},
		"a length in the trailer":         {post("Transfer-Encoding: chunked\r\nTrailer: Content-Length\r\n", fmt.Sprintf("0\r\nContent-Length: %d\r\n\r\n", len(smuggled))), []int{invalid}, nil},
		"an HTTP/0.9 request":             {"GET /smuggled\r\n\r\n", []int{invalid}, nil},
		// net/http's server makes the request clear: one length, in one line.
		"length and chunks": {post(fmt.Sprintf("Content-Length: %d\r\nTransfer-Encoding: chunked\r\n", 5+len(smuggled)), "0\r\n\r\n"+smuggled), []int{ok}, []string{"POST " + llmservice.ChatPath}},
		"a folded encoding": {post("Transfer-Encoding:\r\n chunked\r\nContent-Length: 5\r\n", "0\r\n\r\n"+smuggled), []int{ok}, []string{"POST " + llmservice.ChatPath}},
		// net/http's server finds the damage as the tap reads the body. The tap breaks off the
		// request to the upstream, which gets no end of it, and blames the client.
		"a chunk size that overflows":  {post("Transfer-Encoding: chunked\r\n", "10000000000000000\r\n"+smuggled), []int{invalid}, nil},
		"a negative chunk size":        {post("Transfer-Encoding: chunked\r\n", "-1\r\n"+smuggled), []int{invalid}, nil},
		"a chunk without its line end": {post("Transfer-Encoding: chunked\r\n", "1\r\nab\r\n0\r\n\r\n"+smuggled), []int{invalid}, nil},
		// The tap keeps the path as it was sent, and removes upgrades but for WebSocket.
		"a line end in the path": {"GET /a%0d%0aGET%20/smuggled HTTP/1.1\r\nHost: tap\r\nConnection: close\r\n\r\n", []int{ok}, []string{"GET /a%0d%0aGET%20/smuggled"}},
		"an upgrade to HTTP/2":   {"POST " + llmservice.ChatPath + " HTTP/1.1\r\nHost: tap\r\nConnection: Upgrade, HTTP2-Settings, close\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\nContent-Length: 0\r\n\r\n", []int{ok}, []string{"POST " + llmservice.ChatPath}},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, test.statuses, exchangeRaw(t, c, test.request))
			require.Equal(t, test.received, upstream.take())
		})
	}
	upstream.Close() // waits for requests in progress
	require.Empty(t, upstream.take(), "a later request")
}

// The tap connects to no other host than the configured one, whatever a request asks for.
func TestTapSecurity_IsNoOpenProxy(t *testing.T) {
	t.Parallel()
	upstream, elsewhere := startRecordedUpstream(t), startRecordedUpstream(t)
	c := collector.StartTap(t, upstream.URL, `receivers: {token_tap: {routes: [{prefix: /routed, upstream: {endpoint: "`+upstream.URL+`/inside"}}]}}`)
	other := elsewhere.Listener.Addr().String()
	for name, test := range map[string]struct {
		request string
		status  int // 0: any
	}{
		"an absolute URL":                 {"GET http://" + other + "/ HTTP/1.1\r\nHost: " + other + "\r\n", http.StatusBadRequest},
		"an absolute URL of the tap":      {"GET http://" + c.Address + "/ HTTP/1.1\r\nHost: " + c.Address + "\r\n", http.StatusBadRequest},
		"CONNECT":                         {"CONNECT " + other + " HTTP/1.1\r\nHost: " + other + "\r\n", http.StatusMethodNotAllowed},
		"OPTIONS of everything":           {"OPTIONS * HTTP/1.1\r\nHost: tap\r\n", http.StatusBadRequest},
		"another host":                    {"GET /v1/models HTTP/1.1\r\nHost: " + other + "\r\n", http.StatusOK},
		"two slashes":                     {"GET //" + other + "/ HTTP/1.1\r\nHost: tap\r\n", 0},
		"a user":                          {"GET /@" + other + "/ HTTP/1.1\r\nHost: tap\r\n", 0},
		"a port":                          {"GET :80@" + other + "/ HTTP/1.1\r\nHost: tap\r\n", http.StatusBadRequest},
		"dots that leave a route":         {"GET /routed/../v1/models HTTP/1.1\r\nHost: tap\r\n", http.StatusBadRequest},
		"encoded dots that leave a route": {"GET /routed/%2e%2e/v1/models HTTP/1.1\r\nHost: tap\r\n", http.StatusBadRequest},
		"an encoded slash and dots":       {"GET /routed/..%2fv1/models HTTP/1.1\r\nHost: tap\r\n", http.StatusBadRequest},
		"dots with a parameter":           {"GET /routed/..;/v1/models HTTP/1.1\r\nHost: tap\r\n", http.StatusBadRequest},
		"a forwarded host":                {"GET /v1/models HTTP/1.1\r\nHost: tap\r\nX-Forwarded-Host: " + other + "\r\nForwarded: host=" + other + "\r\n", http.StatusOK},
	} {
		t.Run(name, func(t *testing.T) {
			statuses := exchangeRaw(t, c, test.request+"Connection: close\r\n\r\n")
			require.NotEmpty(t, statuses)
			require.Empty(t, elsewhere.take(), "requests to another host")
			if test.status != 0 {
				require.Equal(t, []int{test.status}, statuses)
			}
			if received := upstream.take(); test.status != http.StatusOK && test.status != 0 {
				require.Empty(t, received, "a refused request must not be forwarded")
			}
		})
	}
}

// Credentials reach the upstream, and nothing else: no span, log line, metric or error.
func TestTapSecurity_CredentialsAreNeitherKeptNorLogged(t *testing.T) {
	t.Parallel()
	const secret = "sk-5ecret-5ecret"
	upstream := llmservice.Start(t, func(w http.ResponseWriter, r *http.Request) {
		for _, header := range []string{"Authorization", "X-Api-Key", "Cookie", "X-Goog-Api-Key", "Api-Key"} {
			if !strings.Contains(r.Header.Get(header), secret) {
				http.Error(w, header+" is missing", http.StatusTeapot)
				return
			}
		}
		if r.FormValue("key") != secret {
			http.Error(w, "the key is missing", http.StatusTeapot)
			return
		}
		if r.FormValue("fate") != "" {
			http.Error(w, `{"error":{"type":"authentication_error","message":"incorrect API key `+secret+`"}}`, http.StatusUnauthorized)
			return
		}
		llmservice.WriteChunks(w, 2)
		_, _ = io.WriteString(w, llmservice.ChatEnd)
	})
	c := collector.StartTap(t, upstream.URL, `
receivers:
  token_tap:
    routes: [{prefix: /dead, upstream: {endpoint: "http://`+collector.FreeAddress(t)+`"}}]
    attributes_from_headers: {x-tenant-id: tenant.id}
`)
	ask := func(path string) (status int, body string) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, c.URL(path+"key="+secret), strings.NewReader(llmservice.ChatAsked))
		require.NoError(t, err)
		request.Header.Set("Authorization", "Bearer "+secret)
		request.Header.Set("Cookie", "session="+secret)
		request.Header.Set("X-Tenant-Id", "tenant-7")
		for _, header := range []string{"X-Api-Key", "X-Goog-Api-Key", "Api-Key"} {
			request.Header.Set(header, secret)
		}
		answer, err := http.DefaultClient.Do(request)
		require.NoError(t, err)
		defer answer.Body.Close()
		read, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		return answer.StatusCode, string(read)
	}
	status, _ := ask(llmservice.ChatPath + "?")
	require.Equal(t, http.StatusOK, status)
	status, _ = ask(llmservice.ChatPath + "?fate=failed&")
	require.Equal(t, http.StatusUnauthorized, status)
	status, body := ask("/dead" + llmservice.ChatPath + "?")
	require.Equal(t, http.StatusBadGateway, status)
	require.NotContains(t, body, secret)

	var spans string
	require.Eventually(t, func() bool {
		written, err := os.ReadFile(c.Derived)
		spans = string(written)
		return err == nil && strings.Count(spans, `"spanId"`) >= 3
	}, collector.Patience, 50*time.Millisecond, "a span for each exchange")
	require.Contains(t, spans, "tenant-7")
	require.NotContains(t, spans, secret)
	require.NotContains(t, c.Output(t), secret)
	require.NotContains(t, string(collector.Get(t, c.MetricsURL(), "")), secret)
	require.NotContains(t, string(collector.Get(t, "http://"+c.Self+"/metrics", "")), secret)
	require.NotContains(t, spans, `word`, "text of an answer")
}
