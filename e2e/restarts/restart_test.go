// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Package restarts tests what the Collector keeps over reloads, restarts and crashes.
package restarts

import (
	"bytes"
	"fmt"
	"math"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/tokenpulse/tokenpulse/e2e/internal/collector"
	"github.com/tokenpulse/tokenpulse/e2e/internal/exposition"
	"github.com/tokenpulse/tokenpulse/e2e/internal/judged"
	"github.com/tokenpulse/tokenpulse/e2e/internal/otlpfile"
	"github.com/tokenpulse/tokenpulse/e2e/internal/promserver"
	"github.com/tokenpulse/tokenpulse/internal/testenv"
)

// restartConfig has error budgets twice: scraped from the exporter, and sent by the
// connector.
const restartConfig = `
receivers:
  token_stream:
processors:
  token_latency:
    slos:
      - {name: first, indicator: time_to_first_token, threshold: 1s}
      - {name: each, indicator: time_per_output_token, threshold: 50ms}
exporters:
  token_sli:
    objectives: [{slo: first, objective: 0.9}, {slo: each, objective: 0.95}, {slo: all, objective: 0.8}]
  file:
    path: ${env:METRICS_FILE}
    flush_interval: 50ms
connectors:
  token_sli/sent:
    metrics_flush_interval: 1s
    objectives: [{slo: first, objective: 0.9}, {slo: each, objective: 0.95}, {slo: all, objective: 0.8}]
service:
  pipelines:
    traces: {receivers: [token_stream], processors: [token_latency], exporters: [token_sli, token_sli/sent]}
    metrics: {receivers: [token_sli/sent], exporters: [file]}
  telemetry:
    metrics: {level: none}
`

// restartStorage extends that with a storage extension, which keeps budgets.
const restartStorage = `
extensions:
  file_storage:
    directory: ${env:STORAGE_DIRECTORY}
exporters:
  token_sli:
    storage: file_storage
connectors:
  token_sli/sent:
    storage: file_storage
service:
  extensions: [file_storage]
`

// Intervals between saves of error budgets.
const (
	exporterSaves  = 5 * time.Second
	connectorSaves = time.Second
)

// sendingPace is the time between two requests.
const sendingPace = 10 * time.Millisecond

var (
	restartObjectives = map[string]float64{"first": 0.9, "each": 0.95, "all": 0.8}
	burnWindows       = []string{"5m", "30m", "1h", "6h", "3d"}
)

// verdictCounts counts requests by verdict, for each model and SLO.
type verdictCounts map[[2]string]map[string]float64

func countVerdicts(requests []judged.SentRequest) verdictCounts {
	counts := verdictCounts{}
	for i := range requests {
		for verdict, slos := range map[string][]string{
			"good": requests[i].Kind.Good, "bad": requests[i].Kind.Bad, "not_eligible": requests[i].Kind.NotEligible,
		} {
			for _, slo := range slos {
				key := [2]string{requests[i].Model, slo}
				if counts[key] == nil {
					counts[key] = map[string]float64{"good": 0, "bad": 0, "not_eligible": 0}
				}
				counts[key][verdict]++
			}
		}
	}
	return counts
}

// gaugesOf returns the expected gauges for requests that are all within the shortest
// window.
func gaugesOf(requests []judged.SentRequest) map[judged.BudgetGauge]float64 {
	gauges := map[judged.BudgetGauge]float64{}
	for key, n := range countVerdicts(requests) {
		if n["good"]+n["bad"] == 0 {
			continue
		}
		burn := n["bad"] / (n["good"] + n["bad"]) / (1 - restartObjectives[key[1]])
		for _, window := range burnWindows {
			gauges[judged.BudgetGauge{Model: key[0], SLO: key[1], Window: window}] = burn
		}
		gauges[judged.BudgetGauge{Model: key[0], SLO: key[1], Window: ""}] = 1 - burn
	}
	return gauges
}

// firstSentGauges waits for the first batch of metrics in a file, and returns its gauges.
func firstSentGauges(t *testing.T, file string) map[judged.BudgetGauge]float64 {
	t.Helper()
	var first []byte
	require.Eventually(t, func() bool {
		written, _ := os.ReadFile(file)
		var whole bool
		first, _, whole = bytes.Cut(written, []byte("\n"))
		return whole
	}, collector.Patience, 50*time.Millisecond, "the connector sends no metrics")
	metrics, err := (&pmetric.JSONUnmarshaler{}).UnmarshalMetrics(first)
	require.NoError(t, err)
	gauges := map[judged.BudgetGauge]float64{}
	for _, metric := range metrics.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().All() {
		if name := metric.Name(); name != "tokenpulse.slo.burn_rate" && name != "tokenpulse.slo.error_budget.remaining" {
			continue
		}
		for _, point := range metric.Gauge().DataPoints().All() {
			attributes := point.Attributes()
			key := judged.BudgetGauge{Model: otlpfile.Text(t, attributes, "gen_ai.request.model"), SLO: otlpfile.Text(t, attributes, "slo")}
			if metric.Name() == "tokenpulse.slo.burn_rate" {
				key.Window = otlpfile.Text(t, attributes, "window")
			}
			gauges[key] = point.DoubleValue()
		}
	}
	return gauges
}

