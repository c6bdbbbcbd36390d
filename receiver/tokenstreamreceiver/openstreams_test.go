// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokenstreamreceiver

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/tokenpulse/tokenpulse/internal/inprocess"
	"github.com/tokenpulse/tokenpulse/internal/keeper"
	"github.com/tokenpulse/tokenpulse/internal/publish"
	"github.com/tokenpulse/tokenpulse/internal/series"
	"github.com/tokenpulse/tokenpulse/internal/spanreader"
)

// Age is by the time that the sender reports.
func TestOpenStreams_HaveAnAgeAndTheirTokens(t *testing.T) {
	b := start(t)
	before := time.Now()
	hourAgo := before.Add(-time.Hour).UnixNano()
	b.lines(t, fmt.Sprintf(`{"event":"start","stream_id":"started","time_unix_nano":%d}`, hourAgo),
		fmt.Sprintf(`{"event":"chunk","stream_id":"started","time_unix_nano":%d,"tokens":7}`, hourAgo+1e9))
	b.lines(t, fmt.Sprintf(`{"event":"start","stream_id":"of a clock ahead","time_unix_nano":%d}`, before.Add(time.Hour).UnixNano()))
	tokens := map[int64]time.Duration{}
	b.open.visit(new(spanreader.Dimensions), func(s *inprocess.OpenStream) { tokens[s.Tokens] = s.Age })
	require.Len(t, tokens, 2)
	require.GreaterOrEqual(t, tokens[7], time.Hour)
	require.LessOrEqual(t, tokens[7], time.Hour+time.Since(before))
	require.Zero(t, tokens[0])
}

func TestOpenStreams_HaveDimensionsOfTheirStart(t *testing.T) {
	b := start(t, func(cfg *Config) { cfg.ServiceName = "chat" })
	long := strings.Repeat("m", 300)
	for i, fields := range []string{
		`"vantage":"client","resource":{"service.name":"of-resource","gen_ai.request.model":"of-resource"},"attributes":{"gen_ai.request.model":"of-stream","n":7}`,
		`"resource":{"service.name":"forger","tokenpulse.source":"forged"},"attributes":{"gen_ai.request.model":"` + long + `","tokenpulse.source":"forged"}`,
		`"attributes":{"error.type":"a sentence of the sender"}`,
	} {
		require.Equal(t, 200, b.lines(t, startWith(strconv.Itoa(i), at(0), fields), startWith(fmt.Sprint(i, " alike"), at(0), fields)).status)
	}
	dimensions := append(series.DimensionsOf("service.name", "gen_ai.request.model", "tokenpulse.source", "error.type"),
		series.Dimension{Attribute: "n", Bands: []float64{7}}, series.Dimension{Attribute: "gen_ai.usage.input_tokens", Bands: []float64{1000}})
	got := map[string]int{}
	labels := spanreader.NewDimensions(dimensions)
	b.open.visit(&labels, func(s *inprocess.OpenStream) {
		got[s.Vantage+" "+strings.Join(s.Dimensions, "|")]++
	})
	require.Equal(t, map[string]int{
		"client of-resource|of-stream|||7+|unknown":          2,
		"server forger|" + long[:256] + "|||unknown|unknown": 2,
		"server chat|||_OTHER|unknown|unknown":               2,
	}, got)
}

// The receiver publishes its own open streams, if the metric is on. The last flush has none.
func TestMetricsPipeline_PublishesItsOpenStreams(t *testing.T) {
	other := start(t)
	other.lines(t, startLine("of another receiver"))
	for name, on := range map[string]bool{"on": true, "off by default": false} {
		t.Run(name, func(t *testing.T) {
			p := inMetricsPipeline(t, nil, func(c *Config) {
				series := publish.NewDefaultConfig()
				series.FlushInterval = 10 * time.Millisecond
				if on {
					series.Shared.Metrics["tokenpulse.streams.open"] = keeper.Metric{Enabled: true}
				}
				c.Series = configoptional.Some(series)
			})
			p.start(t)
			p.lines(t, startLine("a"), startWith("b", at(0), `"attributes":{"gen_ai.request.model":"m"}`), chunkLine("b", time.Millisecond))
			if !on {
				p.lines(t, startLine("ended"), endLine("ended"))
				eventually(t, func() bool { return len(p.requests()) > 0 }, "nothing is flushed")
				require.Empty(t, p.openStreams())
				return
			}
			eventually(t, func() bool {
				return fmt.Sprint(p.openStreams()) == "map[decode m server:1 first_token  server:1]"
			}, "the gauge is not flushed")
			p.stop(t)
			for labels, streams := range p.openStreams() {
				require.Zero(t, streams, labels)
			}
		})
	}
}

// openStreams returns the values of tokenpulse.streams.open that were sent last.
func (p *pipelines) openStreams() map[string]int {
	all := map[string]int{}
	for _, metrics := range p.metrics.AllMetrics() {
		clear(all)
		for _, m := range metrics.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().All() {
			if m.Name() != "tokenpulse.streams.open" {
				continue
			}
			for _, point := range m.Gauge().DataPoints().All() {
				all[labelsOfStreams(point.Attributes())] += int(point.DoubleValue())
			}
		}
	}
	return all
}

func labelsOfStreams(attributes pcommon.Map) string {
	var labels []string
	for _, name := range []string{"phase", "gen_ai.request.model", "vantage"} {
		v, _ := attributes.Get(name)
		labels = append(labels, v.Str())
	}
	return strings.Join(labels, " ")
}
