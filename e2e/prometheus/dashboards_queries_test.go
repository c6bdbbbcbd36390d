// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	client "github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/e2e/internal/collector"
	"github.com/tokenpulse/tokenpulse/e2e/internal/promserver"
	"github.com/tokenpulse/tokenpulse/e2e/internal/tokenevents"
	"github.com/tokenpulse/tokenpulse/internal/testenv/reference"
)

// objectivesOfDashboards extends moreForQueries.
const objectivesOfDashboards = `
receivers:
  token_stream:
    liveness: {}
processors:
  token_latency:
    roll_up: true
exporters:
  token_sli:
    objectives: [{slo: chat-tpot, objective: 0.99}, {slo: all, objective: 0.9}]
`

// startForDashboards runs the Collector with every dimension that the dashboards can use.
func startForDashboards(t *testing.T) *collector.Collector {
	t.Helper()
	return startForQueries(t, objectivesOfDashboards)
}

// Prometheus scrapes the Collector and two engines, once with native histograms and once
// with classic buckets. Each query of each dashboard returns data from both.
func TestDashboards_EveryQueryReturnsData(t *testing.T) {
	t.Parallel()
	c := startForDashboards(t)
	vllm := standInVLLM.serve(t, client.Labels{"engine": "0", "model_name": "llama-3-70b"})
	sglang := standInSGLang.serve(t, client.Labels{"model_name": "llama-3-8b"})
	config := fmt.Sprintf(`
global: {scrape_interval: 500ms, scrape_timeout: 500ms}
rule_files: [%q]
scrape_configs:
  - {job_name: tokenpulse, static_configs: [{targets: [%q]}]}
  - {job_name: engines, static_configs: [{targets: [%q, %q]}]}
`, scaledRules(t), c.Metrics, vllm, sglang)
	servers := map[string]*promserver.Server{}
	for name, setup := range installedSetups(t) {
		servers[name] = promserver.Run(t, setup.program, config, "--enable-feature", setup.flags)
		servers[name].Native = setup.native
	}

	// The requests after the deploy, again and again, in batches that are alike: each has
	// every twelfth request of each kind. An alert fires, since half of those to one model miss the SLO.
	const inOneRound = 12
	begin := time.Now().Add(-incidentLength)
	afterDeploy := slices.DeleteFunc(requestsOf(incidentLanes), func(r llmRequest) bool { return r.start < deployAt })
	kind := func(r llmRequest) string { return fmt.Sprint(r.model, r.perToken, r.failure, r.oneToken) }
	slices.SortStableFunc(afterDeploy, func(a, b llmRequest) int { return strings.Compare(kind(a), kind(b)) })
	batch := func(n int) string {
		var events strings.Builder
		for i := n % inOneRound; i < len(afterDeploy); i += inOneRound {
			r := afterDeploy[i]
			r.number += n / inOneRound * 10_000
			r.write(&events, begin)
		}
		open := tokenevents.EventsOf(&events, fmt.Sprint("open ", n), time.Now())
		open("start", 0, `,"vantage":"client"`)
		open("chunk", 0, "")
		ofEngine := tokenevents.EventsOf(&events, fmt.Sprint("of an engine ", n), time.Now())
		ofEngine("start", 0, `,"vantage":"server","resource":{"service.instance.id":"engine-1"}`)
		return events.String()
	}
	ready := func(p *promserver.Server) bool {
		return len(p.ResultsAt(t, `ALERTS{alertstate="firing"} and on () (count_over_time(up{job="tokenpulse"}[5m]) > 12)`, "")) > 0
	}
	deadline := time.Now().Add(4 * collector.Patience)
	for i := 0; i < inOneRound || !ready(servers["native"]) || !ready(servers["classic"]); i++ {
		require.True(t, time.Now().Before(deadline), "no alert fires")
		c.Post(t, "application/x-ndjson", strings.NewReader(batch(i)))
		time.Sleep(500 * time.Millisecond)
	}

	// There was no hour before: TestDashboards_ValuesFollowFromTheTraffic has one.
	const withoutData = "offset 1h"
	chosen := map[string]map[string]string{"compare": {"by": "service_version"}}
	now := time.Now()
	for buckets, server := range servers {
		t.Run(buckets, func(t *testing.T) {
			queries := 0
			for _, d := range dashboards(t) {
				queries += open(t, server, d, now, chosen[d.file]).requireData(t, d, withoutData)
			}
			t.Logf("%d queries returned data", queries)
			require.Greater(t, queries, 200)
			requireLatenciesOf(t, server, now, afterDeploy)
		})
	}
	t.Run("in Grafana", func(t *testing.T) {
		g, queries := startGrafana(t, servers["native"]), 0
		for _, d := range dashboards(t) {
			queries += g.requireImport(t, d, open(t, servers["native"], d, now, chosen[d.file]), withoutData)
		}
		require.Greater(t, queries, 180)
	})
}