func sameGauges(want, got map[judged.BudgetGauge]float64) bool {
	for key, w := range want {
		if g, ok := got[key]; !ok || math.Abs(w-g) > 1e-9 {
			return false
		}
	}
	return len(want) == len(got)
}

// requestsBehind returns the first n of a model's requests whose gauges are the given
// ones. n includes at least the requests that were accepted before a time. n is unique,
// because one more request changes every gauge.
func requestsBehind(t *testing.T, requests []judged.SentRequest, model string, got map[judged.BudgetGauge]float64, acceptedBefore time.Time) []judged.SentRequest {
	t.Helper()
	var its []judged.SentRequest
	atLeast := 0
	for _, r := range requests {
		if r.Model == model {
			its = append(its, r)
			if !r.At.IsZero() && r.At.Before(acceptedBefore) {
				atLeast = len(its)
			}
		}
	}
	of := map[judged.BudgetGauge]float64{}
	for key, v := range got {
		if key.Model == model {
			of[key] = v
		}
	}
	for n := len(its); n >= 0; n-- {
		if sameGauges(gaugesOf(its[:n]), of) {
			t.Logf("%s: %d requests before the kill, %d of them accepted before the last save, %d restored", model, len(its), atLeast, n)
			require.GreaterOrEqual(t, n, atLeast, "requests from before the last save are lost")
			return its[:n]
		}
	}
	require.Fail(t, "no number of requests has these gauges", "%v", of)
	return nil
}

// waitUntilSaved waits until a storage file has not changed for three intervals between saves,
// which means that everything is saved.
func waitUntilSaved(t *testing.T, every time.Duration, file string) {
	t.Helper()
	last, since := collector.Committed(t, file), time.Now()
	require.Eventually(t, func() bool {
		if transaction := collector.Committed(t, file); transaction != last {
			last, since = transaction, time.Now()
		}
		return time.Since(since) > 3*every
	}, 4*collector.Patience, 50*time.Millisecond, "%s does not stop changing", file)
}

// waitForNextScrape waits until Prometheus has a sample of each verdict counter from a
// scrape after the call.
func waitForNextScrape(t *testing.T, p *promserver.Server) {
	t.Helper()
	asked := float64(time.Now().UnixMilli()) / 1e3
	require.Eventually(t, func() bool {
		var answer struct {
			Data struct {
				Result []struct{ Value [2]any }
			}
		}
		p.Ask(t, "query", url.Values{"query": {"min(timestamp(tokenpulse_slo_requests_total))"}}, &answer)
		if len(answer.Data.Result) == 0 {
			return false
		}
		latest, err := strconv.ParseFloat(answer.Data.Result[0].Value[1].(string), 64)
		return err == nil && latest > asked
	}, collector.Patience, 50*time.Millisecond, "Prometheus does not scrape")
}

