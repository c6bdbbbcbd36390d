// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokentapreceiver

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/config/configauth"
	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/receiver/receivertest"

	"github.com/tokenpulse/tokenpulse/internal/storagetest"
	"github.com/tokenpulse/tokenpulse/receiver/tokentapreceiver/internal/metadata"
)

// withReadiness lets machines ask on any port.
func withReadiness(change func(*LivenessConfig)) func(*Config) {
	return func(cfg *Config) {
		liveness := defaultLiveness()
		liveness.Server.NetAddr.Endpoint = "localhost:0"
		change(&liveness)
		cfg.Liveness = configoptional.Some(liveness)
	}
}

func asDefault(*LivenessConfig) {}

// ask asks the listener for machines.
func ask(t *testing.T, r *tokenTapReceiver, path string, header map[string]string) (status int, body string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+r.readiness.Address.String()+path, http.NoBody)
	require.NoError(t, err)
	for name, value := range header {
		request.Header.Set(name, value)
	}
	if host := header["Host"]; host != "" {
		request.Host = host
	}
	response, err := client(t).Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response.StatusCode, string(answer)
}

func TestReadiness_EachUpstreamIsKnownBeforeItsFirstRequest(t *testing.T) {
	p := startAt(t, new(consumertest.TracesSink), withReadiness(asDefault), func(cfg *Config) {
		cfg.Upstream.Endpoint = "http://first.example"
		cfg.Routes = []RouteConfig{{Prefix: "/a", Upstream: defaultUpstream()}, {Prefix: "/b", Upstream: defaultUpstream()}}
		cfg.Routes[0].Upstream.Endpoint = "https://second.example/v1"
		cfg.Routes[1].Upstream.Endpoint = "http://[::1]:8000"
	})
	for _, path := range []string{"first.example_80", "second.example_443", "[__1]_8000", "first.example:80"} {
		status, _ := ask(t, p.receiver, "/engines/"+path+"/ready", nil)
		require.Equal(t, http.StatusOK, status, path)
	}
	require.Zero(t, p.logs.FilterMessageSnippet("not known").Len())
	status, _ := ask(t, p.receiver, "/engines/other_80/ready", nil)
	require.Equal(t, http.StatusOK, status)
	require.Equal(t, 1, p.logs.FilterMessageSnippet("not known").Len())
}

func TestReadiness_RefusesForeignPages(t *testing.T) {
	p := startAt(t, new(consumertest.TracesSink), withReadiness(asDefault), func(cfg *Config) {
		cfg.Upstream.Endpoint, cfg.AllowedHosts = "http://localhost:1", []string{"balancer.example"}
	})
	for host, expected := range map[string]int{"evil.example": 403, "balancer.example": 200, "": 200} {
		status, body := ask(t, p.receiver, "/engines", map[string]string{"Host": host})
		require.Equal(t, expected, status, body)
	}
	status, body := ask(t, p.receiver, "/engines", map[string]string{"Sec-Fetch-Site": "cross-site"})
	require.Equal(t, 403, status)
	require.Contains(t, body, "token_tap: a web page of another site sent this request")
}

func TestReadiness_NoListenerWithoutLiveness(t *testing.T) {
	p := startAt(t, new(consumertest.TracesSink), func(cfg *Config) { cfg.Upstream.Endpoint = "http://localhost:1" })
	require.Nil(t, p.receiver.readiness)
}

// guarded is an extension that lets requests with a key pass.
type guarded struct {
	component.StartFunc
	component.ShutdownFunc
}

func (guarded) Authenticate(ctx context.Context, header map[string][]string) (context.Context, error) {
	if keys := header["Authorization"]; len(keys) == 1 && keys[0] == "Bearer right" {
		return ctx, nil
	}
	return ctx, errors.New("no key")
}

func TestReadiness_AuthenticatesAsAnyServer(t *testing.T) {
	id := component.MustNewID("guarded")
	cfg := createDefaultConfig().(*Config)
	cfg.Server.NetAddr.Endpoint, cfg.Upstream.Endpoint = "localhost:0", "http://localhost:1"
	withReadiness(func(liveness *LivenessConfig) {
		liveness.Server.Auth = configoptional.Some(confighttp.AuthConfig{Config: configauth.Config{AuthenticatorID: id}})
	})(cfg)
	r, err := newReceiver(cfg, receivertest.NewNopSettings(metadata.Type), consumertest.NewNop())
	require.NoError(t, err)
	require.NoError(t, r.Start(t.Context(), storagetest.Host{id: guarded{}}))
	defer func() { require.NoError(t, r.Shutdown(context.Background())) }()
	for key, expected := range map[string]int{"": 401, "Bearer wrong": 401, "Bearer right": 200} {
		for _, path := range []string{"/engines", "/engines/localhost_1/ready"} {
			status, _ := ask(t, r, path, map[string]string{"Authorization": key})
			require.Equal(t, expected, status, key)
		}
	}
}

func TestReadiness_ATakenPortIsNamed(t *testing.T) {
	taken, err := net.Listen("tcp", "localhost:0")
	require.NoError(t, err)
	defer taken.Close()
	cfg := createDefaultConfig().(*Config)
	cfg.Server.NetAddr.Endpoint, cfg.Upstream.Endpoint = "localhost:0", "http://localhost:1"
	withReadiness(func(liveness *LivenessConfig) { liveness.Server.NetAddr.Endpoint = taken.Addr().String() })(cfg)
	r, err := newReceiver(cfg, receivertest.NewNopSettings(metadata.Type), consumertest.NewNop())
	require.NoError(t, err)
	err = r.Start(t.Context(), componenttest.NewNopHost())
	require.ErrorContains(t, err, "`liveness::endpoint`: listen tcp "+taken.Addr().String())
	require.ErrorContains(t, err, "address already in use; stop what listens there, or choose another port")
}
