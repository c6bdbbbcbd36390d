// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"fmt"
	"os"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"
)

// numbersOf returns every counter, and the native buckets of every histogram, of a scrape.
// Sums are apart: their last digits depend on the order of additions.
func numbersOf(families map[string]*dto.MetricFamily) (exact map[string]string, sums map[string]float64) {
	exact, sums = map[string]string{}, map[string]float64{}
	for name, family := range families {
		for _, m := range family.Metric {
			id := fmt.Sprint(name, m.Label)
			switch h := m.Histogram; {
			case h != nil:
				exact[id] = fmt.Sprint(h.GetSampleCount(), h.GetSchema(), h.GetZeroCount(), h.PositiveSpan, h.PositiveDelta)
				sums[id] = h.GetSampleSum()
			case m.Counter != nil && name == "tokenpulse_stall_duration_seconds_total":
				sums[id] = m.GetCounter().GetValue()
			case m.Counter != nil:
				exact[id] = fmt.Sprint(m.GetCounter().GetValue())
			}
		}
	}
	return exact, sums
}

func requireSameSeries(t *testing.T, want, got map[string]*dto.MetricFamily) {
	t.Helper()
	wantExact, wantSums := numbersOf(want)
	gotExact, gotSums := numbersOf(got)
	require.Greater(t, len(wantExact), 30)
	require.Equal(t, wantExact, gotExact)
	require.Len(t, gotSums, len(wantSums))
	for id, sum := range wantSums {
		require.InEpsilon(t, 1+sum, 1+gotSums[id], 1e-12, id)
	}
}

func requestCount(families map[string]*dto.MetricFamily) (total int) {
	for _, m := range families["tokenpulse_requests_total"].GetMetric() {
		total += int(m.GetCounter().GetValue())
	}
	return total
}

// replay sends a recording over gRPC.
func replay(t *testing.T, c *collector, file string) {
	t.Helper()
	run(t, built(t, "tokengen"), "replay", file, "--transport", "grpc", "--endpoint", c.grpc)
}

// startAgent runs examples/metrics-agent.yaml in front of a gateway.
func startAgent(t *testing.T, more ...string) *collector {
	t.Helper()
	c := startPushing(t, example(t, "metrics-agent.yaml"), more...)
	c.waitForListener(t, c.grpc)
	return c
}

// Two agents, one of which restarts, publish to a gateway. Its numbers are those of one
// Collector that got all streams.
func TestExampleMetricsGateway_AddsUpTheAgents(t *testing.T) {
	t.Parallel()
	exampleEnvironment(t)
	setenv(t, "GATEWAY_ENDPOINT", getenv(t, "OTLP_GRPC_ENDPOINT"))
	gateway := startCollector(t, example(t, "metrics-gateway.yaml"))
	single := startCollector(t, example(t, "quickstart.yaml"))

	recording, err := os.ReadFile(demoRecording(t))
	require.NoError(t, err)
	parts := make([]bytes.Buffer, 3)
	for line := range bytes.Lines(recording) {
		_, after, found := bytes.Cut(line, []byte(`"stream_id":"`))
		require.True(t, found)
		id, _, _ := bytes.Cut(after, []byte(`"`))
		sum := 0
		for _, c := range id {
			sum += int(c)
		}
		parts[sum%len(parts)].Write(line)
	}
	var files []string
	for i := range parts {
		require.NotZero(t, parts[i].Len())
		files = append(files, writeFile(t, t.TempDir(), fmt.Sprintf("part-%d.jsonl", i), parts[i].String()))
		replay(t, single, files[i])
	}

	setenv(t, "HOSTNAME", "first")
	first := startAgent(t, "--set", "connectors.token_sli/series.metrics_flush_interval=50ms")
	setenv(t, "HOSTNAME", "second")
	second := startAgent(t, "--set", "connectors.token_sli/series.temporality=delta")
	replay(t, first, files[0])
	replay(t, second, files[1])
	first.stop(t) // its last flush arrives, and the gateway keeps it
	setenv(t, "HOSTNAME", "first")
	first = startAgent(t)
	replay(t, first, files[2])
	first.stop(t)
	second.stop(t)

	want, got := scrape(t, single), scrape(t, gateway)
	require.Equal(t, demoRequests(t), requestCount(want))
	requireSameSeries(t, want, got)
}
