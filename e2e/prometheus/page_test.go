// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/e2e/internal/collector"
	"github.com/tokenpulse/tokenpulse/e2e/internal/promserver"
	"github.com/tokenpulse/tokenpulse/internal/series"
	"github.com/tokenpulse/tokenpulse/internal/testenv"
)

// threeObjectives extends examples/quickstart.yaml. Slow tokens miss the first SLO, and
// with it "all". The Collector's own metrics are on.
const threeObjectives = `
processors:
  token_latency:
    slos:
      - {name: tpot, indicator: time_per_output_token, threshold: 3ms}
      - {name: ttft, indicator: time_to_first_token, threshold: 10s}
exporters:
  token_sli:
    objectives:
      - {slo: tpot, objective: 0.99}
      - {slo: ttft, objective: 0.99}
      - {slo: all, objective: 0.99}
service:
  telemetry:
    metrics:
      level: normal
      readers: [{pull: {exporter: {prometheus: {host: 127.0.0.1, port: %s}}}}]
`

// The path of a new user: the Collector, Prometheus and Alertmanager with the files of
// examples/prometheus. One of two models, which two services call, becomes slow. Only
// durations and addresses of the files are changed.
func TestPage_OneSlowModelPagesOnceAndLinksToItsRunbookEntry(t *testing.T) {
	t.Parallel()
	self := collector.FreeAddress(t)
	_, port, _ := strings.Cut(self, ":")
	c := collector.Start(t, collector.Example(t, "quickstart.yaml"), "--config", collector.WriteFile(t, t.TempDir(), "more.yaml", fmt.Sprintf(threeObjectives, port)),
		"--set=service.telemetry.metrics.level=normal")

	server, onCall := startPaging(t, c, self, "native-histograms,exemplar-storage")

	traffic := func(model, timePerToken string) (stop func()) {
		var senders []*collector.Process
		for _, service := range []string{"shop", "search"} {
			senders = append(senders, sendTraffic(t, c, model, timePerToken, "--service", service))
		}
		return func() {
			for _, sender := range senders {
				sender.Stop(t)
			}
		}
	}
	traffic("steady", "2ms")
	stopHealthy := traffic("slowed", "2ms")
	server.WaitUntil(t, `count(count_over_time(tokenpulse_slo:fast_burn{slo="all"}[1h]) >= 5) == 2`)
	server.WaitUntil(t, `count(up == 1) == 2`)
	requireHealthyRules(t, server)
	// In the first hour, a fast burn needs fewer bad requests, and may come before a near-total breach.
	time.Sleep(time.Duration(scaled(t, "1h")))

	stopHealthy()
	stopSlow := traffic("slowed", "4ms")
	require.Eventually(t, func() bool { return len(onCall.received("/page")) > 0 }, 2*collector.Patience, 100*time.Millisecond, "no page")
	// Both windows of "all" are over the limit too, for longer than its alert waits.
	server.WaitUntil(t, `min_over_time(tokenpulse_slo:fast_burn{slo="all", gen_ai_request_model="slowed"}[10s]) > 1`)
	time.Sleep(3 * time.Duration(scaled(t, "5m"))) // further alerts would be sent at the group's next intervals

	stopSlow()
	traffic("slowed", "2ms")
	require.Eventually(t, func() bool { return onCall.received("/page")[len(onCall.received("/page"))-1].Status == "resolved" },
		2*collector.Patience, 100*time.Millisecond, "the page is not resolved")
	time.Sleep(3 * time.Duration(scaled(t, "5m")))

	pages := onCall.received("/page")
	require.Len(t, pages, 2, "one page, and its end: %v", pages)
	require.Equal(t, "firing", pages[0].Status)
	require.Len(t, pages[0].Alerts, 1)
	require.Empty(t, onCall.received("/ticket"))
	page := pages[0].Alerts[0]
	require.Equal(t, map[string]string{
		"alertname": "TokenNearTotalBreach", "severity": "page", "slo": "tpot", "gen_ai_request_model": "slowed",
		"gen_ai_provider_name": "vllm", "vantage": "server", "job": "tokenpulse",
	}, page.Labels)
	requireRunbookEntry(t, "TokenNearTotalBreach", page.Annotations["runbook_url"])
	requireAlertOnPage(t, c, page.Annotations["dashboard_url"])
}

