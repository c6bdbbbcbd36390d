// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	"fmt"
	"math"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/e2e/internal/collector"
	"github.com/tokenpulse/tokenpulse/e2e/internal/promserver"
	"github.com/tokenpulse/tokenpulse/e2e/internal/tokenevents"
	"github.com/tokenpulse/tokenpulse/internal/testenv"
)

// Durations of rules, scrapes and zero_for are a tenth of real ones: a minute takes 6 seconds.
const firstErrorsFaster = 10

// labelsOfFirstErrors has an exporter with the dimensions of docs/queries.md, and one with those of the default. The rules read
// counters alone: without histograms, a busy machine answers a scrape within the second that it has here.
const labelsOfFirstErrors = `
receivers:
  token_stream:
processors:
  token_latency: {slos: [{name: available, indicator: outcome}]}
exporters:
  token_sli:
    zero_for: 3s
    max_series: 20000
    page: {enabled: false}
    windows: []
    metrics:
      tokenpulse.time_to_first_token: {enabled: false}
      tokenpulse.time_to_first_output_token: {enabled: false}
      tokenpulse.time_per_output_token: {enabled: false}
      tokenpulse.request.duration: {enabled: false}
      tokenpulse.phase.duration: {enabled: false}
      tokenpulse.output_token_rate: {enabled: false}
      tokenpulse.inter_token_latency: {enabled: false}
      tokenpulse.inter_chunk_latency: {enabled: false}
    objectives: [{slo: available, objective: 0.999, window: 720h}]
    dimensions:
      - service.name
      - gen_ai.provider.name
      - gen_ai.request.model
      - gen_ai.operation.name
      - tenant.id
      - server.address
      - service.version
      - error.type
      - {attribute: gen_ai.usage.input_tokens, bands: [1000, 8000, 32000], label: prompt_tokens}
  token_sli/default:
    endpoint: %q
    zero_for: 3s
    objectives: [{slo: available, objective: 0.999, window: 720h}]
service:
  telemetry: {metrics: {level: none}}
  pipelines:
    traces: {receivers: [token_stream], processors: [token_latency], exporters: [token_sli, token_sli/default]}
`

// sentRequests are the requests that were sent, by the time of their answer.
type sentRequests struct {
	mu  sync.Mutex
	at  []time.Time
	bad []bool
}

// ratio returns the share of bad requests that were answered between two times, and how many there were.
func (s *sentRequests) ratio(from, to time.Time) (share float64, requests int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	bad := 0
	for i, at := range s.at {
		if at.After(from) && !at.After(to) {
			requests++
			if s.bad[i] {
				bad++
			}
		}
	}
	return float64(bad) / float64(max(requests, 1)), requests
}

