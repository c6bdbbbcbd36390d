// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	"bytes"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/e2e/internal/collector"
	"github.com/tokenpulse/tokenpulse/e2e/internal/exposition"
	"github.com/tokenpulse/tokenpulse/internal/testenv"
)

const oneSLO = `
processors:
  token_latency:
    slos: [{name: chat-tpot, indicator: time_per_output_token, threshold: 50ms}]
`

// Three models with every outcome: the page passes promtool and stays affordable.
func TestScrape_PassesPromtoolAndIsAffordable(t *testing.T) {
	tool := testenv.Program(t, "promtool")
	c := collector.Start(t, collector.Example(t, "quickstart.yaml"), "--config", collector.WriteFile(t, t.TempDir(), "slo.yaml", oneSLO))
	collector.Run(t, collector.Built(t, "tokenpulse"), "generate", "--fast", "--requests", "600", "--rate", "100", "--seed", "7", "--transport", "protobuf", "--endpoint", c.HTTP,
		"--model", "a=1", "--model", "b=1", "--model", "c=1", "--incomplete-ratio", "0")
	page := collector.Get(t, c.MetricsURL(), "text/plain; version=0.0.4")
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
	families := exposition.Scrape(t, c)
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
