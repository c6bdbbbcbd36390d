// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokensliexporter

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/configauth"
	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/extension/extensionauth"

	"github.com/tokenpulse/tokenpulse/internal/storagetest"
)

// A sender chooses the model's name. It must reach the page as text: JSON that no browser
// takes for a document, with every angle bracket escaped.
func TestPage_LabelValuesAreNeverHTML(t *testing.T) {
	h := start(t, nil)
	const model = `<script>alert(1)</script>"'&`
	h.send(t, with(map[string]any{"gen_ai.request.model": model}))
	type groups struct{ Groups []struct{ Value string } }
	require.Equal(t, model, answer(t, h, "trends", func(a *groups) bool { return len(a.Groups) == 1 }).Groups[0].Value)
	for _, path := range []string{"meta", "trends", "distributions", "requests", "now?where=" + "%3Cscript%3E"} {
		response, body := h.api(t, path)
		require.Equal(t, "application/json", response.Header.Get("Content-Type"))
		require.Equal(t, "nosniff", response.Header.Get("X-Content-Type-Options"))
		require.NotContains(t, string(body), "<", path)
		require.Contains(t, string(body), `\u003cscript\u003e`, path)
	}
}

func TestPage_HasStrictHeaders(t *testing.T) {
	h := start(t, nil)
	for _, path := range []string{"/", "/none", "/api/v1/now", "/api/v1/none"} {
		response, _ := h.get(t, path)
		policy := response.Header.Get("Content-Security-Policy")
		require.Contains(t, policy, "default-src 'none'; script-src 'self'; style-src 'self';", path)
		require.Contains(t, policy, "frame-ancestors 'none'", path)
		require.NotContains(t, policy, "unsafe", path)
		require.Equal(t, "nosniff", response.Header.Get("X-Content-Type-Options"), path)
		require.Equal(t, "no-referrer", response.Header.Get("Referrer-Policy"), path)
		require.Equal(t, "DENY", response.Header.Get("X-Frame-Options"), path)
	}
}

func TestPage_AssetsAreCachedAndCompressed(t *testing.T) {
	h := start(t, nil)
	get := func(path string, headers ...string) *http.Response {
		response, _ := h.get(t, path, headers...)
		return response
	}
	first := get("/", "Accept", "*/*")
	require.Equal(t, "text/html; charset=utf-8", first.Header.Get("Content-Type"))
	require.Equal(t, http.StatusNotModified, get("/", "If-None-Match", first.Header.Get("ETag")).StatusCode)
	require.Equal(t, http.StatusOK, get("/", "If-None-Match", `"other"`).StatusCode)
	require.Equal(t, "gzip", get("/api/v1/openapi.yaml", "Accept-Encoding", "gzip").Header.Get("Content-Encoding"))
	require.Empty(t, get("/api/v1/openapi.yaml", "Accept-Encoding", "identity").Header.Get("Content-Encoding"))
}

// gate is an auth extension that lets one token pass.
type gate struct {
	component.StartFunc
	component.ShutdownFunc
}

var _ extensionauth.Server = (*gate)(nil)

func (*gate) Authenticate(ctx context.Context, headers map[string][]string) (context.Context, error) {
	for name, values := range headers {
		if strings.EqualFold(name, "Authorization") && values[0] == "Bearer secret" {
			return ctx, nil
		}
	}
	return ctx, errors.New("no token")
}

// startWithGate starts an exporter with the gate.
func startWithGate(t *testing.T) *harness {
	t.Helper()
	id := component.MustNewID("gate")
	return startOn(t, storagetest.Host{id: &gate{}}, func(c *Config) {
		c.Server.Auth = configoptional.Some(confighttp.AuthConfig{Config: configauth.Config{AuthenticatorID: id}})
	})
}

func TestPage_ObeysTheAuthExtension(t *testing.T) {
	h := startWithGate(t)
	for _, path := range []string{"/", "/api/v1/now", "/api/v1/events", "/api/v1/meta", "/metrics"} {
		response, _ := h.get(t, path)
		require.Equal(t, http.StatusUnauthorized, response.StatusCode, path)
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, h.url+path, http.NoBody)
		require.NoError(t, err)
		r.Header.Set("Authorization", "Bearer secret") // events do not end: their body is not read
		response, err = http.DefaultClient.Do(r)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		require.Equal(t, http.StatusOK, response.StatusCode, path)
	}
}

// By a name of its own that resolves to this machine, a foreign web page could read the live page.
func TestServer_RefusesForeignPages(t *testing.T) {
	h := start(t, func(c *Config) { c.AllowedHosts = []string{"own.example"} })
	for _, c := range []struct {
		host, site, mode string
		status           int
	}{
		{"", "", "", http.StatusOK},
		{"own.example", "same-origin", "cors", http.StatusOK},
		{"", "none", "navigate", http.StatusOK},
		{"", "cross-site", "navigate", http.StatusOK},
		{"evil.example", "", "", http.StatusForbidden},
		{"", "cross-site", "no-cors", http.StatusForbidden},
	} {
		for _, path := range []string{"/", "/metrics", "/api/v1/now"} {
			response, _ := h.get(t, path, "Host", c.host, "Sec-Fetch-Site", c.site, "Sec-Fetch-Mode", c.mode)
			require.Equal(t, c.status, response.StatusCode, "%s %v", path, c)
		}
	}
}

