// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokenstreamreceiver

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer/consumertest"

	"github.com/tokenpulse/tokenpulse/internal/annotate"
	"github.com/tokenpulse/tokenpulse/internal/engines"
	"github.com/tokenpulse/tokenpulse/internal/keeper"
	"github.com/tokenpulse/tokenpulse/internal/publish"
	"github.com/tokenpulse/tokenpulse/internal/storagetest"
)

// withLiveness watches engines, which may be silent for a second.
func withLiveness(cfg *Config) {
	liveness := engines.DefaultConfig()
	liveness.Bound, liveness.MaxBound = time.Second, time.Second
	cfg.Liveness = configoptional.Some(liveness)
}

// states returns the states of engines by name.
func states() map[string]string {
	all := map[string]string{}
	for _, s := range engines.Statuses() {
		all[s.Engine] = s.State.String()
	}
	return all
}

func instance(name string) string {
	return fmt.Sprintf(`"resource":{"service.instance.id":%q}`, name)
}

func requireState(t *testing.T, engine, want string) {
	t.Helper()
	require.Eventually(t, func() bool { return states()[engine] == want }, 10*time.Second, 50*time.Millisecond, "%v", states())
}

func TestLiveness_EachInstanceIsAnEngine(t *testing.T) {
	b := start(t, withLiveness)
	long := strings.Repeat("n", 300)
	require.Equal(t, 200, b.lines(t,
		startWith("1", at(0), instance("wedged")), chunkLine("1", time.Second),
		startWith("2", at(0), instance("works")),
		startWith("3", at(0), instance("of-resource"), `"attributes":{"service.instance.id":"own"}`), chunkLine("3", time.Second),
		startWith("4", at(0), instance(long)), chunkLine("4", time.Second),
		startWith("5", at(0), instance("of-client"), `"vantage":"client"`), chunkLine("5", time.Second),
		startWith("6", at(0), instance("of-gateway"), `"vantage":"gateway"`), chunkLine("6", time.Second),
		startWith("7", at(0)), chunkLine("7", time.Second),
	).status)
	for range 30 {
		require.Equal(t, 200, b.lines(t, chunkLine("2", time.Second)).status)
		time.Sleep(100 * time.Millisecond)
	}
	require.Equal(t, map[string]string{"wedged": "stuck", "works": "producing", "own": "stuck", long[:256]: "stuck"}, states())
	require.Equal(t, 200, b.lines(t, chunkLine("1", time.Second)).status)
	requireState(t, "wedged", "producing")
	require.NoError(t, b.Shutdown(context.Background()))
	require.Empty(t, states())
}

// Spans, series and both report each request once.
func TestLiveness_SlowIfMostRequestsMissAThreshold(t *testing.T) {
	latency := annotate.DefaultConfig()
	require.NoError(t, confmap.NewFromStringMap(map[string]any{"slos": []any{
		map[string]any{"name": "tpot", "indicator": "time_per_output_token", "threshold": "50ms"},
		map[string]any{"name": "works", "indicator": "outcome"},
	}}).Unmarshal(latency))
	withSLO := func(cfg *Config) { cfg.Latency = configoptional.Some(*latency) }
	for pipelines, metrics := range map[string]bool{"traces": false, "traces and metrics": true} {
		t.Run(pipelines, func(t *testing.T) {
			b := prepare(t, withLiveness, withSLO, func(cfg *Config) {
				if metrics {
					cfg.Spans.Share = 0 // only those that breach an SLO become spans
				}
			})
			if metrics {
				require.NoError(t, b.sendMetrics(consumertest.NewNop()))
			}
			require.NoError(t, b.Start(context.Background(), componenttest.NewNopHost()))
			n := 0
			whole := func(engine string, gap time.Duration, end string) {
				n++
				id := fmt.Sprint(pipelines, n)
				require.Equal(t, 200, b.lines(t, startWith(id, at(0), instance(engine)), chunkLine(id, time.Second), chunkLine(id, time.Second+gap),
					fmt.Sprintf(`{"event":"end","stream_id":%q,"time_unix_nano":"%d"%s}`, id, at(2*time.Second), end)).status)
			}
			for range 6 {
				whole("slow", time.Second/10, "")
				whole("fast", time.Second/100, "")
				whole("failing", time.Second/10, `,"error":"overloaded"`)
				for _, slow := range []bool{true, true, false, false, false} {
					whole("mixed", map[bool]time.Duration{true: time.Second / 10, false: time.Second / 100}[slow], "")
				}
			}
			for _, engine := range []string{"slow", "fast", "failing", "mixed"} { // an engine without open requests is idle
				require.Equal(t, 200, b.lines(t, startWith(pipelines+engine, at(0), instance(engine)), chunkLine(pipelines+engine, time.Second)).status)
			}
			time.Sleep(1100 * time.Millisecond)
			for _, engine := range []string{"slow", "fast", "failing", "mixed"} {
				require.Equal(t, 200, b.lines(t, chunkLine(pipelines+engine, time.Second)).status)
			}
			requireState(t, "slow", "slow")
			for _, engine := range []string{"fast", "failing", "mixed"} {
				require.NotEqual(t, "slow", states()[engine], engine)
			}
			require.NoError(t, b.Shutdown(context.Background()))
		})
	}
}

