// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/e2e/internal/collector"
	"github.com/tokenpulse/tokenpulse/e2e/internal/markdown"
	"github.com/tokenpulse/tokenpulse/e2e/internal/promserver"
)

// incident is what goes wrong with the requests to one model. Nine engines serve it.
type incident struct {
	model, about string // about is its row in docs/runbook.md
	// alerts may page for it: the first of them that rules.yaml has does.
	alerts []string
	// wrong changes the requests of an engine, 1 to 9.
	wrong func(engine int, r *llmRequest)
	steps []drillStep
}

// drillStep is a query of docs/queries.md, and labels of the row of its answer with the largest value.
type drillStep struct {
	query string
	finds map[string]string
}

func slowVersion(r *llmRequest) { r.perToken, r.version = 250*time.Millisecond, "1.5" }

var drill = []incident{
	{
		model: "slow-engine", about: "one engine of nine is slow, objective 99.9%",
		alerts: []string{"TokenSLOFastBurn"},
		wrong: func(engine int, r *llmRequest) {
			if engine == 9 {
				slowVersion(r)
			}
		},
		steps: []drillStep{
			{"Slow or failing", map[string]string{"outcome": "success"}},
			{"Queue, prefill, decode or network", map[string]string{"phase": "decode"}},
			{"Which engine", map[string]string{"server_address": "engine-9"}},
		},
	},
	{
		model: "slow-version", about: "a new version is slow, objective 95%",
		alerts: []string{"TokenNearTotalBreach", "TokenSLOFastBurn"},
		wrong:  func(_ int, r *llmRequest) { slowVersion(r) },
		steps: []drillStep{
			{"Slow or failing", map[string]string{"outcome": "success"}},
			{"Queue, prefill, decode or network", map[string]string{"phase": "decode"}},
			{"Which version", map[string]string{"service_version": "1.5"}},
		},
	},
	{
		model: "server-errors", about: "all requests end with 503",
		alerts: []string{"TokenNearTotalBreach", "TokenSLOFastBurn"},
		wrong:  func(_ int, r *llmRequest) { r.failure = "503" },
		steps: []drillStep{
			{"Slow or failing", map[string]string{"outcome": "error"}},
			{"Which errors", map[string]string{"cause": "server", "error_type": "503"}},
		},
	},
	{
		model: "tenant-errors", about: "all requests of a new tenant fail, on seven of nine engines",
		alerts: []string{"TokenNearTotalBreach"},
		wrong: func(engine int, r *llmRequest) {
			if engine <= 7 {
				r.tenant, r.failure = "globex", "500"
			}
		},
		steps: []drillStep{
			{"Slow or failing", map[string]string{"outcome": "error"}},
			{"Which errors", map[string]string{"cause": "server", "error_type": "500"}},
			{"Which tenant", map[string]string{"tenant_id": "globex"}},
		},
	},
	{
		model: "wrong-key", about: "a wrong API key in a loop",
		alerts: []string{"TokenClientErrors"},
		wrong:  func(_ int, r *llmRequest) { r.failure = "401" },
		steps: []drillStep{
			{"Which errors", map[string]string{"cause": "client", "error_type": "401"}},
		},
	},
	{
		model: "lost-coverage", about: "a proxy holds all answers back",
		alerts: []string{"TokenCoverageLost"},
		wrong:  func(_ int, r *llmRequest) { r.perToken = 0 }, // a proxy holds the answer back
		steps: []drillStep{
			{"Which requests cannot be judged", map[string]string{"gen_ai_request_model": "lost-coverage"}},
			{"Why they cannot be judged", map[string]string{"indicator": "time_per_output_token", "reason": "buffered"}},
		},
	},
}

// moreForDrill extends moreForQueries. One slow engine of nine is a ninth of the requests.
const moreForDrill = `
processors:
  token_latency:
    slos:
      - {name: chat-tpot, indicator: time_per_output_token, threshold: 100ms, match: {tokenpulse.vantage: client}}
      - {name: strict-tpot, indicator: time_per_output_token, threshold: 100ms, match: {tokenpulse.vantage: client, gen_ai.request.model: slow-engine}}
exporters:
  token_sli:
    objectives: [{slo: chat-tpot, objective: 0.95}, {slo: strict-tpot, objective: 0.999}]
`