// requireLatenciesOf compares percentiles on dashboards with those of the requests, by
// nearest rank.
func requireLatenciesOf(t *testing.T, server *promserver.Server, now time.Time, sent []llmRequest) {
	t.Helper()
	var perToken, toFirst []float64
	for _, r := range sent {
		if r.failure == "" {
			toFirst = append(toFirst, beforeToken.Seconds())
			if !r.oneToken {
				perToken = append(perToken, r.perToken.Seconds())
			}
		}
	}
	slices.Sort(perToken)
	all := dashboards(t)
	overview := open(t, server, all["overview"], now, map[string]string{"vantage": "client"})
	for title, values := range map[string][]float64{"Time to first token": toFirst, "Time per output token": perToken} {
		metric := "tokenpulse_" + strings.ReplaceAll(strings.ToLower(title), " ", "_") + "_seconds"
		got := overview.panel(t, all["overview"].named(t, title))
		for refID, q := range map[string]float64{"A": 0.5, "B": 0.95, "C": 0.99} {
			server.RequireQuantile(t, metric, promserver.Exactly(reference.NearestRank(values, q)), got[refID].only(t))
		}
		sum := 0.
		for _, v := range values {
			sum += v
		}
		require.InEpsilon(t, sum/float64(len(values)), got["D"].only(t), 0.05, "mean of %s", title)
	}

	// Version 1.5 takes 250 ms per token, 1.4 takes 50 ms: four times more.
	comparison := open(t, server, all["compare"], now, map[string]string{"by": "service_version"})
	require.Equal(t, []string{"1.4", "1.5"}, []string{comparison.values["baseline"], comparison.values["candidate"]})
	change := comparison.panel(t, all["compare"].named(t, "TPOT, ${percentile:text}"))["A"].only(t)
	if server.Native {
		require.InEpsilon(t, 4, change, 0.03)
	}
	table := comparison.panel(t, all["compare"].named(t, "Time per output token, percentiles"))
	for refID, want := range map[string]float64{"A": 0.05, "B": 0.25} {
		require.Len(t, table[refID], 5)
		for _, got := range table[refID] {
			server.RequireQuantile(t, "tokenpulse_time_per_output_token_seconds", promserver.Exactly(want), got)
		}
	}

	// The engine's own numbers, beside ours.
	engines := open(t, server, all["engines"], now, nil)
	beside := engines.panel(t, all["engines"].named(t, "In flight: observed and vLLM"))
	require.InDelta(t, 6, beside["B"].only(t), 0)
	require.InDelta(t, 2, beside["C"].only(t), 0)
}

// The Collector's scrapes of an hour and a half of traffic, as in
// TestQueriesPage_EveryQueryAnswersRight. Numbers of panels follow from the lanes.
func TestDashboards_ValuesFollowFromTheTraffic(t *testing.T) {
	t.Parallel()
	requireRightPanels(t, installedSetups(t))
}

func requireRightPanels(t *testing.T, setups map[string]prometheusSetup) {
	t.Helper()
	var queries []string
	for _, d := range dashboards(t) {
		queries = append(queries, d.text)
	}
	recorded, begin := newRecording(queries...), beginOfPast()
	recorded.requests(t, startForDashboards(t), begin, requestsOf(incidentLanes))
	for name, setup := range setups {
		t.Run(name, func(t *testing.T) { requireValuesOfIncident(t, recorded.replay(t, setup), askedAt(begin)) })
	}
}

