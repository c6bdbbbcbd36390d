// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokensliexporter

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/internal/publish"
	"github.com/tokenpulse/tokenpulse/internal/series"
)

// The page and /metrics must have the same numbers at the same time.
func TestPage_HasTheNumbersOfMetrics(t *testing.T) {
	h := start(t, withObjective)
	random := rand.New(rand.NewPCG(3, 4))
	const requests = 300
	for i := range requests {
		verdict := []string{"tokenpulse.slo.met", "tokenpulse.slo.breached"}[i%5/4]
		h.send(t, with(map[string]any{
			"gen_ai.request.model":              fmt.Sprint("model-", i%3),
			"tokenpulse.time_to_first_token":    random.ExpFloat64(),
			"tokenpulse.time_per_output_token":  random.ExpFloat64() / 50,
			"tokenpulse.stall.count":            i % 4,
			"tokenpulse.slo.met":                []any{},
			"tokenpulse.slo.breached":           []any{},
			"tokenpulse.slo.not_eligible":       nil,
			verdict:                             []any{"chat-tpot"},
			"tokenpulse.slo.breached.indicator": []any{"time_per_output_token"},
			"tokenpulse.slo.breached.threshold": []any{0.05},
		}))
	}
	now := answer(t, h, "now?where="+url.QueryEscape("gen_ai.request.model=model-1"), func(n *nowAnswer) bool { return n.total() == requests/3 })
	families := h.families(t, protobuf)
	const model = "gen_ai_request_model=model-1"
	for name, family := range map[string]string{
		"time_to_first_token": ttft, "time_per_output_token": "tokenpulse_time_per_output_token_seconds",
		"inter_token_latency": itl, "request_duration": "tokenpulse_request_duration_seconds",
	} {
		m := theMetric(t, families[family], model, "outcome=success").Histogram
		of := now.Indicators[name]
		require.Equal(t, float64(m.GetSampleCount()), of["count"], name)
		require.InEpsilon(t, m.GetSampleSum()/float64(m.GetSampleCount()), of["mean"], 1e-9, name)
		for _, p := range []string{"50", "95", "99"} {
			gauge := theMetric(t, families[family[:len(family)-len("_seconds")]+"_percentile_seconds"], model, "percentile="+p)
			require.InEpsilon(t, value(gauge), of["p"+p], 1e-12, "%s p%s", name, p)
		}
	}
	for _, phase := range []string{"queue", "prefill", "decode", "network", "transfer"} {
		m := theMetric(t, families["tokenpulse_phase_duration_seconds"], model, "phase="+phase).Histogram
		require.InEpsilon(t, m.GetSampleSum(), now.Indicators[phase]["mean"]*now.Indicators[phase]["count"], 1e-9)
	}
	for kind, tokens := range now.Tokens {
		require.InDelta(t, value(theMetric(t, families["tokenpulse_tokens_total"], model, "type="+kind)), tokens, 0, kind)
	}
	require.InDelta(t, value(theMetric(t, families["tokenpulse_requests_total"], model)), float64(now.Requests["success"]), 0)

	require.InDelta(t, value(theMetric(t, families["tokenpulse_stalls_total"], model)), now.Stalls.Count, 0)
	require.InEpsilon(t, value(theMetric(t, families["tokenpulse_stall_duration_seconds_total"], model)), now.Stalls.Seconds, 1e-9)

	slo := now.SLOs[slices.IndexFunc(now.SLOs, func(s sloAnswer) bool { return s.SLO == "chat-tpot" })]
	require.Equal(t, 80, slo.Good)
	require.Equal(t, 20, slo.Bad)
	require.InDelta(t, 0.8, *slo.Attainment, 1e-12)
	require.InDelta(t, 0.05, *slo.Threshold, 0)
	require.Equal(t, "time_per_output_token", *slo.Indicator)
	require.InEpsilon(t, value(theMetric(t, families["tokenpulse_slo_burn_rate"], model, "window=5m")), *slo.BurnRates[0].Rate, 1e-9)
	require.InEpsilon(t, value(theMetric(t, families["tokenpulse_slo_error_budget_remaining"], model)), *slo.BudgetRemaining, 1e-9)
	require.Equal(t, 3, now.Series.Held)
}

