// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package pipelines

import (
	"bytes"
	"fmt"
	"os"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/e2e/internal/collector"
	"github.com/tokenpulse/tokenpulse/e2e/internal/exposition"
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

// startAgent runs examples/metrics-agent.yaml in front of a gateway.
func startAgent(t *testing.T, more ...string) *collector.Collector {
	t.Helper()
	c := collector.StartPushing(t, collector.Example(t, "metrics-agent.yaml"), more...)
	c.WaitForListener(t, c.GRPC)
	return c
}

// splitRecording divides the streams of the demo recording among files.
func splitRecording(t *testing.T, n int) (files []string) {
	t.Helper()
	recording, err := os.ReadFile(collector.DemoRecording(t))
	require.NoError(t, err)
	parts := make([]bytes.Buffer, n)
	for line := range bytes.Lines(recording) {
		_, after, found := bytes.Cut(line, []byte(`"stream_id":"`))
		require.True(t, found)
		id, _, _ := bytes.Cut(after, []byte(`"`))
		sum := 0
		for _, c := range id {
			sum += int(c)
		}
		parts[sum%n].Write(line)
	}
	for i := range parts {
		require.NotZero(t, parts[i].Len())
		files = append(files, collector.WriteFile(t, t.TempDir(), fmt.Sprintf("part-%d.jsonl", i), parts[i].String()))
	}
	return files
}

// Two agents, one of which restarts, publish to a gateway. Its numbers are those of one
// Collector that got all streams.
func TestExampleMetricsGateway_AddsUpTheAgents(t *testing.T) {
	t.Parallel()
	collector.ExampleEnvironment(t)
	collector.Setenv(t, "GATEWAY_ENDPOINT", collector.Getenv(t, "OTLP_GRPC_ENDPOINT"))
	gateway := collector.Start(t, collector.Example(t, "metrics-gateway.yaml"))
	single := collector.Start(t, collector.Example(t, "quickstart.yaml"))

	files := splitRecording(t, 3)
	for _, file := range files {
		collector.Replay(t, single, file)
	}

	collector.Setenv(t, "HOSTNAME", "first")
	first := startAgent(t, "--set", "connectors.token_sli/series.metrics_flush_interval=50ms")
	collector.Setenv(t, "HOSTNAME", "second")
	second := startAgent(t, "--set", "connectors.token_sli/series.temporality=delta")
	collector.Replay(t, first, files[0])
	collector.Replay(t, second, files[1])
	first.Stop(t) // its last flush arrives, and the gateway keeps it
	collector.Setenv(t, "HOSTNAME", "first")
	first = startAgent(t)
	collector.Replay(t, first, files[2])
	first.Stop(t)
	second.Stop(t)

	want, got := exposition.Scrape(t, single), exposition.Scrape(t, gateway)
	require.Equal(t, collector.DemoRequests(t), exposition.RequestCount(want))
	requireSameSeries(t, want, got)
}