// requireValuesOfIncident compares numbers of panels with those of incidentLanes.
func requireValuesOfIncident(t *testing.T, p *promserver.Server, now time.Time) {
	t.Helper()
	all := dashboards(t)
	// Client and engine report each request. The client alone knows model and usage, and
	// with join the phases of its engine.
	open := func(file string) *grafana {
		return open(t, p, all[file], now, map[string]string{"vantage": "client"})
	}

	// In 300 seconds, a healthy lane ends 75 requests of 4 s, a slow one 25 of 12 s: of
	// 70b's requests, 75 are good and 75 are slow. Of 8b's 150, a fifth fails and a fifth
	// has one token. A whole answer has 41 tokens.
	overview := func(title, refID string) answers {
		return open("overview").panel(t, all["overview"].named(t, title))[refID]
	}
	const requests, seconds = 75 + 75 + 150., 300.
	for title, want := range map[string]float64{
		"Requests per second":      requests / seconds,
		"Output tokens per second": (150*41 + 90*41 + 30*1) / seconds,
		"Requests in flight":       inFlight("llama-3-70b", incidentLength) + inFlight("llama-3-8b", incidentLength),
		"Failed requests":          30 / requests,
		"Goodput share":            (75 + 90) / (150 + 90 + 30.),
		// Requests of 250 ms per token have four gaps of 2.5 s.
		"Stalls per request":      75 * 4 / requests,
		"Share of time in stalls": 75 * 4 * 2.5 / (6 * seconds),
		"Cached share of prompts": 0.25,
	} {
		overview(title, "A").require(t, map[string]float64{"": want})
	}
	overview("Time to answer", "D").require(t, map[string]float64{"": beforeToken.Seconds()})
	overview("Time to first audio", "D").require(t, map[string]float64{"": (beforeToken - spokenBefore).Seconds()})
	overview("Tokens per request", "A").require(t, map[string]float64{"": 1000 * (requests - 30) / requests})
	overview("Load against an hour before", "B").require(t, map[string]float64{"": (4 + 2) * 75 / seconds})
	// Slow requests are 0.5 s on their way to the engine, others 0.1 s. The engine prefills
	// in what is left of the 2 s before the token after network and queue. Those that fail have no phases.
	const answered, slow = requests - 30, 75
	phases := map[string]float64{
		"phase=queue": 0.5, "phase=network": (slow*0.5 + (answered-slow)*0.1) / answered,
		"phase=prefill": (slow*1 + (answered-slow)*1.4) / answered, "phase=decode": (75*2 + slow*10 + 90*2) / answered,
	}
	overview("Mean time by phase", "A").require(t, phases)
	for phase := range phases {
		phases[phase] /= (75*4 + slow*12 + 90*4 + 30*2) / answered
	}
	overview("Share of time by phase", "A").require(t, phases)
	overview("Requests that cannot be measured", "A").require(t, map[string]float64{
		"indicator=time_to_first_token reason=no_token": 30 / requests, "indicator=time_per_output_token reason=no_token": 30 / requests,
		"indicator=time_per_output_token reason=one_token": 30 / requests,
	})
	models := open("overview").panel(t, all["overview"].named(t, "Models, latencies at ${percentile:text}"))
	models["A"].require(t, map[string]float64{"gen_ai_request_model=llama-3-70b": 150 / seconds, "gen_ai_request_model=llama-3-8b": 150 / seconds})
	models["H"].require(t, map[string]float64{"gen_ai_request_model=llama-3-70b": 0, "gen_ai_request_model=llama-3-8b": 0.2})

	// The objective of chat-tpot is 99%: a share of 50% bad burns 50 times the budget.
	slos := open("slo").panel(t, all["slo"].named(t, "SLOs by model"))
	slos["B"].require(t, map[string]float64{
		"gen_ai_request_model=llama-3-70b slo=chat-tpot": 0.5 / 0.01, "gen_ai_request_model=llama-3-8b slo=chat-tpot": 0.25 / 0.01,
		"gen_ai_request_model=llama-3-70b slo=all": 0.5 / 0.1, "gen_ai_request_model=llama-3-8b slo=all": 0.25 / 0.1,
	})
	require.Subset(t, slices.Collect(maps.Keys(slos["C"])), slices.Collect(maps.Keys(slos["B"])), "each has a budget")

	engines := open("engines")
	perEngine := engines.panel(t, all["engines"].named(t, "Engines, latencies at ${percentile:text}"))
	perEngine["F"].require(t, map[string]float64{"server_address=engine-1": 1, "server_address=engine-2": 3, "server_address=engine-3": 2})
	engines.panel(t, all["engines"].named(t, "Mean decode by ${by:text}"))["A"].require(t, map[string]float64{
		"server_address=engine-1": 2, "server_address=engine-2": 10, "server_address=engine-3": 90 * 2 / 120.,
	})
}