// A web page of another origin begins and ends no pair. Its browser may know a password of this server, and pages on
// another port of the same machine are of the same site.
func TestServer_PagesOfOtherOriginsChangeNothing(t *testing.T) {
	open, authenticated := start(t, nil), startWithGate(t)
	const password = "Bearer secret"
	for name, c := range map[string]struct {
		to      *harness
		headers map[string]string
		refused int
	}{
		"no browser":                            {open, nil, 0},
		"the live page":                         {open, map[string]string{"Sec-Fetch-Site": "same-origin", "Origin": open.url}, 0},
		"the live page, over HTTP to a host":    {open, map[string]string{"Origin": open.url}, 0},
		"no browser, with a password":           {authenticated, map[string]string{"Authorization": password}, 0},
		"another site":                          {open, map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}, http.StatusForbidden},
		"a form of another site":                {open, map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}, http.StatusForbidden},
		"another port":                          {open, map[string]string{"Sec-Fetch-Site": "same-site"}, http.StatusForbidden},
		"another port, over HTTP to a host":     {open, map[string]string{"Origin": "http://127.0.0.1:1"}, http.StatusForbidden},
		"a page without an origin":              {open, map[string]string{"Origin": "null"}, http.StatusForbidden},
		"another site, with a password":         {authenticated, map[string]string{"Authorization": password, "Sec-Fetch-Site": "cross-site"}, http.StatusForbidden},
		"another site, with a password, HTTP":   {authenticated, map[string]string{"Authorization": password, "Origin": "http://evil.example"}, http.StatusForbidden},
		"no browser, without the password":      {authenticated, nil, http.StatusUnauthorized},
		"another site, a name of this machine":  {open, map[string]string{"Host": "evil.example", "Origin": "http://evil.example"}, http.StatusForbidden},
		"another site, with a wrong password":   {authenticated, map[string]string{"Authorization": "x", "Sec-Fetch-Site": "cross-site"}, http.StatusUnauthorized},
		"the live page, with a password, HTTPS": {authenticated, map[string]string{"Authorization": password, "Sec-Fetch-Site": "same-origin"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			for _, step := range []struct {
				method string
				want   int
			}{{http.MethodPost, http.StatusCreated}, {http.MethodDelete, http.StatusNoContent}} {
				r, err := http.NewRequestWithContext(t.Context(), step.method, c.to.url+"/api/v1/compare?dimension=gen_ai.request.model&baseline=a&candidate=b&slo=all", http.NoBody)
				require.NoError(t, err)
				for key, value := range c.headers {
					r.Header.Set(key, value)
				}
				r.Host = c.headers["Host"]
				response, err := http.DefaultClient.Do(r)
				require.NoError(t, err)
				require.NoError(t, response.Body.Close())
				if c.refused != 0 {
					step.want = c.refused
				}
				require.Equal(t, step.want, response.StatusCode, step.method)
			}
		})
	}
}

// Before an early answer, net/http reads the body, which this client never sends.
func TestServer_NoConnectionWaitsForABodyForEver(t *testing.T) {
	address := startWithGate(t).config.Server.NetAddr.Endpoint
	for head, status := range map[string]string{
		"GET /metrics HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\n":                                 "401",
		"GET /metrics HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer secret\r\nContent-Length: 9\r\n\r\n": "200",
		"PUT /x HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n":                              "401",
	} {
		t.Run(status, func(t *testing.T) {
			t.Parallel()
			connection, err := net.Dial("tcp", address)
			require.NoError(t, err)
			defer connection.Close()
			_, err = io.WriteString(connection, head)
			require.NoError(t, err)
			require.NoError(t, connection.SetReadDeadline(time.Now().Add(30*time.Second)))
			answer, err := io.ReadAll(connection)
			require.NoError(t, err, "the server must close the connection")
			require.True(t, strings.HasPrefix(string(answer), "HTTP/1.1 "+status), string(answer))
		})
	}
}

func TestConfig_TraceLinkMustBeAWebAddress(t *testing.T) {
	for link, valid := range map[string]bool{
		"": true,
		"http://localhost:16686/trace/{trace_id}":            true,
		"https://g.example/explore?q={trace_id}&s={span_id}": true,
		"javascript:alert('{trace_id}')":                     false,
		"http://localhost:16686/trace":                       false,
		"/trace/{trace_id}":                                  false,
		"data:text/html,{trace_id}":                          false,
	} {
		c := createDefaultConfig().(*Config)
		c.Page.TraceLink = link
		require.Equal(t, valid, c.Validate() == nil, link)
	}
	c := createDefaultConfig().(*Config)
	c.History.MaxMemoryMiB = 0
	require.ErrorContains(t, c.Validate(), "`history::max_memory_mib` is 0; use 1 to 1024")
}

// Whatever a query has, the API answers with JSON, and never with a fault of its own.
func FuzzQuery(f *testing.F) {
	handler := handlerOf(f)
	for i, query := range []string{
		"range=1h&where=gen_ai.request.model=llama", "by=outcome&value=success&value=x&groups=3", "indicator=queue", "cdf=true&by=vantage",
		"slowest=time_to_first_token&limit=5", "where==&vantage=&outcome=", "%zz", "a;b", "range=24h&range=1h",
		"dimension=gen_ai.request.model&baseline=a&candidate=b&slo=all&alpha=0.1&tolerance=NaN",
	} {
		f.Add(uint8(i), query)
	}
	endpoints := []string{"meta", "now", "trends", "distributions", "heatmap", "load", "prompts", "requests", "requests/x", "compare"}
	f.Fuzz(func(t *testing.T, endpoint uint8, query string) {
		status, contentType, body := handler("/api/v1/"+endpoints[int(endpoint)%len(endpoints)], query)
		require.Contains(t, []int{200, 400, 404}, status, "%s", body)
		require.Equal(t, "application/json", contentType)
		require.True(t, json.Valid(body), "%s", body)
	})
}
