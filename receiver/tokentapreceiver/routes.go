// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokentapreceiver

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/config/configmiddleware"
	"go.opentelemetry.io/collector/extension/extensionmiddleware"

	"github.com/tokenpulse/tokenpulse/internal/liveness"
	"github.com/tokenpulse/tokenpulse/internal/settings"
)

// route is an upstream and the paths that it serves.
type route struct {
	prefix   string
	endpoint *url.URL
	upstream http.RoundTripper
	// engine judges the upstream. It is nil if it is not judged: liveness is off, or has no room.
	engine *liveness.Engine
	habits habits
	// credentials is set if the configuration adds headers to requests, which may hold a key.
	credentials bool
	// answered has the formats of recognised answers by the shared path that they came on (llmstream.RequestFacts).
	answered sync.Map
	// proxied is set if a forward proxy needs the whole URL in each request.
	proxied bool
}

// routes are sorted by prefix, the longest first.
type routes []*route

func newRoutes(ctx context.Context, cfg *Config, extensions map[component.ID]component.Component, set component.TelemetrySettings) (routes, error) {
	configs := slices.Clone(cfg.Routes)
	if cfg.Upstream.Endpoint != "" {
		configs = append(configs, RouteConfig{Upstream: cfg.Upstream})
	}
	var all routes
	for i, config := range configs {
		endpoint, err := url.Parse(config.Upstream.Endpoint)
		if err != nil {
			return nil, err
		}
		upstream, raw, err := newTransport(ctx, config.Upstream, extensions, set)
		if err != nil {
			section := "upstream"
			if i < len(cfg.Routes) {
				section = fmt.Sprintf("routes::%d::upstream", i)
			}
			return nil, settings.StartError(section, err)
		}
		all = append(all, &route{
			prefix: config.Prefix, endpoint: endpoint, upstream: upstream, proxied: isProxied(raw, endpoint),
			credentials: len(config.Upstream.Headers) > 0 || config.Upstream.Auth.HasValue(),
		})
	}
	slices.SortFunc(all, func(a, b *route) int { return cmp.Compare(len(b.prefix), len(a.prefix)) })
	return all, nil
}

// find returns the route of a path as the client sent it, or nil.
func (r routes) find(path string) *route {
	for _, route := range r {
		if rest, ok := strings.CutPrefix(path, route.prefix); ok && (rest == "" || rest[0] == '/') {
			return route
		}
	}
	return nil
}

func (r routes) closeIdle() {
	for _, route := range r {
		(&http.Client{Transport: route.upstream}).CloseIdleConnections()
	}
}

// sentPath returns the path of a request as the client sent it. url.URL.EscapedPath would
// escape bytes that a path should not have, such as those of unescaped UTF-8.
func sentPath(u *url.URL) string {
	if unescaped, err := url.PathUnescape(u.RawPath); err == nil && unescaped == u.Path {
		return u.RawPath
	}
	return u.EscapedPath()
}

// rewrite directs a URL to the upstream: without the prefix, with the path of the endpoint.
func (r *route) rewrite(u *url.URL) {
	path := strings.TrimSuffix(r.endpoint.EscapedPath(), "/") + strings.TrimPrefix(sentPath(u), r.prefix)
	if path == "" {
		path = "/"
	}
	unescaped, _ := url.PathUnescape(path) // each part was unescaped before
	u.Scheme, u.Host, u.Path, u.RawPath = r.endpoint.Scheme, r.endpoint.Host, unescaped, path
	if u.EscapedPath() == path {
		return
	}
	// Opaque is sent without escaping. After two slashes, it begins with a host.
	switch {
	case r.proxied:
		u.Opaque = "//" + u.Host + path
	case !strings.HasPrefix(path, "//"):
		u.Opaque = path
	}
}

// newTransport returns the transport of an upstream, and the innermost one, which it may wrap.
// It uses only the transport of the client: no redirects are followed.
func newTransport(ctx context.Context, cfg confighttp.ClientConfig, extensions map[component.ID]component.Component, set component.TelemetrySettings) (
	upstream http.RoundTripper, raw *http.Transport, err error,
) {
	// Without providers, the client is not instrumented: it would replace the trace context.
	set.TracerProvider, set.MeterProvider = nil, nil
	var innermost rawTransport
	withTap := map[component.ID]component.Component{rawTransportID: &innermost}
	maps.Copy(withTap, extensions)
	cfg.Middlewares = append(slices.Clone(cfg.Middlewares), configmiddleware.Config{ID: rawTransportID})
	client, err := cfg.ToClient(ctx, withTap, set)
	if err != nil {
		return nil, nil, err
	}
	return client.Transport, innermost.transport, nil
}

// isProxied reports whether a transport sends requests to a forward proxy that needs the
// whole URL in them. Over https or SOCKS, it tunnels them to the endpoint instead.
func isProxied(transport *http.Transport, endpoint *url.URL) bool {
	if transport == nil || transport.Proxy == nil || endpoint.Scheme != "http" {
		return false
	}
	proxy, err := transport.Proxy(&http.Request{URL: endpoint})
	return err == nil && proxy != nil && !strings.HasPrefix(proxy.Scheme, "socks5")
}

// rawTransport is the innermost middleware of the client. It is the only way to the
// settings of net/http's transport that confighttp does not have.
type rawTransport struct {
	component.StartFunc
	component.ShutdownFunc

	transport *http.Transport
}

var (
	_ extensionmiddleware.HTTPClient = (*rawTransport)(nil)

	rawTransportID = component.MustNewID("token_tap_transport")
)

// GetHTTPRoundTripper keeps the transport from asking for compression on its own, and
// from decompressing the answer.
func (r *rawTransport) GetHTTPRoundTripper(context.Context) (extensionmiddleware.WrapHTTPRoundTripperFunc, error) {
	return func(_ context.Context, base http.RoundTripper) (http.RoundTripper, error) {
		if transport, ok := base.(*http.Transport); ok {
			transport.DisableCompression = true
			transport.DialContext = dial(transport.DialContext).watched
			r.transport = transport
		}
		return base, nil
	}, nil
}
