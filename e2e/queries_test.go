// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/testenv"
)

// labelsOfQueries extends examples/quickstart.yaml with the dimensions of docs/queries.md.
const labelsOfQueries = `
processors:
  token_latency:
    join: true
    slos: [{name: chat-tpot, indicator: time_per_output_token, threshold: 100ms, match: {tokenpulse.vantage: client}}]
exporters:
  token_sli:
    dimensions: [service.name, gen_ai.provider.name, gen_ai.request.model, gen_ai.operation.name, tenant.id, server.address, service.version]
    windows: []
`

// The queries of the page answer for an hour and a half of traffic, see incidentLanes.
// The Collector gets the streams that end in each 30 seconds, then its scrape is stored
// with the time at which a Prometheus would have made it. So a real Prometheus has the
// Collector's own series over hours, and each answer follows from the lanes.
func TestQueriesPage_EveryQueryAnswersRight(t *testing.T) {
	t.Parallel()
	program, promtool := testenv.Program(t, "prometheus"), testenv.Program(t, "promtool")
	queries := queriesOfPage(t)
	c := startCollector(t, example(t, "quickstart.yaml"), "--config", writeFile(t, t.TempDir(), "labels.yaml", labelsOfQueries))
	begin := time.Now().Add(-incidentLength - time.Hour).Truncate(scrapeStep)
	requests := requestsOf(incidentLanes)

	folder, data := t.TempDir(), t.TempDir()
	run(t, promtool, "tsdb", "create-blocks-from", "openmetrics", writeFile(t, folder, "scrapes.txt", scrapesOf(t, c, begin, requests, queries)), data)
	past := servePrometheus(t, program, data, "")
	now := begin.Add(incidentLength)
	at := func(query string) answers { return past.answersAt(t, queries[query], now) }

	expected := map[string]func(t *testing.T, query string){
		"Which model": func(t *testing.T, query string) {
			// Of 70b's requests, 75 are slow and 75 are not, see below. Of 8b's, one in 5
			// fails, and another is not eligible.
			at(query).require(t, map[string]float64{
				"gen_ai_request_model=llama-3-70b slo=chat-tpot": 0.5, "gen_ai_request_model=llama-3-70b slo=all": 0.5,
				"gen_ai_request_model=llama-3-8b slo=chat-tpot": 0.2 / 0.8, "gen_ai_request_model=llama-3-8b slo=all": 0.2 / 0.8,
			})
		},
		"How slow": func(t *testing.T, query string) {
			// Half of the requests take 0.25 s per token, the other half 0.05 s.
			low, high := past.bucketAround(t, "tokenpulse_time_per_output_token_seconds", 0.25)
			got := at(query)["gen_ai_request_model=llama-3-70b"]
			require.Greater(t, got, low)
			require.LessOrEqual(t, got, high)
			low, high = past.bucketAround(t, "tokenpulse_time_per_output_token_seconds", 0.05)
			got = at(query)["gen_ai_request_model=llama-3-8b"]
			require.Greater(t, got, low)
			require.LessOrEqual(t, got, high)
		},
		"Slow or failing": func(t *testing.T, query string) {
			at(query).require(t, map[string]float64{
				"gen_ai_request_model=llama-3-70b outcome=success": 1,
				"gen_ai_request_model=llama-3-8b outcome=success":  0.8, "gen_ai_request_model=llama-3-8b outcome=error": 0.2,
			})
		},
		"Since when": func(t *testing.T, query string) {
			// The first requests with 0.25 s per token end 12 s after the deploy. The share
			// of the 5m window exceeds 10% after two of its minutes at most.
			since := time.Unix(int64(at(query)[""]), 0).Sub(begin.Add(deployAt))
			require.Greater(t, since, 12*time.Second)
			require.Less(t, since, 3*time.Minute)
		},
		"Which tenant": func(t *testing.T, query string) {
			// In 300 seconds, a healthy lane ends 75 requests of 4 s, a slow one 25 of 12 s.
			at(query).require(t, map[string]float64{"tenant_id=acme": 1, "tenant_id=globex": 25. / (25 + 75)})
		},
		"How many tenants": func(t *testing.T, query string) {
			at(query).require(t, map[string]float64{"": 2})
		},
		"Queue, prefill, decode or network": func(t *testing.T, query string) {
			// Half of the requests decode 10 s instead of 2 s, and are 0.5 s instead of 0.1 s
			// on their way to the engine, which prefills in what is left before the token.
			at(query).require(t, map[string]float64{"phase=queue": 0, "phase=prefill": -0.2, "phase=decode": 4, "phase=network": 0.2})
		},
		"Slow tokens or stalls": func(t *testing.T, query string) {
			// The gaps of slow requests are 2.5 s: all of their 10 s of decode are stalls. Those
			// of the others, 0.5 s, do not exceed the threshold.
			at(query).require(t, map[string]float64{
				"gen_ai_request_model=llama-3-70b": 10 * 75. / (10*75 + 2*75), "gen_ai_request_model=llama-3-8b": 0,
			})
		},
		"Which engine": func(t *testing.T, query string) {
			at(query).require(t, map[string]float64{"server_address=engine-1": 0.05, "server_address=engine-2": 0.25})
		},
		"Which version": func(t *testing.T, query string) {
			at(query).require(t, map[string]float64{"service_version=1.4": 0, "service_version=1.5": 1})
		},
		"How many requests are in flight": func(t *testing.T, query string) {
			at(query).require(t, map[string]float64{
				"gen_ai_request_model=llama-3-70b": inFlight("llama-3-70b", incidentLength),
				"gen_ai_request_model=llama-3-8b":  inFlight("llama-3-8b", incidentLength),
			})
			// Also before the deploy, with more requests in flight.
			past.answersAt(t, queries[query], begin.Add(busyUntil)).require(t, map[string]float64{
				"gen_ai_request_model=llama-3-70b": inFlight("llama-3-70b", busyUntil),
				"gen_ai_request_model=llama-3-8b":  inFlight("llama-3-8b", busyUntil),
			})
		},
		"Load or a bad deploy": func(t *testing.T, query string) {
			at(query).require(t, map[string]float64{
				"gen_ai_request_model=llama-3-70b": (75. + 3*25) / (4 * 75), "gen_ai_request_model=llama-3-8b": 1,
			})
		},
		"How much headroom": func(t *testing.T, query string) {
			// Of 8b's requests, a fifth fails at any time.
			at(query).require(t, map[string]float64{
				"gen_ai_request_model=llama-3-70b": inFlight("llama-3-70b", busyUntil) - inFlight("llama-3-70b", incidentLength),
			})
		},
		"Which requests cannot be judged": func(t *testing.T, query string) {
			// A fifth of 8b's answers have one token.
			at(query).require(t, map[string]float64{
				"gen_ai_request_model=llama-3-70b service_name=shop": 1, "gen_ai_request_model=llama-3-8b service_name=shop": 0.8,
			})
		},
		"Why they cannot be judged": func(t *testing.T, query string) {
			// The other fifth of 8b's requests without the indicator fails.
			at(query).require(t, map[string]float64{
				"gen_ai_request_model=llama-3-8b reason=one_token service_name=shop": 0.2,
				"gen_ai_request_model=llama-3-8b reason=no_token service_name=shop":  0.2,
			})
		},
		"Which requests": func(t *testing.T, query string) {
			present := startPrometheus(t, program, c.metrics, "exemplar-storage")
			byTrace, ended := map[string]llmRequest{}, map[string]time.Duration{} // latest slow request, by tenant
			for _, r := range requests {
				byTrace[r.traceID()] = r
				if r.slow() && r.end() <= incidentLength {
					ended[r.tenant] = max(ended[r.tenant], r.end())
				}
			}
			var traces []string
			require.Eventually(t, func() bool {
				traces = present.exemplarTraces(t, queries[query])
				return len(traces) >= len(ended)
			}, patience, 100*time.Millisecond)
			found := map[string]time.Duration{}
			for _, trace := range traces {
				require.True(t, byTrace[trace].slow(), "trace %s is not of a slow request", trace)
				found[byTrace[trace].tenant] = byTrace[trace].end()
			}
			require.Equal(t, ended, found, "the latest bad request of each series")
		},
	}
	for query := range queries {
		require.Contains(t, expected, query, "a query without a test")
	}
	for query, check := range expected {
		require.Contains(t, queries, query, "docs/queries.md lacks a query")
		t.Run(query, func(t *testing.T) { check(t, query) })
	}
}

