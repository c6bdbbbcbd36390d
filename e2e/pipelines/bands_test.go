// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package pipelines

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/e2e/internal/collector"
	"github.com/tokenpulse/tokenpulse/e2e/internal/exposition"
	"github.com/tokenpulse/tokenpulse/e2e/internal/tokenevents"
	"github.com/tokenpulse/tokenpulse/internal/testenv"
)

// edgesOfBands are streams at the bounds: numbers of tokens, or -1 for none, and the bands that they must have.
var edgesOfBands = []struct {
	input, cached, output, chunks int
	bands                         string
}{
	{0, -1, 1, 1, "0-250 0-2 unknown"},
	{249, 0, 2, 2, "0-250 2-100 0-0.1"},
	{250, 24, 99, 2, "250-400 2-100 0-0.1"},
	{250, 25, 100, 2, "250-400 100-193 0.1-0.5"},
	{399, 199, 192, 2, "250-400 100-193 0.1-0.5"},
	{400, 200, 193, 2, "400-550 193+ 0.5+"},
	{550, 550, 100_000, 2, "550+ 193+ 0.5+"},
	{549, 550, 0, 2, "400-550 0-2 unknown"}, // a service that counts cached tokens apart
	{-1, 5, -1, 3, "unknown 2-100 unknown"}, // without usage, counted tokens decide
	{-1, -1, -1, 0, "unknown unknown unknown"},
}

// writeEdges writes the edges as a recording.
func writeEdges(t *testing.T) (file string) {
	t.Helper()
	var lines strings.Builder
	for i, edge := range edgesOfBands {
		write := tokenevents.EventsOf(&lines, fmt.Sprint("edge-", i), time.Unix(1_795_233_292, 0))
		write("start", 0, `,"resource":{"service.name":"edges"}`)
		for n := range edge.chunks {
			write("chunk", time.Duration(1+n)*time.Second, "")
		}
		usage := map[string]int{}
		for name, n := range map[string]int{"input_tokens": edge.input, "cached_input_tokens": edge.cached, "output_tokens": edge.output} {
			if n >= 0 {
				usage[name] = n
			}
		}
		encoded, err := json.Marshal(usage)
		require.NoError(t, err)
		write("end", 10*time.Second, `,"usage":`+string(encoded))
	}
	return collector.WriteFile(t, t.TempDir(), "edges.jsonl", lines.String())
}

// recountBands counts the streams of recordings by their bands, from the lines.
func recountBands(t *testing.T, files []string) map[string]int {
	t.Helper()
	type stream struct {
		counted               int
		input, output, cached *int
	}
	counts := map[string]int{}
	for _, name := range files {
		file, err := os.Open(name)
		require.NoError(t, err)
		defer func() { _ = file.Close() }()
		streams := map[string]*stream{}
		lines := bufio.NewScanner(file)
		for lines.Scan() {
			var line struct {
				Event  string
				Stream string `json:"stream_id"`
				Tokens *int
				Usage  struct {
					Input  *int `json:"input_tokens"`
					Output *int `json:"output_tokens"`
					Cached *int `json:"cached_input_tokens"`
				}
			}
			require.NoError(t, json.Unmarshal(lines.Bytes(), &line))
			s := streams[line.Stream]
			if s == nil {
				s = &stream{}
				streams[line.Stream] = s
			}
			switch {
			case line.Event == "chunk" && line.Tokens == nil:
				s.counted++
			case line.Event == "chunk":
				s.counted += *line.Tokens
			case line.Event == "end":
				s.input, s.output, s.cached = line.Usage.Input, line.Usage.Output, line.Usage.Cached
			}
		}
		require.NoError(t, lines.Err())
		for _, s := range streams {
			if s.output == nil && s.counted > 0 {
				s.output = &s.counted
			}
			share := "unknown"
			if s.input != nil && s.cached != nil && *s.input > 0 && *s.cached <= *s.input {
				switch { // in whole numbers
				case 10**s.cached < *s.input:
					share = "0-0.1"
				case 2**s.cached < *s.input:
					share = "0.1-0.5"
				default:
					share = "0.5+"
				}
			}
			counts[bandAmong(s.input, 250, 400, 550)+" "+bandAmong(s.output, 2, 100, 193)+" "+share]++
		}
	}
	return counts
}

