// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package pipelines

import (
	"cmp"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/tokenpulse/tokenpulse/e2e/internal/collector"
	"github.com/tokenpulse/tokenpulse/e2e/internal/exposition"
	"github.com/tokenpulse/tokenpulse/e2e/internal/llmservice"
	"github.com/tokenpulse/tokenpulse/e2e/internal/otlpfile"
	"github.com/tokenpulse/tokenpulse/e2e/internal/tokenevents"
	"github.com/tokenpulse/tokenpulse/internal/testenv/reference"
)

// coldConfig writes spans, and their series by the exporter and the connector. It lacks receivers and the pipeline's receiver
// and processors.
const coldConfig = `
connectors:
  token_sli/pushed: &series {dimensions: [service.instance.id, server.port, tokenpulse.cold]}
exporters:
  token_sli: *series
  file/spans: {path: "${env:SPANS_FILE}"}
  file/metrics: {path: "${env:METRICS_FILE}"}
service:
  telemetry: {metrics: {level: none}}
  pipelines:
    traces: {receivers: [%s], processors: [%s], exporters: [file/spans, token_sli, token_sli/pushed]}
    metrics: {receivers: [token_sli/pushed], exporters: [file/metrics]}
`

const coldSLOs = `slos: [{name: warm, indicator: outcome, match: {tokenpulse.cold: "false"}}, {name: cold, indicator: outcome, match: {tokenpulse.cold: "true"}}]`

// coldLatency are the settings of requests whose times the sender chooses.
const (
	coldLatency = `{cold_start: {requests: 3, duration: 10s, idle: 1m}, ` + coldSLOs + `}`
	coldIdle    = time.Minute
	coldTakes   = 500 * time.Millisecond
)

// servedRequest is a request to a replica, at a time since the Collector knows which replicas are cold.
type servedRequest struct {
	replica string
	at      time.Duration
	cold    bool
}

// servedRequests follow from docs/definitions.md.
var servedRequests = []servedRequest{
	{"old", -time.Hour, false}, // before the Collector knows
	{"a", 0, true},
	{"", time.Second, false},
	{"b", time.Second, true},
	{"a", 2 * time.Second, true},
	{"a", 4 * time.Second, true},
	{"a", 9 * time.Second, true}, // the fourth, soon after the first
	{"a", 10 * time.Second, false},
	{"b", 31 * time.Second, true}, // the second, long after the first
	{"b", 61 * time.Second, true},
	{"a", 10*time.Second + coldTakes + coldIdle, false}, // not idle for longer
	{"b", 91 * time.Second, false},
	{"a", 71*time.Second + coldIdle + time.Millisecond, true}, // idle for longer
	{"a", 133 * time.Second, true},
	{"a", 134 * time.Second, true},
	{"a", 142 * time.Second, false},
}

// coldFiles are where a Collector of coldConfig writes.
type coldFiles struct{ spans, metrics string }

func startCold(t *testing.T, receiver, settings, processors, processor string) (*collector.Collector, coldFiles) {
	t.Helper()
	folder := t.TempDir()
	files := coldFiles{filepath.Join(folder, "spans.jsonl"), filepath.Join(folder, "metrics.jsonl")}
	collector.Setenv(t, "SPANS_FILE", files.spans)
	collector.Setenv(t, "METRICS_FILE", files.metrics)
	config := fmt.Sprintf("receivers:\n  %s: %s\nprocessors: {%s}\n", receiver, settings, processor) + fmt.Sprintf(coldConfig, receiver, processors)
	return collector.Start(t, collector.WriteFile(t, folder, "cold.yaml", config)), files
}