func TestPage_RequestsByOutcome(t *testing.T) {
	h := start(t, nil)
	want := map[string]int{}
	for i, outcome := range []string{"success", "error", "cancelled", "incomplete"} {
		for range i + 1 {
			h.send(t, with(map[string]any{"tokenpulse.outcome": outcome}))
			want[outcome]++
		}
	}
	now := answer(t, h, "now", func(n *nowAnswer) bool { return n.total() == 1+2+3+4 })
	require.Equal(t, want, now.Requests)
}

// The rates are those of the requests over the time that the history covers.
func TestPage_RatesFollowFromTheHistory(t *testing.T) {
	begin := time.Now()
	h := start(t, nil)
	for range 30 {
		h.send(t, everything())
	}
	now := answer(t, h, "now", func(n *nowAnswer) bool { return n.total() == 30 })
	require.LessOrEqual(t, now.WindowSeconds, min(65, time.Since(begin).Seconds()+5+1), "the history begins with the slot of 5 s of the first request")
	require.InEpsilon(t, 30, now.RequestsPerSecond*now.WindowSeconds, 1e-9)
	require.InEpsilon(t, 30*76, now.OutputTokensPerSecond*now.WindowSeconds, 1e-9)
	require.InEpsilon(t, 30*2.0, now.InFlight*now.WindowSeconds, 1e-9, "each takes 2 s")
}

func TestPage_UnmeasuredRequestsByReason(t *testing.T) {
	h := start(t, nil)
	for range 3 {
		h.send(t, everything())
	}
	h.send(t, with(map[string]any{
		"tokenpulse.time_per_output_token": nil, "tokenpulse.unmeasured": []any{"time_per_output_token=one_token"},
	}))
	now := answer(t, h, "now?outcome=error", func(n *nowAnswer) bool { return len(n.Unmeasured) > 0 && n.Unmeasured[0].Share == 0.25 })
	require.Len(t, now.Unmeasured, 1)
	require.Equal(t, "one_token", now.Unmeasured[0].Reason)
	require.Equal(t, 1, now.Unmeasured[0].Requests)
}

// Each prompt is in the bucket of its length, cached ones apart. TPOT has them together.
func TestPage_PromptsByLengthWithCachedOnesApart(t *testing.T) {
	h := start(t, nil)
	for _, prompt := range []struct {
		tokens            int
		cached            any
		toFirst, perToken any
	}{{128, nil, 0.1, 0.25}, {1, nil, 0.1, 0.5}, {128, 64, 0.2, 0.75}, {129, nil, 0.3, nil}, {131073, 1, 0.4, 2.0}, {3000, nil, nil, 1.0}} {
		h.send(t, with(map[string]any{
			"gen_ai.usage.input_tokens": prompt.tokens, "gen_ai.usage.cache_read.input_tokens": prompt.cached,
			"tokenpulse.time_to_first_token": prompt.toFirst, "tokenpulse.time_per_output_token": prompt.perToken,
		}))
	}
	type summary struct {
		Count int
		Mean  float64
	}
	type bucket struct {
		From             int  `json:"from_tokens"`
		To               *int `json:"to_tokens"`
		Uncached, Cached *summary
		PerToken         *summary `json:"time_per_output_token"`
	}
	answer := answer(t, h, "prompts", func(a *struct{ Buckets []bucket }) bool { return len(a.Buckets) == 4 })
	to := func(n int) *int { return &n }
	require.Equal(t, []bucket{
		{1, to(128), &summary{2, 0.1}, &summary{1, 0.2}, &summary{3, 0.5}},
		{129, to(256), &summary{1, 0.3}, nil, nil},
		{2049, to(4096), nil, nil, &summary{1, 1}},
		{131073, nil, nil, &summary{1, 0.4}, &summary{1, 2}},
	}, answer.Buckets)
}

