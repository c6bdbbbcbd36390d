// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package pipelines

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/e2e/internal/collector"
	"github.com/tokenpulse/tokenpulse/e2e/internal/otlpfile"
)

// eventSpans extends examples/slo-events.yaml: it also writes the spans.
const eventSpans = `
receivers:
  token_stream:
    idle_timeout: 500ms
connectors:
  token_sli:
    metrics_flush_interval: ${env:FLUSH_INTERVAL}
exporters:
  file/spans: {path: "${env:SPANS_FILE}", flush_interval: 50ms}
  file/events: {flush_interval: 50ms}
  file/metrics: {flush_interval: 50ms}
service:
  pipelines:
    traces:
      exporters: [token_sli, file/spans]
`

// eventSLOs and eventObjectives are those of examples/slo-events.yaml. The thresholds are
// those of examples/slo-sampling.yaml.
var (
	eventSLOs       = []string{"chat-ttft", "chat-tpot", "steady"}
	eventObjectives = map[string]float64{"chat-ttft": 0.95, "chat-tpot": 0.95, "steady": 0.99, "all": 0.9}
)

// burnAlert is an alert of the connector.
type burnAlert struct {
	severity, long, short string
	factor                float64
}

// nearTotal fires if the share of bad requests of 5 minutes is above 1 - objective / 2.
const nearTotal = "near_total_breach"

// alerts are the multiwindow burn-rate alerts of the Site Reliability Workbook.
var alerts = map[string]burnAlert{
	"fast_burn":   {"page", "1h", "5m", 14.4},
	"slow_burn":   {"page", "6h", "30m", 6},
	"steady_burn": {"ticket", "3d", "6h", 1},
}

// condition identifies an alert of one objective of one series.
type condition struct{ series, slo, alert string }

// Each request that breaches an SLO causes one event. So does each alert whose condition
// starts or stops being true, also across restarts.
func TestExampleSLOEvents_OnePerBreachAndPerChangeOfAnAlert(t *testing.T) {
	t.Parallel()
	collector.ExampleEnvironment(t)
	collector.Setenv(t, "STORAGE_DIRECTORY", filepath.Join(t.TempDir(), "made", "by", "it"))
	extra := collector.WriteFile(t, t.TempDir(), "spans.yaml", eventSpans)

	// The first Collector evaluates the conditions once, when it stops.
	c := startWithEvents(t, extra, "30m")
	for _, flags := range [][]string{
		{"--service", "fine", "--model", "quick=10", "--cancel-ratio", "0", "--error-ratio", "0", "--stall-ratio", "0"},
		{"--service", "mixed", "--model", "quick=10", "--model", "middling=1", "--model", "slow=0.7", "--incomplete-ratio", "0.05", "--one-token-ratio", "0.1", "--reasoning-only-ratio", "0.1"},
		{"--service", "sick", "--model", "slow=0.3", "--cancel-ratio", "0.2", "--error-ratio", "0.2", "--incomplete-ratio", "0.05", "--reasoning-only-ratio", "0.1"},
	} {
		c.generate(t, 600, flags...)
	}
	postSpanWithText(t)
	c.Stop(t)
	all := c.readSpans(t)
	require.Len(t, all, 3*600+1)
	c.requireBreaches(t, all)
	first, burning := holding(t, all)
	requireVariety(t, first, burning)
	held, changes := c.requireAlerts(t, nil, burning)
	require.Equal(t, first, held)
	require.Len(t, first, changes, "each condition starts once")

	// The second Collector restores the conditions and sends no events for them. Then one
	// service recovers, and another one starts to breach.
	c = startWithEvents(t, extra, "50ms")
	c.waitForFlushes(t)
	require.Empty(t, c.readEvents(t), "events for conditions from before the restart")
	c.generate(t, 3000, "--service", "sick", "--model", "slow=10", "--cancel-ratio", "0", "--error-ratio", "0", "--stall-ratio", "0")
	c.generate(t, 600, "--service", "late", "--model", "slow=0.3")
	c.settle(t, 3600)
	since := c.readSpans(t)
	c.requireBreaches(t, since)
	second, _ := holding(t, append(all, since...))
	requireChange(t, first, second)
	held, changes = c.requireAlerts(t, first, nil)
	for this := range first { // a near total breach goes on for 5 minutes
		if this.alert == nearTotal {
			second[this] = true
		}
	}
	for this := range second { // the fast burn may have started before the 20th request
		if this.alert == nearTotal {
			delete(held, condition{this.series, this.slo, "fast_burn"})
			delete(second, condition{this.series, this.slo, "fast_burn"})
		}
	}
	require.Equal(t, second, held)
	c.waitForFlushes(t)
	c.Kill(t)
	_, later := c.requireAlerts(t, first, nil)
	require.Equal(t, changes, later, "an unchanged condition causes an event")

	// The third Collector does the same after the second one was killed.
	c = startWithEvents(t, extra, "50ms")
	c.waitForFlushes(t)
	c.Stop(t)
	require.Empty(t, c.readEvents(t), "events for conditions from before the kill")
}

