// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/e2e/internal/collector"
	"github.com/tokenpulse/tokenpulse/e2e/internal/exposition"
	"github.com/tokenpulse/tokenpulse/e2e/internal/llmservice"
	"github.com/tokenpulse/tokenpulse/e2e/internal/promserver"
	"github.com/tokenpulse/tokenpulse/e2e/internal/tokenevents"
	"github.com/tokenpulse/tokenpulse/internal/testenv"
)

// The bands of streams that hang, as the rules and docs/queries.md select them.
var (
	hangingBand       = regexp.MustCompile(`^(60s|\+Inf)$`)
	firstTokenOverdue = regexp.MustCompile(`^\+Inf$`)
)

// openStreams returns the streams of a vantage in a phase: those in some bands, and the others.
func openStreams(families map[string]*dto.MetricFamily, vantage, phase string, bands *regexp.Regexp) (hanging, others int) {
	for _, m := range families["tokenpulse_streams_open"].GetMetric() {
		labels := map[string]string{}
		for _, l := range m.GetLabel() {
			labels[l.GetName()] = l.GetValue()
		}
		switch n := int(m.GetGauge().GetValue()); {
		case labels["vantage"] != vantage || labels["phase"] != phase:
		case bands.MatchString(labels["silent"]):
			hanging += n
		default:
			others += n
		}
	}
	return hanging, others
}

// waitForDecoding waits until a scrape has these streams, and returns it.
func waitForDecoding(t *testing.T, c *collector.Collector, vantage string, hanging, others int) (scraped map[string]*dto.MetricFamily) {
	t.Helper()
	require.Eventually(t, func() bool {
		scraped = exposition.Scrape(t, c)
		gotHanging, gotOthers := openStreams(scraped, vantage, "decode", hangingBand)
		return gotHanging == hanging && gotOthers == others
	}, collector.Patience, 100*time.Millisecond, "%d hanging streams, %d others", hanging, others)
	return scraped
}

// streamsInTwoWays shows the streams of two receivers in an exporter and in a connector.
const streamsInTwoWays = `
receivers:
  token_stream: {idle_timeout: 5m}
  token_tap: {endpoint: %q, upstream: {endpoint: %q}}
processors:
  token_latency:
connectors:
  token_sli/flushed: {metrics: {tokenpulse.streams.open: {enabled: true}}}
exporters:
  token_sli:
  prometheus: {endpoint: %q, without_scope_info: true}
service:
  telemetry: {metrics: {level: none}}
  pipelines:
    traces: {receivers: [token_stream, token_tap], processors: [token_latency], exporters: [token_sli, token_sli/flushed]}
    metrics: {receivers: [token_sli/flushed], exporters: [prometheus]}
`

