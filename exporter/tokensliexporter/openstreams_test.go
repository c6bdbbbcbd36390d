// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokensliexporter

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/inprocess"
	"github.com/tokenpulse/tokenpulse/internal/keeper"
	"github.com/tokenpulse/tokenpulse/internal/series"
)

// openInProcess registers a receiver with open streams until the test ends, or end is called.
func openInProcess(t *testing.T, streams ...inprocess.OpenStream) (end func()) {
	t.Helper()
	inprocess.OpenStreams.Set(t, func(_ inprocess.Labels, visit func(*inprocess.OpenStream)) {
		for i := range streams {
			visit(&streams[i])
		}
	})
	end = func() { inprocess.OpenStreams.Remove(t) }
	t.Cleanup(end)
	return end
}

// openStreams returns the samples of the gauge.
func (h *harness) openStreams(t *testing.T) []string {
	t.Helper()
	var lines []string
	body, _ := h.scrape(t, text)
	for line := range strings.Lines(string(body)) {
		if strings.HasPrefix(line, "tokenpulse_streams_open") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	slices.Sort(lines)
	return lines
}

func TestOpenStreams_AreThoseOfTheProcess(t *testing.T) {
	h := start(t, func(c *Config) { c.Shared.Series.Dimensions = series.DimensionsOf("gen_ai.request.model") })
	other := start(t, func(c *Config) { c.Shared.Series.MaxSeries = 1 })
	off := start(t, func(c *Config) {
		c.Shared.Metrics = map[string]keeper.Metric{"tokenpulse.streams.open": {Enabled: false}}
	})
	require.Empty(t, h.openStreams(t))
	long := strings.Repeat("m", 80)
	end := openInProcess(
		t,
		inprocess.OpenStream{Vantage: "gateway", Dimensions: []string{long}, Decoding: true, Silent: 16 * time.Second},
		inprocess.OpenStream{Vantage: "gateway", Dimensions: []string{long}, Decoding: true},
		inprocess.OpenStream{Vantage: "server", Dimensions: []string{""}, Silent: time.Hour},
	)
	const name = "tokenpulse_streams_open"
	require.Equal(t, []string{
		name + `{gen_ai_request_model="` + long + `",phase="decode",silent="1s",vantage="gateway"} 1`,
		name + `{gen_ai_request_model="` + long + `",phase="decode",silent="60s",vantage="gateway"} 1`,
		name + `{phase="first_token",silent="+Inf",vantage="server"} 1`,
	}, h.openStreams(t))
	require.Empty(t, off.openStreams(t))
	require.Contains(t, other.openStreams(t), name+`{otel_metric_overflow="true",phase="first_token",silent="+Inf"} 1`)

	end()
	for _, line := range h.openStreams(t) {
		require.True(t, strings.HasSuffix(line, "} 0"), line)
	}
	require.Len(t, h.openStreams(t), 3)
}
