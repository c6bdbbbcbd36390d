// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokenstreamreceiver

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/tokenpulse/tokenpulse/internal/annotate"
	"github.com/tokenpulse/tokenpulse/internal/conventions"
	"github.com/tokenpulse/tokenpulse/internal/inprocess"
	"github.com/tokenpulse/tokenpulse/internal/publish"
)

// standard returns the histograms of conventions that were sent last, by name.
func (p *pipelines) standard() map[string]pmetric.HistogramDataPoint {
	all := map[string]pmetric.HistogramDataPoint{}
	for _, metrics := range p.metrics.AllMetrics() {
		for _, m := range metrics.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().All() {
			if m.Type() == pmetric.MetricTypeHistogram {
				points := m.Histogram().DataPoints()
				all[m.Name()] = points.At(points.Len() - 1)
			}
		}
	}
	return all
}

// Three chunks arrive 100, 200 and 250 ms after the start, the second one with three tokens.
func TestMetricsPipeline_HasTimePerOutputChunkWhateverTheDetail(t *testing.T) {
	for name, change := range map[string]func(*annotate.Config){
		"defaults":              func(*annotate.Config) {},
		"without distributions": func(c *annotate.Config) { c.Distribution = annotate.DistributionDrop },
	} {
		for chunk, tokens := range map[string]string{"one token each": `"tokens":1`, "several tokens": `"tokens":3`} {
			t.Run(name+", "+chunk, func(t *testing.T) {
				p := inMetricsPipeline(t, nil, func(c *Config) {
					latency, series := annotate.DefaultConfig(), publish.NewDefaultConfig()
					change(latency)
					series.Shared.Conventions = conventions.Config{GenAI: []string{"latest"}}
					c.Latency, c.Series = configoptional.Some(*latency), configoptional.Some(series)
				})
				p.start(t)
				p.lines(t, startWith("a", at(0), `"vantage":"client"`), chunkLine("a", 100*time.Millisecond),
					chunkLine("a", 200*time.Millisecond, tokens), chunkLine("a", 250*time.Millisecond), endLine("a"))
				p.stop(t)
				gaps := p.standard()["gen_ai.client.inference.time_per_output_chunk"]
				require.EqualValues(t, 2, gaps.Count())
				require.InDelta(t, 0.15, gaps.Sum(), 1e-9)
				first := p.standard()["gen_ai.client.inference.time_to_first_chunk"]
				require.InDelta(t, 0.1, first.Sum(), 1e-9)
			})
		}
	}
}

// The series know the traces of streams although they send no spans.
func TestMetricsPipeline_DoubtsTwoVantagesOfATrace(t *testing.T) {
	p := inMetricsPipeline(t, nil, func(c *Config) {
		series := publish.NewDefaultConfig()
		series.Shared.Conventions = conventions.Config{GenAI: []string{"latest"}}
		c.Series = configoptional.Some(series)
	})
	p.start(t)
	doubts := func() (n int) {
		for _, d := range inprocess.Doubts.All() {
			n += len(d.Current())
		}
		return n
	}
	const trace = `"trace_id":"` + traceHex + `"`
	p.lines(t, startWith("a", at(0), `"vantage":"client"`, trace), endLine("a"), startWith("b", at(0), `"vantage":"engine"`, trace), endLine("b"))
	require.Equal(t, 0, doubts())
	p.lines(t, startWith("c", at(0), `"vantage":"gateway"`, trace), endLine("c"))
	require.Equal(t, 1, doubts())
	require.NoError(t, p.components[0].Shutdown(context.Background()))
}