func bandAmong(n *int, first, second, third int) string {
	switch {
	case n == nil:
		return "unknown"
	case *n >= third:
		return fmt.Sprintf("%d+", third)
	case *n >= second:
		return fmt.Sprintf("%d-%d", second, third)
	case *n >= first:
		return fmt.Sprintf("%d-%d", first, second)
	default:
		return fmt.Sprintf("0-%d", first)
	}
}

func requestsByBands(families map[string]*dto.MetricFamily) map[string]int {
	counts := map[string]int{}
	for _, m := range families["tokenpulse_requests_total"].GetMetric() {
		counts[exposition.Label(m, "prompt_tokens")+" "+exposition.Label(m, "answer_tokens")+" "+exposition.Label(m, "tokenpulse_cached_input_share")] += int(m.GetCounter().GetValue())
	}
	return counts
}

// Usage comes with the end of a stream. Whatever way it takes to its series, they are those of a recount.
func TestBands_AreThoseOfARecountOnEachPath(t *testing.T) {
	t.Parallel()
	files := []string{testenv.UnzipRecording(t), collector.DemoRecording(t), writeEdges(t)}
	want, total := recountBands(t, files), 0
	for _, n := range want {
		total += n
	}
	edges := map[string]int{}
	for _, edge := range edgesOfBands {
		edges[edge.bands]++
	}
	require.Equal(t, edges, recountBands(t, files[2:]))
	require.Greater(t, len(want), 15, "few bands occur: %v", want)

	bands := func(component string) string {
		return "--config=yaml:" + strings.ReplaceAll(component, "DIMENSIONS", collector.DimensionsWithBands)
	}
	const ofExporter, ofReceiver = "exporters: {token_sli: DIMENSIONS}", "receivers: {token_stream: {series: DIMENSIONS}}"
	finish := func(t *testing.T, c *collector.Collector, transport string) map[string]*dto.MetricFamily {
		t.Helper()
		for _, file := range files {
			collector.Run(t, collector.Built(t, "tokenpulse"), "replay", file, "--transport", transport, "--endpoint", c.Endpoint(transport))
		}
		var families map[string]*dto.MetricFamily
		require.Eventually(t, func() bool {
			families = exposition.ScrapeAny(t, c.MetricsURL())
			return exposition.RequestCount(families) == total
		}, collector.Patience, 50*time.Millisecond)
		return families
	}
	flush := "--set=receivers.token_stream.series.metrics_flush_interval=50ms"
	paths := map[string]func(t *testing.T) map[string]*dto.MetricFamily{
		"spans": func(t *testing.T) map[string]*dto.MetricFamily {
			return finish(t, collector.Start(t, collector.Example(t, "quickstart.yaml"), bands(ofExporter)), "grpc")
		},
		"metrics of the connector": func(t *testing.T) map[string]*dto.MetricFamily {
			collector.ExampleEnvironment(t)
			collector.Setenv(t, "GATEWAY_ENDPOINT", collector.Getenv(t, "OTLP_GRPC_ENDPOINT"))
			gateway := collector.Start(t, collector.Example(t, "metrics-gateway.yaml"), bands(ofExporter))
			agent := startAgent(t, bands("connectors: {token_sli/series: DIMENSIONS}"))
			for _, file := range files {
				collector.Replay(t, agent, file)
			}
			agent.Stop(t) // flushes
			return exposition.Scrape(t, gateway)
		},
	}
	for _, transport := range []string{"ndjson", "protobuf", "grpc-stream"} { // parts, whole streams, parts
		paths["series from the wire, "+transport] = func(t *testing.T) map[string]*dto.MetricFamily {
			collector.ExampleEnvironment(t)
			collector.Setenv(t, "METRICS_FILE", t.TempDir()+"/metrics.jsonl")
			return finish(t, collector.Start(t, collector.Example(t, "wire-metrics.yaml"), bands(ofReceiver), bands(ofExporter), flush), transport)
		}
	}
	for name, families := range paths {
		t.Run(name, func(t *testing.T) { require.Equal(t, want, requestsByBands(families(t))) })
	}
}
