// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/e2e/internal/collector"
	"github.com/tokenpulse/tokenpulse/e2e/internal/exposition"
	"github.com/tokenpulse/tokenpulse/e2e/internal/markdown"
	"github.com/tokenpulse/tokenpulse/e2e/internal/promserver"
	"github.com/tokenpulse/tokenpulse/e2e/internal/tokenevents"
	"github.com/tokenpulse/tokenpulse/internal/testenv"
)

// The queries of the page answer for an hour and a half of traffic, in both forms in which
// Prometheus stores histograms. The Collector gets the requests that end in each minute, then
// its scrape is recorded. Each answer follows from the traffic.
func TestQueriesPage_EveryQueryAnswersRight(t *testing.T) {
	t.Parallel()
	requireRightAnswers(t, installedSetups(t))
}

// answerCheck checks what a query answers.
type answerCheck func(t *testing.T, p *promserver.Server, query string)

func requireRightAnswers(t *testing.T, setups map[string]prometheusSetup) {
	t.Helper()
	queries := queriesOfPage(t)
	for traffic, record := range map[string]func(*testing.T, *recording) map[string]answerCheck{
		"token events of clients and engines": recordIncident, "token_tap, nine engines": recordTap,
	} {
		t.Run(traffic, func(t *testing.T) {
			recorded := newRecording(slices.Collect(maps.Values(queries))...)
			checks := record(t, recorded)
			recorded.add(pricesOfPage(t), recorded.last)
			require.ElementsMatch(t, slices.Collect(maps.Keys(queries)), slices.Collect(maps.Keys(checks)), "each query has a test")
			for name, setup := range setups {
				t.Run(name, func(t *testing.T) {
					p := recorded.replay(t, setup)
					for title, check := range checks {
						t.Run(title, func(t *testing.T) { check(t, p, queries[title]) })
					}
				})
			}
		})
	}
}

// moreForQueries extends examples/quickstart.yaml.
const moreForQueries = `
processors:
  token_latency:
    join: true
    cold_start: {}
    slos: [{name: chat-tpot, indicator: time_per_output_token, threshold: 100ms, match: {tokenpulse.vantage: client}}]
exporters:
  token_sli:
    windows: []
    objectives: [{slo: chat-tpot, objective: 0.9}]
`

// labelsOfQueries returns the configuration of dimensions on the page.
func labelsOfQueries(t *testing.T) string {
	t.Helper()
	_, block, found := strings.Cut(markdown.Read(t, "docs/queries.md"), "```yaml\n")
	require.True(t, found)
	labels, _, _ := strings.Cut(block, "```")
	return labels
}

// startForQueries runs the Collector with examples/quickstart.yaml and the labels of the page.
func startForQueries(t *testing.T, more ...string) *collector.Collector {
	t.Helper()
	var arguments []string
	for i, config := range append([]string{moreForQueries, labelsOfQueries(t)}, more...) {
		arguments = append(arguments, "--config", collector.WriteFile(t, t.TempDir(), fmt.Sprintf("%d.yaml", i), config))
	}
	return collector.Start(t, collector.Example(t, "quickstart.yaml"), arguments...)
}