// With bands of the prompt's length, series from metrics have prompts, too. Which ones were cached is known with
// bands of the share, or of spans.
func TestPage_PromptsByBands(t *testing.T) {
	lengths := series.Dimension{Attribute: "gen_ai.usage.input_tokens", Bands: []float64{900, 8000}, Label: "prompt_tokens"}
	shares := series.Dimension{Attribute: "tokenpulse.cached_input.share", Bands: []float64{0.5, 0.9}}
	prompts := func() (all []map[string]any) {
		for _, prompt := range []struct {
			tokens, cached    any
			toFirst, perToken float64
		}{{899, nil, 0.1, 0.25}, {900, nil, 0.2, 0.5}, {7999, 3999, 0.3, 1}, {8000, 4000, 0.4, 2}, {8000, 8000, 0.6, 4}, {nil, nil, 9.0, 9.0}} {
			span := map[string]any{
				"gen_ai.usage.input_tokens": prompt.tokens, "gen_ai.usage.cache_read.input_tokens": prompt.cached, "tokenpulse.time_to_first_token": prompt.toFirst,
				"tokenpulse.time_per_output_token": prompt.perToken,
			}
			if prompt.cached != nil {
				span["tokenpulse.cached_input.share"] = float64(prompt.cached.(int)) / float64(prompt.tokens.(int))
			}
			all = append(all, with(span))
		}
		return all
	}
	type summary struct {
		Count int
		Mean  float64
	}
	type bucket struct {
		From                       int  `json:"from_tokens"`
		To                         *int `json:"to_tokens"`
		Uncached, Cached, Together *summary
		PerToken                   *summary `json:"time_per_output_token"`
	}
	to := func(n int) *int { return &n }
	for situation, test := range map[string]struct {
		dimensions series.Dimensions
		metrics    bool
		want       []bucket
	}{
		"spans": {series.Dimensions{lengths}, false, []bucket{
			{1, to(899), &summary{1, 0.1}, nil, nil, &summary{1, 0.25}},
			{900, to(7999), &summary{1, 0.2}, &summary{1, 0.3}, nil, &summary{2, 0.75}},
			{8000, nil, nil, &summary{2, 0.5}, nil, &summary{2, 3}},
		}},
		"spans, with bands of the share": {series.Dimensions{lengths, shares}, false, []bucket{
			{1, to(899), &summary{1, 0.1}, nil, nil, &summary{1, 0.25}}, {900, to(7999), &summary{2, 0.25}, nil, nil, &summary{2, 0.75}}, {8000, nil, nil, &summary{2, 0.5}, nil, &summary{2, 3}},
		}},
		"metrics": {series.Dimensions{lengths}, true, []bucket{
			{1, to(899), nil, nil, &summary{1, 0.1}, &summary{1, 0.25}}, {900, to(7999), nil, nil, &summary{2, 0.25}, &summary{2, 0.75}}, {8000, nil, nil, nil, &summary{2, 0.5}, &summary{2, 3}},
		}},
		"metrics, with bands of the share": {series.Dimensions{shares, lengths}, true, []bucket{
			{1, to(899), &summary{1, 0.1}, nil, nil, &summary{1, 0.25}}, {900, to(7999), &summary{2, 0.25}, nil, nil, &summary{2, 0.75}}, {8000, nil, nil, &summary{2, 0.5}, nil, &summary{2, 3}},
		}},
	} {
		t.Run(situation, func(t *testing.T) {
			h := start(t, func(c *Config) { c.Shared.Series.Dimensions = test.dimensions })
			if test.metrics {
				p := newProducer(t, func(c *publish.Config) { c.Shared.Series.Dimensions = test.dimensions })
				receiving, err := createMetrics(t.Context(), newSettings(h.telemetry), h.config)
				require.NoError(t, err)
				require.NoError(t, receiving.Start(t.Context(), componenttest.NewNopHost()))
				for _, metrics := range p.published(t, batch(prompts()...)) {
					require.NoError(t, receiving.ConsumeMetrics(t.Context(), metrics))
				}
				require.NoError(t, receiving.Shutdown(t.Context()))
			} else {
				h.send(t, prompts()...)
			}
			type promptsAnswer struct {
				CachedFrom *float64 `json:"cached_from"`
				Buckets    []bucket
			}
			answer := answer(t, h, "prompts", func(a *promptsAnswer) bool { return len(a.Buckets) == 3 })
			for i := range answer.Buckets {
				for _, s := range []*summary{answer.Buckets[i].Uncached, answer.Buckets[i].Cached, answer.Buckets[i].Together, answer.Buckets[i].PerToken} {
					if s != nil {
						s.Mean = math.Round(1e9*s.Mean) / 1e9
					}
				}
			}
			require.Equal(t, test.want, answer.Buckets)
			require.Equal(t, len(test.dimensions) == 2, answer.CachedFrom != nil && *answer.CachedFrom == 0.5)
		})
	}
}

