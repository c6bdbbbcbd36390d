// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

//go:build jaeger

// Package traces tests the queries of docs/traces.md, and traces of several services.
package traces

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/e2e/internal/collector"
	"github.com/tokenpulse/tokenpulse/e2e/internal/markdown"
	"github.com/tokenpulse/tokenpulse/e2e/internal/otlpfile"
	"github.com/tokenpulse/tokenpulse/internal/testenv"
	"github.com/tokenpulse/tokenpulse/internal/testenv/recorded"
)

// storedSpan is a span that the Collector wrote to its file, and the service of its resource.
type storedSpan struct {
	ptrace.Span
	service string
}

func (s storedSpan) seconds() float64 { return float64(s.EndTimestamp()-s.StartTimestamp()) / 1e9 }

// number returns an attribute, or -1.
func (s storedSpan) number(name string) float64 {
	v, ok := s.Attributes().Get("tokenpulse." + name)
	switch {
	case !ok:
		return -1
	case v.Type() == pcommon.ValueTypeInt:
		return float64(v.Int())
	}
	return v.Double()
}

func (s storedSpan) is(name, value string) bool {
	v, ok := s.Attributes().Get(name)
	return ok && v.Str() == value
}

// found are the spans that each section of the page is about, by a recount of their numbers.
var found = map[string]func(s storedSpan) bool{
	"Slowest for a tenant": func(s storedSpan) bool { return s.is("tenant.id", "acme") && s.seconds() >= 1 },
	"All breaches of one SLO in an hour, by model": func(s storedSpan) bool {
		return s.service == "llm-gateway" && s.number("time_to_first_token") > 1 && time.Since(s.StartTimestamp().AsTime()) < time.Hour
	},
	"Stalled streams": func(s storedSpan) bool { return s.service == "llm-gateway" && s.number("stall.count") > 0 },
	"Was it queue, prefill, decode or network": func(s storedSpan) bool {
		return s.service == "writer" && s.number("queue.duration") >= 0.09
	},
	"Slow network": func(s storedSpan) bool { return s.service == "writer" && s.number("network.duration") > 0.095 },
	"Which step of an agent's answer": func(s storedSpan) bool {
		return s.service == "planner" && s.ParentSpanID().IsEmpty() && s.seconds() > 3
	},
	"The same conversation": func(s storedSpan) bool { return s.is("gen_ai.conversation.id", "conv-7") },
}

// tracesSetup is a Collector that writes to Jaeger and to a file.
type tracesSetup struct {
	*collector.Collector
	jaeger string // address of its API
	folder string // of spans.jsonl and flat.jsonl
	spans  []storedSpan
	tapped []string // traces of exchanges
}

// Jaeger gets the recorded requests of vLLM, exchanges through the tap, the traces of two agents, and a request whose
// observers' clocks differ. Each query of the page finds the traces that a recount finds.
func TestTracesPage_EveryQueryFindsTheRightTraces(t *testing.T) {
	page := markdown.Read(t, "docs/traces.md")
	s := startTraces(t, page)
	queries := map[string][]string{}
	for _, section := range strings.Split(page, "\n## ")[1:] {
		title, text, _ := strings.Cut(section, "\n")
		if blocks := fenced(text, "jaeger"); len(blocks) > 0 {
			require.Len(t, blocks, 1, title)
			require.Len(t, fenced(text, "traceql"), 1, title)
			queries[title] = append(blocks, fenced(text, "sh")...)
		}
	}
	require.Len(t, queries, len(found))
	for title, recount := range found {
		t.Run(title, func(t *testing.T) {
			want := map[string]bool{}
			for _, span := range s.spans {
				if recount(span) {
					want[span.TraceID().String()] = true
				}
			}
			require.NotEmpty(t, want)
			require.Len(t, queries[title], 2)
			require.Equal(t, want, s.search(t, queries[title][0]), "Jaeger")
			require.Equal(t, want, tracesIn(s.shell(t, queries[title][1])), "jq")
		})
	}
	t.Run("two breaches are found by either SLO", func(t *testing.T) {
		breached, trace := queries["All breaches of one SLO in an hour, by model"][0], s.tapped[twoBreaches]
		require.Contains(t, s.search(t, breached), trace)
		other := s.search(t, strings.ReplaceAll(breached, "chat-ttft", "chat-tpot"))
		require.Contains(t, other, trace)
		require.Len(t, other, 2)
	})
	t.Run("the longest step of the agent comes first", func(t *testing.T) {
		rows := strings.Split(s.shell(t, queries["Which step of an agent's answer"][1]), "\n")
		require.Contains(t, rows[0], `"execute_tool search",2.15,0.3875`) // (0.8 + 0.75) / 4 s
	})
	t.Run("exemplars and the page lead to traces, and back", func(t *testing.T) { s.requireLinks(t, page) })
	t.Run("tags", func(t *testing.T) { s.requireTags(t) })
	t.Run("client, tap and engine of one request are joined", func(t *testing.T) {
		children := s.nested(t, s.api(t, "/api/traces/"+s.tapped[twoBreaches])[0], "engine")
		require.Len(t, children[clientSpan], 1+3, "the tap and the phases")
		require.Contains(t, children[""][0].Tags, jaegerTag{Key: "tokenpulse.joined", Type: "string", Value: `["queue.duration=f000000000000001",` +
			`"prefill.duration=f000000000000001","decode.duration=f000000000000001","network.duration=f000000000000001"]`})
	})
	t.Run("waterfall", func(t *testing.T) {
		testenv.RequireTables(t, "docs/traces.md", map[string]string{"waterfall": s.waterfall(t)})
	})
}