// Prometheus runs with the files of examples/prometheus, of which only addresses are changed. A service
// behind the tap stops in mid-answer, and so does one of three streams of token_stream.
func TestStreamsOpen_AlertWhileStreamsHang(t *testing.T) {
	t.Parallel()
	program := testenv.Program(t, "prometheus")
	goesOn, tap, flushed := make(chan struct{}), collector.FreeAddress(t), collector.FreeAddress(t)
	upstream := llmservice.Start(t, func(w http.ResponseWriter, r *http.Request) {
		llmservice.WriteChunks(w, 1)
		for {
			select {
			case <-goesOn:
				llmservice.WriteChunks(w, 1)
			case <-r.Context().Done(): // the Collector is gone
				return
			}
		}
	})
	c := collector.Start(t, collector.WriteFile(t, t.TempDir(), "streams.yaml", fmt.Sprintf(streamsInTwoWays, tap, upstream.URL, flushed)))
	shipped, err := os.ReadFile(prometheusExample(t, "prometheus.yaml"))
	require.NoError(t, err)
	server := promserver.Run(t, program, strings.NewReplacer(
		"rules.yaml", prometheusExample(t, "rules.yaml"), "localhost:9464", c.Metrics, "localhost:8888", flushed,
	).Replace(string(shipped)), "--enable-feature", "native-histograms,exemplar-storage")

	events := func(kind, more string, streams ...string) {
		var all strings.Builder
		for _, stream := range streams {
			tokenevents.EventsOf(&all, stream, time.Now())(kind, 0, more)
		}
		c.Post(t, "application/x-ndjson", strings.NewReader(all.String()))
	}
	events("start", `,"vantage":"client","attributes":{"gen_ai.request.model":"partly"}`, "hangs", "goes on", "goes on, too")
	events("chunk", "", "hangs", "goes on", "goes on, too")
	response, err := http.Post("http://"+tap+llmservice.ChatPath, "application/json", strings.NewReader(strings.ReplaceAll(llmservice.ChatAsked, "asked", longModel)))
	require.NoError(t, err)
	defer response.Body.Close()
	go func() { _, _ = io.Copy(io.Discard, response.Body) }()
	waitForDecoding(t, c, "gateway", 0, 1)
	stopped := time.Now()
	alerts := func() (all []string) {
		for _, job := range []string{"tokenpulse", "tokenpulse-self"} {
			for _, alert := range alertsNamed(t, server, "TokenStreamsSilent") {
				if l := alert.Labels; l["job"] == job && alert.State == "firing" {
					all = append(all, strings.Join([]string{job, l["severity"], l["vantage"], l["gen_ai_request_model"], alert.Annotations["summary"]}, " "))
				}
			}
		}
		slices.Sort(all)
		return all
	}
	waitFor := func(limit time.Duration, everySecond func(), want ...string) {
		t.Helper()
		since := time.Now()
		for ; !slices.Equal(alerts(), want); time.Sleep(time.Second) {
			require.Less(t, time.Since(since), limit, "alerts %q, want %q", alerts(), want)
			everySecond()
		}
		t.Logf("alerts %q after %v", want, time.Since(since))
	}
	require.Eventually(t, func() bool {
		return strings.Contains(string(collector.Get(t, c.MetricsURL(), "text/plain")),
			`tokenpulse_streams_open{gen_ai_operation_name="chat",gen_ai_provider_name="openai",gen_ai_request_model="`+longModel+`",phase="decode",service_name="unknown_service",silent="15s",vantage="gateway"} 1`)
	}, 10*time.Second, 100*time.Millisecond, "the gauge within 10 seconds")

	page := func(job string) string {
		return job + " page gateway " + longModel + " 100% of the streams hang, model " + longModel
	}
	ticket := func(job string) string {
		return job + " ticket client partly 33.33% of the streams hang, model partly"
	}
	const scraped, fromConnector = "tokenpulse", "tokenpulse-self"
	waitFor(90*time.Second, func() { events("chunk", "", "goes on", "goes on, too") },
		page(scraped), ticket(scraped), page(fromConnector), ticket(fromConnector))
	limits := map[string]time.Duration{scraped: 15*time.Second + time.Minute, fromConnector: 15*time.Second + 75*time.Second}
	for _, alert := range alertsNamed(t, server, "TokenStreamsSilent") {
		since := alert.ActiveAt.Sub(stopped)
		t.Logf("%v fires after %v", alert.Labels, since)
		require.Greater(t, since, 15*time.Second)
		require.LessOrEqual(t, since, limits[alert.Labels["job"]])
		address, err := url.Parse(alert.Annotations["dashboard_url"])
		require.NoError(t, err)
		var now struct {
			Silent int `json:"silent_streams"`
		}
		c.AskPage(t, "now?"+address.RawQuery, &now)
		require.Positive(t, now.Silent, "the page that %s opens", address)
	}
	waitFor(75*time.Second, func() {
		events("chunk", "", "hangs", "goes on", "goes on, too")
		goesOn <- struct{}{}
	})
}