func TestPage_MetaHasObjectivesAndDimensions(t *testing.T) {
	h := start(t, func(c *Config) {
		withObjective(c)
		c.Shared.Series.Dimensions = append(c.Shared.Series.Dimensions, series.Dimension{Attribute: "gen_ai.usage.input_tokens", Bands: []float64{900, 8000}, Label: "prompt_tokens"})
	})
	h.send(t, everything())
	for _, tokens := range []any{nil, 8000, 900, 899} {
		h.send(t, with(map[string]any{"gen_ai.usage.input_tokens": tokens}))
	}
	meta := answer(t, h, "meta", func(a *struct {
		GroupBy    string `json:"group_by"`
		Dimensions []struct {
			Name   string
			Values []string
		}
		SLOs []struct {
			SLO           string
			Objective     *float64
			WindowSeconds *float64 `json:"window_seconds"`
			Threshold     *float64
		}
	},
	) bool {
		return len(a.SLOs) == 4
	})
	require.Equal(t, "gen_ai.request.model", meta.GroupBy)
	require.Equal(t, "service.name", meta.Dimensions[0].Name)
	require.Equal(t, "prompt_tokens", meta.Dimensions[4].Name)
	require.Equal(t, []string{"0-900", "900-8000", "8000+", "unknown"}, meta.Dimensions[4].Values)
	require.Equal(t, []string{"llama"}, meta.Dimensions[2].Values)
	for _, s := range meta.SLOs {
		if s.SLO != "chat-tpot" {
			require.Nil(t, s.Objective, s.SLO)
			require.Nil(t, s.WindowSeconds, s.SLO)
			continue
		}
		require.InDelta(t, 0.75, *s.Objective, 0)
		require.InDelta(t, 3600, *s.WindowSeconds, 0)
		require.Nil(t, s.Threshold, "it was met")
	}
}

// Each model has requests at a client and at its engines. The client names one service.
func TestPage_MetaSplitsWhatTheFiltersSelect(t *testing.T) {
	h := start(t, func(c *Config) {
		c.Shared.Series.Dimensions = append(c.Shared.Series.Dimensions, series.Dimension{Attribute: "service.instance.id"})
	})
	for _, request := range [][]string{
		{"client", "openai", "alone", "shop", "pod-1"},
		{"client", "vllm", "replicated", "shop", "pod-2"},
		{"client", "vllm", "replicated", "shop", "pod-3"},
		{"engine", "vllm", "replicated", "engine-1", "pod-2"},
		{"engine", "vllm", "replicated", "engine-2", "pod-3"},
	} {
		h.send(t, with(map[string]any{
			"tokenpulse.vantage": request[0], "gen_ai.provider.name": request[1], "gen_ai.request.model": request[2],
			"service.name": request[3], "service.instance.id": request[4],
		}))
	}
	answer(t, h, "now?vantage=all", func(n *nowAnswer) bool { return n.total() == 5 })
	for filters, want := range map[string]string{
		"":                                       "gen_ai.request.model",
		"?where=gen_ai.request.model=replicated": "service.instance.id",
		"?where=gen_ai.request.model=replicated&vantage=client": "service.instance.id",
		"?where=gen_ai.request.model=replicated&vantage=engine": "service.name",
		"?where=gen_ai.request.model=replicated&vantage=all":    "service.name",
		"?where=gen_ai.request.model=alone":                     "gen_ai.request.model",
		"?where=service.instance.id=pod-3&vantage=client":       "gen_ai.request.model",
		"?vantage=engine": "service.name",
	} {
		meta := answer(t, h, "meta"+filters, func(*struct {
			SplitBy    string `json:"split_by"`
			GroupBy    string `json:"group_by"`
			Dimensions []struct{ Values []string }
		},
		) bool {
			return true
		})
		require.Equal(t, want, meta.SplitBy, filters)
		require.Equal(t, "gen_ai.request.model", meta.GroupBy, filters)
		require.Equal(t, []string{"alone", "replicated"}, meta.Dimensions[2].Values, "all of them, to filter by")
	}
}

