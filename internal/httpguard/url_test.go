// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package httpguard

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/config/configtls"
)

func TestURLOf_HasTheConfiguredHostAndThePortThatTheServerGot(t *testing.T) {
	for name, c := range map[string]struct {
		endpoint string
		tls      bool
		address  net.Addr
		want     string
	}{
		"a name":              {"localhost:4319", false, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 4319}, "http://localhost:4319"},
		"any port":            {"127.0.0.1:0", false, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 33333}, "http://127.0.0.1:33333"},
		"TLS":                 {"example.com:443", true, &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 443}, "https://example.com:443"},
		"all addresses":       {"0.0.0.0:1", false, &net.TCPAddr{IP: net.IPv6zero, Port: 1}, "http://0.0.0.0:1"},
		"all, without a host": {":1", false, &net.TCPAddr{IP: net.IPv6zero, Port: 1}, "http://[::]:1"},
		"IPv6":                {"[::1]:1", false, &net.TCPAddr{IP: net.IPv6loopback, Port: 1}, "http://[::1]:1"},
		"a socket file":       {"/run/x.sock", false, &net.UnixAddr{Name: "/run/x.sock"}, ""},
	} {
		var server confighttp.ServerConfig
		server.NetAddr.Endpoint = c.endpoint
		if c.tls {
			server.TLS = configoptional.Some(configtls.ServerConfig{})
		}
		require.Equal(t, c.want, URLOf(&server, c.address), name)
	}
}