const streamsOfReplicas = `
receivers:
  token_stream:
processors:
  token_latency:
exporters:
  token_sli: {dimensions: [gen_ai.request.model, server.address]}
service:
  telemetry: {metrics: {level: none}}
  pipelines:
    traces: {receivers: [token_stream], processors: [token_latency], exporters: [token_sli]}
`

// One replica of twenty answers nothing, and alerts by its name. The streams of a model whose prompts are
// long wait as long, and raise no alert, whatever form of histograms Prometheus stores.
func TestStreamsOpen_AlertOnTheReplicaThatBeginsNoAnswer(t *testing.T) {
	t.Parallel()
	c := collector.Start(t, collector.WriteFile(t, t.TempDir(), "replicas.yaml", streamsOfReplicas))
	shipped, err := os.ReadFile(prometheusExample(t, "prometheus.yaml"))
	require.NoError(t, err)
	config := strings.NewReplacer("rules.yaml", prometheusExample(t, "rules.yaml"), "localhost:9464", c.Metrics, "localhost:8888", collector.FreeAddress(t)).Replace(string(shipped))
	servers := map[string]*promserver.Server{}
	for name, setup := range installedSetups(t) {
		servers[name] = promserver.Run(t, setup.program, config, "--enable-feature", setup.flags)
	}
	start := func(to io.Writer, stream, requested, server string, at time.Time) tokenevents.Writer {
		event := tokenevents.EventsOf(to, stream, at)
		event("start", 0, fmt.Sprintf(`,"vantage":"client","attributes":{"gen_ai.request.model":%q,"server.address":%q}`, requested, server))
		return event
	}
	const healthy, waiting = 19, 5
	var events strings.Builder
	for i := range healthy {
		start(&events, fmt.Sprint("decodes-", i), "of-twenty", fmt.Sprint("engine-", i), time.Now())
	}
	for i := range waiting {
		start(&events, fmt.Sprint("hangs-", i), "of-twenty", "dead", time.Now())
		start(&events, fmt.Sprint("prefills-", i), "long-prompts", "engine-1", time.Now())
	}
	firing := func(p *promserver.Server) (all []string) {
		for _, alert := range alertsNamed(t, p, "TokenStreamsSilent") {
			all = append(all, alert.State+" "+alert.Labels["severity"]+": "+alert.Annotations["summary"])
		}
		return all
	}
	done := map[string]bool{}
	for began, second := time.Now(), 0; len(done) < len(servers); second++ {
		for i := range healthy {
			tokenevents.EventsOf(&events, fmt.Sprint("decodes-", i), time.Now())("chunk", 0, "")
		}
		event := start(&events, fmt.Sprint("answered-", second), "long-prompts", "engine-1", time.Now().Add(-time.Minute))
		event("chunk", 50*time.Second, "")
		event("end", time.Minute, "")
		c.Post(t, "application/x-ndjson", strings.NewReader(events.String()))
		events.Reset()
		time.Sleep(time.Second)
		for name, server := range servers {
			if alerts := firing(server); len(alerts) > 0 {
				require.Equal(t, []string{"firing page: 100% of the streams hang at dead, model of-twenty"}, alerts, name)
				done[name] = true
			}
		}
		require.Less(t, time.Since(began), 3*time.Minute, "alerts of %v", done)
	}
}

type alert struct {
	State               string
	Labels, Annotations map[string]string
	ActiveAt            time.Time
}

// alertsNamed returns the pending and firing alerts with a name.
func alertsNamed(t *testing.T, p *promserver.Server, name string) []alert {
	t.Helper()
	var answer struct {
		Data struct{ Alerts []alert }
	}
	p.Ask(t, "alerts", nil, &answer)
	var named []alert
	for _, alert := range answer.Data.Alerts {
		if alert.Labels["alertname"] == name {
			named = append(named, alert)
		}
	}
	return named
}
