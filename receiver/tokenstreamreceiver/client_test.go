// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokenstreamreceiver

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/client"

	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/assembly"
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
		want assembly.Client
	}{
		"address over HTTP":           {client.Info{Addr: ip}, assembly.Client{Addr: address}},
		"address over gRPC":           {client.Info{Addr: &net.TCPAddr{IP: net.IP{10, 0, 0, 7}, Port: 1234}}, assembly.Client{Addr: address}},
		"subject before address":      {client.Info{Addr: ip, Auth: authData{"subject": "chat"}}, assembly.Client{Subject: "chat"}},
		"name of basic authenticator": {client.Info{Addr: ip, Auth: authData{"username": "chat"}}, assembly.Client{Subject: "chat"}},
		"no subject":                  {client.Info{Addr: ip, Auth: authData{"subject": 7}}, assembly.Client{Addr: address}},
		"unix socket":                 {client.Info{Addr: &net.UnixAddr{Name: "/run/socket"}}, assembly.Client{}},
		"unknown":                     {client.Info{}, assembly.Client{}},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, tt.want, clientOf(client.NewContext(t.Context(), tt.info)))
		})
	}
	subject := clientOf(client.NewContext(t.Context(), client.Info{Auth: authData{"subject": long}})).Subject
	require.Len(t, subject, 32, "a long subject is hashed")
}

func startLines(prefix string, n int) []byte {
	var lines bytes.Buffer
	for i := range n {
		lines.WriteString(startLine(fmt.Sprintf("%s%d", prefix, i)) + "\n")
	}
	return lines.Bytes()
}

// One sender that opens streams without end leaves room for others.
func TestMaxStreamsPerClient_LeavesRoomForOthers(t *testing.T) {
	b := start(t, func(c *Config) { c.MaxStreams = 1000 })
	var small bytes.Buffer
	zip := gzip.NewWriter(&small)
	_, _ = zip.Write(startLines("many", 100_000))
	require.NoError(t, zip.Close())
	got := b.post(t, typeNDJSON, &small, "Content-Encoding", "gzip")
	require.Equal(t, 429, got.status)
	require.Contains(t, got.answer.Errors[0].Message, "max_streams_per_client is reached")
	// It opens as many as it can, one by one.
	for i := 0; ; i++ {
		if got := b.lines(t, startLine(fmt.Sprint("one", i))); got.status == 429 {
			require.Equal(t, "1", got.header.Get("Retry-After"))
			break
		}
		require.Less(t, i, 1000)
	}
	require.LessOrEqual(t, b.ingester.store.Streams(), int64(500))
	require.GreaterOrEqual(t, metricValue(t, b, "streams_refused", map[string]string{"limit": "max_streams_per_client"}), int64(2))

	send := func(ip string, lines []byte) *refusal {
		req := b.take(b.reportHTTP, true, new(answer))
		defer b.put(req)
		reader := newLineReader(b.cfg.MaxEventBytes, b.ingester.store)
		require.NoError(t, reader.reset(bytes.NewReader(lines)))
		defer reader.close()
		for reader.fill() == nil {
			require.Nil(t, req.readLines(reader))
		}
		return req.commit(client.NewContext(t.Context(), client.Info{Addr: &net.IPAddr{IP: net.ParseIP(ip)}}))
	}
	for i := range 5 {
		ip := fmt.Sprint("10.0.0.", i)
		require.Nil(t, send(ip, startLines(ip, 99)), "another client")
		require.Nil(t, send(ip, []byte(startLine(ip+"last"))))
	}
}
