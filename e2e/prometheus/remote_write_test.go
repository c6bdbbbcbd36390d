// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	"fmt"
	"math"
	"net/url"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/e2e/internal/collector"
	"github.com/tokenpulse/tokenpulse/e2e/internal/promserver"
	"github.com/tokenpulse/tokenpulse/e2e/internal/tokenevents"
	"github.com/tokenpulse/tokenpulse/internal/testenv"
	"github.com/tokenpulse/tokenpulse/internal/testenv/reference"
)

// anObjective extends examples/remote-write.yaml.
const anObjective = `
processors:
  token_latency:
    detail: full # for inter-chunk latencies
    slos: [{name: tpot, indicator: time_per_output_token, threshold: 30ms}]
connectors:
  token_sli:
    objectives: [{slo: tpot, objective: 0.95}]
    metrics: {tokenpulse.inter_chunk_latency: {enabled: true}}
`

// The connector pushes every request of the recording into a real Prometheus, the
// first request of each series included. Some series begin with the Collector, others
// after it has already pushed.
func TestExampleRemoteWrite_PrometheusStoresEveryRequest(t *testing.T) {
	t.Parallel()
	program := testenv.Program(t, "prometheus")
	requests := reference.Recording(t)
	const scrapesNothing = ""
	server := promserver.Run(t, program, scrapesNothing, "--web.enable-remote-write-receiver", "--enable-feature", "native-histograms,exemplar-storage")
	collector.Setenv(t, "REMOTE_WRITE_ENDPOINT", "http://"+server.Address+"/api/v1/write")
	collector.Setenv(t, "HOSTNAME", "collector-1")
	c := collector.StartPushing(t, collector.Example(t, "remote-write.yaml"), "--config", collector.WriteFile(t, t.TempDir(), "more.yaml", anObjective), "--set", "connectors.token_sli.metrics_flush_interval=300ms",
		"--set", "connectors.token_sli.deduplication.horizon=0s") // the replays are equal
	times := map[string]int{}
	for _, service := range []string{"early", "late", "early"} {
		times[service]++
		collector.Run(t, collector.Built(t, "tokenpulse"), "replay", testenv.UnzipRecording(t), "--service", service,
			"--transport", "protobuf", "--endpoint", c.HTTP)
		waitForService(t, server, service)
	}
	c.Stop(t) // flushes

	for service, replays := range times {
		t.Run(service, func(t *testing.T) {
			selector := fmt.Sprintf(`{outcome="success",service_name=%q}`, service)
			for name, values := range tokenevents.Pooled(requests) {
				requireHistogram(t, server, "tokenpulse_"+name+"_seconds"+selector, slices.Sorted(slices.Values(slices.Repeat(values, replays))))
			}
			for outcome, want := range map[string]float64{"success": 89, "cancelled": 11} {
				requireCounter(t, server, fmt.Sprintf("tokenpulse_requests_total{outcome=%q,service_name=%q}", outcome, service), want*float64(replays))
			}
			// The totals are those that AIPerf printed.
			for kind, want := range map[string]float64{"input": 48950, "output": 21624, "reasoning": 19792} {
				requireCounter(t, server, fmt.Sprintf("tokenpulse_tokens_total{type=%q,service_name=%q}", kind, service), want*float64(replays))
			}
		})
	}
	require.Equal(t, map[string]string{
		"__name__": "tokenpulse_requests_total", "instance": "collector-1", "outcome": "cancelled", "service_name": "late",
		"gen_ai_operation_name": "chat", "gen_ai_request_model": "recorded", "vantage": "client",
	}, server.Series(t, `tokenpulse_requests_total{outcome="cancelled",service_name="late"}`).Metric)
	// examples/prometheus/rules.yaml uses these names.
	require.InDelta(t, 0.95, server.Query(t, `max(tokenpulse_slo_objective{slo="tpot"})`), 1e-12)
	require.Negative(t, server.Query(t, `min(tokenpulse_slo_error_budget_remaining{slo="tpot"})`))
	require.EqualValues(t, 300, server.Query(t, `sum(tokenpulse_slo_requests_total{slo="tpot"})`))
	// Prometheus 2.42 drops exemplars of a native histogram's first samples, so these
	// belong to the second replay.
	require.NotEmpty(t, server.ExemplarTraces(t, exemplarsOfTPOT), "histograms have exemplars with trace ids")
}

func waitForService(t *testing.T, p *promserver.Server, service string) {
	t.Helper()
	require.Eventually(t, func() bool {
		var answer struct {
			Data struct{ Result []any }
		}
		p.Ask(t, "query", url.Values{"query": {fmt.Sprintf("tokenpulse_requests_total{service_name=%q}", service)}}, &answer)
		return len(answer.Data.Result) > 0
	}, collector.Patience, 100*time.Millisecond, "Prometheus has received nothing of %s", service)
}

// requireCounter checks that the first sample of a counter is zero, and that it has
// increased by want since.
func requireCounter(t *testing.T, p *promserver.Server, selector string, want float64) {
	t.Helper()
	samples := p.Series(t, selector).Values
	require.NotEmpty(t, samples, selector)
	require.Equal(t, "0", samples[0][1], "%s begins at zero", selector)
	require.Equal(t, strconv.FormatFloat(want, 'f', -1, 64), samples[len(samples)-1][1], selector)
	since, _ := increase(selector, samples) // Prometheus does not extrapolate a counter below zero
	require.InDelta(t, want, p.Query(t, since), 1e-6, "increase of %s", selector)
}

// requireHistogram checks that the first sample of a native histogram is empty, and
// that the last sample holds these values, in seconds.
func requireHistogram(t *testing.T, p *promserver.Server, selector string, sorted []float64) {
	t.Helper()
	samples := p.Series(t, selector).Histograms
	require.NotEmpty(t, samples, selector)
	require.Equal(t, map[string]any{"count": "0", "sum": "0"}, samples[0][1], "%s begins empty", selector)

	count, sum := float64(len(sorted)), reference.Mean(sorted)*float64(len(sorted))
	require.InDelta(t, count, p.Query(t, "histogram_count("+selector+")"), 0, selector)
	require.InEpsilon(t, sum, p.Query(t, "histogram_sum("+selector+")"), 1e-6, selector)
	since, extrapolation := increase(selector, samples)
	require.InEpsilon(t, count*extrapolation, p.Query(t, "histogram_count("+since+")"), 1e-6, "increase of %s", selector)
	require.InEpsilon(t, sum*extrapolation, p.Query(t, "histogram_sum("+since+")"), 1e-6, "increase of %s", selector)
	for _, q := range []float64{0.5, 0.9, 0.95, 0.99} {
		exact := reference.NearestRank(sorted, q)
		for _, of := range []string{selector, since} {
			require.InEpsilon(t, exact, p.Query(t, fmt.Sprintf("histogram_quantile(%v, %s)", q, of)), 0.011, "%v of %s", q, of)
		}
	}
}

// increase returns the query for the increase of a series from a millisecond before
// its first sample to its last, and the factor by which Prometheus extrapolates over
// that millisecond.
func increase(selector string, samples [][2]any) (query string, extrapolation float64) {
	first, last := samples[0][0].(float64), samples[len(samples)-1][0].(float64)
	length := math.Round((last - first) * 1e3)
	return fmt.Sprintf("increase(%s[%.0fms] @ %.3f)", selector, length+1, last), (length + 1) / length
}