// A killed Collector restores the error budgets and burn rates of its last save.
// Requests since then are lost. Counters restart at zero, which Prometheus treats as a
// reset: no rate is negative, and no request counts twice.
func TestKilledCollector_RestoresErrorBudgetsFromStorage(t *testing.T) {
	t.Parallel()
	program := testenv.Program(t, "prometheus")
	folder := t.TempDir()
	collector.Setenv(t, "STORAGE_DIRECTORY", folder)
	c := startRestartable(t, "--config", collector.WriteFile(t, t.TempDir(), "storage.yaml", restartStorage))
	server := promserver.Start(t, program, c.Metrics, "native-histograms")
	from := &judged.Sender{Endpoint: c.HTTP}
	rounds := [3][]judged.SentRequest{} // by the life of the Collector that took them

	// First kill: without traffic. The number of each kind differs, and so do the gauges.
	rounds[0] = from.SendAll(t, 230, judged.Fine, judged.SlowFirst, judged.Fine, judged.OneToken, judged.Fine, judged.Fine, judged.SlowTokens, judged.NoToken, judged.Fine, judged.OneToken, judged.Fine)
	ofExporter, ofConnector := filepath.Join(folder, "exporter_token_sli_"), filepath.Join(folder, "connector_token_sli_sent_metrics")
	waitUntilSaved(t, exporterSaves, ofExporter)
	waitUntilSaved(t, connectorSaves, ofConnector)
	waitForNextScrape(t, server)
	c.Kill(t)
	collector.Setenv(t, "METRICS_FILE", filepath.Join(t.TempDir(), "second.jsonl"))
	c = c.Again(t)
	want := gaugesOf(rounds[0])
	require.Len(t, want, len(judged.Models)*len(restartObjectives)*(len(burnWindows)+1))
	requireGauges(t, want, judged.ScrapedGauges(t, c), "scraped after the first kill")
	requireGauges(t, want, firstSentGauges(t, collector.Getenv(t, "METRICS_FILE")), "sent after the first kill")
	requireZeroCounters(t, c)
	waitForNextScrape(t, server)

	// Second kill: during traffic. All requests are of one kind, which is good for one SLO
	// and bad for another, so each one changes every gauge.
	stopped := make(chan []judged.SentRequest, 1)
	go func() {
		var all []judged.SentRequest
		for pace := time.NewTicker(sendingPace); ; <-pace.C {
			sent, err := from.Send(judged.SlowFirst)
			all = append(all, sent)
			if err != nil {
				stopped <- all
				return
			}
		}
	}()
	require.Eventually(t, func() bool { return from.Accepted.Load() >= int64(len(rounds[0]))+100 }, collector.Patience, sendingPace)
	acceptedBefore := time.Now()
	for _, file := range []string{ofExporter, ofConnector} { // each save is one transaction
		collector.WaitForCommit(t, file, collector.Committed(t, file)+2) // the first one may have begun before
	}
	waitForNextScrape(t, server)
	c.Kill(t)
	rounds[1] = <-stopped
	collector.Setenv(t, "METRICS_FILE", filepath.Join(t.TempDir(), "third.jsonl"))
	c = c.Again(t)
	scraped, sent := judged.ScrapedGauges(t, c), firstSentGauges(t, collector.Getenv(t, "METRICS_FILE"))
	before := slices.Concat(rounds[0], rounds[1])
	var restored []judged.SentRequest
	for _, model := range judged.Models {
		restored = append(restored, requestsBehind(t, before, model, scraped, acceptedBefore)...)
		requestsBehind(t, before, model, sent, acceptedBefore)
	}
	require.Greater(t, len(restored), len(rounds[0]), "no request since the first kill was saved")
	requireZeroCounters(t, c)
	waitForNextScrape(t, server)

	// New requests add to the restored budgets.
	rounds[2] = from.SendAll(t, 60, judged.Fine, judged.SlowTokens, judged.Fine)
	requireGauges(t, gaugesOf(slices.Concat(restored, rounds[2])), judged.ScrapedGauges(t, c), "after the third round")
	waitForNextScrape(t, server)
	requireCountersInPrometheus(t, server, rounds, acceptedBefore)
}

func TestKilledCollector_StartsWithNewBudgetsWithoutStorage(t *testing.T) {
	t.Parallel()
	c := startRestartable(t)
	from := &judged.Sender{Endpoint: c.HTTP}
	requireGauges(t, gaugesOf(from.SendAll(t, 20, judged.NoToken, judged.Fine, judged.Fine)), judged.ScrapedGauges(t, c), "before the kill")
	c.Kill(t)
	c = c.Again(t)
	require.Empty(t, collector.Get(t, c.MetricsURL(), "text/plain"))
	requireGauges(t, gaugesOf(from.SendAll(t, 20, judged.Fine, judged.SlowTokens)), judged.ScrapedGauges(t, c), "gauges of the new requests only")
}

func startRestartable(t *testing.T, more ...string) *collector.Collector {
	t.Helper()
	collector.Setenv(t, "METRICS_FILE", filepath.Join(t.TempDir(), "first.jsonl"))
	return collector.Start(t, collector.WriteFile(t, t.TempDir(), "config.yaml", restartConfig), more...)
}

func requireGauges(t *testing.T, want, got map[judged.BudgetGauge]float64, when string) {
	t.Helper()
	require.True(t, sameGauges(want, got), "%s\nwant %v\ngot  %v", when, want, got)
}

// requireZeroCounters checks that all verdict counters exist and are zero, so that
// Prometheus detects the reset.
func requireZeroCounters(t *testing.T, c *collector.Collector) {
	t.Helper()
	counters := exposition.Scrape(t, c)["tokenpulse_slo_requests_total"].GetMetric()
	require.Len(t, counters, len(judged.Models)*len(restartObjectives)*3)
	for _, counter := range counters {
		require.Zero(t, counter.GetCounter().GetValue(), "%v", counter.GetLabel())
	}
}