// eventCollector runs examples/slo-events.yaml, and has its own output files.
type eventCollector struct {
	*collector.Collector
	spans, events, metrics string
}

func startWithEvents(t *testing.T, extra, interval string) *eventCollector {
	t.Helper()
	folder := t.TempDir()
	c := &eventCollector{
		spans: filepath.Join(folder, "spans.jsonl"), events: filepath.Join(folder, "events.jsonl"), metrics: filepath.Join(folder, "metrics.jsonl"),
	}
	collector.Setenv(t, "SPANS_FILE", c.spans)
	collector.Setenv(t, "EVENTS_FILE", c.events)
	collector.Setenv(t, "METRICS_FILE", c.metrics)
	collector.Setenv(t, "FLUSH_INTERVAL", interval)
	c.Collector = collector.StartPushing(t, collector.Example(t, "slo-events.yaml"), "--config", extra)
	c.WaitForListener(t, collector.Getenv(t, "OTLP_HTTP_ENDPOINT"))
	return c
}

func (c *eventCollector) generate(t *testing.T, requests int, flags ...string) {
	t.Helper()
	collector.Run(t, collector.Built(t, "tokenpulse"), append([]string{
		"generate", "--fast", "--requests", strconv.Itoa(requests), "--rate", "100", "--seed", "7", "--transport", "protobuf", "--endpoint", c.HTTP,
	}, flags...)...)
}

// textOfUser stands for the text of a prompt. Events must not contain it.
const textOfUser = "text of a user's prompt"

// postSpanWithText sends a span that contains a prompt, of a request that breaches an
// SLO.
func postSpanWithText(t *testing.T) {
	t.Helper()
	now := time.Now()
	collector.PostSpans(t, collector.Getenv(t, "OTLP_HTTP_ENDPOINT"), "application/json", fmt.Appendf(nil, `{
"resourceSpans": [{
  "resource": {"attributes": [{"key": "service.name", "value": {"stringValue": "keeps-prompts"}}]},
  "scopeSpans": [{"spans": [{
    "traceId": "0af7651916cd43dd8448eb211c80319c", "spanId": "b7ad6b7169203331", "name": "chat m", "kind": 3,
    "startTimeUnixNano": "%d", "endTimeUnixNano": "%d",
    "events": [{"name": "gen_ai.user.message", "timeUnixNano": "%[1]d", "attributes": [{"key": "content", "value": {"stringValue": %[3]q}}]}],
    "attributes": [
      {"key": "gen_ai.operation.name", "value": {"stringValue": "chat"}},
      {"key": "gen_ai.provider.name", "value": {"stringValue": "openai"}},
      {"key": "gen_ai.request.model", "value": {"stringValue": "m"}},
      {"key": "gen_ai.response.time_to_first_chunk", "value": {"doubleValue": 3.5}},
      {"key": "gen_ai.input.messages", "value": {"stringValue": %[3]q}},
      {"key": "gen_ai.prompt.0.content", "value": {"stringValue": %[3]q}},
      {"key": "gen_ai.completion.0.content", "value": {"stringValue": %[3]q}}]
  }]}]
}]}`, now.Add(-5*time.Second).UnixNano(), now.UnixNano(), textOfUser))
}

