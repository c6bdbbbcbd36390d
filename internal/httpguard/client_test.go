// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package httpguard_test

import (
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/client"

	"github.com/tokenpulse/tokenpulse/internal/httpguard"
)

type authData map[string]any

func (a authData) GetAttribute(name string) any { return a[name] }
func (authData) GetAttributeNames() []string    { return nil }

func TestClientOf(t *testing.T) {
	address := netip.MustParseAddr("10.0.0.7")
	ip := &net.IPAddr{IP: net.ParseIP("10.0.0.7")}
	long := strings.Repeat("x", 10_000)
	for name, tt := range map[string]struct {
		info client.Info
		want httpguard.Client
	}{
		"address over HTTP":           {client.Info{Addr: ip}, httpguard.Client{Addr: address}},
		"address over gRPC":           {client.Info{Addr: &net.TCPAddr{IP: net.IP{10, 0, 0, 7}, Port: 1234}}, httpguard.Client{Addr: address}},
		"IPv6: the prefix":            {client.Info{Addr: &net.IPAddr{IP: net.ParseIP("2001:db8:1:2:3:4:5:6")}}, httpguard.Client{Addr: netip.MustParseAddr("2001:db8:1:2::")}},
		"IPv4 as IPv6":                {client.Info{Addr: &net.IPAddr{IP: net.ParseIP("::ffff:10.0.0.7")}}, httpguard.Client{Addr: address}},
		"subject before address":      {client.Info{Addr: ip, Auth: authData{"subject": "chat"}}, httpguard.Client{Subject: "chat"}},
		"name of basic authenticator": {client.Info{Addr: ip, Auth: authData{"username": "chat"}}, httpguard.Client{Subject: "chat"}},
		"no subject":                  {client.Info{Addr: ip, Auth: authData{"subject": 7}}, httpguard.Client{Addr: address}},
		"unix socket":                 {client.Info{Addr: &net.UnixAddr{Name: "/run/socket"}}, httpguard.Client{}},
		"unknown":                     {client.Info{}, httpguard.Client{}},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, tt.want, httpguard.ClientOf(client.NewContext(t.Context(), tt.info)))
		})
	}
	subject := httpguard.ClientOf(client.NewContext(t.Context(), client.Info{Auth: authData{"subject": long}})).Subject
	require.Len(t, subject, 32, "a long subject is hashed")
}
