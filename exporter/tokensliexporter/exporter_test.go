// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokensliexporter

import (
	"context"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
)

func TestServer_ServesMetricsAndLinks(t *testing.T) {
	h := start(t, func(c *Config) { c.Page.Enabled = false })
	for _, test := range []struct {
		method, path string
		want         int
	}{
		{http.MethodGet, "/api/v1/now", 404},
		{http.MethodGet, "/metrics", 200},
		{http.MethodGet, "/", 200},
		{http.MethodGet, "/other", 404},
		{http.MethodGet, "/metrics/x", 404},
		{http.MethodPost, "/metrics", 405},
	} {
		response, body := h.request(t, test.method, test.path)
		require.Equal(t, test.want, response.StatusCode, "%s %s", test.method, test.path)
		require.Equal(t, test.path == "/", strings.Contains(body, `href="/metrics"`), test.path)
	}
}

func TestServer_HoldsThePortUntilShutdown(t *testing.T) {
	first := start(t, nil)
	address := strings.TrimPrefix(first.url, "http://")
	config := createDefaultConfig().(*Config)
	config.Server.NetAddr.Endpoint = address
	second, err := createTraces(t.Context(), newSettings(componenttest.NewTelemetry()), config)
	require.NoError(t, err)
	require.ErrorContains(t, second.Start(t.Context(), componenttest.NewNopHost()), "address already in use")
	require.NoError(t, second.Shutdown(t.Context()), "after a failed start")
	require.NoError(t, first.exporter.Shutdown(t.Context()))
	listener, err := net.Listen("tcp", address)
	require.NoError(t, err)
	require.NoError(t, listener.Close())
}

// A client that never finishes its request does not delay the shutdown.
func TestShutdown_ClosesConnectionsAtItsDeadline(t *testing.T) {
	t.Parallel()
	h := start(t, nil)
	connection, err := net.Dial("tcp", strings.TrimPrefix(h.url, "http://"))
	require.NoError(t, err)
	defer connection.Close()
	_, err = connection.Write([]byte("GET /metrics HTTP/1.1\r\n"))
	require.NoError(t, err)
	// Connections are accepted in order: once a later one is served, the server has
	// accepted this one.
	h.get(t, metricsPath)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	require.NoError(t, h.exporter.Shutdown(ctx), "the Collector would exit with status 1")
	require.NoError(t, connection.SetReadDeadline(time.Now().Add(10*time.Second)))
	_, err = connection.Read(make([]byte, 1))
	require.Error(t, err)
	require.NotErrorIs(t, err, os.ErrDeadlineExceeded, "the server must close the connection")
}