// fenced returns the code blocks of a language.
func fenced(text, language string) (blocks []string) {
	for _, block := range strings.Split(text, "\n```"+language+"\n")[1:] {
		block, _, _ = strings.Cut(block, "\n```")
		blocks = append(blocks, block)
	}
	return blocks
}

// startTraces starts Jaeger with the flags of the page, and the Collector with its config, and sends all traffic.
func startTraces(t *testing.T, page string) *tracesSetup {
	t.Helper()
	spansFile := collector.ExampleEnvironment(t)
	answers := slices.DeleteFunc(recorded.Answers(t), func(a recorded.Answer) bool { return !strings.HasPrefix(a.File, "vllm/") })
	require.NotEmpty(t, answers)
	s := &tracesSetup{jaeger: collector.FreeAddress(t), folder: filepath.Dir(spansFile)}
	otlp, tap, upstream := collector.FreeAddress(t), collector.FreeAddress(t), startExchangeUpstream(t, answers)
	for name, value := range map[string]string{
		"JAEGER_ENDPOINT": otlp, "TAP_ENDPOINT": tap, "TAP_UPSTREAM": upstream.url, "TRACE_WAIT": "2s",
		"OTEL_TRACES_SAMPLER": "always_off", // Jaeger would trace itself
	} {
		collector.Setenv(t, name, value)
	}
	arguments := []string{"--query.http-server.host-port=" + s.jaeger, regexp.MustCompile(`--query\.max-clock-skew-adjustment=\S+`).FindString(page)}
	for _, server := range []string{"admin.http", "collector.grpc-server", "collector.http-server", "collector.otlp.http", "query.grpc-server"} {
		arguments = append(arguments, "--"+server+".host-port="+collector.FreeAddress(t))
	}
	jaeger := collector.StartProcess(t, collector.Built(t, "jaeger/1.76.0/all-in-one"), append(arguments, "--collector.otlp.grpc.host-port="+otlp)...)
	jaeger.WaitFor(t, "http://"+s.jaeger+"/api/services")

	s.Collector = collector.Start(t, collector.Example(t, "agent-traces.yaml"), "--config", collector.WriteFile(t, t.TempDir(), "jaeger.yaml", fenced(page, "yaml")[0]))
	collector.Replay(t, s.Collector, collector.DemoRecording(t))
	for _, span := range slices.Concat(agentTrace, planner) {
		postTrace(t, span)
	}
	sendDrawn(t, s.Collector)
	s.tapped = sendExchanges(t, tap, upstream)

	traces := collector.DemoRequests(t) + 3 + len(exchanges) + len(answers)
	require.Eventually(t, func() bool {
		seen := map[string]bool{}
		for _, service := range s.services(t) {
			for trace := range s.search(t, "Service: "+service) {
				seen[trace] = true
			}
		}
		return len(seen) == traces
	}, collector.Patience, 200*time.Millisecond, "not all traces are in Jaeger")
	require.Eventually(t, func() bool { return len(s.stored(t, spansFile)) == traces }, collector.Patience, 200*time.Millisecond, "not all traces are written")
	require.NoError(t, os.WriteFile(filepath.Join(s.folder, "flat.jq"), []byte(fenced(page, "jq")[0]), 0o600))
	s.shell(t, fenced(page, "sh")[1])
	return s
}