func TestLiveness_StorageKeepsWhatWasLearned(t *testing.T) {
	host := storagetest.NewHost(t)
	learned := func(requests int) uint64 {
		b := prepare(t, withLiveness, func(cfg *Config) { cfg.StorageID = &storagetest.FileStorage })
		require.NoError(t, b.Start(context.Background(), host))
		for i := range requests {
			id := fmt.Sprint("learned", i)
			require.Equal(t, 200, b.lines(t, startWith(id, at(0), instance("a"))).status)
			require.Equal(t, 200, b.lines(t, chunkLine(id, time.Second)).status)
			require.Equal(t, 200, b.lines(t, fmt.Sprintf(`{"event":"end","stream_id":%q,"time_unix_nano":"%d"}`, id, at(time.Second))).status)
		}
		prompts := b.engines.Find("a").Verdict(engines.Now()).Prompts
		require.NoError(t, b.Shutdown(context.Background()))
		return prompts
	}
	require.EqualValues(t, 4, learned(5), "the first token of all teaches nothing")
	require.EqualValues(t, 4, learned(0))
}

func TestLiveness_IsOffByDefault(t *testing.T) {
	b := start(t)
	require.Nil(t, b.engines)
	require.Equal(t, 200, b.lines(t, startWith("1", at(0), instance("a"))).status)
	require.Empty(t, states())
}

// The receiver publishes its own engines, if the metrics are on.
func TestMetricsPipeline_PublishesItsEngines(t *testing.T) {
	other := start(t, withLiveness)
	require.Equal(t, 200, other.lines(t, startWith("other", at(0), instance("of-another-receiver"))).status)
	for name, want := range map[string]string{"on": "1", "off by default": ""} {
		t.Run(name, func(t *testing.T) {
			p := inMetricsPipeline(t, nil, withLiveness, func(c *Config) {
				series := publish.NewDefaultConfig()
				series.FlushInterval = 10 * time.Millisecond
				if want != "" {
					series.Shared.Metrics["tokenpulse.engine.state"] = keeper.Metric{Enabled: true}
				}
				c.Series = configoptional.Some(series)
			})
			p.start(t)
			require.Equal(t, 200, p.lines(t, startWith("1", at(0), instance("wedged")), chunkLine("1", time.Second)).status)
			requireState(t, "wedged", "stuck")
			p.lines(t, startLine("ended"), endLine("ended"))
			eventually(t, func() bool { return len(p.requests()) > 0 }, "nothing is flushed")
			p.metrics.Reset()
			eventually(t, func() bool { return len(p.metrics.AllMetrics()) > 0 }, "nothing is flushed")
			got := map[string]string{}
			for _, m := range p.metrics.AllMetrics()[0].ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().All() {
				if m.Name() != "tokenpulse.engine.state" {
					continue
				}
				for _, point := range m.Gauge().DataPoints().All() {
					require.Equal(t, 2, point.Attributes().Len())
					engine, _ := point.Attributes().Get("engine")
					state, _ := point.Attributes().Get("state")
					got[engine.Str()+" "+state.Str()] = fmt.Sprint(point.DoubleValue())
				}
			}
			if want == "" {
				require.Empty(t, got)
				return
			}
			require.Equal(t, map[string]string{
				"wedged producing": "0", "wedged idle": "0", "wedged slow": "0", "wedged stuck": want, "wedged down": "0", "wedged unknown": "0",
			}, got)
		})
	}
}
