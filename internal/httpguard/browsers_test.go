// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package httpguard_test

import (
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/config/configoptional"

	"github.com/tokenpulse/tokenpulse/internal/httpguard"
)

func TestBrowsers(t *testing.T) {
	loopback, everywhere := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}, &net.TCPAddr{IP: net.IPv4zero}
	server := confighttp.NewDefaultServerConfig()
	server.NetAddr.Endpoint = "my-host:4321"
	server.CORS = configoptional.Some(confighttp.CORSConfig{AllowedOrigins: []string{"https://own.example", "https://*.wild.example"}})
	withAuth := server
	withAuth.Auth = configoptional.Some(confighttp.AuthConfig{})
	for name, c := range map[string]struct {
		listening net.Addr
		server    *confighttp.ServerConfig
		method    string
		host      string
		header    map[string]string
		key       string // in the refusal
	}{
		"no browser":                    {listening: loopback, host: "localhost:4321"},
		"an address":                    {listening: loopback, host: "127.0.0.1:4321"},
		"an IPv6 address":               {listening: loopback, host: "[::1]:4321"},
		"an IPv6 address, no port":      {listening: loopback, host: "[::1]"},
		"the endpoint's own name":       {listening: loopback, host: "MY-host:4321"},
		"an allowed host":               {listening: loopback, host: "tap.example"},
		"no host":                       {listening: loopback},
		"a rebound name":                {listening: loopback, host: "evil.example:4321", key: "allowed_hosts"},
		"a rebound name like localhost": {listening: loopback, host: "localhost.evil.example", key: "allowed_hosts"},
		"any name for a service":        {listening: everywhere, host: "tap.svc.cluster.local"},
		"any name with auth":            {listening: loopback, server: &withAuth, host: "evil.example"},
		"a page of this site":           {listening: everywhere, host: "a", header: map[string]string{"Sec-Fetch-Site": "same-origin"}},
		"a page of another site":        {listening: everywhere, host: "a", header: map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "cors"}, key: "cors::allowed_origins"},
		"a link on another site":        {listening: everywhere, host: "a", header: map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}},
		"a form on another site":        {listening: everywhere, method: "POST", host: "a", header: map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}, key: "cors::allowed_origins"},
		"a page of an allowed origin":   {listening: everywhere, method: "POST", host: "a", header: map[string]string{"Sec-Fetch-Site": "cross-site", "Origin": "https://own.example"}},
		"a page of an allowed pattern":  {listening: everywhere, method: "POST", host: "a", header: map[string]string{"Sec-Fetch-Site": "cross-site", "Origin": "https://a.wild.example"}},
		"a page of a similar origin":    {listening: everywhere, method: "POST", host: "a", header: map[string]string{"Sec-Fetch-Site": "cross-site", "Origin": "https://own.example.evil"}, key: "cors::allowed_origins"},
		"a WebSocket of another site":   {listening: loopback, host: "localhost:4321", header: map[string]string{"Origin": "http://evil.example"}, key: "cors::allowed_origins"},
		"a page without an origin":      {listening: everywhere, method: "POST", host: "a", header: map[string]string{"Origin": "null"}, key: "cors::allowed_origins"},
		"no host, another site":         {listening: everywhere, method: "POST", header: map[string]string{"Origin": "null"}, key: "cors::allowed_origins"},
		"a WebSocket of this site":      {listening: loopback, host: "localhost:4321", header: map[string]string{"Origin": "http://LOCALHOST:3000"}},
		"this site, an IPv6 address":    {listening: everywhere, method: "POST", host: "[2001:db8::1]:4321", header: map[string]string{"Origin": "http://[2001:db8::1]:4321"}},
		"an allowed origin's WebSocket": {listening: loopback, host: "localhost", header: map[string]string{"Origin": "https://own.example"}},
		"another site, with auth":       {listening: everywhere, server: &withAuth, host: "a", header: map[string]string{"Sec-Fetch-Site": "cross-site"}},
	} {
		t.Run(name, func(t *testing.T) {
			config := c.server
			if config == nil {
				config = &server
			}
			browsers := httpguard.NewBrowsers(config, c.listening, []string{"tap.example"})
			method := http.MethodGet
			if c.method != "" {
				method = c.method
			}
			req := httptest.NewRequestWithContext(t.Context(), method, "/", http.NoBody)
			req.Host = c.host
			for key, v := range c.header {
				req.Header.Set(key, v)
			}
			if c.key == "" {
				require.Empty(t, browsers.Refusal(req))
			} else {
				require.Contains(t, browsers.Refusal(req), c.key)
			}
		})
	}
}