// recordIncident records incidentLanes. A client and an engine report each request.
func recordIncident(t *testing.T, recorded *recording) map[string]answerCheck {
	t.Helper()
	begin, requests := beginOfPast(), requestsOf(incidentLanes)
	c := startForQueries(t)
	open := func(streams, chunks int) {
		var events strings.Builder
		for i := range streams {
			write := tokenevents.EventsOf(&events, fmt.Sprint("open-", time.Now().UnixNano(), i), time.Now())
			write("start", 0, `,"vantage":"client","attributes":{"gen_ai.request.model":"llama-3-70b"}`)
			for range chunks {
				write("chunk", 0, "")
			}
		}
		c.Post(t, "application/x-ndjson", strings.NewReader(events.String()))
	}
	open(2, 0)
	recorded.requests(t, c, begin, requests)
	require.Eventually(t, func() bool {
		hanging, _ := openStreams(exposition.Scrape(t, c), "client", "first_token", firstTokenOverdue)
		return hanging == 2
	}, time.Minute+collector.Patience, time.Second, "a minute without a first token")
	open(3, 0)
	open(1, 1)
	waitForDecoding(t, c, "client", 1, 0)
	open(2, 1)
	recorded.openStreams(waitForDecoding(t, c, "client", 1, 2), begin)
	at := func(t *testing.T, p *promserver.Server, query string) answers {
		t.Helper()
		return answersAt(t, p, query, askedAt(begin)).of("client")
	}
	return map[string]answerCheck{
		"Which model": func(t *testing.T, p *promserver.Server, query string) {
			// Of 70b's requests, 75 are slow and 75 are not, see below. Of 8b's, one in 5
			// fails, and another is not eligible.
			at(t, p, query).require(t, map[string]float64{
				"gen_ai_request_model=llama-3-70b slo=chat-tpot": 0.5, "gen_ai_request_model=llama-3-70b slo=all": 0.5,
				"gen_ai_request_model=llama-3-8b slo=chat-tpot": 0.2 / 0.8, "gen_ai_request_model=llama-3-8b slo=all": 0.2 / 0.8,
			})
		},
		"How slow": func(t *testing.T, p *promserver.Server, query string) {
			// Half of the requests take 0.25 s per token, the other half 0.05 s.
			got := at(t, p, query)
			require.Len(t, got, 2)
			p.RequireQuantile(t, "tokenpulse_time_per_output_token_seconds", promserver.Exactly(0.25), got["gen_ai_request_model=llama-3-70b"])
			p.RequireQuantile(t, "tokenpulse_time_per_output_token_seconds", promserver.Exactly(0.05), got["gen_ai_request_model=llama-3-8b"])
		},
		"How slow by prompt length and cache hit": func(t *testing.T, p *promserver.Server, query string) {
			// Prompts have 1000 tokens, of which 250 come from a cache.
			got := at(t, p, query)
			require.Len(t, got, 1)
			p.RequireQuantile(t, "tokenpulse_time_to_first_token_seconds", promserver.Exactly(beforeToken.Seconds()), got["cached_share=0.1-0.5 prompt_tokens=1000-8000"])
		},
		"How slow is a cold start": func(t *testing.T, p *promserver.Server, query string) {
			// They are less than a twentieth of the requests of that hour.
			got := answersAt(t, p, query, begin.Add(50*time.Minute+time.Second)).of("client")
			require.Len(t, got, 1)
			p.RequireQuantile(t, "tokenpulse_time_to_first_token_seconds", promserver.Exactly((beforeToken + loading).Seconds()), got[""])
			require.Empty(t, at(t, p, query), "over an hour ago")
		},
		"Without cold starts": func(t *testing.T, p *promserver.Server, query string) {
			// They are more than a twentieth of the requests of those minutes.
			got := answersAt(t, p, query, begin.Add(5*time.Minute+time.Second)).of("client")
			require.Len(t, got, 1)
			p.RequireQuantile(t, "tokenpulse_time_to_first_token_seconds", promserver.Exactly(beforeToken.Seconds()), got[""])
		},
		"Slow or failing": func(t *testing.T, p *promserver.Server, query string) {
			at(t, p, query).require(t, map[string]float64{
				"gen_ai_request_model=llama-3-70b outcome=success": 1,
				"gen_ai_request_model=llama-3-8b outcome=success":  0.8, "gen_ai_request_model=llama-3-8b outcome=error": 0.2,
			})
		},
		"Which errors": func(t *testing.T, p *promserver.Server, query string) {
			at(t, p, query).require(t, map[string]float64{"cause=other error_type=overloaded gen_ai_request_model=llama-3-8b": 0.2})
		},
		"How much error budget is left": func(t *testing.T, p *promserver.Server, query string) {
			// A tenth of the requests that can be judged may be bad.
			bad, judged := map[string]float64{}, map[string]float64{}
			for _, r := range requests {
				if r.end() > incidentLength || r.oneToken {
					continue
				}
				judged[r.model]++
				if r.slow() || r.failure != "" {
					bad[r.model]++
				}
			}
			left := map[string]float64{}
			for model := range judged {
				left["gen_ai_request_model="+model+" slo=chat-tpot"] = 1 - bad[model]/judged[model]/0.1
			}
			got := at(t, p, query)
			require.Len(t, got, len(left))
			for labels := range left {
				require.InDelta(t, left[labels], got[labels], 0.02, "%s: the first bad requests of a version are those of a new counter", labels)
			}
		},
		"Since when": func(t *testing.T, p *promserver.Server, query string) {
			// The first requests with 0.25 s per token end 12 s after a deploy. The share of the 5m
			// window exceeds 10% within three minutes, also after the deploy that was tried before.
			asked := func(at time.Duration) answers { return answersAt(t, p, query, begin.Add(at)).of("client") }
			for deploy, at := range map[time.Duration]time.Duration{triedFrom: triedUntil + 2*time.Minute, deployAt: incidentLength} {
				since := time.Unix(int64(asked(at + time.Second)[""]), 0).Sub(begin.Add(deploy))
				require.Greater(t, since, 12*time.Second, deploy)
				require.Less(t, since, 3*time.Minute, deploy)
			}
			require.Empty(t, asked(deployAt+3*time.Minute), "not yet lasting")
			require.Empty(t, asked(deployAt-5*time.Minute), "over")
		},
		"Which tenant": func(t *testing.T, p *promserver.Server, query string) {
			// In 300 seconds, a healthy lane ends 75 requests of 4 s, a slow one 25 of 12 s.
			at(t, p, query).require(t, map[string]float64{"tenant_id=acme": 1, "tenant_id=globex": 25. / (25 + 75)})
		},
		"How many tenants": func(t *testing.T, p *promserver.Server, query string) {
			at(t, p, query).require(t, map[string]float64{"": 2})
		},
		"Queue, prefill, decode or network": func(t *testing.T, p *promserver.Server, query string) {
			// Half of the requests decode 10 s instead of 2 s, and are 0.5 s instead of 0.1 s
			// on their way to the engine, which prefills in what is left before the token.
			at(t, p, query).require(t, map[string]float64{"phase=queue": 0, "phase=prefill": -0.2, "phase=decode": 4, "phase=network": 0.2})
			// 20 minutes after the beginning, no request is an hour old. Until then, engines got warm.
			answersAt(t, p, query, begin.Add(20*time.Minute+time.Second)).of("client").
				require(t, growthOfPhases(requests, "llama-3-70b", 16*time.Minute, 20*time.Minute))
			// When the version was tried, half of the requests had 10 s of decode instead of 2 s for 6
			// minutes: a mean of 6 s. Before these, the last hour has 46 minutes with 2 s.
			young := answersAt(t, p, query, begin.Add(triedUntil+time.Second)).of("client")
			require.Len(t, young, 4)
			require.Greater(t, young["phase=decode"], 3.0)
			require.Less(t, young["phase=decode"], 4.0)
			require.Greater(t, young["phase=network"], 0.1)
			require.Less(t, young["phase=network"], 0.2)
		},
		"Slow tokens or stalls": func(t *testing.T, p *promserver.Server, query string) {
			// The gaps of slow requests are 2.5 s: all of their 10 s of decode are stalls. Those
			// of the others, 0.5 s, do not exceed the threshold.
			at(t, p, query).require(t, map[string]float64{
				"gen_ai_request_model=llama-3-70b": 10 * 75. / (10*75 + 2*75), "gen_ai_request_model=llama-3-8b": 0,
			})
		},
		"Which engine": func(t *testing.T, p *promserver.Server, query string) {
			at(t, p, query).require(t, map[string]float64{"server_address=engine-1": 0.05, "server_address=engine-2": 0.25})
		},
		"Which version": func(t *testing.T, p *promserver.Server, query string) {
			at(t, p, query).require(t, map[string]float64{"service_version=1.4": 0, "service_version=1.5": 1})
		},
		"How many requests are in flight": func(t *testing.T, p *promserver.Server, query string) {
			at(t, p, query).require(t, map[string]float64{
				"gen_ai_request_model=llama-3-70b": inFlight("llama-3-70b", incidentLength),
				"gen_ai_request_model=llama-3-8b":  inFlight("llama-3-8b", incidentLength),
			})
			// Also before the deploy, with more requests in flight.
			answersAt(t, p, query, begin.Add(busyUntil+time.Second)).of("client").require(t, map[string]float64{
				"gen_ai_request_model=llama-3-70b": inFlight("llama-3-70b", busyUntil),
				"gen_ai_request_model=llama-3-8b":  inFlight("llama-3-8b", busyUntil),
			})
		},
		"Which streams hang": func(t *testing.T, p *promserver.Server, query string) {
			// Three others wait for their first token, for less than a minute.
			at(t, p, query).require(t, map[string]float64{"gen_ai_request_model=llama-3-70b": (1. + 2.) / (3 + 2)})
		},
		"Load or a bad deploy": func(t *testing.T, p *promserver.Server, query string) {
			at(t, p, query).require(t, map[string]float64{
				"gen_ai_request_model=llama-3-70b": (75. + 3*25) / (4 * 75), "gen_ai_request_model=llama-3-8b": 1,
			})
		},
		"How much headroom": func(t *testing.T, p *promserver.Server, query string) {
			// Of 8b's requests, a fifth fails at any time.
			at(t, p, query).require(t, map[string]float64{
				"gen_ai_request_model=llama-3-70b": inFlight("llama-3-70b", busyUntil) - inFlight("llama-3-70b", incidentLength),
			})
		},
		"What it costs": func(t *testing.T, p *promserver.Server, query string) {
			// Each model ends 1800 requests an hour, of 1000 tokens: of 70b's, 250 are cheaper. 41 tokens
			// of output, or one. A fifth of 8b's requests fails, without usage.
			want := map[string]float64{
				"gen_ai_request_model=llama-3-70b": 1800 * (750*0.60 + 250*0.15 + 41*0.90),
				"gen_ai_request_model=llama-3-8b":  1800 * (0.8*1000*0.05 + (0.6*41+0.2*1)*0.08),
			}
			microCost(t, p, query, askedAt(begin)).of("client").require(t, want)
			perDay := strings.NewReplacer("3600 / 1e6", "1 / 1e6", "rate(tokenpulse_tokens_total[5m])", "increase(tokenpulse_tokens_total[1h])")
			require.NotEqual(t, query, perDay.Replace(query))
			hour := microCost(t, p, perDay.Replace(query), askedAt(begin)).of("client")
			require.InEpsilon(t, want["gen_ai_request_model=llama-3-8b"], hour["gen_ai_request_model=llama-3-8b"], 0.03, "its traffic is steady")
		},
		"What a million tokens costs on your own GPUs": func(t *testing.T, p *promserver.Server, query string) {
			at(t, p, query).require(t, map[string]float64{
				"gen_ai_request_model=llama-3-70b": 16 * 1e6 / (1800 * 41), "gen_ai_request_model=llama-3-8b": 2 * 1e6 / (1800 * (0.6*41 + 0.2*1)),
			})
		},
		"What a million good tokens costs": func(t *testing.T, p *promserver.Server, query string) {
			// Half of 70b's requests are good, and three quarters of 8b's.
			at(t, p, query).require(t, map[string]float64{
				"gen_ai_request_model=llama-3-70b": 16 * 1e6 / (1800 * 41 * 0.5), "gen_ai_request_model=llama-3-8b": 2 * 1e6 / (1800 * (0.6*41 + 0.2*1) * 0.75),
			})
		},
		"Which requests cannot be judged": func(t *testing.T, p *promserver.Server, query string) {
			// A fifth of 8b's answers have one token.
			at(t, p, query).require(t, map[string]float64{
				"gen_ai_request_model=llama-3-70b service_name=shop": 1, "gen_ai_request_model=llama-3-8b service_name=shop": 0.8,
			})
		},
		"Why they cannot be judged": func(t *testing.T, p *promserver.Server, query string) {
			// The other fifth of 8b's requests without the indicator fails.
			at(t, p, query).require(t, map[string]float64{
				"gen_ai_request_model=llama-3-8b indicator=time_per_output_token reason=one_token service_name=shop": 0.2,
				"gen_ai_request_model=llama-3-8b indicator=time_per_output_token reason=no_token service_name=shop":  0.2,
				"gen_ai_request_model=llama-3-8b indicator=time_to_first_token reason=no_token service_name=shop":    0.2,
			})
		},
		"Which requests": func(t *testing.T, p *promserver.Server, query string) {
			byTrace, ended := map[string]llmRequest{}, map[string]time.Duration{} // latest slow request, by tenant
			for _, r := range requests {
				byTrace[r.traceID()] = r
				if r.slow() && r.end() <= incidentLength {
					ended[r.tenant] = max(ended[r.tenant], r.end())
				}
			}
			found := map[string]time.Duration{}
			for _, trace := range p.ExemplarTraces(t, query) {
				require.True(t, byTrace[trace].slow(), "trace %s is not of a slow request", trace)
				found[byTrace[trace].tenant] = byTrace[trace].end()
			}
			require.Equal(t, ended, found, "the latest bad request of each series")
		},
	}
}

