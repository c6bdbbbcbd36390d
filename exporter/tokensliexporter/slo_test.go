// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokensliexporter

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"

	"github.com/tokenpulse/tokenpulse/exporter/tokensliexporter/internal/metadata"
	"github.com/tokenpulse/tokenpulse/internal/keeper"
	"github.com/tokenpulse/tokenpulse/internal/keeper/keepertest"
)

// sloMetrics scrapes the metrics of SLOs. The keys have the labels `slo`, `verdict` and
// `window` only.
func (h *harness) sloMetrics(t testing.TB, accept string) map[string]float64 {
	t.Helper()
	all := map[string]float64{}
	for name, family := range h.families(t, accept) {
		if !strings.HasPrefix(name, "tokenpulse_slo_") {
			continue
		}
		for _, m := range family.Metric {
			var labels []string
			for _, l := range m.Label {
				if slices.Contains([]string{"slo", "verdict", "window"}, l.GetName()) {
					labels = append(labels, fmt.Sprintf("%s=%q", l.GetName(), l.GetValue()))
				}
			}
			all[name+"{"+strings.Join(labels, ",")+"}"] = value(m)
		}
	}
	return all
}

func TestScrape_HasSLOMetrics(t *testing.T) {
	h := start(t, func(c *Config) {
		c.Shared.Objectives = []keeper.Objective{
			{SLO: "tpot", Objective: 0.75, Window: time.Hour},
			{SLO: "gap", Objective: 0.5, Window: time.Hour},
			{SLO: "unseen", Objective: 0.5, Window: time.Hour},
		}
	})
	h.send(t,
		map[string]any{"tokenpulse.slo.met": []any{"tpot"}, "tokenpulse.slo.not_eligible": []any{"gap"}},
		map[string]any{"tokenpulse.slo.breached": []any{"tpot"}},
		map[string]any{"tokenpulse.outcome": "success"},
	)
	want := map[string]float64{
		`tokenpulse_slo_requests_total{slo="all",verdict="good"}`:          1,
		`tokenpulse_slo_requests_total{slo="all",verdict="bad"}`:           1,
		`tokenpulse_slo_requests_total{slo="all",verdict="not_eligible"}`:  0,
		`tokenpulse_slo_requests_total{slo="tpot",verdict="good"}`:         1,
		`tokenpulse_slo_requests_total{slo="tpot",verdict="bad"}`:          1,
		`tokenpulse_slo_requests_total{slo="tpot",verdict="not_eligible"}`: 0,
		`tokenpulse_slo_requests_total{slo="gap",verdict="good"}`:          0,
		`tokenpulse_slo_requests_total{slo="gap",verdict="bad"}`:           0,
		`tokenpulse_slo_requests_total{slo="gap",verdict="not_eligible"}`:  1,
		`tokenpulse_slo_objective{slo="tpot"}`:                             0.75,
		`tokenpulse_slo_objective{slo="gap"}`:                              0.5,
		`tokenpulse_slo_error_budget_remaining{slo="tpot"}`:                -1, // half of the requests are bad, a quarter is allowed
	}
	for _, window := range []string{"5m", "30m", "1h", "6h", "3d"} {
		want[`tokenpulse_slo_burn_rate{slo="tpot",window="`+window+`"}`] = 2
	}
	for _, accept := range []string{text, protobuf} {
		require.Equal(t, want, h.sloMetrics(t, accept))
	}
	body, _ := h.scrape(t, openMetrics)
	require.Contains(t, string(body), `tokenpulse_slo_burn_rate{service_name="chat",slo="tpot",window="3d"} 2`)
	require.Contains(t, string(body), `tokenpulse_slo_requests_created{service_name="chat",slo="tpot",verdict="good"} `)
}

func TestScrape_NoSLOMetricsWithoutVerdicts(t *testing.T) {
	h := start(t, func(c *Config) {
		c.Shared.Objectives = []keeper.Objective{{SLO: "all", Objective: 0.5, Window: time.Hour}}
	})
	h.send(t, map[string]any{"tokenpulse.outcome": "success"})
	require.Empty(t, h.sloMetrics(t, protobuf))
}

