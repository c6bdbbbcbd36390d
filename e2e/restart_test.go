// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"

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
	restartModels     = []string{"small", "large"}
	restartObjectives = map[string]float64{"first": 0.9, "each": 0.95, "all": 0.8}
	burnWindows       = []string{"5m", "30m", "1h", "6h", "3d"}
)

// kind is a request with known verdicts.
type kind struct {
	chunks      []time.Duration // since the request's start
	failed      bool
	good, bad   []string
	notEligible []string
}

var (
	fine       = kind{chunks: []time.Duration{200 * time.Millisecond, 220 * time.Millisecond, 240 * time.Millisecond}, good: []string{"first", "each", "all"}}
	slowFirst  = kind{chunks: []time.Duration{2 * time.Second, 2020 * time.Millisecond}, good: []string{"each"}, bad: []string{"first", "all"}}
	slowTokens = kind{chunks: []time.Duration{200 * time.Millisecond, 300 * time.Millisecond}, good: []string{"first"}, bad: []string{"each", "all"}}
	oneToken   = kind{chunks: []time.Duration{200 * time.Millisecond}, good: []string{"first", "all"}, notEligible: []string{"each"}}
	noToken    = kind{failed: true, bad: []string{"first", "each", "all"}}
)

// sentRequest is a request that the Collector acknowledged or may have received.
type sentRequest struct {
	kind  kind
	model string
	at    time.Time // of the acknowledgement; zero without one
}

// sender sends one request after the other, without retries, so at most the last one is
// not acknowledged.
type sender struct {
	endpoint string
	number   int
	accepted atomic.Int64
}

func (s *sender) send(k kind) (sent sentRequest, err error) {
	s.number++
	sent = sentRequest{kind: k, model: restartModels[s.number%len(restartModels)]}
	start := time.Now().Add(-5 * time.Second)
	var body strings.Builder
	line := func(event string, after time.Duration, more string) {
		fmt.Fprintf(&body, `{"event":%q,"stream_id":"s%d","time_unix_nano":"%d"%s}`+"\n", event, s.number, start.Add(after).UnixNano(), more)
	}
	line("start", 0, fmt.Sprintf(`,"attributes":{"gen_ai.request.model":%q}`, sent.model))
	end := time.Second
	for _, after := range k.chunks {
		line("chunk", after, "")
		end = max(end, after)
	}
	if k.failed {
		line("end", end, `,"error":"out of memory"`)
	} else {
		line("end", end, "")
	}
	response, err := http.Post("http://"+s.endpoint+"/v1/tokens", "application/x-ndjson", strings.NewReader(body.String()))
	if err != nil {
		return sent, err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return sent, err
	}
	if response.StatusCode != http.StatusOK || !bytes.Contains(answer, []byte(`"rejected":0`)) {
		return sent, fmt.Errorf("%s: %s", response.Status, answer)
	}
	sent.at = time.Now()
	s.accepted.Add(1)
	return sent, nil
}

// sendAll sends n requests, and checks that each is acknowledged.
func (s *sender) sendAll(t *testing.T, n int, kinds ...kind) (all []sentRequest) {
	t.Helper()
	for i := range n {
		sent, err := s.send(kinds[i%len(kinds)])
		require.NoError(t, err)
		all = append(all, sent)
	}
	return all
}

// budgetGauge identifies a gauge of one objective: the burn rate over a window, or the
// remaining budget if the window is empty.
type budgetGauge struct{ model, slo, window string }

// verdictCounts counts requests by verdict, for each model and SLO.
type verdictCounts map[[2]string]map[string]float64