// send sends a round of requests: 40 tenants, 4 engines, 2 versions, 4 lengths of prompts, 3 types of errors. Every 50th fails if failing is set.
func (s *sentRequests) send(t *testing.T, address string, round int, failing bool) {
	var lines strings.Builder
	const requests = 12
	bad := [requests]bool{}
	for i := range requests {
		n := round*requests + i
		bad[i] = failing && n%50 == 0
		end, failure := `,"usage":{"output_tokens":2}`, ""
		if bad[i] {
			end, failure = `,"error":"failed"`, fmt.Sprintf(`,"error.type":"%d"`, 500+n/50%3)
		}
		id, begin := fmt.Sprint("r", n), time.Now().Add(-50*time.Millisecond)
		hash := n * 2654435761 >> 7 // spreads failures over all labels
		lines.WriteString(tokenevents.Line("start", id, begin, fmt.Sprintf(
			`,"resource":{"service.name":"chat","service.version":"1.%d"},"attributes":{"gen_ai.request.model":"m","gen_ai.provider.name":"vllm","gen_ai.operation.name":"chat","tenant.id":"t%d","server.address":"engine-%d","gen_ai.usage.input_tokens":%d%s}`,
			hash%2, hash/2%40, hash/80%4, []int{100, 5000, 20000, 60000}[hash/320%4], failure)) + "\n")
		lines.WriteString(tokenevents.Line("chunk", id, begin.Add(20*time.Millisecond), "") + "\n")
		lines.WriteString(tokenevents.Line("end", id, begin.Add(50*time.Millisecond), end) + "\n")
	}
	rejected, err := tokenevents.PostLines(address, lines.String())
	now := time.Now()
	if err != nil || rejected > 0 {
		t.Errorf("%d events rejected: %v", rejected, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range requests {
		s.at, s.bad = append(s.at, now), append(s.bad, bad[i])
	}
}

// It is not parallel: scrapes and evaluations of a second need a machine that answers within it.
func TestFirstErrors_CountInTheShippedRules(t *testing.T) {
	requireFirstErrorsCount(t, testenv.Program(t, "prometheus"))
}

// requireFirstErrorsCount runs two servers of a Prometheus. Each label value hides its first error from a Prometheus that sees its counter begin at 1. With zero_for, two servers
// see the error ratio and burn rate of what happened zero_for and a scrape before, and a page comes as with default dimensions.
func requireFirstErrorsCount(t *testing.T, program string) {
	t.Helper()
	plain := collector.FreeAddress(t)
	c := collector.Start(t, collector.WriteFile(t, t.TempDir(), "config.yaml", fmt.Sprintf(labelsOfFirstErrors, plain)), "--set=exporters.token_sli.zero_for=3s")
	shipped, err := os.ReadFile(prometheusExample(t, "rules.yaml"))
	require.NoError(t, err)
	short := func(duration string) string {
		length, err := model.ParseDuration(duration)
		require.NoError(t, err)
		return max(length/firstErrorsFaster, model.Duration(time.Second)).String()
	}
	rules := collector.WriteFile(t, t.TempDir(), "rules.yaml", durations.ReplaceAllStringFunc(string(shipped), func(found string) string {
		if strings.HasPrefix(found, "silent") {
			return found
		}
		return short(found)
	}))
	var servers []*promserver.Server
	for range 2 {
		servers = append(servers, promserver.Run(t, program, fmt.Sprintf(`
global: {evaluation_interval: 1s}
rule_files: [%q]
scrape_configs:
  - {job_name: labels, scrape_interval: 1s, scrape_timeout: 1s, static_configs: [{targets: [%q]}]}
  - {job_name: default, scrape_interval: 1s, scrape_timeout: 1s, static_configs: [{targets: [%q]}]}
`, rules, c.Metrics, plain)))
	}

	const minute, lag = 6 * time.Second, 4 * time.Second // zero_for and a scrape
	sent, begin, stop := &sentRequests{}, time.Now(), make(chan struct{})
	var sending sync.WaitGroup
	sending.Go(func() {
		for round, ticker := 0, time.NewTicker(100*time.Millisecond); ; round++ {
			select {
			case <-stop:
				ticker.Stop()
				return
			case <-ticker.C:
				sent.send(t, c.HTTP, round, time.Since(begin) > 2*minute)
			}
		}
	})
	defer sending.Wait()
	defer close(stop)

	ratio, burn := "tokenpulse_slo:error_ratio:"+short("5m"), "tokenpulse_slo:burn_rate:"+short("1h")
	time.Sleep(time.Until(begin.Add(8 * minute)))
	sums, checks := map[string]float64{}, 0.0
	for time.Since(begin) < 11*minute {
		for i, server := range servers {
			for name, window := range map[string]time.Duration{ratio: 5 * minute, burn: 60 * minute} {
				selector := name + `{job="labels", slo="available"}`
				found, at := server.ResultsAt(t, selector, ""), server.ResultsAt(t, "timestamp("+selector+")", "")
				require.Len(t, found, 1, selector)
				require.Len(t, at, 1, selector)
				seconds := promserver.Number(t, at[0].Value)
				evaluated := time.UnixMilli(int64(seconds * 1000))
				// New counters are seen zero_for and a scrape late, old ones at once: the truth lies between.
				early, n := sent.ratio(evaluated.Add(-lag-window), evaluated.Add(-lag))
				late, _ := sent.ratio(evaluated.Add(-window), evaluated)
				require.Greater(t, n, 1000)
				got := promserver.Number(t, found[0].Value)
				if name == burn {
					got /= 1000 // the error budget is a thousandth
				}
				truth := min(max(got, min(early, late)), max(early, late))
				require.InEpsilon(t, truth, got, 0.25, "%s of server %d", name, i)
				sums[name] += got / truth
			}
		}
		checks += float64(len(servers))
		time.Sleep(time.Second)
	}
	for name, sum := range sums {
		t.Logf("%s: %.3f of the truth in the mean of %.0f checks", name, sum/checks, checks)
		require.InDelta(t, 1, sum/checks, 0.1, name)
	}
	// The fast burn needs a burn rate of 14.4, by the truth of either job.
	firing := map[string]time.Time{}
	for len(firing) < 2 && time.Since(begin) < 16*minute {
		for _, job := range []string{"labels", "default"} {
			if firing[job].IsZero() && len(servers[0].ResultsAt(t, fmt.Sprintf(`ALERTS{alertname="TokenSLOFastBurn", alertstate="firing", job=%q}`, job), "")) > 0 {
				firing[job] = time.Now()
			}
		}
		time.Sleep(200 * time.Millisecond)
	}
	require.Len(t, firing, 2, "jobs that paged")
	apart := math.Abs(float64(firing["labels"].Sub(firing["default"]))) / float64(minute)
	t.Logf("paged in minute %.1f with labels, %.1f by default", float64(firing["labels"].Sub(begin))/float64(minute), float64(firing["default"].Sub(begin))/float64(minute))
	require.Less(t, apart, 2.0, "minutes between the pages")
}