// waitForFlushes waits until the connector has sent twenty more batches of metrics. It
// evaluates alerts with each batch.
func (c *eventCollector) waitForFlushes(t *testing.T) {
	t.Helper()
	batches := func() int {
		written, _ := os.ReadFile(c.metrics)
		return bytes.Count(written, []byte("\n"))
	}
	before := batches()
	require.Eventually(t, func() bool { return batches() >= before+20 }, collector.Patience, 50*time.Millisecond, "the connector does not flush")
}

// settle waits until all spans are written, and then twenty flushes for their events.
func (c *eventCollector) settle(t *testing.T, spans int) {
	t.Helper()
	require.Eventually(t, func() bool {
		written, err := os.ReadFile(c.spans)
		return err == nil && bytes.Count(written, []byte(`"spanId"`)) >= spans && bytes.HasSuffix(written, []byte("\n"))
	}, collector.Patience, 100*time.Millisecond, "spans are missing")
	c.waitForFlushes(t)
}

// judgedSpan is a span with its resource and its recounted verdicts.
type judgedSpan struct {
	ptrace.Span
	resource pcommon.Map
	verdicts map[string]string
}

func (c *eventCollector) readSpans(t *testing.T) (spans []judgedSpan) {
	t.Helper()
	for span, resource := range otlpfile.SpansOfResources(t, c.spans) {
		spans = append(spans, judgedSpan{span, resource, recount(t, span)})
	}
	return spans
}

// sloEvent is a log record with its resource.
type sloEvent struct {
	plog.LogRecord
	resource pcommon.Map
}

func (c *eventCollector) readEvents(t *testing.T) (events []sloEvent) {
	t.Helper()
	written, err := os.ReadFile(c.events)
	require.NoError(t, err)
	for line := range bytes.Lines(written) {
		logs, err := (&plog.JSONUnmarshaler{}).UnmarshalLogs(line)
		require.NoError(t, err)
		for _, resource := range logs.ResourceLogs().All() {
			for _, scope := range resource.ScopeLogs().All() {
				for _, record := range scope.LogRecords().All() {
					events = append(events, sloEvent{record, resource.Resource().Attributes()})
				}
			}
		}
	}
	return events
}

// requireBreaches checks that each span with a breach has exactly one event, and other
// spans have none. An event has the expected attributes only, and no text of users.
func (c *eventCollector) requireBreaches(t *testing.T, spans []judgedSpan) {
	t.Helper()
	type id struct {
		trace pcommon.TraceID
		span  pcommon.SpanID
	}
	events := map[id]sloEvent{}
	for _, e := range c.readEvents(t) {
		if e.EventName() == "tokenpulse.slo.breach" {
			require.NotContains(t, events, id{e.TraceID(), e.SpanID()}, "two events of one span")
			events[id{e.TraceID(), e.SpanID()}] = e
		}
	}
	measured, missing := 0, 0
	for _, span := range spans {
		e, found := events[id{span.TraceID(), span.SpanID()}]
		delete(events, id{span.TraceID(), span.SpanID()})
		want := map[string]any{}
		for _, name := range []string{"tokenpulse.vantage", "tokenpulse.outcome", "gen_ai.provider.name", "gen_ai.request.model", "gen_ai.operation.name"} {
			want[name] = otlpfile.Text(t, span.Attributes(), name)
		}
		var slos, breaches []any
		var body []string
		for _, slo := range eventSLOs {
			if span.verdicts[slo] != "bad" {
				continue
			}
			limit := thresholds[slo]
			indicator := strings.TrimPrefix(limit.attribute, "tokenpulse.")
			breach := map[string]any{"slo": slo, "indicator": indicator, "threshold": limit.seconds}
			if value, known := span.Attributes().Get(limit.attribute); known {
				measured++
				breach["value"] = value.Double()
				body = append(body, fmt.Sprintf("%s breached: %s is %v, over %v", slo, indicator, value.Double(), limit.seconds))
			} else {
				missing++
				body = append(body, fmt.Sprintf("%s breached: no %s", slo, indicator))
			}
			slos, breaches = append(slos, slo), append(breaches, breach)
		}
		require.Equal(t, len(slos) > 0, found, "%s", span.TraceID())
		if !found {
			continue
		}
		want["tokenpulse.slo.breached"], want["tokenpulse.slo.breaches"] = slos, breaches
		require.Equal(t, want, e.Attributes().AsRaw())
		require.Equal(t, span.resource.AsRaw(), e.resource.AsRaw())
		require.Equal(t, strings.Join(body, "; "), e.Body().Str())
		require.Equal(t, span.EndTimestamp(), e.Timestamp())
		require.Equal(t, plog.SeverityNumberWarn, e.SeverityNumber())
	}
	require.Empty(t, events, "events of requests without a breach")
	t.Logf("%d breaches measured, %d without the indicator", measured, missing)
	require.Positive(t, measured)
	require.Positive(t, missing)
	written, err := os.ReadFile(c.events)
	require.NoError(t, err)
	require.NotContains(t, string(written), textOfUser)
}

