// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokensliexporter

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/engines"
	"github.com/tokenpulse/tokenpulse/internal/inprocess"
	"github.com/tokenpulse/tokenpulse/internal/keeper"
	"github.com/tokenpulse/tokenpulse/internal/liveness"
)

// enginesInProcess registers a receiver with three engines until the test ends, or end is called: one has a stream that
// has been silent for 130 seconds, one an answer that ended, one a request that never got a token.
func enginesInProcess(t testing.TB, now time.Duration) (end func()) {
	t.Helper()
	all := liveness.NewEngines(liveness.Settings{}, liveness.Limits{Engines: 3})
	all.Find("localhost:8000").Begin(now, 100, true).Token(now)
	served := all.Find("localhost:8001").Begin(now, 100, true)
	served.Token(now)
	served.End(now, liveness.Completed, liveness.Usage{})
	all.Find(`"quoted"`).Begin(now, 100, true)
	all.Judge(now+130*time.Second, func(liveness.State, liveness.Status) {})
	inprocess.Engines.Set(t, all)
	end = func() { inprocess.Engines.Remove(t) }
	t.Cleanup(end)
	return end
}

// engineLines returns the samples of the gauges of engines, in the order of the text.
func (h *harness) engineLines(t *testing.T) (lines []string) {
	t.Helper()
	body, _ := h.scrape(t, text)
	for line := range strings.Lines(string(body)) {
		if strings.HasPrefix(line, "tokenpulse_engine_") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines
}

func TestEngines_AreThoseOfTheProcess(t *testing.T) {
	h := start(t, nil)
	silent := start(t, func(c *Config) {
		c.Shared.Metrics = map[string]keeper.Metric{"tokenpulse.engine.state": {Enabled: false}}
	})
	off := start(t, func(c *Config) {
		c.Shared.Metrics = map[string]keeper.Metric{"tokenpulse.engine.state": {Enabled: false}, "tokenpulse.engine.silence": {Enabled: false}}
	})
	require.Empty(t, h.engineLines(t))
	end := enginesInProcess(t, engines.Now())
	silence := []string{
		`tokenpulse_engine_silence_seconds{engine="\"quoted\""} 130`,
		`tokenpulse_engine_silence_seconds{engine="localhost:8000"} 130`,
		`tokenpulse_engine_silence_seconds{engine="localhost:8001"} 0`,
	}
	want := silence
	for _, engine := range [...]struct{ name, state string }{{`\"quoted\"`, "unknown"}, {"localhost:8000", "stuck"}, {"localhost:8001", "idle"}} {
		for _, state := range [...]string{"down", "idle", "producing", "slow", "stuck", "unknown"} {
			holds := 0
			if state == engine.state {
				holds = 1
			}
			want = append(want, fmt.Sprintf(`tokenpulse_engine_state{engine="%s",state="%s"} %d`, engine.name, state, holds))
		}
	}
	require.ElementsMatch(t, want, h.engineLines(t))
	require.Equal(t, silence, silent.engineLines(t))
	require.Empty(t, off.engineLines(t))
	end()
	require.Empty(t, h.engineLines(t))
}

func TestEngines_AreInEveryFormat(t *testing.T) {
	h := start(t, nil)
	enginesInProcess(t, engines.Now())
	for _, format := range [...]string{text, openMetrics, protobuf} {
		families := h.families(t, format)
		require.InDelta(t, 1, value(theMetric(t, families["tokenpulse_engine_state"], "engine=localhost:8000", "state=stuck")), 0)
		require.Len(t, families["tokenpulse_engine_state"].Metric, 18)
		require.InDelta(t, 130, value(theMetric(t, families["tokenpulse_engine_silence_seconds"], "engine=localhost:8000")), 0)
	}
}
