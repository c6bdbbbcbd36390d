// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package httpguard

import (
	"net"
	"strconv"

	"go.opentelemetry.io/collector/config/confighttp"
)

// URLOf returns the URL of a server that listens on an address, without a path: the configured host, which a certificate
// may name, and the port that it got. It returns "" for a server that does not listen on TCP.
func URLOf(server *confighttp.ServerConfig, listening net.Addr) string {
	tcp, ok := listening.(*net.TCPAddr)
	if !ok {
		return ""
	}
	host := hostOf(server.NetAddr.Endpoint)
	if host == "" {
		host = tcp.IP.String()
	}
	scheme := "http://"
	if server.TLS.HasValue() {
		scheme = "https://"
	}
	return scheme + net.JoinHostPort(host, strconv.Itoa(tcp.Port))
}
