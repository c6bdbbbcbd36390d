// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package httpguard

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/config/confighttp"
)

// Browsers refuses requests that a foreign web page makes a browser send: the page may not read the
// answers, or spend what the server adds for its clients. With authentication, a foreign page has no
// credentials, so every request passes.
type Browsers struct {
	off            bool
	loopback       bool
	hosts, origins []string
}

// NewBrowsers returns the checks for a server that listens on an address. hosts are further values of the
// header Host.
func NewBrowsers(server *confighttp.ServerConfig, listening net.Addr, hosts []string) Browsers {
	tcp, _ := listening.(*net.TCPAddr)
	b := Browsers{
		off: server.Auth.HasValue(), loopback: tcp != nil && tcp.IP.IsLoopback(),
		hosts: append([]string{"localhost", hostOf(server.NetAddr.Endpoint)}, hosts...),
	}
	if cors := server.CORS.Get(); cors != nil {
		b.origins = cors.AllowedOrigins
	}
	return b
}

// Refusal returns why a request must be refused, with the key that would let it pass, or "".
func (b *Browsers) Refusal(req *http.Request) string {
	switch {
	case b.off:
		return ""
	case b.loopback && req.Host != "" && !b.allowsHost(req.Host):
		return "the header Host has a name that this server does not know; if it is yours, add it to allowed_hosts"
	case isForeign(req) && !b.allowsOrigin(req.Header.Get("Origin")):
		return "a web page of another site sent this request; if the site is yours, add its origin to cors::allowed_origins"
	}
	return ""
}

// Protect refuses requests with 403 and the reason, after the name of the component, before they reach next.
func (b *Browsers) Protect(component string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if message := b.Refusal(req); message != "" {
			http.Error(w, component+": "+message, http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, req)
	})
}

// isForeign reports whether a page of another site sent a request other than one that opens a page, such
// as by a link. Browsers leave out Sec-Fetch-Site in WebSocket handshakes, and in requests over plain HTTP
// to another address than that of this machine. The header Origin then has the page's host.
func isForeign(req *http.Request) bool {
	site, origin := req.Header.Get("Sec-Fetch-Site"), req.Header.Get("Origin")
	if site == "" && origin != "" {
		page, err := url.Parse(origin) // without a host if it is "null"
		return err != nil || page.Host == "" || !strings.EqualFold(page.Hostname(), hostOf(req.Host))
	}
	return isCrossSite(req) && !opensPage(req)
}

func isCrossSite(req *http.Request) bool {
	return strings.EqualFold(req.Header.Get("Sec-Fetch-Site"), "cross-site")
}

func opensPage(req *http.Request) bool {
	return req.Method == http.MethodGet && strings.EqualFold(req.Header.Get("Sec-Fetch-Mode"), "navigate")
}

// allowsHost reports whether the name of a server is its own. A name of an attacker can resolve to this
// machine; an IP address cannot.
func (b *Browsers) allowsHost(host string) bool {
	host = hostOf(host)
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	return slices.ContainsFunc(b.hosts, func(allowed string) bool { return strings.EqualFold(host, allowed) })
}

// hostOf returns the host of an address with or without a port.
func hostOf(address string) string {
	if host, _, err := net.SplitHostPort(address); err == nil {
		return host
	}
	return strings.Trim(address, "[]")
}

// allowsOrigin reports whether an origin is allowed, in which a * stands for any characters.
func (b *Browsers) allowsOrigin(origin string) bool {
	return slices.ContainsFunc(b.origins, func(allowed string) bool {
		prefix, suffix, wildcard := strings.Cut(strings.ToLower(allowed), "*")
		if !wildcard {
			return strings.EqualFold(origin, allowed)
		}
		origin := strings.ToLower(origin)
		return len(origin) >= len(prefix)+len(suffix) && strings.HasPrefix(origin, prefix) && strings.HasSuffix(origin, suffix)
	})
}
