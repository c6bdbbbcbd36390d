// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokensliexporter

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"google.golang.org/grpc/test/bufconn"

	"github.com/tokenpulse/tokenpulse/internal/keeper/keepertest"
)

// handlerOf returns a function that answers a query without a network.
func handlerOf(t testing.TB) func(path, query string) (status int, contentType string, body []byte) {
	t.Helper()
	e, _ := unstarted(t, nil)
	require.NoError(t, e.consume(t.Context(), batch(everything())))
	handler := e.live.page.Handler()
	return func(path, query string) (int, string, []byte) {
		r := httptest.NewRequest(http.MethodGet, "http://localhost"+path, http.NoBody)
		r.URL.RawQuery = query
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		return w.Code, w.Header().Get("Content-Type"), w.Body.Bytes()
	}
}

// events opens an event stream.
func (h *harness) events(t testing.TB, query string) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, h.url+"/api/v1/events"+query, http.NoBody)
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	t.Cleanup(func() { response.Body.Close() })
	return response
}

// next returns the data of the next event of a name.
func next(t testing.TB, events *bufio.Reader, name string) string {
	t.Helper()
	for {
		line, err := events.ReadString('\n')
		require.NoError(t, err)
		if line == "event: "+name+"\n" {
			data, err := events.ReadString('\n')
			require.NoError(t, err)
			return strings.TrimPrefix(strings.TrimSpace(data), "data: ")
		}
	}
}

// Events must go on after the write timeout of the server, and show what arrives.
func TestEvents_OutliveTheWriteTimeout(t *testing.T) {
	t.Parallel()
	h := start(t, func(c *Config) { c.Server.WriteTimeout = time.Second })
	response := h.events(t, "?where=gen_ai.request.model%3Dllama")
	require.Equal(t, "text/event-stream", response.Header.Get("Content-Type"))
	events := bufio.NewReader(response.Body)
	requests := func() int {
		var now nowAnswer
		require.NoError(t, json.Unmarshal([]byte(next(t, events, "now")), &now))
		return now.total()
	}
	require.Zero(t, requests())
	h.send(t, everything(), with(map[string]any{"gen_ai.request.model": "other"}))
	// The next event comes 2 s after the first one. On a busy machine, the requests count later.
	seen := 0
	for i := 0; seen == 0 && i < 30; i++ {
		seen = requests()
	}
	require.Equal(t, 1, seen, "the filter holds")
	require.NotEmpty(t, next(t, events, "history"))
}

func TestEvents_AreLimited(t *testing.T) {
	h := start(t, func(c *Config) { c.MaxSharePerClient = 1 })
	for range 64 {
		require.Equal(t, http.StatusOK, h.events(t, "").StatusCode)
	}
	response := h.events(t, "")
	require.Equal(t, http.StatusServiceUnavailable, response.StatusCode)
	require.Equal(t, "5", response.Header.Get("Retry-After"))
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.Contains(t, string(body), "64 clients read events already")
	require.Equal(t, map[string]int64{"event_streams": 1}, refusals(t, h.telemetry))
	require.EqualValues(t, 64, keepertest.Value(t, h.telemetry, "token_sli_page_clients"))
}

// refusals returns the refused requests of the live page by limit.
func refusals(t *testing.T, telemetry *componenttest.Telemetry) map[string]int64 {
	t.Helper()
	values := keepertest.Values(t, telemetry, "token_sli_page_refused", "limit")
	maps.DeleteFunc(values, func(_ string, n int64) bool { return n == 0 })
	return values
}

func TestEvents_OneClientLeavesRoomForOthers(t *testing.T) {
	h := start(t, nil)
	for range 33 { // less than half is free
		require.Equal(t, http.StatusOK, h.events(t, "").StatusCode)
	}
	response := h.events(t, "")
	require.Equal(t, http.StatusServiceUnavailable, response.StatusCode)
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.Contains(t, string(body), "raise max_share_per_client")
	require.Equal(t, map[string]int64{"max_share_per_client": 1}, refusals(t, h.telemetry))
}

// A client that leaves makes room for another one.
func TestEvents_EndWithTheClient(t *testing.T) {
	h := start(t, nil)
	response := h.events(t, "")
	require.NoError(t, response.Body.Close())
	require.Eventually(t, func() bool { return keepertest.Value(t, h.telemetry, "token_sli_page_clients") == 0 }, time.Minute, 50*time.Millisecond)
}

// A client that connects and reads nothing must not hold its place: it is dropped after 10 s.
func TestEvents_DropAClientThatDoesNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, _ := unstarted(t, nil)
		listener := bufconn.Listen(1) // byte: a write ends when it is read
		server := &http.Server{Handler: e.live.page.Handler()}
		go func() { _ = server.Serve(listener) }()
		client, err := listener.Dial()
		require.NoError(t, err)
		_, err = io.WriteString(client, "GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
		require.NoError(t, err)
		time.Sleep(9 * time.Second)
		synctest.Wait()
		require.EqualValues(t, 1, e.live.page.Clients())
		time.Sleep(2 * time.Second)
		synctest.Wait()
		require.Zero(t, e.live.page.Clients())
		require.NoError(t, client.Close())
		require.NoError(t, server.Close())
	})
}

// Event streams end at shutdown; they must not delay it to its deadline.
func TestEvents_EndAtShutdown(t *testing.T) {
	h := start(t, nil)
	body := bufio.NewReader(h.events(t, "").Body)
	next(t, body, "now")
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	require.NoError(t, h.exporter.Shutdown(ctx))
	_, err := io.Copy(io.Discard, body)
	require.NoError(t, err, "the stream ends as HTTP says")
	_, err = net.Dial("tcp", h.config.Server.NetAddr.Endpoint)
	require.Error(t, err)
}
