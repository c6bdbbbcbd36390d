// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package httpguard

import (
	"context"
	"crypto/sha256"
	"net"
	"net/netip"

	"go.opentelemetry.io/collector/client"
)

// subjectAttributes are the names that the Collector's authenticators use for the
// authenticated subject.
var subjectAttributes = [...]string{"subject", "username"}

// maxSubject limits the bytes of a subject that are kept as they are. Longer ones are
// hashed.
const maxSubject = 128

// Client identifies a sender. Unknown senders count as one client.
type Client struct {
	// Subject is the authenticated subject, if known.
	Subject string
	// Addr is the address of a sender without a subject, of IPv6 its prefix.
	Addr netip.Addr
}

// ClientOf returns the authenticated subject of a request or, without one, the address of
// its connection.
func ClientOf(ctx context.Context) Client {
	info := client.FromContext(ctx)
	if info.Auth != nil {
		for _, name := range subjectAttributes {
			if subject, _ := info.Auth.GetAttribute(name).(string); subject != "" {
				return Client{Subject: shortened(subject)}
			}
		}
	}
	return Client{Addr: ipOf(info.Addr)}
}

func shortened(subject string) string {
	if len(subject) <= maxSubject {
		return subject
	}
	sum := sha256.Sum256([]byte(subject))
	return string(sum[:])
}

// clientPrefix is the length of the prefix that one client usually has of the addresses of IPv6.
const clientPrefix = 64

// ipOf returns the IP address of a connection, of IPv6 its prefix, and a zero address for other networks.
func ipOf(addr net.Addr) netip.Addr {
	var ip net.IP
	switch addr := addr.(type) {
	case *net.IPAddr:
		ip = addr.IP
	case *net.TCPAddr:
		ip = addr.IP
	}
	parsed, _ := netip.AddrFromSlice(ip)
	if parsed = parsed.Unmap(); parsed.Is6() {
		return netip.PrefixFrom(parsed, clientPrefix).Masked().Addr()
	}
	return parsed
}