// stored reads the spans of the file, and returns their traces; none while the last line is incomplete.
func (s *tracesSetup) stored(t *testing.T, file string) map[pcommon.TraceID]bool {
	t.Helper()
	traces := map[pcommon.TraceID]bool{}
	s.spans = nil
	if written, err := os.ReadFile(file); err != nil || !bytes.HasSuffix(written, []byte("\n")) {
		return nil
	}
	for span, resource := range otlpfile.SpansOfResources(t, file) {
		s.spans = append(s.spans, storedSpan{span, otlpfile.Text(t, resource, "service.name")})
		traces[span.TraceID()] = true
	}
	return traces
}

func (s *tracesSetup) shell(t *testing.T, command string) string {
	t.Helper()
	testenv.Program(t, "jq")
	shell := exec.CommandContext(t.Context(), "sh", "-c", command)
	shell.Dir = s.folder
	output, err := shell.CombinedOutput()
	require.NoError(t, err, "%s", output)
	return strings.TrimSpace(string(output))
}

func tracesIn(text string) map[string]bool {
	traces := map[string]bool{}
	for _, trace := range regexp.MustCompile(`\b[0-9a-f]{32}\b`).FindAllString(text, -1) {
		traces[trace] = true
	}
	return traces
}

// jaegerSpan is a span as Jaeger's API has it. Times are in microseconds.
type jaegerSpan struct {
	TraceID, SpanID, OperationName, ProcessID string
	References                                []struct{ SpanID string }
	StartTime, Duration                       int64
	Tags                                      []jaegerTag
	Logs                                      []struct {
		Timestamp int64
		Fields    []jaegerTag
	}
	Warnings []string
}

type jaegerTag struct {
	Key, Type string
	Value     any
}

func (s *jaegerSpan) parent() string {
	if len(s.References) == 0 {
		return ""
	}
	return s.References[0].SpanID
}

type jaegerTrace struct {
	TraceID   string
	Spans     []jaegerSpan
	Processes map[string]struct{ ServiceName string }
}

func (s *tracesSetup) api(t *testing.T, path string) (traces []jaegerTrace) {
	t.Helper()
	require.NoError(t, json.Unmarshal(collector.Get(t, "http://"+s.jaeger+path, "application/json"), &struct{ Data *[]jaegerTrace }{&traces}))
	return traces
}

func (s *tracesSetup) services(t *testing.T) (services []string) {
	t.Helper()
	require.NoError(t, json.Unmarshal(collector.Get(t, "http://"+s.jaeger+"/api/services", "application/json"), &struct{ Data *[]string }{&services}))
	return services
}

// search fills the search form in, as a query of the page says, and returns the traces.
func (s *tracesSetup) search(t *testing.T, form string) map[string]bool {
	t.Helper()
	now := time.Now()
	parameters := url.Values{"limit": {"1000"}, "start": {"1"}, "end": {strconv.FormatInt(now.UnixMicro(), 10)}}
	for line := range strings.Lines(form) {
		field, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		switch field {
		case "Service", "Operation":
			parameters.Set(strings.ToLower(field), value)
		case "Min Duration":
			parameters.Set("minDuration", value)
		case "Lookback":
			back, err := time.ParseDuration(value)
			require.NoError(t, err)
			parameters.Set("start", strconv.FormatInt(now.Add(-back).UnixMicro(), 10))
		case "Tags":
			tags := map[string]string{}
			for tag := range strings.FieldsSeq(value) {
				key, value, _ := strings.Cut(tag, "=")
				tags[key] = value
			}
			encoded, err := json.Marshal(tags)
			require.NoError(t, err)
			parameters.Set("tags", string(encoded))
		default:
			require.Fail(t, "unknown field", field)
		}
	}
	traces := map[string]bool{}
	for _, trace := range s.api(t, "/api/traces?"+parameters.Encode()) {
		traces[trace.TraceID] = true
	}
	return traces
}