type trendsAnswer struct {
	StepSeconds float64 `json:"step_seconds"`
	Times       []float64
	GroupsTotal int `json:"groups_total"`
	Total       struct {
		RequestsPerSecond []*float64 `json:"requests_per_second"`
	}
	Groups []struct {
		Value      string
		Requests   int
		Indicators map[string]map[string][]*float64
	}
}

func TestPage_TrendsByGroup(t *testing.T) {
	h := start(t, nil)
	for i := range 6 {
		for range i + 1 {
			h.send(t, with(map[string]any{"gen_ai.request.model": fmt.Sprint("m", i)}))
		}
	}
	trends := answer(t, h, "trends?groups=2", func(a *trendsAnswer) bool {
		return len(a.Groups) == 2 && a.Groups[0].Requests == 6 && a.GroupsTotal == 6
	})
	require.Equal(t, "m5", trends.Groups[0].Value)
	require.Equal(t, "m4", trends.Groups[1].Value)
	require.InDelta(t, 5, trends.StepSeconds, 0)
	require.InDelta(t, 61, len(trends.Times), 1)
	p99 := trends.Groups[0].Indicators["time_to_first_token"]["p99"]
	require.Len(t, p99, len(trends.Times))
	at := slices.IndexFunc(p99, func(v *float64) bool { return v != nil })
	require.InDelta(t, 0.5, *p99[at], 0.5*0.0055)
	require.InDelta(t, float64(time.Now().Unix()), trends.Times[at], 120)

	sum := 0.0
	for _, rate := range trends.Total.RequestsPerSecond {
		if rate != nil {
			sum += *rate
		}
	}
	require.GreaterOrEqual(t, sum, 21/5.0-1e-9, "21 requests, over 1 to 5 s for each step")
	require.LessOrEqual(t, sum, 21.0)

	chosen := answer(t, h, "trends?value=m2&value=m0", func(a *trendsAnswer) bool { return len(a.Groups) == 2 })
	require.Equal(t, "m2", chosen.Groups[0].Value)
	require.Equal(t, 1, chosen.Groups[1].Requests)
}

// Nine replicas: the slow one has the least traffic. Another order needs the parameter.
func TestPage_GroupsAreRankedByTheWorst(t *testing.T) {
	h := start(t, func(c *Config) {
		withObjective(c)
		c.Shared.Series.Dimensions = series.DimensionsOf("gen_ai.request.model", "replica")
	})
	for i := range 9 {
		for range i + 2 {
			h.send(t, with(map[string]any{
				"replica": fmt.Sprint("r", i), "tokenpulse.time_to_first_token": []float64{4, 0.3}[min(i, 1)],
			}))
		}
	}
	type group struct {
		Value      string
		Requests   int
		Indicators map[string]json.RawMessage
	}
	type groups struct {
		GroupsTotal int `json:"groups_total"`
		Groups      []group
		Others      *group
	}
	for _, endpoint := range []string{"trends", "distributions"} {
		worst := answer(t, h, endpoint+"?by=replica&groups=2", func(a *groups) bool { return a.GroupsTotal == 9 && a.Groups[1].Requests == 10 })
		require.Equal(t, "r0", worst.Groups[0].Value, "the slowest")
		require.Equal(t, "r8", worst.Groups[1].Value, "of equals, that with the most requests")
		require.Equal(t, 3+4+5+6+7+8+9, worst.Others.Requests)
		require.Contains(t, worst.Others.Indicators, "time_to_first_token")
		most := answer(t, h, endpoint+"?by=replica&groups=8&rank=requests", func(*groups) bool { return true })
		require.Equal(t, "r8", most.Groups[0].Value)
		require.Equal(t, 2, most.Others.Requests, "r0")
		require.Nil(t, answer(t, h, endpoint+"?by=replica&groups=9", func(*groups) bool { return true }).Others)
	}
	for _, replica := range []string{"r5", "r5", "r5", "r8"} {
		h.send(t, with(map[string]any{
			"replica": replica, "tokenpulse.slo.met": nil, "tokenpulse.slo.breached": []any{"chat-tpot"},
		}))
	}
	answer(t, h, "trends?by=replica", func(a *groups) bool {
		return a.Groups[0].Value == "r5" && a.Groups[1].Value == "r0" // 7 of 10 are good, below 0.75; r8 has 10 of 11
	})

	type worst struct{ Indicators, SLOs map[string]any }
	few := answer(t, h, "worst", func(*worst) bool { return true })
	require.Equal(t, worst{map[string]any{}, map[string]any{}}, few, "no replica has enough requests to stand out")
}