// sendTraffic sends requests to a model until it is stopped or the test ends. All
// succeed. Each has about 150 tokens, so its time per token is near the mean.
func sendTraffic(t *testing.T, c *collector.Collector, model, timePerToken string, more ...string) *collector.Process {
	t.Helper()
	return collector.StartProcess(t, collector.Built(t, "tokenpulse"), append([]string{
		"generate", "--model", model, "--tpot", timePerToken, "--rate", "20", "--prefill", "10ms",
		"--cancel-ratio", "0", "--error-ratio", "0", "--stall-ratio", "0", "--bundle-ratio", "0",
		"--transport", "protobuf", "--endpoint", c.HTTP,
	}, more...)...)
}

// requireHealthyRules checks that each rule was evaluated without an error.
func requireHealthyRules(t *testing.T, p *promserver.Server) {
	t.Helper()
	var answer struct {
		Data struct {
			Groups []struct {
				Rules []struct{ Name, Health string }
			}
		}
	}
	p.Ask(t, "rules", nil, &answer)
	require.NotEmpty(t, answer.Data.Groups)
	for _, group := range answer.Data.Groups {
		for _, rule := range group.Rules {
			require.Equal(t, "ok", rule.Health, rule.Name)
		}
	}
}

// requireAlertOnPage follows the link of an alert to the live page: the API that the page asks has the requests of the
// model alone, also of a range that has ended.
func requireAlertOnPage(t *testing.T, c *collector.Collector, link string) {
	t.Helper()
	address, err := url.Parse(link)
	require.NoError(t, err)
	query := address.Query()
	require.Equal(t, []string{"gen_ai.request.model=slowed"}, query["where"])
	require.Equal(t, "server", query.Get("vantage"))
	end, err := strconv.ParseInt(query.Get("end"), 10, 64)
	require.NoError(t, err)
	require.WithinDuration(t, time.Now(), time.Unix(end, 0), 10*time.Minute)
	query.Set("range", "1h") // the rules of the test have another
	var trends struct {
		Times  []float64
		Groups []struct{ Value string }
	}
	require.NoError(t, json.Unmarshal(collector.Get(t, "http://"+c.Metrics+"/api/v1/trends?"+query.Encode(), ""), &trends))
	require.Len(t, trends.Groups, 1)
	require.Equal(t, "slowed", trends.Groups[0].Value)
	// The API widens a range so that it cuts no slot, and an empty step may begin at its end.
	require.Less(t, trends.Times[len(trends.Times)-1], float64(end)+series.HistorySlot.Seconds())
}

// startPaging starts Prometheus and Alertmanager with the files of examples/prometheus. Only
// durations and addresses of the files are changed.
func startPaging(t *testing.T, c *collector.Collector, self, features string) (*promserver.Server, *onCall) {
	t.Helper()
	prometheusProgram, alertmanagerProgram := testenv.Program(t, "prometheus"), testenv.Program(t, "prometheus-alertmanager")
	onCall, alertmanager := newOnCall(t), collector.FreeAddress(t)
	collector.StartProcess(t, alertmanagerProgram, "--config.file", scaledExample(t, "alertmanager.yaml", "localhost:9095", onCall.address),
		"--storage.path", t.TempDir(), "--web.listen-address", alertmanager, "--cluster.listen-address=").
		WaitFor(t, "http://"+alertmanager+"/-/ready")
	config, err := os.ReadFile(scaledExample(t, "prometheus.yaml",
		"scrape_interval: 1s", "scrape_interval: 500ms", "- rules.yaml", "- "+scaledRules(t),
		"localhost:9093", alertmanager, "localhost:9464", c.Metrics, "localhost:8888", self))
	require.NoError(t, err)
	return promserver.Run(t, prometheusProgram, string(config), "--enable-feature", features), onCall
}

// onCall receives the notifications of Alertmanager.
type onCall struct {
	address       string
	mutex         sync.Mutex
	notifications map[string][]notification // by path
}

type notification struct {
	Status string
	Alerts []struct{ Labels, Annotations map[string]string }
}

func newOnCall(t *testing.T) *onCall {
	t.Helper()
	o := &onCall{notifications: map[string][]notification{}}
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var n notification
		if json.NewDecoder(r.Body).Decode(&n) == nil {
			o.mutex.Lock()
			o.notifications[r.URL.Path] = append(o.notifications[r.URL.Path], n)
			o.mutex.Unlock()
		}
	}))
	t.Cleanup(server.Close)
	o.address = strings.TrimPrefix(server.URL, "http://")
	return o
}

func (o *onCall) received(path string) []notification {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	return o.notifications[path]
}