// holding returns the conditions that are true after these requests, and the burn rate
// of each objective. All requests are within the shortest window, so burn rates are
// equal over all windows.
func holding(t *testing.T, spans []judgedSpan) (hold map[condition]bool, burning map[[2]string]float64) {
	t.Helper()
	type counts struct{ good, bad float64 }
	judged := map[[2]string]*counts{} // by series and SLO
	for _, span := range spans {
		service, _ := span.resource.Get("service.name")
		series := seriesNamed(t, service.Str(), span.Attributes())
		count := func(slo, verdict string) {
			key := [2]string{series, slo}
			if judged[key] == nil {
				judged[key] = &counts{}
			}
			switch verdict {
			case "good":
				judged[key].good++
			case "bad":
				judged[key].bad++
			}
		}
		for slo, verdict := range span.verdicts {
			count(slo, verdict)
		}
		count("all", verdictOnAll(span.Attributes(), span.verdicts))
	}
	hold, burning = map[condition]bool{}, map[[2]string]float64{}
	for key, n := range judged {
		if n.good+n.bad == 0 {
			continue
		}
		allowed := 1 - eventObjectives[key[1]]
		burning[key] = n.bad / (n.good + n.bad) / allowed
		for name, a := range alerts {
			if burning[key] > min(a.factor, 0.9/allowed) {
				hold[condition{key[0], key[1], name}] = true
			}
		}
		if n.good+n.bad >= 20 && n.bad/(n.good+n.bad) > 1-eventObjectives[key[1]]/2 && key[1] != "all" {
			hold[condition{key[0], key[1], nearTotal}] = true
			delete(hold, condition{key[0], key[1], "fast_burn"})
		}
	}
	return hold, burning
}

func seriesNamed(t *testing.T, service string, attributes pcommon.Map) string {
	t.Helper()
	series := []string{service}
	for _, name := range []string{"gen_ai.provider.name", "gen_ai.request.model", "gen_ai.operation.name", "tokenpulse.vantage"} {
		series = append(series, otlpfile.Text(t, attributes, name))
	}
	return strings.Join(series, " ")
}

// requireVariety checks that some objectives have zero, one, two and three true
// conditions, and that some cannot burn as fast as the factor.
func requireVariety(t *testing.T, hold map[condition]bool, burning map[[2]string]float64) {
	t.Helper()
	objectives, capped := map[int]int{}, 0 // by how many conditions hold
	for key, rate := range burning {
		n := 0
		for name := range alerts {
			if hold[condition{key[0], key[1], name}] {
				n++
			}
		}
		objectives[n]++
		if n == len(alerts) && rate < alerts["fast_burn"].factor {
			capped++
		}
	}
	t.Logf("objectives by number of true conditions: %v, %d of them cannot burn as fast as the factor", objectives, capped)
	for n := range len(alerts) + 1 {
		require.Positive(t, objectives[n], "objectives with %d true conditions", n)
	}
	require.Positive(t, capped)
}