// A heatmap has each value once, and in the bucket with its bounds.
func TestPage_HeatmapHasEveryValue(t *testing.T) {
	h := start(t, nil)
	h.send(t, everything(), with(map[string]any{"tokenpulse.inter_token_latency.sketch": encoded(0, 0.001)}))
	a := answer(t, h, "heatmap", func(a *struct {
		Bounds []float64
		Counts [][]int
	},
	) bool {
		return len(a.Bounds) > 0
	})
	sum := map[int]int{}
	for _, counts := range a.Counts {
		for row, n := range counts {
			sum[row] += n
		}
	}
	row := func(v float64) int { return slices.IndexFunc(a.Bounds, func(b float64) bool { return v <= b }) - 1 }
	require.Equal(t, 2, sum[row(0.02)])
	require.Equal(t, 1, sum[row(0.7)])
	require.Equal(t, 2, sum[0], "0.001, and 0 in the first row")
	require.Equal(t, 0, row(0.001))
}

// Two requests: a client's, which names the server, and an engine's, which names itself on the resource.
func TestPage_SlowestRequestsSayWhereAndWhatFailed(t *testing.T) {
	h := start(t, nil)
	client := batch(with(map[string]any{
		"tokenpulse.vantage": "client", "tokenpulse.request.duration": 9.0, "tokenpulse.outcome": "error", "error.type": "upstream said: secret", "http.response.status_code": 503,
		"server.address": "10.0.0.7", "server.port": 8000, "tokenpulse.source": "openllmetry", "tokenpulse.estimated": []any{"time_to_first_token", "decode.duration"},
	}))
	engine := batch(with(map[string]any{"error.type": "timeout", "server.address": "behind.a.balancer"}))
	for _, traces := range []ptrace.Traces{client, engine} {
		traces.ResourceSpans().At(0).Resource().Attributes().PutStr("service.instance.id", "pod-3")
		require.NoError(t, h.exporter.ConsumeTraces(t.Context(), traces))
	}
	type facts struct {
		ErrorType *string `json:"error_type"`
		Status    *string
		Replica   *string
		Source    *string
		Estimated []string
	}
	is := func(text string) *string { return &text }
	all := answer(t, h, "requests?vantage=all", func(a *struct{ Requests []facts }) bool { return len(a.Requests) == 2 }).Requests
	require.Equal(t, facts{is("_OTHER"), is("503"), is("10.0.0.7:8000"), is("openllmetry"), []string{"time_to_first_token", "decode.duration"}}, all[0], "free text is no category")
	require.Equal(t, facts{ErrorType: is("timeout"), Replica: is("pod-3"), Estimated: []string{}}, all[1])
}

func TestPage_SlowestRequestWithItsStrip(t *testing.T) {
	for name, value := range map[string]any{
		"tokenpulse.timeline":      chunks(time.Second, 1100*time.Millisecond, 3*time.Second, 3100*time.Millisecond),
		"tokenpulse.chunk.offsets": []any{1_000_000, 1_100_000, 3_000_000, 3_100_000},
	} {
		t.Run(name, func(t *testing.T) { requireStrip(t, name, value) })
	}
}