// queriesOfPage returns the queries of docs/queries.md by heading.
func queriesOfPage(t *testing.T) map[string]string {
	t.Helper()
	page, queries := readMarkdown(t, "docs/queries.md"), map[string]string{}
	for _, section := range strings.Split(page, "\n## ")[1:] {
		title, _, _ := strings.Cut(section, "\n")
		blocks := strings.Split(section, "```promql\n")[1:]
		if len(blocks) > 0 {
			require.Len(t, blocks, 1, "%s: one query each", title)
			queries[title], _, _ = strings.Cut(blocks[0], "```")
		}
	}
	require.NotEmpty(t, queries)
	return queries
}

// answers holds the samples of a query's result by labels.
type answers map[string]float64

// require compares answers with expected values. 3% tolerate that requests in flight at
// the borders of a window are not in whole proportion.
func (a answers) require(t *testing.T, want map[string]float64) {
	t.Helper()
	require.Len(t, a, len(want), "%v", a)
	for labels, value := range want {
		require.Contains(t, a, labels)
		require.InDelta(t, value, a[labels], 0.03*max(math.Abs(value), 0.1), labels)
	}
}

func (p *prometheus) answersAt(t *testing.T, query string, at time.Time) answers {
	t.Helper()
	all := answers{}
	for _, result := range p.resultsAt(t, query, strconv.FormatInt(at.Unix(), 10)) {
		all[labelText(result.Metric)] = number(t, result.Value)
	}
	return all
}

// labelText writes labels as the keys of answers have them: sorted, as name=value.
func labelText(labels map[string]string) string {
	var pairs []string
	for name, value := range labels {
		pairs = append(pairs, name+"="+value)
	}
	slices.Sort(pairs)
	return strings.Join(pairs, " ")
}

// scrapesOf sends the requests to the Collector in the order in which they end, and
// returns its scrapes after each step, with times. It keeps the metrics of the queries.
func scrapesOf(t *testing.T, c *collector, begin time.Time, requests []llmRequest, queries map[string]string) string {
	t.Helper()
	wanted := map[string]bool{}
	for _, query := range queries {
		for _, name := range regexp.MustCompile(`tokenpulse_\w+`).FindAllString(query, -1) {
			wanted[name] = true
		}
	}
	var text strings.Builder
	for step := scrapeStep; step <= incidentLength; step += scrapeStep {
		var events strings.Builder
		for len(requests) > 0 && requests[0].end() <= step {
			requests[0].write(&events, begin)
			requests = requests[1:]
		}
		c.post(t, "application/x-ndjson", strings.NewReader(events.String()))
		for line := range strings.Lines(string(get(t, c.metricsURL(), "text/plain"))) {
			name, _, _ := strings.Cut(line, "{")
			if wanted[name] {
				fmt.Fprintf(&text, "%s %d\n", strings.TrimSuffix(line, "\n"), begin.Add(step).Unix())
			}
		}
	}
	return text.String() + "# EOF\n"
}
