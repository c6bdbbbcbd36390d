// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokensliexporter

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Limits of what a series with one outcome and one SLO costs a scraper by default:
// lines of text, or samples for a Prometheus that takes native histograms.
const (
	maxLines   = 160
	maxSamples = 45
	maxBounds  = 14
)

func TestScrape_DefaultsAreAffordable(t *testing.T) {
	h := start(t, nil)
	span := func(model string) map[string]any { // of one engine, text only
		return with(map[string]any{"gen_ai.request.model": model, "tokenpulse.network.duration": 0.01, "tokenpulse.transfer.duration": nil, "tokenpulse.time_to_first_audio": nil, "tokenpulse.slo.not_eligible": nil, "tokenpulse.slo.breached": nil})
	}
	cost := func() (lines, samples int) {
		body, _ := h.scrape(t, text)
		for line := range strings.Lines(string(body)) {
			if !strings.HasPrefix(line, "#") {
				lines++
			}
		}
		for name, family := range h.families(t, protobuf) {
			for _, m := range family.Metric {
				samples++
				require.LessOrEqual(t, len(m.GetHistogram().GetBucket()), maxBounds+1, "classic buckets of %s, with +Inf", name)
			}
		}
		return lines, samples
	}
	for i, model := range []string{"llama", "qwen"} {
		h.send(t, span(model))
		lines, samples := cost()
		t.Logf("%d series: %d lines, %d samples", i+1, lines, samples)
		require.LessOrEqual(t, lines, (i+1)*maxLines)
		require.LessOrEqual(t, samples, (i+1)*maxSamples)
		require.Greater(t, samples, (i+1)*25, "the series has the metrics that are on by default")
	}
}
