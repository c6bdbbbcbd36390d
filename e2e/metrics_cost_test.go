// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/testenv"
)

// everyMetric switches on what is off by default, for tests of the numbers. It
// extends configurations with the token_sli exporter.
const everyMetric = `
exporters:
  token_sli:
    percentiles: [50, 90, 95, 99, 99.9]
    windows: [1m, 5m, 1h]
    metrics:
      tokenpulse.time_to_first_output_token: {enabled: true}
      tokenpulse.time_to_first_output_token.percentile: {enabled: true}
      tokenpulse.output_token_rate: {enabled: true}
      tokenpulse.output_token_rate.percentile: {enabled: true}
      tokenpulse.inter_chunk_latency: {enabled: true}
      tokenpulse.inter_chunk_latency.percentile: {enabled: true}
      tokenpulse.phase.duration.percentile: {enabled: true}
`

const oneSLO = `
processors:
  token_latency:
    slos: [{name: chat-tpot, indicator: time_per_output_token, threshold: 50ms}]
`

// Three models with every outcome: the page passes promtool and stays affordable.
func TestScrape_PassesPromtoolAndIsAffordable(t *testing.T) {
	tool := testenv.Program(t, "promtool")
	c := startCollector(t, example(t, "quickstart.yaml"), "--config", writeFile(t, t.TempDir(), "slo.yaml", oneSLO))
	run(t, built(t, "tokengen"), "generate", "--fast", "--requests", "600", "--rate", "100", "--seed", "7", "--transport", "protobuf", "--endpoint", c.http,
		"--model", "a=1", "--model", "b=1", "--model", "c=1", "--incomplete-ratio", "0")
	page := get(t, c.metricsURL(), "text/plain; version=0.0.4")
	check := exec.CommandContext(t.Context(), tool, "check", "metrics")
	check.Stdin = bytes.NewReader(page)
	output, err := check.CombinedOutput()
	require.NoError(t, err, string(output))

	lines := 0
	for line := range strings.Lines(string(page)) {
		if !strings.HasPrefix(line, "#") {
			lines++
		}
	}
	families := scrape(t, c)
	groups := len(families["tokenpulse_requests_total"].GetMetric()) // one per series and outcome
	require.GreaterOrEqual(t, groups, 6, "three models, each with several outcomes")
	samples := 0
	for _, family := range families {
		samples += len(family.GetMetric())
	}
	t.Logf("%d series and outcomes: %d lines, %d samples", groups, lines, samples)
	require.LessOrEqual(t, lines, 160*groups)
	require.LessOrEqual(t, samples, 45*groups)
}