// requireStrip fails unless the page shows a request whose arrivals are in an attribute.
func requireStrip(t *testing.T, name string, value any) {
	t.Helper()
	h := start(t, withObjective)
	slow := batch(with(map[string]any{"tokenpulse.request.duration": 9.0, "tokenpulse.stall.count": 1, name: value}))
	span := slow.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0)
	h.send(t, everything(), everything())
	require.NoError(t, h.exporter.ConsumeTraces(t.Context(), slow))
	require.NoError(t, h.exporter.ConsumeTraces(t.Context(), slow), "again: a duplicate")
	type numbers struct {
		ID        string
		TraceLink string  `json:"trace_link"`
		Duration  float64 `json:"request_duration"`
		HasStrip  bool    `json:"has_strip"`
		Reason    string
	}
	all := answer(t, h, "requests", func(a *struct{ Requests []numbers }) bool { return len(a.Requests) == 3 }).Requests
	require.InDelta(t, 9, all[0].Duration, 0)
	require.Equal(t, "https://traces.example/"+span.TraceID().String()+"?span="+span.SpanID().String(), all[0].TraceLink)
	require.Equal(t, "stalls", all[0].Reason, "0.75 s of stalls, 0.75 s of other decode, 0.4 s of prefill, 0.1 s of queue")
	require.False(t, all[1].HasStrip)
	for filter, count := range map[string]int{"where=gen_ai.request.model%3Dllama": 3, "where=gen_ai.request.model%3Dother": 0, "outcome=error": 0} {
		answer(t, h, "requests?"+filter, func(a *struct{ Requests []numbers }) bool { return len(a.Requests) == count })
	}
	one := answer(t, h, "requests/"+all[0].ID, func(a *struct {
		Strip struct {
			At      []float64
			Tokens  []int
			Stalled []int
		}
	},
	) bool {
		return len(a.Strip.At) == 4
	})
	require.Equal(t, []float64{1, 1.1, 3, 3.1}, one.Strip.At)
	require.Equal(t, []int{1, 1, 1, 1}, one.Strip.Tokens)
	require.Equal(t, []int{2}, one.Strip.Stalled)
}

// The attribute is missing on requests that are no cold start: an empty value selects these.
func TestPage_LeavesColdStartsOut(t *testing.T) {
	h := start(t, func(c *Config) {
		c.Shared.Series.Dimensions = append(c.Shared.Series.Dimensions, series.Dimension{Attribute: "tokenpulse.cold"})
	})
	h.send(t, with(map[string]any{"tokenpulse.cold": true, "tokenpulse.prefill.duration": 50.0}), everything(), everything())
	for where, count := range map[string]int{"tokenpulse.cold=": 2, "tokenpulse.cold=true": 1} {
		where = "?where=" + url.QueryEscape(where)
		answer(t, h, "requests"+where, func(a *struct{ Requests []struct{} }) bool { return len(a.Requests) == count })
		now := answer(t, h, "now"+where, func(n *nowAnswer) bool { return n.total() == count })
		require.Equal(t, count == 1, now.Indicators["prefill"]["mean"] > 40, now.Indicators["prefill"])
	}
}

func TestPage_ARequestHasItsTimePerTokenByPosition(t *testing.T) {
	h := start(t, nil)
	h.send(t, with(nil), with(map[string]any{
		"tokenpulse.time_per_token.from_0": nil, "tokenpulse.time_per_token.from_10": nil, "tokenpulse.time_per_token.from_100": nil, "tokenpulse.time_per_token.from_1000": nil,
	}))
	var answer struct {
		Requests []struct {
			TimePerToken []struct {
				Position string
				Mean     float64
			} `json:"time_per_token"`
		}
	}
	_, body := h.get(t, "/api/v1/requests")
	require.NoError(t, json.Unmarshal([]byte(body), &answer))
	require.Len(t, answer.Requests, 2)
	var known []string
	for _, r := range answer.Requests {
		for _, of := range r.TimePerToken {
			known = append(known, fmt.Sprint(of.Position, " ", of.Mean))
		}
	}
	require.Equal(t, []string{"0-10 0.125", "10-100 0.25", "100-1000 0.375", "1000+ 0.5"}, known, "in the order of positions, and nothing of the other request")
}
