// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package pipelines

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/e2e/internal/collector"
	"github.com/tokenpulse/tokenpulse/e2e/internal/exposition"
	"github.com/tokenpulse/tokenpulse/e2e/internal/otlpfile"
	"github.com/tokenpulse/tokenpulse/internal/testenv"
	"github.com/tokenpulse/tokenpulse/internal/testenv/reference"
)

// The spans and metrics of 100 real requests are those of the definitions over each
// transport, and AIPerf computed the same numbers.
func TestReplay_SpansAndMetricsEqualTheRecording(t *testing.T) {
	t.Parallel()
	requests := reference.Recording(t)
	require.Len(t, requests, 100)
	byStart := map[int64]*plainStream{}
	var streams []*plainStream
	for _, r := range requests {
		s := &plainStream{Stream: r.Stream, vantage: "client"}
		byStart[r.Start], streams = s, append(streams, s)
		if r.Computed == nil {
			continue
		}
		const within = 0.002 // milliseconds
		numbers := reference.Of(&r.Stream, reference.Usual).Numbers
		require.InDelta(t, r.Computed.TimeToFirstToken, 1e3*numbers["tokenpulse.time_to_first_token"].Value, within)
		require.InDelta(t, r.Computed.InterTokenLatency, 1e3*numbers["tokenpulse.time_per_output_token"].Value, within)
		require.InDelta(t, r.Computed.RequestLatency, 1e3*numbers["tokenpulse.request.duration"].Value, within)
	}
	require.Len(t, byStart, len(requests), "each request has its own start time")

	spansFile := filepath.Join(t.TempDir(), "spans.jsonl")
	collector.Setenv(t, "SPANS_FILE", spansFile)
	collector.Setenv(t, "OTLP_GRPC_ENDPOINT", collector.FreeAddress(t))
	collector.Setenv(t, "OTLP_HTTP_ENDPOINT", collector.FreeAddress(t))
	more := append([]string{"--config", collector.WriteFile(t, t.TempDir(), "every.yaml", collector.EveryMetric)}, collector.FullDetail...)
	c := collector.Start(t, collector.Example(t, "spans-to-file.yaml"), append(more, "--set", "exporters.token_sli.deduplication.horizon=0s")...) // the replays are equal
	transports := []string{"ndjson", "json", "protobuf", "grpc", "grpc-stream"}
	for _, transport := range transports {
		collector.Run(t, collector.Built(t, "tokenpulse"), "replay", testenv.UnzipRecording(t), "--service", transport,
			"--transport", transport, "--endpoint", c.Endpoint(transport))
	}
	families := exposition.Scrape(t, c)
	c.Stop(t)
	spans := spansByService(t, spansFile)
	for _, transport := range transports {
		require.Len(t, spans[transport], len(requests))
		for _, span := range spans[transport] {
			s := byStart[int64(span.StartTimestamp())]
			require.NotNil(t, s, "no request starts at %d", span.StartTimestamp())
			requirePlainSpan(t, s, reference.Of(&s.Stream, reference.Usual), span, "over "+transport)
			requireTimeline(t, s, span)
		}
		requirePlainMetrics(t, streams, families, transport)
	}
}

// requireTimeline compares the chunks of a span with those of a stream, in whole microseconds.
func requireTimeline(t *testing.T, s *plainStream, span ptrace.Span) {
	t.Helper()
	times, _ := otlpfile.ChunksOf(t, span)
	require.Len(t, times, len(s.Chunks))
	for i, at := range times {
		require.InDelta(t, 0, s.Chunks[i].At-at, microsecond, "chunk %d", i)
	}
}
