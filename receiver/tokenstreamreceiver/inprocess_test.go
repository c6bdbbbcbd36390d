// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokenstreamreceiver

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/receiver/receivertest"

	"github.com/tokenpulse/tokenpulse/internal/annotate"
	"github.com/tokenpulse/tokenpulse/internal/inprocess"
	"github.com/tokenpulse/tokenpulse/internal/judge"
	"github.com/tokenpulse/tokenpulse/internal/slo"
	"github.com/tokenpulse/tokenpulse/internal/spanreader"
)

// reportedStreams returns the number of receivers that report open streams, and their sum.
func reportedStreams() (receivers int, sum int64) {
	all := inprocess.OpenStreams.All()
	for _, visit := range all {
		visit(new(spanreader.Dimensions), func(*inprocess.OpenStream) { sum++ })
	}
	return len(all), sum
}

func TestInProcess_ReportsOpenStreamsFromStartToShutdown(t *testing.T) {
	others, otherStreams := reportedStreams()
	requireReported := func(receivers int, streams int64) {
		t.Helper()
		gotReceivers, gotStreams := reportedStreams()
		require.Equal(t, receivers, gotReceivers-others)
		require.Equal(t, streams, gotStreams-otherStreams)
	}
	b := prepare(t)
	requireReported(0, 0)
	require.NoError(t, b.Start(t.Context(), componenttest.NewNopHost()))
	requireReported(1, 0)
	require.Equal(t, 200, b.lines(t, startLine("a"), startLine("b"), startLine("c"), chunkLine("c", time.Millisecond)).status)
	requireReported(1, 3)
	require.Equal(t, 200, b.lines(t, endLine("a"), endLine("c")).status)
	requireReported(1, 1)

	failing, err := newReceiver(configOn(b.server.AddrHTTP.String()), receivertest.NewNopSettings(NewFactory().Type()))
	require.NoError(t, err)
	require.ErrorContains(t, failing.Start(t.Context(), componenttest.NewNopHost()), "address already in use")
	requireReported(1, 1)

	require.NoError(t, b.Shutdown(t.Context()))
	requireReported(0, 0)
	require.NoError(t, b.Shutdown(t.Context()), "twice")
	requireReported(0, 0)
}

func TestInProcess_ReportsItsHTTPEndpointFromStartToShutdown(t *testing.T) {
	reported := func() []inprocess.Endpoint { return slices.Concat(inprocess.Endpoints.All()...) }
	b := prepare(t)
	require.NoError(t, b.Start(t.Context(), componenttest.NewNopHost()))
	endpoint := inprocess.Endpoint{Receiver: "token_stream", URL: strings.Replace(b.url(), "127.0.0.1", "localhost", 1)}
	require.Contains(t, reported(), endpoint)
	require.NoError(t, b.Shutdown(t.Context()))
	require.NotContains(t, reported(), endpoint)

	others := reported()
	b = prepare(t, func(c *Config) { c.Protocols.HTTP = configoptional.None[confighttp.ServerConfig]() })
	require.NoError(t, b.Start(t.Context(), componenttest.NewNopHost()))
	require.ElementsMatch(t, others, reported(), "gRPC only")
	require.NoError(t, b.Shutdown(t.Context()))
}

func TestInProcess_ReportsSLOsFromStartToShutdown(t *testing.T) {
	const name = "of this test only"
	reported := func() (found []slo.Definition) {
		for _, definitions := range inprocess.SLOs.All() {
			for _, d := range definitions {
				if d.Name == name {
					found = append(found, d)
				}
			}
		}
		return found
	}
	b := prepare(t, func(c *Config) {
		latency := annotate.DefaultConfig()
		latency.SLOs = []judge.SLOConfig{{Name: name, Indicator: "time_to_first_token", Threshold: "250ms"}}
		c.Latency = configoptional.Some(*latency)
	})
	require.Empty(t, reported())
	require.NoError(t, b.Start(t.Context(), componenttest.NewNopHost()))
	require.Equal(t, []slo.Definition{{Name: name, Indicator: "time_to_first_token", Threshold: 0.25}}, reported())
	require.NoError(t, b.Shutdown(t.Context()))
	require.Empty(t, reported())
}