func countVerdicts(requests []sentRequest) verdictCounts {
	counts := verdictCounts{}
	for i := range requests {
		for verdict, slos := range map[string][]string{
			"good": requests[i].kind.good, "bad": requests[i].kind.bad, "not_eligible": requests[i].kind.notEligible,
		} {
			for _, slo := range slos {
				key := [2]string{requests[i].model, slo}
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
func gaugesOf(requests []sentRequest) map[budgetGauge]float64 {
	gauges := map[budgetGauge]float64{}
	for key, n := range countVerdicts(requests) {
		if n["good"]+n["bad"] == 0 {
			continue
		}
		burn := n["bad"] / (n["good"] + n["bad"]) / (1 - restartObjectives[key[1]])
		for _, window := range burnWindows {
			gauges[budgetGauge{key[0], key[1], window}] = burn
		}
		gauges[budgetGauge{key[0], key[1], ""}] = 1 - burn
	}
	return gauges
}

func scrapedGauges(t *testing.T, c *collector) map[budgetGauge]float64 {
	t.Helper()
	gauges, families := map[budgetGauge]float64{}, scrape(t, c)
	for _, family := range []string{"tokenpulse_slo_burn_rate", "tokenpulse_slo_error_budget_remaining"} {
		for _, metric := range families[family].GetMetric() {
			gauges[budgetGauge{label(metric, "gen_ai_request_model"), label(metric, "slo"), label(metric, "window")}] = metric.GetGauge().GetValue()
		}
	}
	return gauges
}

// firstSentGauges waits for the first batch of metrics in a file, and returns its gauges.
func firstSentGauges(t *testing.T, file string) map[budgetGauge]float64 {
	t.Helper()
	var first []byte
	require.Eventually(t, func() bool {
		written, _ := os.ReadFile(file)
		var whole bool
		first, _, whole = bytes.Cut(written, []byte("\n"))
		return whole
	}, patience, 50*time.Millisecond, "the connector sends no metrics")
	metrics, err := (&pmetric.JSONUnmarshaler{}).UnmarshalMetrics(first)
	require.NoError(t, err)
	gauges := map[budgetGauge]float64{}
	for _, metric := range metrics.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().All() {
		if name := metric.Name(); name != "tokenpulse.slo.burn_rate" && name != "tokenpulse.slo.error_budget.remaining" {
			continue
		}
		for _, point := range metric.Gauge().DataPoints().All() {
			attributes := point.Attributes()
			key := budgetGauge{model: text(t, attributes, "gen_ai.request.model"), slo: text(t, attributes, "slo")}
			if metric.Name() == "tokenpulse.slo.burn_rate" {
				key.window = text(t, attributes, "window")
			}
			gauges[key] = point.DoubleValue()
		}
	}
	return gauges
}

func sameGauges(want, got map[budgetGauge]float64) bool {
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
func requestsBehind(t *testing.T, requests []sentRequest, model string, got map[budgetGauge]float64, acceptedBefore time.Time) []sentRequest {
	t.Helper()
	var its []sentRequest
	atLeast := 0
	for _, r := range requests {
		if r.model == model {
			its = append(its, r)
			if !r.at.IsZero() && r.at.Before(acceptedBefore) {
				atLeast = len(its)
			}
		}
	}
	of := map[budgetGauge]float64{}
	for key, v := range got {
		if key.model == model {
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

// kill sends SIGKILL, so that the process cannot save, and waits until it has exited.
func (p *process) kill(t *testing.T) {
	t.Helper()
	p.signal(syscall.SIGKILL)
	select {
	case <-p.exited:
	case <-time.After(patience):
		t.Fatal("the process did not exit after SIGKILL")
	}
}

// again restarts a Collector that has exited, with the same config and ports.
func (c *collector) again(t *testing.T) *collector {
	t.Helper()
	next := &collector{http: c.http, grpc: c.grpc, metrics: c.metrics}
	next.process = start(t, c.command.Path, c.command.Args[1:]...)
	next.waitFor(t, next.metricsURL())
	next.waitForListener(t, next.http)
	return next
}

// committed returns the number of the last transaction in a storage file. The file is a bbolt
// database: each of its first two pages has the number of the transaction that wrote it after a
// header of 16 bytes and 48 more bytes.
func committed(t *testing.T, file string) (transactions uint64) {
	t.Helper()
	open, err := os.Open(file)
	require.NoError(t, err)
	defer open.Close()
	for page := range 2 {
		var number [8]byte
		_, err = open.ReadAt(number[:], int64(page*os.Getpagesize()+16+48))
		require.NoError(t, err)
		transactions = max(transactions, binary.NativeEndian.Uint64(number[:]))
	}
	return transactions
}

// waitForCommit waits until a storage file holds a transaction.
func waitForCommit(t *testing.T, file string, transaction uint64) {
	t.Helper()
	require.Eventually(t, func() bool { return committed(t, file) >= transaction }, 4*patience, 50*time.Millisecond, "%s is not written", file)
}

// waitUntilSaved waits until a storage file has not changed for three intervals between saves,
// which means that everything is saved.
func waitUntilSaved(t *testing.T, every time.Duration, file string) {
	t.Helper()
	last, since := committed(t, file), time.Now()
	require.Eventually(t, func() bool {
		if transaction := committed(t, file); transaction != last {
			last, since = transaction, time.Now()
		}
		return time.Since(since) > 3*every
	}, 4*patience, 50*time.Millisecond, "%s does not stop changing", file)
}

// waitForNextScrape waits until Prometheus has a sample of each verdict counter from a
// scrape after the call.
func (p *prometheus) waitForNextScrape(t *testing.T) {
	t.Helper()
	asked := float64(time.Now().UnixMilli()) / 1e3
	require.Eventually(t, func() bool {
		var answer struct {
			Data struct {
				Result []struct{ Value [2]any }
			}
		}
		p.ask(t, "query", url.Values{"query": {"min(timestamp(tokenpulse_slo_requests_total))"}}, &answer)
		if len(answer.Data.Result) == 0 {
			return false
		}
		latest, err := strconv.ParseFloat(answer.Data.Result[0].Value[1].(string), 64)
		return err == nil && latest > asked
	}, patience, 50*time.Millisecond, "Prometheus does not scrape")
}

// A killed Collector restores the error budgets and burn rates of its last save.
// Requests since then are lost. Counters restart at zero, which Prometheus treats as a
// reset: no rate is negative, and no request counts twice.
func TestKilledCollector_RestoresErrorBudgetsFromStorage(t *testing.T) {
	t.Parallel()
	program := testenv.Program(t, "prometheus")
	folder := t.TempDir()
	setenv(t, "STORAGE_DIRECTORY", folder)
	c := startRestartable(t, "--config", writeFile(t, t.TempDir(), "storage.yaml", restartStorage))
	server := startPrometheus(t, program, c.metrics, "native-histograms")
	from := &sender{endpoint: c.http}
	rounds := [3][]sentRequest{} // by the life of the Collector that took them

	// First kill: without traffic. The number of each kind differs, and so do the gauges.
	rounds[0] = from.sendAll(t, 230, fine, slowFirst, fine, oneToken, fine, fine, slowTokens, noToken, fine, oneToken, fine)
	ofExporter, ofConnector := filepath.Join(folder, "exporter_token_sli_"), filepath.Join(folder, "connector_token_sli_sent_metrics")
	waitUntilSaved(t, exporterSaves, ofExporter)
	waitUntilSaved(t, connectorSaves, ofConnector)
	server.waitForNextScrape(t)
	c.kill(t)
	setenv(t, "METRICS_FILE", filepath.Join(t.TempDir(), "second.jsonl"))
	c = c.again(t)
	want := gaugesOf(rounds[0])
	require.Len(t, want, len(restartModels)*len(restartObjectives)*(len(burnWindows)+1))
	requireGauges(t, want, scrapedGauges(t, c), "scraped after the first kill")
	requireGauges(t, want, firstSentGauges(t, getenv(t, "METRICS_FILE")), "sent after the first kill")
	requireZeroCounters(t, c)
	server.waitForNextScrape(t)

	// Second kill: during traffic. All requests are of one kind, which is good for one SLO
	// and bad for another, so each one changes every gauge.
	stopped := make(chan []sentRequest, 1)
	go func() {
		var all []sentRequest
		for pace := time.NewTicker(sendingPace); ; <-pace.C {
			sent, err := from.send(slowFirst)
			all = append(all, sent)
			if err != nil {
				stopped <- all
				return
			}
		}
	}()
	require.Eventually(t, func() bool { return from.accepted.Load() >= int64(len(rounds[0]))+100 }, patience, sendingPace)
	acceptedBefore := time.Now()
	for _, file := range []string{ofExporter, ofConnector} { // each save is one transaction
		waitForCommit(t, file, committed(t, file)+2) // the first one may have begun before
	}
	server.waitForNextScrape(t)
	c.kill(t)
	rounds[1] = <-stopped
	setenv(t, "METRICS_FILE", filepath.Join(t.TempDir(), "third.jsonl"))
	c = c.again(t)
	scraped, sent := scrapedGauges(t, c), firstSentGauges(t, getenv(t, "METRICS_FILE"))
	before := slices.Concat(rounds[0], rounds[1])
	var restored []sentRequest
	for _, model := range restartModels {
		restored = append(restored, requestsBehind(t, before, model, scraped, acceptedBefore)...)
		requestsBehind(t, before, model, sent, acceptedBefore)
	}
	require.Greater(t, len(restored), len(rounds[0]), "no request since the first kill was saved")
	requireZeroCounters(t, c)
	server.waitForNextScrape(t)

	// New requests add to the restored budgets.
	rounds[2] = from.sendAll(t, 60, fine, slowTokens, fine)
	requireGauges(t, gaugesOf(slices.Concat(restored, rounds[2])), scrapedGauges(t, c), "after the third round")
	server.waitForNextScrape(t)
	requireCountersInPrometheus(t, server, rounds, acceptedBefore)
}

func TestKilledCollector_StartsWithNewBudgetsWithoutStorage(t *testing.T) {
	t.Parallel()
	c := startRestartable(t)
	from := &sender{endpoint: c.http}
	requireGauges(t, gaugesOf(from.sendAll(t, 20, noToken, fine, fine)), scrapedGauges(t, c), "before the kill")
	c.kill(t)
	c = c.again(t)
	require.Empty(t, get(t, c.metricsURL(), "text/plain"))
	requireGauges(t, gaugesOf(from.sendAll(t, 20, fine, slowTokens)), scrapedGauges(t, c), "gauges of the new requests only")
}

func startRestartable(t *testing.T, more ...string) *collector {
	t.Helper()
	setenv(t, "METRICS_FILE", filepath.Join(t.TempDir(), "first.jsonl"))
	return startCollector(t, writeFile(t, t.TempDir(), "config.yaml", restartConfig), more...)
}

func requireGauges(t *testing.T, want, got map[budgetGauge]float64, when string) {
	t.Helper()
	require.True(t, sameGauges(want, got), "%s\nwant %v\ngot  %v", when, want, got)
}

// requireZeroCounters checks that all verdict counters exist and are zero, so that
// Prometheus detects the reset.
func requireZeroCounters(t *testing.T, c *collector) {
	t.Helper()
	counters := scrape(t, c)["tokenpulse_slo_requests_total"].GetMetric()
	require.Len(t, counters, len(restartModels)*len(restartObjectives)*3)
	for _, counter := range counters {
		require.Zero(t, counter.GetCounter().GetValue(), "%v", counter.GetLabel())
	}
}

// requireCountersInPrometheus compares the increase of each counter in Prometheus with
// the number of accepted requests. Those of the second round that were accepted before a time
// were scraped before the kill.
func requireCountersInPrometheus(t *testing.T, server *prometheus, rounds [3][]sentRequest, scrapedBefore time.Time) {
	t.Helper()
	// No request counts twice. A request is lost only if the Collector was killed before
	// the next scrape.
	most := countVerdicts(slices.Concat(rounds[:]...))
	var scraped []sentRequest
	for _, r := range rounds[1] {
		if !r.at.IsZero() && r.at.Before(scrapedBefore) {
			scraped = append(scraped, r)
		}
	}
	least := countVerdicts(slices.Concat(rounds[0], scraped, rounds[2]))
	verdicts := server.allSeries(t, "tokenpulse_slo_requests_total")
	require.Len(t, verdicts, len(restartModels)*len(restartObjectives)*3)
	for _, s := range verdicts {
		key, verdict := [2]string{s.Metric["gen_ai_request_model"], s.Metric["slo"]}, s.Metric["verdict"]
		first, increase, resets := s.increase(t)
		require.LessOrEqual(t, first+increase, most[key][verdict], "%v", s.Metric)
		require.GreaterOrEqual(t, first+increase, least[key][verdict], "%v", s.Metric)
		if least[key][verdict] > 0 && verdict == "bad" && key[1] == "first" {
			require.Equal(t, 2, resets, "%v", s.Metric) // two kills
		}
	}
	requests := server.allSeries(t, "tokenpulse_requests_total")
	outcomes := map[[2]string]float64{}
	for _, round := range rounds {
		for i := range round {
			outcome := "success"
			if round[i].kind.failed {
				outcome = "error"
			}
			outcomes[[2]string{round[i].model, outcome}]++
		}
	}
	require.Len(t, requests, len(outcomes))
	for _, s := range requests {
		first, increase, _ := s.increase(t)
		require.LessOrEqual(t, first+increase, outcomes[[2]string{s.Metric["gen_ai_request_model"], s.Metric["outcome"]}], "%v", s.Metric)
	}
	for _, s := range slices.Concat(verdicts, requests) {
		server.requireNoBackwardStep(t, s)
	}
}

// requireNoBackwardStep checks that Prometheus computes no negative rate or increase of
// a counter at any step. The increase over all samples exceeds the raw one only by
// extrapolation at both ends, of up to 1.1 times the mean distance of samples.
func (p *prometheus) requireNoBackwardStep(t *testing.T, s series) {
	t.Helper()
	var matchers []string
	for name, value := range s.Metric {
		matchers = append(matchers, fmt.Sprintf("%s=%q", name, value))
	}
	selector := "{" + strings.Join(matchers, ",") + "}"
	start, end := s.Values[0][0].(float64), s.Values[len(s.Values)-1][0].(float64)
	for _, function := range []string{"rate", "increase"} {
		for _, window := range []string{"2s", "5s", "10m"} {
			result := p.matrix(t, "query_range", url.Values{
				"query": {fmt.Sprintf("%s(%s[%s])", function, selector, window)},
				"start": {fmt.Sprintf("%.3f", start)}, "end": {fmt.Sprintf("%.3f", end)}, "step": {"0.25"},
			})
			require.Len(t, result, 1, selector)
			require.Greater(t, len(result[0].Values), 10)
			for _, sample := range result[0].Values {
				require.GreaterOrEqual(t, number(t, sample), 0.0, "%s of %s over %s", function, selector, window)
			}
		}
	}
	_, raw, _ := s.increase(t)
	extrapolated := p.query(t, fmt.Sprintf("increase(%s[10m] @ %.3f)", selector, end))
	require.LessOrEqual(t, extrapolated, raw*(1+2*1.1/float64(len(s.Values)-1))+1e-6, selector)
	require.GreaterOrEqual(t, extrapolated, raw-1e-6, selector)
}

func (p *prometheus) allSeries(t *testing.T, metric string) []series {
	t.Helper()
	return p.matrix(t, "query", url.Values{"query": {metric + "[1h]"}})
}

// increase adds up the samples of a counter as Prometheus does: a sample below its
// predecessor means a reset to zero.
func (s *series) increase(t *testing.T) (first, increase float64, resets int) {
	t.Helper()
	first = number(t, s.Values[0])
	last := first
	for _, sample := range s.Values[1:] {
		v := number(t, sample)
		if v < last {
			resets++
			last = 0
		}
		increase += v - last
		last = v
	}
	return first, increase, resets
}

func number(t *testing.T, sample [2]any) float64 {
	t.Helper()
	return parsed(t, sample[1].(string))
}

func parsed(t *testing.T, text string) float64 {
	t.Helper()
	value, err := strconv.ParseFloat(text, 64)
	require.NoError(t, err)
	return value
}