// requireLinks follows exemplars to traces, the live page's links to traces, and the address of the page with the
// tags of a span.
func (s *tracesSetup) requireLinks(t *testing.T, page string) {
	exemplars := regexp.MustCompile(`# \{.*?trace_id="([0-9a-f]{32})"`).FindAllSubmatch(collector.Get(t, s.MetricsURL(), "application/openmetrics-text"), -1)
	require.NotEmpty(t, exemplars)
	for _, exemplar := range exemplars {
		require.Len(t, s.api(t, "/api/traces/"+string(exemplar[1])), 1)
	}
	address := regexp.MustCompile("`http://localhost:9464/(\\?\\S+)`").FindStringSubmatch(page)
	require.NotEmpty(t, address)
	end := regexp.MustCompile(`end=\d+`).ReplaceAllString(address[1], fmt.Sprint("end=", time.Now().Add(time.Minute).Unix()))
	var shown struct {
		Requests []struct {
			TraceID   string `json:"trace_id"`
			TraceLink string `json:"trace_link"`
		}
	}
	require.NoError(t, json.Unmarshal(collector.Get(t, strings.TrimSuffix(s.MetricsURL(), "metrics")+"api/v1/requests"+end, "application/json"), &shown))
	traces := map[string]bool{}
	for _, request := range shown.Requests {
		traces[request.TraceID] = true
		require.Equal(t, "http://localhost:16686/trace/"+request.TraceID, request.TraceLink)
	}
	for i, e := range exchanges {
		require.Equal(t, e.model == "llama-3-70b", traces[s.tapped[i]], "%+v", e)
	}
}

// requireTags looks the tags of calls in Jaeger up in docs/attributes.md.
func (s *tracesSetup) requireTags(t *testing.T) {
	page := markdown.Read(t, "docs/attributes.md")
	calls := 0
	for _, trace := range slices.Concat(s.tapped, []string{agentTraceID, drawnTrace}) {
		for _, span := range s.api(t, "/api/traces/"+trace)[0].Spans {
			for _, tag := range span.Tags {
				name := tag.Key
				if strings.HasPrefix(name, "tokenpulse.slo.verdict.") {
					name = "tokenpulse.slo.verdict."
				}
				if otlpfile.HasPrefixIn(name, "tokenpulse.") && !otlpfile.HasPrefixIn(name, "tokenpulse.trace.") {
					require.Contains(t, page, "`"+name)
					calls++
				}
			}
		}
	}
	require.Positive(t, calls)
}

// nested returns the spans of a trace by their parents, and checks that each lies within its parent. Jaeger moved those
// of the services whose clocks are off, and says so.
func (s *tracesSetup) nested(t *testing.T, trace jaegerTrace, off ...string) map[string][]*jaegerSpan {
	t.Helper()
	byID, children := map[string]*jaegerSpan{}, map[string][]*jaegerSpan{}
	for i := range trace.Spans {
		span := &trace.Spans[i]
		byID[span.SpanID] = span
		children[span.parent()] = append(children[span.parent()], span)
	}
	for _, span := range byID {
		moved := slices.Contains(off, trace.Processes[span.ProcessID].ServiceName)
		require.Equal(t, moved, len(span.Warnings) == 1 && strings.Contains(span.Warnings[0], "were adjusted by"), span.Warnings)
		if parent := byID[span.parent()]; parent != nil {
			require.GreaterOrEqual(t, span.StartTime, parent.StartTime, span.OperationName)
			require.LessOrEqual(t, span.StartTime+span.Duration, parent.StartTime+parent.Duration, span.OperationName)
		}
	}
	require.Len(t, children[""], 1)
	return children
}

// waterfall draws a trace as Jaeger shows it: bars over time, with the events of tokenpulse.
func (s *tracesSetup) waterfall(t *testing.T) string {
	trace := s.api(t, "/api/traces/"+drawnTrace)[0]
	children := s.nested(t, trace, "gateway", "engine")
	root := children[""][0]
	const width = 66
	column := func(at int64) int { return int((at - root.StartTime) * (width - 1) / root.Duration) }
	var picture strings.Builder
	var draw func(span *jaegerSpan, depth int)
	draw = func(span *jaegerSpan, depth int) {
		bar := []byte(strings.Repeat(" ", width))
		for i := column(span.StartTime); i <= column(span.StartTime+span.Duration); i++ {
			bar[i] = '='
		}
		for _, event := range span.Logs {
			for _, field := range event.Fields {
				if name, ours := strings.CutPrefix(fmt.Sprint(field.Value), "tokenpulse."); ours && field.Key == "event" {
					bar[column(event.Timestamp)] = strings.ToUpper(name)[0]
				}
			}
		}
		name := trace.Processes[span.ProcessID].ServiceName + ": " + span.OperationName
		fmt.Fprintf(&picture, "%-26s %s %5d ms\n", strings.Repeat("  ", depth)+name, bar, span.Duration/1000)
		below := children[span.SpanID]
		slices.SortFunc(below, func(a, b *jaegerSpan) int { return cmp.Compare(a.StartTime, b.StartTime) })
		for _, child := range below {
			draw(child, depth+1)
		}
	}
	draw(root, 0)
	return "```\n" + picture.String() + "```\n"
}
