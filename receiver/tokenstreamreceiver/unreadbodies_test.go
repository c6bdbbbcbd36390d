// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokenstreamreceiver

import (
	"context"
	"errors"
	"io"
	"net"
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
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/server"
)

// gate is an auth extension that refuses everyone.
type gate struct {
	component.StartFunc
	component.ShutdownFunc
}

var _ extensionauth.Server = (*gate)(nil)

func (*gate) Authenticate(ctx context.Context, _ map[string][]string) (context.Context, error) {
	return ctx, errors.New("no token")
}

// Before an early answer, net/http reads the body, which these clients never send. idle_timeout is a minute.
func TestServer_NoConnectionWaitsForABodyForEver(t *testing.T) {
	for name, c := range map[string]struct{ head, status string }{
		"a body with a length": {"POST " + tokensPath + " HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\n", "401"},
		"half a body":          {"POST " + tokensPath + " HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\n{", "401"},
		"a chunked body":       {"POST " + server.LogsPath + " HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n", "401"},
		"no such path":         {"PUT /x HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\n", "404"},
		"no such type":         {"POST " + tokensPath + " HTTP/1.1\r\nHost: h\r\nContent-Type: x/y\r\nContent-Length: 9\r\n\r\n", "415"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			id := component.MustNewID("gate")
			b := prepare(t, func(cfg *Config) {
				if c.status == "401" {
					cfg.Protocols.HTTP.Get().Auth = configoptional.Some(confighttp.AuthConfig{Config: configauth.Config{AuthenticatorID: id}})
				}
			})
			require.NoError(t, b.Start(t.Context(), storagetest.Host{id: &gate{}}))
			connection, err := net.Dial("tcp", b.server.AddrHTTP.String())
			require.NoError(t, err)
			defer connection.Close()
			_, err = io.WriteString(connection, c.head)
			require.NoError(t, err)
			require.NoError(t, connection.SetReadDeadline(time.Now().Add(30*time.Second)))
			answer, err := io.ReadAll(connection)
			require.NoError(t, err, "the server must close the connection")
			require.True(t, strings.HasPrefix(string(answer), "HTTP/1.1 "+c.status), string(answer))
		})
	}
}
