// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package offline

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/e2e/internal/collector"
	"github.com/tokenpulse/tokenpulse/internal/testenv"
)

const writesSpans = `
receivers: {token_stream: {}}
processors: {token_latency: {}}
exporters:
  token_sli: {}
  file: {path: "${env:FOLDER}/spans.jsonl"}
service: {pipelines: {traces: {receivers: [token_stream], processors: [token_latency], exporters: [token_sli, file]}}}
`

// The workload of a benchmark is replayed to a Collector. The spans that it writes have the same workload: all arrivals and lengths.
func TestWorkload_ComesBackFromTheSpansOfACollector(t *testing.T) {
	t.Parallel()
	folder, tokenpulse := t.TempDir(), collector.Built(t, "tokenpulse")
	recorded := filepath.Join(folder, "trace.jsonl")
	collector.Run(t, tokenpulse, "workload", filepath.Join(testenv.Root(t), "testdata", "recordings", "aiperf.jsonl.gz"), "-o", recorded)
	trace, err := os.ReadFile(recorded)
	require.NoError(t, err)
	require.Equal(t, 89, strings.Count(string(trace), "\n"), "AIPerf's run has so many requests with tokens")

	collector.Setenv(t, "FOLDER", folder)
	c := collector.Start(t, collector.WriteFile(t, t.TempDir(), "config.yaml", writesSpans), collector.OwnMetricsOff)
	collector.Replay(t, c, recorded)
	c.Stop(t)
	again := filepath.Join(folder, "again.jsonl")
	out := collector.Run(t, tokenpulse, "workload", filepath.Join(folder, "spans.jsonl"), "-o", again)
	replayed, err := os.ReadFile(again)
	require.NoError(t, err)
	require.Equal(t, string(trace), string(replayed))
	require.NotContains(t, out, "left out")
}