// A client with the OpenTelemetry SDK sends a span per request.
func TestColdStarts_OfOTLPSpans(t *testing.T) {
	t.Parallel()
	otlp := collector.FreeAddress(t)
	c, files := startCold(t, "otlp", fmt.Sprintf("{protocols: {http: {endpoint: %q}}}", otlp), "token_latency", "token_latency: "+coldLatency)
	known := time.Now().Add(coldIdle)
	client, err := otlptracehttp.New(t.Context(), otlptracehttp.WithEndpoint(otlp), otlptracehttp.WithInsecure())
	require.NoError(t, err)
	for _, r := range servedRequests {
		of := resource.NewSchemaless(attribute.String("service.name", "engine"), attribute.String("service.instance.id", r.replica))
		engine := sdktrace.NewTracerProvider(sdktrace.WithSyncer(client), sdktrace.WithResource(of))
		_, span := engine.Tracer("engine").Start(t.Context(), "chat llama", trace.WithSpanKind(trace.SpanKindServer), trace.WithTimestamp(known.Add(r.at)),
			trace.WithAttributes(attribute.String("gen_ai.operation.name", "chat"), attribute.String("gen_ai.request.model", "llama"),
				attribute.Int("gen_ai.usage.output_tokens", 7), attribute.StringSlice("gen_ai.response.finish_reasons", []string{"stop"})))
		span.End(trace.WithTimestamp(known.Add(r.at + coldTakes)))
		require.NoError(t, engine.ForceFlush(t.Context()))
	}
	requireServed(t, c, files, known)
}

// A service posts the events of a stream per request. The receiver derives the latency itself.
func TestColdStarts_OfTokenEvents(t *testing.T) {
	t.Parallel()
	c, files := startCold(t, "token_stream", "{latency: "+coldLatency+"}", "", "")
	known := time.Now().Add(coldIdle)
	for i, r := range servedRequests {
		var events strings.Builder
		write := tokenevents.EventsOf(&events, strconv.Itoa(i), known.Add(r.at))
		write("start", 0, fmt.Sprintf(`,"resource":{"service.instance.id":%q}`, r.replica))
		write("chunk", coldTakes/2, "")
		write("end", coldTakes, "")
		c.Post(t, "application/x-ndjson", strings.NewReader(events.String()))
	}
	requireServed(t, c, files, known)
}

// requireServed fails unless spans and series say of servedRequests which were cold.
func requireServed(t *testing.T, c *collector.Collector, files coldFiles, known time.Time) {
	t.Helper()
	series := map[string]int{}
	want := map[string]bool{}
	for _, r := range servedRequests {
		series[seriesName(r.replica, r.cold)]++
		want[spanName(r.replica, known.Add(r.at))] = r.cold
	}
	requireColdSeries(t, stopCold(t, c, len(servedRequests)), files, "service.instance.id", series)
	got := map[string]bool{}
	for span, resource := range otlpfile.SpansOfResources(t, files.spans) {
		_, cold := span.Attributes().Get("tokenpulse.cold")
		got[spanName(otlpfile.Text(t, resource, "service.instance.id"), span.StartTimestamp().AsTime())] = cold
	}
	require.Equal(t, want, got)
}

func spanName(replica string, start time.Time) string {
	return fmt.Sprint(replica, " at ", start.UnixNano())
}

// seriesName is the replica and, if they are cold, what requests have in tokenpulse.cold.
func seriesName(replica string, cold bool) string {
	if cold {
		return replica + " true"
	}
	return replica + " "
}

// stopCold returns the scrape that counts all requests, and stops the Collector, which completes its files.
func stopCold(t *testing.T, c *collector.Collector, requests int) map[string]*dto.MetricFamily {
	t.Helper()
	scraped := exposition.WaitForRequests(t, c, requests)
	c.Stop(t)
	return scraped
}

// requireColdSeries fails unless exporter and connector count these requests by replica and coldness, and judge the cold
// ones apart.
func requireColdSeries(t *testing.T, scraped map[string]*dto.MetricFamily, files coldFiles, replica string, want map[string]int) {
	t.Helper()
	bySLO := map[string]int{}
	for name, n := range want {
		bySLO[map[bool]string{true: "cold", false: "warm"}[strings.HasSuffix(name, " true")]] += n
	}
	label := strings.ReplaceAll(replica, ".", "_")
	exported, judged := map[string]int{}, map[string]int{}
	for _, m := range scraped["tokenpulse_requests_total"].GetMetric() {
		exported[exposition.Label(m, label)+" "+exposition.Label(m, "tokenpulse_cold")] += int(m.GetCounter().GetValue())
	}
	for _, m := range scraped["tokenpulse_slo_requests_total"].GetMetric() {
		if slo := exposition.Label(m, "slo"); slo != "all" && exposition.Label(m, "verdict") == "good" {
			judged[slo] += int(m.GetCounter().GetValue())
		}
	}
	require.Equal(t, want, exported)
	require.Equal(t, bySLO, judged)

	pushed, judged := map[string]int{}, map[string]int{}
	metrics := lastMetrics(t, files.metrics)
	for _, point := range metrics["tokenpulse.requests"].Sum().DataPoints().All() {
		pushed[textOf(point.Attributes(), replica)+" "+textOf(point.Attributes(), "tokenpulse.cold")] += int(point.IntValue())
	}
	for _, point := range metrics["tokenpulse.slo.requests"].Sum().DataPoints().All() {
		if slo := textOf(point.Attributes(), "slo"); slo != "all" && textOf(point.Attributes(), "verdict") == "good" {
			judged[slo] += int(point.IntValue())
		}
	}
	require.Equal(t, want, pushed)
	require.Equal(t, bySLO, judged)
}