// queriesOfPage returns the queries of docs/queries.md by heading.
func queriesOfPage(t *testing.T) map[string]string {
	t.Helper()
	page, queries := markdown.Read(t, "docs/queries.md"), map[string]string{}
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

// costRules writes the rules of the page, which record prices and the query, to a file.
func costRules(t *testing.T) (file string) {
	t.Helper()
	_, section, found := strings.Cut(markdown.Read(t, "docs/queries.md"), "\n## What it costs\n")
	require.True(t, found)
	_, rules, found := strings.Cut(section, "```yaml\n")
	require.True(t, found)
	rules, _, _ = strings.Cut(rules, "```")
	query := strings.TrimSpace(queriesOfPage(t)["What it costs"])
	require.Contains(t, rules, strings.ReplaceAll(query, "\n", "\n"+strings.Repeat(" ", 10)), "the last rule records the query")
	return collector.WriteFile(t, t.TempDir(), "rules.yaml", rules)
}

// pricesOfPage returns the prices that the rules of the page record. longModel costs as much as the
// model that the queries name.
func pricesOfPage(t *testing.T) map[string]*dto.MetricFamily {
	t.Helper()
	var rules struct {
		Groups []struct {
			Rules []struct {
				Record, Expr string
				Labels       map[string]string
			}
		}
	}
	parse(t, costRules(t), &rules)
	prices := map[string]*dto.MetricFamily{}
	for _, rule := range rules.Groups[0].Rules {
		models := []string{rule.Labels["gen_ai_request_model"]}
		switch models[0] {
		case "":
			continue
		case "llama-3-70b":
			models = append(models, longModel)
		}
		price := promserver.Parsed(t, strings.TrimSuffix(strings.TrimPrefix(rule.Expr, "vector("), ")"))
		family := prices[rule.Record]
		if family == nil {
			family = &dto.MetricFamily{Name: new(rule.Record), Type: dto.MetricType_GAUGE.Enum()}
			prices[rule.Record] = family
		}
		for _, model := range models {
			labels := []*dto.LabelPair{{Name: new("gen_ai_request_model"), Value: new(model)}}
			if of, ok := rule.Labels["type"]; ok {
				labels = append(labels, &dto.LabelPair{Name: new("type"), Value: new(of)})
			}
			family.Metric = append(family.Metric, &dto.Metric{Label: labels, Gauge: &dto.Gauge{Value: new(price)}})
		}
	}
	require.Len(t, prices["token_price"].Metric, 3*2+2)
	require.Len(t, prices["gpu_cost_per_hour"].Metric, 2+1)
	return prices
}

// A second has 1000 tokens of input, of which 250 are from a cache, and 10 of output.
func TestQueriesPage_RulesRecordTheCost(t *testing.T) {
	t.Parallel()
	test := fmt.Sprintf(`
rule_files: [%q]
tests:
  - interval: 1m
    input_series:
      - {series: 'tokenpulse_tokens_total{vantage="client", gen_ai_request_model="llama-3-70b", type="input"}', values: 0+60000x10}
      - {series: 'tokenpulse_tokens_total{vantage="client", gen_ai_request_model="llama-3-70b", type="cached_input"}', values: 0+15000x10}
      - {series: 'tokenpulse_tokens_total{vantage="client", gen_ai_request_model="llama-3-70b", type="output"}', values: 0+600x10}
      - {series: 'tokenpulse_tokens_total{vantage="client", gen_ai_request_model="llama-3-70b", type="reasoning"}', values: 0+300x10}
      - {series: 'tokenpulse_tokens_total{vantage="client", gen_ai_request_model="free", type="output"}', values: 0+600x10}
    promql_expr_test:
      - expr: abs(tokenpulse:cost_per_hour - 3600 * (750*0.60 + 250*0.15 + 10*0.90) / 1e6) < bool 1e-9
        eval_time: 10m
        exp_samples: [{labels: '{vantage="client", gen_ai_request_model="llama-3-70b"}', value: 1}]
`, costRules(t))
	collector.Run(t, testenv.Program(t, "promtool"), "test", "rules", collector.WriteFile(t, t.TempDir(), "test.yaml", test))
}

// The example of the page: 3 per hour at 1,000 tokens per second.
func TestQueriesPage_ExampleOfTheCostOnGPUs(t *testing.T) {
	t.Parallel()
	test := fmt.Sprintf(`
tests:
  - interval: 1m
    input_series:
      - {series: 'gpu_cost_per_hour{gen_ai_request_model="m"}', values: 3x10}
      - {series: 'tokenpulse_tokens_total{vantage="client", gen_ai_request_model="m", type="output"}', values: 0+60000x10}
    promql_expr_test:
      - expr: %q
        eval_time: 10m
        exp_samples: [{labels: '{vantage="client", gen_ai_request_model="m"}', value: 0.83}]
`, "round("+queriesOfPage(t)["What a million tokens costs on your own GPUs"]+", 0.01)")
	collector.Run(t, testenv.Program(t, "promtool"), "test", "rules", collector.WriteFile(t, t.TempDir(), "test.yaml", test))
}

// microCost returns costs in millionths.
func microCost(t *testing.T, p *promserver.Server, query string, at time.Time) answers {
	t.Helper()
	return answersAt(t, p, "1e6 * "+query, at)
}

// answers holds the samples of a query's result by labels.
type answers map[string]float64

// require compares answers with expected values. 3% tolerate what Prometheus
// extrapolates, and requests in flight at the borders of a window.
func (a answers) require(t *testing.T, want map[string]float64) {
	t.Helper()
	require.Len(t, a, len(want), "%v", a)
	for labels, value := range want {
		require.Contains(t, a, labels)
		require.InDelta(t, value, a[labels], 0.03*max(math.Abs(value), 0.1), labels)
	}
}

// of returns the answers about one vantage, without this label.
func (a answers) of(vantage string) answers {
	vantage, some := " vantage="+vantage, answers{}
	for labels, value := range a {
		if rest, found := strings.CutSuffix(" "+labels, vantage); found {
			some[strings.TrimPrefix(rest, " ")] = value
		}
	}
	return some
}

func answersAt(t *testing.T, p *promserver.Server, query string, at time.Time) answers {
	t.Helper()
	all := answers{}
	for _, result := range p.ResultsAt(t, query, strconv.FormatInt(at.Unix(), 10)) {
		all[labelText(result.Metric)] = promserver.Number(t, result.Value)
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

// growthOfPhases returns by how many seconds the mean of each phase grew: of the requests to a model that end after a time, over
// those of all requests that end until then. What the first scrape of a counter has is no growth of it.
func growthOfPhases(requests []llmRequest, model string, after, until time.Duration) map[string]float64 {
	first := map[bool]time.Duration{}
	for _, r := range requests { // in the order of their end
		if _, counted := first[r.cold()]; !counted && r.model == model {
			first[r.cold()] = (r.end() + scrapeStep - 1).Truncate(scrapeStep)
		}
	}
	mean := func(after time.Duration) map[string]float64 {
		sums, n := map[string]float64{}, 0.
		for _, r := range requests {
			if r.model == model && r.end() > max(after, first[r.cold()]) && r.end() <= until {
				n++
				for phase, took := range r.phases() {
					sums[phase] += took.Seconds()
				}
			}
		}
		for phase := range sums {
			sums[phase] /= n
		}
		return sums
	}
	growth, earlier := mean(after), mean(0)
	for phase := range growth {
		growth[phase] -= earlier[phase]
	}
	return growth
}

// beginOfPast is when recorded traffic begins. No scrape of its steps is at a whole minute, where
// versions of Prometheus differ in what a window holds.
func beginOfPast() time.Time {
	return time.Now().Add(-incidentLength - time.Hour).Truncate(time.Minute).Add(7 * time.Second)
}

// askedAt is when queries ask about recorded traffic.
func askedAt(begin time.Time) time.Time { return begin.Add(incidentLength + time.Second) }

// openStreams adds the open streams of a scrape when queries ask, and nothing else: further samples would
// change rates. The last scrape stays what replay waits for.
func (r *recording) openStreams(scraped map[string]*dto.MetricFamily, begin time.Time) {
	const name = "tokenpulse_streams_open"
	last := r.last
	r.add(map[string]*dto.MetricFamily{name: scraped[name]}, askedAt(begin))
	r.last = last
}

// requests sends requests to the Collector in the order in which they end, and records its scrape after each step. The requests say
// that they begin when the Collector has run for long enough to know which engines are cold, so after now.
func (r *recording) requests(t *testing.T, c *collector.Collector, begin time.Time, requests []llmRequest) {
	t.Helper()
	sent := time.Now().Add(coldIdle).Add(time.Second)
	for step := scrapeStep; step <= incidentLength; step += scrapeStep {
		var events strings.Builder
		for len(requests) > 0 && requests[0].end() <= step {
			requests[0].write(&events, sent)
			requests = requests[1:]
		}
		c.Post(t, "application/x-ndjson", strings.NewReader(events.String()))
		r.add(exposition.Scrape(t, c), begin.Add(step))
	}
}
