// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokenstreamreceiver

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/consumer/consumertest"

	"github.com/tokenpulse/tokenpulse/internal/annotate"
	"github.com/tokenpulse/tokenpulse/internal/publish"
)

// pipelines is a receiver that its factory made for a metrics pipeline and, if spans is not
// nil, for a traces pipeline.
type pipelines struct {
	*bench
	metrics    *consumertest.MetricsSink
	components []component.Component
}

func inMetricsPipeline(t *testing.T, spans *sink, change ...func(*Config)) *pipelines {
	t.Helper()
	cfg := configOn("localhost:0", change...)
	require.NoError(t, cfg.Validate())
	telemetry, settings := withTelemetry(t)
	p := &pipelines{bench: &bench{sink: spans, telemetry: telemetry}, metrics: new(consumertest.MetricsSink)}
	if spans != nil {
		traces, err := createTraces(t.Context(), settings, cfg, spans)
		require.NoError(t, err)
		p.components = append(p.components, traces)
	}
	metrics, err := createMetrics(t.Context(), settings, cfg, p.metrics)
	require.NoError(t, err)
	p.components = append(p.components, metrics)
	shared, err := share(settings, cfg)
	require.NoError(t, err)
	p.tokenStreamReceiver = shared.Component
	require.NoError(t, shared.Shutdown(t.Context())) // not the last one
	t.Cleanup(func() { p.stop(t) })
	return p
}

func (p *pipelines) start(t *testing.T) {
	t.Helper()
	for _, c := range p.components {
		require.NoError(t, c.Start(t.Context(), componenttest.NewNopHost()))
	}
}

func (p *pipelines) stop(t *testing.T) {
	t.Helper()
	for _, c := range p.components {
		require.NoError(t, c.Shutdown(context.Background()))
	}
}

// requests returns the value of tokenpulse.requests by outcome, as sent last.
func (p *pipelines) requests() map[string]int64 {
	by := map[string]int64{}
	for _, metrics := range p.metrics.AllMetrics() {
		for _, resource := range metrics.ResourceMetrics().All() {
			for _, scope := range resource.ScopeMetrics().All() {
				for _, m := range scope.Metrics().All() {
					if m.Name() != "tokenpulse.requests" {
						continue
					}
					for _, point := range m.Sum().DataPoints().All() {
						outcome, _ := point.Attributes().Get("outcome")
						by[outcome.Str()] = int64(point.DoubleValue()) + point.IntValue()
					}
				}
			}
		}
	}
	return by
}

// Two streams of one resource lose an attribute each, and their resource loses one.
func TestMetricsPipeline_CountsRemovedAttributesOnce(t *testing.T) {
	const forged = `"resource":{"tokenpulse.slo.met":["a"]},"attributes":{"tokenpulse.time_to_first_token":1}`
	for name, spans := range map[string]*sink{"without spans": nil, "with spans": new(sink)} {
		t.Run(name, func(t *testing.T) {
			p := inMetricsPipeline(t, spans)
			p.start(t)
			p.lines(t, startWith("a", at(0), forged), endLine("a"), startWith("b", at(0), forged), endLine("b"))
			requireMetric(t, p.bench, "attributes_removed", nil, 3)
		})
	}
}

func TestMetricsPipeline_FlushesAtItsInterval(t *testing.T) {
	p := inMetricsPipeline(t, nil, func(c *Config) {
		series := publish.NewDefaultConfig()
		series.FlushInterval = 20 * time.Millisecond
		c.Series = configoptional.Some(series)
	})
	p.start(t)
	p.lines(t, startLine("a"), endLine("a"))
	eventually(t, func() bool { return p.requests()["error"] == 1 }, "nothing is flushed")
	p.stop(t)
}

func TestStart_RejectsSeriesWithoutAMetricsPipeline(t *testing.T) {
	b := prepare(t, func(c *Config) { c.Series = configoptional.Some(publish.NewDefaultConfig()) })
	require.EqualError(t, b.Start(t.Context(), componenttest.NewNopHost()),
		"`series` is set, but the receiver is in no metrics pipeline; add it to one, or remove `series`")
}

func TestValidate_RejectsWhatNeedsSpans(t *testing.T) {
	for key, set := range map[string]func(*annotate.Config){
		"join":    func(c *annotate.Config) { c.Join = true },
		"roll_up": func(c *annotate.Config) { c.RollUp = true },
		"phases":  func(c *annotate.Config) { c.Phases = true },
	} {
		cfg, latency := createDefaultConfig().(*Config), annotate.DefaultConfig()
		set(latency)
		cfg.Latency = configoptional.Some(*latency)
		err := cfg.Validate()
		require.ErrorContains(t, err, "`latency::"+key+"` needs spans")
		require.Equal(t, 1, strings.Count(err.Error(), "needs spans"))
	}
	cfg, latency := createDefaultConfig().(*Config), annotate.DefaultConfig()
	latency.Join, latency.RollUp, latency.Phases = true, true, true
	cfg.Latency = configoptional.Some(*latency)
	require.Regexp(t, "(?s)join` needs.*roll_up` needs.*phases` needs", cfg.Validate().Error(), "errors are in the order of the settings")

	cfg, series := createDefaultConfig().(*Config), publish.NewDefaultConfig()
	series.FlushInterval = 0
	cfg.Series = configoptional.Some(series)
	require.ErrorContains(t, cfg.Validate(), "series: `metrics_flush_interval` is 0s")
}