// textOf returns a label, or nothing if a data point has none.
func textOf(attributes pcommon.Map, name string) string {
	v, ok := attributes.Get(name)
	if !ok {
		return ""
	}
	return v.AsString()
}

// Requests pass the tap one after the other, in real time: to two engines, and to one of them again after an idle time. A
// busy machine may pause for longer than that, so a recount from the times on the spans says which are cold.
func TestColdStarts_BehindTheTap(t *testing.T) {
	t.Parallel()
	const idle, first = 3 * time.Second, 3
	var routes []string
	for i := range 2 {
		engine := llmservice.Start(t, func(w http.ResponseWriter, _ *http.Request) {
			llmservice.WriteChunks(w, 2)
			_, _ = io.WriteString(w, llmservice.ChatEnd)
		})
		routes = append(routes, fmt.Sprintf(`{prefix: /engine-%d, upstream: {endpoint: %q}}`, i, engine.URL))
	}
	tap := collector.FreeAddress(t)
	c, files := startCold(t, "token_tap", fmt.Sprintf(`{endpoint: %q, routes: [%s]}`, tap, strings.Join(routes, ", ")),
		"token_latency", fmt.Sprintf("token_latency: {cold_start: {requests: %d, duration: 0, idle: %s}, %s}", first, idle, coldSLOs))
	began, asked := time.Now(), 0
	ask := func(engine, times int) {
		for range times {
			answer, err := http.Post(fmt.Sprintf("http://%s/engine-%d%s", tap, engine, llmservice.ChatPath), "application/json", strings.NewReader(llmservice.ChatAsked))
			require.NoError(t, err)
			_, err = io.Copy(io.Discard, answer.Body)
			require.NoError(t, err)
			require.NoError(t, answer.Body.Close())
			asked++
		}
	}
	time.Sleep(idle) // the Collector knows which engines are cold only then
	ask(0, first+3)
	ask(1, first-1)
	exposition.WaitForRequests(t, c, asked) // so they have ended
	time.Sleep(idle + 10*time.Millisecond)
	ask(0, first+3)
	scraped := stopCold(t, c, asked)

	byEngine := map[string][]reference.Interval{}
	for span := range otlpfile.SpansOfResources(t, files.spans) {
		port := textOf(span.Attributes(), "server.port")
		byEngine[port] = append(byEngine[port], reference.Interval{Start: span.StartTimestamp().AsTime(), End: span.EndTimestamp().AsTime()})
	}
	require.Len(t, byEngine, 2)
	series, want := map[string]int{}, map[string]bool{}
	for port, served := range byEngine {
		slices.SortFunc(served, func(a, b reference.Interval) int { return cmp.Compare(a.Start.UnixNano(), b.Start.UnixNano()) })
		for i, cold := range reference.ColdStarts(served, began, first, 0, idle) {
			series[seriesName(port, cold)]++
			want[spanName(port, served[i].Start)] = cold
			if i%(first+3) < first { // the first ones, also after the idle time
				require.True(t, cold, "request %d to port %s", i, port)
			}
		}
	}
	require.Len(t, series, 3, "one engine has no request that is not cold")
	requireColdSeries(t, scraped, files, "server.port", series)
	got := map[string]bool{}
	for span := range otlpfile.SpansOfResources(t, files.spans) {
		_, cold := span.Attributes().Get("tokenpulse.cold")
		got[spanName(textOf(span.Attributes(), "server.port"), span.StartTimestamp().AsTime())] = cold
	}
	require.Equal(t, want, got)
}