// requireChange checks that some conditions started, some ended and some stayed true.
func requireChange(t *testing.T, before, after map[condition]bool) {
	t.Helper()
	started, ended, stayed := 0, 0, 0
	for c := range after {
		if before[c] {
			stayed++
		} else {
			started++
		}
	}
	for c := range before {
		if !after[c] {
			ended++
		}
	}
	t.Logf("%d conditions started, %d ended, %d stayed true", started, ended, stayed)
	require.Positive(t, started)
	require.Positive(t, ended)
	require.Positive(t, stayed)
}

// requireAlerts applies the alert events to the conditions that were true before, and
// checks that each event is a change. It returns the resulting conditions and the number
// of events. If burning is given, events carry these burn rates.
func (c *eventCollector) requireAlerts(t *testing.T, before map[condition]bool, burning map[[2]string]float64) (held map[condition]bool, changes int) {
	t.Helper()
	held = maps.Clone(before)
	if held == nil {
		held = map[condition]bool{}
	}
	for _, e := range c.readEvents(t) {
		if e.EventName() == "tokenpulse.slo.breach" {
			continue
		}
		changes++
		attributes := e.Attributes()
		key := condition{
			series: seriesNamed(t, otlpfile.Text(t, attributes, "service.name"), attributes),
			slo:    otlpfile.Text(t, attributes, "tokenpulse.slo.name"), alert: otlpfile.Text(t, attributes, "tokenpulse.slo.alert.name"),
		}
		a, known := alerts[key.alert]
		if key.alert == nearTotal {
			a, known = burnAlert{severity: "page", long: "5m", short: "5m"}, true
		}
		require.True(t, known, key.alert)
		require.Empty(t, e.resource.AsRaw())
		require.Contains(t, e.Body().Str(), key.slo)
		require.Contains(t, e.Body().Str(), key.alert)
		fields := attributes.AsRaw()
		require.Equal(t, a.severity, fields["tokenpulse.slo.alert.severity"])
		if a.factor > 0 {
			require.InDelta(t, a.factor, fields["tokenpulse.slo.alert.factor"], 0)
		}
		require.Equal(t, a.long, fields["tokenpulse.slo.alert.long_window"])
		require.Equal(t, a.short, fields["tokenpulse.slo.alert.short_window"])
		switch e.EventName() {
		case "tokenpulse.slo.burn.start":
			require.False(t, held[key], "%v starts twice", key)
			held[key] = true
			require.InDelta(t, eventObjectives[key.slo], fields["tokenpulse.slo.objective"], 0)
			long := fields["tokenpulse.slo.alert.long_window.burn_rate"]
			require.InDelta(t, long, fields["tokenpulse.slo.alert.short_window.burn_rate"], 1e-9)
			require.InDelta(t, long, 1-fields["tokenpulse.slo.error_budget.remaining"].(float64), 1e-9)
			require.Greater(t, long, min(a.factor, 0.9/(1-eventObjectives[key.slo])))
			if burning != nil {
				require.InDelta(t, burning[[2]string{key.series, key.slo}], long, 1e-9, "%v", key)
			}
			require.Equal(t, map[string]plog.SeverityNumber{"page": plog.SeverityNumberError, "ticket": plog.SeverityNumberWarn}[a.severity], e.SeverityNumber())
		case "tokenpulse.slo.burn.end":
			require.True(t, held[key], "%v ends without a start", key)
			delete(held, key)
			require.Equal(t, plog.SeverityNumberInfo, e.SeverityNumber())
		default:
			require.Fail(t, "unknown event", e.EventName())
		}
	}
	return held, changes
}