func TestConsume_CountsDroppedVerdicts(t *testing.T) {
	h := start(t, nil)
	var slos []any
	for i := range 70 {
		slos = append(slos, fmt.Sprint("slo-", i))
	}
	h.send(t, map[string]any{"tokenpulse.slo.met": slos})
	require.EqualValues(t, 6, keepertest.Value(t, h.telemetry, "token_sli_slo_verdicts_dropped"))
}

// The example in the README has the metrics that its configuration and requests produce.
func TestREADME_SLOExample(t *testing.T) {
	_, section, found := strings.Cut(readFile(t, "README.md"), "## Service level objectives\n")
	require.True(t, found)
	blocks := regexp.MustCompile("(?s)```(yaml)?\n(.*?)```").FindAllStringSubmatch(section, 2)
	require.Len(t, blocks, 2)
	retrieved, err := confmap.NewRetrievedFromYAML([]byte(blocks[0][2]))
	require.NoError(t, err)
	file, err := retrieved.AsConf()
	require.NoError(t, err)
	exporters, err := file.Sub("exporters")
	require.NoError(t, err)
	conf, err := exporters.Sub(component.NewID(metadata.Type).String())
	require.NoError(t, err)
	h := start(t, func(c *Config) {
		require.NoError(t, conf.Unmarshal(c))
		require.NoError(t, confmap.Validate(c))
	})
	var spans []map[string]any
	for i := range 100 {
		verdict := "not_eligible"
		if i < 78 {
			verdict = "met"
		} else if i < 80 {
			verdict = "breached"
		}
		spans = append(spans, map[string]any{"tokenpulse.slo." + verdict: []any{"chat-tpot"}})
	}
	h.send(t, spans...)
	got := h.sloMetrics(t, text)
	lines := strings.Split(strings.TrimSpace(blocks[1][2]), "\n")
	require.Len(t, lines, 6)
	for _, line := range lines {
		var want float64
		name, number, _ := strings.Cut(line, "} ")
		_, err := fmt.Sscan(number, &want)
		require.NoError(t, err)
		require.Contains(t, slices.Collect(maps.Keys(got)), name+"}")
		require.InDelta(t, want, got[name+"}"], 1e-9, line)
	}
}

// The counter of bad requests links to the latest trace, in every format that has exemplars.
func TestScrape_BadVerdictsHaveAnExemplar(t *testing.T) {
	h := start(t, nil)
	send := func(id byte, attributes map[string]any) {
		traces := batch(attributes)
		span := traces.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0)
		span.SetTraceID([16]byte{0xab, 15: id})
		span.SetSpanID([8]byte{0xcd, 7: id})
		require.NoError(t, h.exporter.ConsumeTraces(t.Context(), traces))
	}
	good := map[string]any{"tokenpulse.slo.breached": nil}
	send(1, with(nil))
	send(2, with(nil))
	send(3, with(good))
	const trace, span = "ab000000000000000000000000000002", "cd00000000000002"
	body, _ := h.scrape(t, openMetrics)
	require.Regexp(t, `(?m)^tokenpulse_slo_requests_total\{.*slo="chat-ttft",vantage="server",verdict="bad"\} 2\.0 # \{span_id="`+span+`",trace_id="`+trace+`"\} 1\.0 \d`, string(body))
	counters := h.families(t, protobuf)["tokenpulse_slo_requests_total"]
	require.Len(t, counters.Metric, 12, "four SLOs, three verdicts")
	linked := 0
	for _, m := range counters.Metric {
		e := m.Counter.Exemplar
		if e == nil {
			continue
		}
		linked++
		require.Contains(t, labelsOf(m), "verdict=bad")
		require.Equal(t, trace, e.Label[1].GetValue())
		require.Equal(t, 1.0, e.GetValue())
	}
	require.Equal(t, 2, linked, "chat-ttft and all")
}