// requireCountersInPrometheus compares the increase of each counter in Prometheus with
// the number of accepted requests. Those of the second round that were accepted before a time
// were scraped before the kill.
func requireCountersInPrometheus(t *testing.T, server *promserver.Server, rounds [3][]judged.SentRequest, scrapedBefore time.Time) {
	t.Helper()
	// No request counts twice. A request is lost only if the Collector was killed before
	// the next scrape.
	most := countVerdicts(slices.Concat(rounds[:]...))
	var scraped []judged.SentRequest
	for _, r := range rounds[1] {
		if !r.At.IsZero() && r.At.Before(scrapedBefore) {
			scraped = append(scraped, r)
		}
	}
	least := countVerdicts(slices.Concat(rounds[0], scraped, rounds[2]))
	verdicts := server.AllSeries(t, "tokenpulse_slo_requests_total")
	require.Len(t, verdicts, len(judged.Models)*len(restartObjectives)*3)
	for _, s := range verdicts {
		key, verdict := [2]string{s.Metric["gen_ai_request_model"], s.Metric["slo"]}, s.Metric["verdict"]
		first, increase, resets := increase(t, &s)
		require.LessOrEqual(t, first+increase, most[key][verdict], "%v", s.Metric)
		require.GreaterOrEqual(t, first+increase, least[key][verdict], "%v", s.Metric)
		if least[key][verdict] > 0 && verdict == "bad" && key[1] == "first" {
			require.Equal(t, 2, resets, "%v", s.Metric) // two kills
		}
	}
	requests := server.AllSeries(t, "tokenpulse_requests_total")
	outcomes := map[[2]string]float64{}
	for _, round := range rounds {
		for i := range round {
			outcome := "success"
			if round[i].Kind.Failed {
				outcome = "error"
			}
			outcomes[[2]string{round[i].Model, outcome}]++
		}
	}
	require.Len(t, requests, len(outcomes))
	for _, s := range requests {
		first, increase, _ := increase(t, &s)
		require.LessOrEqual(t, first+increase, outcomes[[2]string{s.Metric["gen_ai_request_model"], s.Metric["outcome"]}], "%v", s.Metric)
	}
	for _, s := range slices.Concat(verdicts, requests) {
		requireNoBackwardStep(t, server, s)
	}
}

// requireNoBackwardStep checks that Prometheus computes no negative rate or increase of
// a counter at any step. The increase over all samples exceeds the raw one only by
// extrapolation at both ends, of up to 1.1 times the mean distance of samples.
func requireNoBackwardStep(t *testing.T, p *promserver.Server, s promserver.Series) {
	t.Helper()
	var matchers []string
	for name, value := range s.Metric {
		matchers = append(matchers, fmt.Sprintf("%s=%q", name, value))
	}
	selector := "{" + strings.Join(matchers, ",") + "}"
	start, end := s.Values[0][0].(float64), s.Values[len(s.Values)-1][0].(float64)
	for _, function := range []string{"rate", "increase"} {
		for _, window := range []string{"2s", "5s", "10m"} {
			result := p.Matrix(t, "query_range", url.Values{
				"query": {fmt.Sprintf("%s(%s[%s])", function, selector, window)},
				"start": {fmt.Sprintf("%.3f", start)}, "end": {fmt.Sprintf("%.3f", end)}, "step": {"0.25"},
			})
			require.Len(t, result, 1, selector)
			require.Greater(t, len(result[0].Values), 10)
			for _, sample := range result[0].Values {
				require.GreaterOrEqual(t, promserver.Number(t, sample), 0.0, "%s of %s over %s", function, selector, window)
			}
		}
	}
	_, raw, _ := increase(t, &s)
	extrapolated := p.Query(t, fmt.Sprintf("increase(%s[10m] @ %.3f)", selector, end))
	require.LessOrEqual(t, extrapolated, raw*(1+2*1.1/float64(len(s.Values)-1))+1e-6, selector)
	require.GreaterOrEqual(t, extrapolated, raw-1e-6, selector)
}

// increase adds up the samples of a counter as Prometheus does: a sample below its
// predecessor means a reset to zero.
func increase(t *testing.T, s *promserver.Series) (first, increase float64, resets int) {
	t.Helper()
	first = promserver.Number(t, s.Values[0])
	last := first
	for _, sample := range s.Values[1:] {
		v := promserver.Number(t, sample)
		if v < last {
			resets++
			last = 0
		}
		increase += v - last
		last = v
	}
	return first, increase, resets
}