// Each incident raises the right page, whose link leads to queries of the runbook that name the
// cause, with native histograms and with classic buckets. All durations are a hundredth of real
// ones, those in the queries too.
func TestDrill_EveryIncidentLeadsFromThePageToItsCause(t *testing.T) {
	t.Parallel()
	setups := installedSetups(t)
	rules, err := os.ReadFile(prometheusExample(t, "rules.yaml"))
	require.NoError(t, err)
	c, servers, pages := startForQueries(t, moreForDrill), map[string]*promserver.Server{}, map[string]*onCall{}
	for name, setup := range setups {
		noSelfMetrics := collector.FreeAddress(t)
		servers[name], pages[name] = startPaging(t, c, noSelfMetrics, setup.flags)
	}
	begin, healthy := time.Now(), time.Duration(scaled(t, "1h"))+2*time.Duration(scaled(t, "5m"))
	sendDrill(t, c, begin, healthy)
	for name := range setups {
		servers[name].WaitUntil(t, `count_over_time(up{job="tokenpulse"}[1h])`)
	}

	type place struct {
		setup string
		incident
	}
	var open []place
	for setup := range setups {
		for _, i := range drill {
			open = append(open, place{setup, i})
		}
	}
	for len(open) > 0 {
		require.Less(t, time.Since(begin), healthy+2*collector.Patience, "no page for %v", open)
		time.Sleep(100 * time.Millisecond)
		open = slices.DeleteFunc(open, func(p place) bool {
			defined := slices.IndexFunc(p.alerts, func(name string) bool { return strings.Contains(string(rules), "alert: "+name+"\n") })
			page := pages[p.setup].about(p.model)
			if defined >= 0 && page == nil {
				return false
			}
			t.Run(p.setup+", "+p.model, func(t *testing.T) {
				if defined < 0 {
					t.Skipf("rules.yaml has no alert %s", p.alerts)
				}
				late := time.Since(begin.Add(healthy))
				require.Equal(t, p.alerts[defined], page.Labels["alertname"])
				t.Logf("%s after %.1f s, which stand for %.0f min", page.Labels["alertname"], late.Seconds(), late.Minutes()*timesFaster)
				require.Contains(t, markdown.Read(t, "docs/runbook.md"), fmt.Sprintf("| %s | [%s](#%s) | ", p.about, page.Labels["alertname"], strings.ToLower(page.Labels["alertname"])))
				linked := queriesLinkedFrom(t, page.Annotations["runbook_url"])
				for _, s := range p.steps {
					require.Contains(t, linked, s.query, "the runbook does not lead to the query")
					requireFinding(t, servers[p.setup], *page, s)
				}
			})
			return true
		})
	}
}

// sendDrill sends the requests of all models until the test ends. What goes wrong begins after a
// while.
func sendDrill(t *testing.T, c *collector.Collector, begin time.Time, healthy time.Duration) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	t.Cleanup(func() { cancel(); <-done })
	go func() {
		defer close(done)
		for number := 0; ctx.Err() == nil; {
			var events strings.Builder
			for _, i := range drill {
				for engine := 1; engine <= 9; engine++ {
					r := llmRequest{
						lane: lane{model: i.model, tenant: "acme", engine: fmt.Sprintf("engine-%d", engine)}, number: number,
						service: "service-" + i.model, version: "1.4", network: 100 * time.Millisecond, perToken: 50 * time.Millisecond,
					}
					if time.Since(begin) > healthy {
						i.wrong(engine, &r)
					}
					r.start = time.Since(begin) - r.end()
					r.write(&events, begin)
					number++
				}
			}
			answer, err := http.Post("http://"+c.HTTP+"/v1/tokens", "application/x-ndjson", strings.NewReader(events.String()))
			if err != nil {
				t.Error(err)
				return
			}
			_ = answer.Body.Close()
			select {
			case <-ctx.Done():
			case <-time.After(500 * time.Millisecond):
			}
		}
	}()
}

// about returns the first page about a model, or about the service that calls it.
func (o *onCall) about(model string) *alert {
	for _, n := range o.received("/page") {
		for _, a := range n.Alerts {
			if a.Labels["gen_ai_request_model"] == model || a.Labels["service_name"] == "service-"+model {
				return &alert{Labels: a.Labels, Annotations: a.Annotations}
			}
		}
	}
	return nil
}

// requireFinding asks a query as a reader does: model and SLO are those of the page. A busy machine
// leaves scrapes out, so that a window of 3 seconds may be empty for a moment.
func requireFinding(t *testing.T, p *promserver.Server, page alert, s drillStep) {
	t.Helper()
	query := strings.NewReplacer("llama-3-70b", page.Labels["gen_ai_request_model"], "chat-tpot", page.Labels["slo"]).Replace(queriesOfPage(t)[s.query])
	query = scaledDurations(t, query)
	var rows []promserver.Result
	require.Eventually(t, func() bool {
		rows = slices.DeleteFunc(p.ResultsAt(t, query, ""), func(row promserver.Result) bool { return !agree(page.Labels, row.Metric) })
		return len(rows) > 0
	}, 3*time.Second, 100*time.Millisecond, "%s: no answer\n%s", s.query, query)
	slices.SortStableFunc(rows, func(a, b promserver.Result) int {
		return cmp.Compare(promserver.Number(t, b.Value), promserver.Number(t, a.Value))
	})
	for name, value := range s.finds {
		require.Equal(t, value, rows[0].Metric[name], "%s: %s\n%s", s.query, name, query)
	}
}

// agree reports whether a page and a row of an answer are about the same requests.
func agree(page, row map[string]string) bool {
	for _, name := range []string{"gen_ai_request_model", "service_name", "vantage", "slo"} {
		if page[name] != "" && row[name] != "" && page[name] != row[name] {
			return false
		}
	}
	return true
}

// queriesLinkedFrom returns the titles of the queries to which an entry of the runbook links, or
// the sections to which it links.
func queriesLinkedFrom(t *testing.T, entry string) (titles []string) {
	t.Helper()
	sections := map[string]string{}
	for _, section := range strings.Split(markdown.Read(t, "docs/runbook.md"), "\n## ")[1:] {
		for anchor := range markdown.Anchors("# " + section) {
			sections[anchor] = section
		}
	}
	_, anchor, _ := strings.Cut(entry, "#")
	require.Contains(t, sections, anchor)
	text := sections[anchor]
	for _, found := range markdown.Link.FindAllStringSubmatch(text, -1) {
		if found[1] == "" {
			text += sections[found[2]]
		}
	}
	for title := range queriesOfPage(t) {
		for anchor := range markdown.Anchors("# " + title) {
			if strings.Contains(text, "(queries.md#"+anchor+")") {
				titles = append(titles, title)
			}
		}
	}
	return titles
}
