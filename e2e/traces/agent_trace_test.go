// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package traces

import (
	"bytes"
	"cmp"
	"encoding/json"
	"os"
	"strconv"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/otel/sdk/resource"

	"github.com/tokenpulse/tokenpulse/e2e/internal/collector"
	"github.com/tokenpulse/tokenpulse/e2e/internal/exposition"
	"github.com/tokenpulse/tokenpulse/e2e/internal/otlpfile"
)

// sent is a span as a service sends it. Times are in milliseconds since the start of
// the trace.
type sent struct {
	service, id, parent, name string
	start, end                int
	attributes                map[string]float64
	operation, model          string
	processModel              string // in OTEL_RESOURCE_ATTRIBUTES of the service
	trace                     string // agentTraceID if empty
}

// agentTrace is the trace of an agent with two concurrent model calls, and a third one
// through another service. Two engines send spans too; the clock of one is an hour off.
// The process of the other has its model in OTEL_RESOURCE_ATTRIBUTES.
var agentTrace = []sent{
	{service: "agent", id: "a000000000000001", name: "answer the user", start: 0, end: 4000},
	{service: "agent", id: "a000000000000002", parent: "a000000000000001", name: "chat m", start: 150, end: 1150, operation: "chat", model: "large", attributes: map[string]float64{
		"gen_ai.response.time_to_first_chunk": 0.3, "gen_ai.usage.input_tokens": 100, "gen_ai.usage.output_tokens": 41,
	}},
	{service: "agent", id: "a000000000000003", parent: "a000000000000001", name: "chat m", start: 700, end: 1900, operation: "chat", model: "large", attributes: map[string]float64{
		"gen_ai.response.time_to_first_chunk": 0.25, "gen_ai.usage.input_tokens": 120, "gen_ai.usage.output_tokens": 61,
	}},
	{service: "agent", id: "a000000000000004", parent: "a000000000000001", name: "call the writer", start: 2000, end: 3990},
	{service: "writer", id: "b000000000000001", parent: "a000000000000004", name: "write", start: 2050, end: 3950},
	{service: "writer", id: "b000000000000002", parent: "b000000000000001", name: "chat m", start: 2100, end: 3900, operation: "chat", model: "writer", attributes: map[string]float64{
		"gen_ai.response.time_to_first_chunk": 0.5, "gen_ai.usage.input_tokens": 300, "gen_ai.usage.output_tokens": 131,
	}},
	{service: "engine", processModel: "llama-70b", id: "c000000000000001", parent: "a000000000000002", name: "llm_request", start: 180, end: 1120, attributes: map[string]float64{
		"gen_ai.latency.time_to_first_token": 0.21, "gen_ai.latency.e2e": 0.94, "gen_ai.latency.time_in_queue": 0.05,
		"gen_ai.latency.time_in_model_prefill": 0.12, "gen_ai.latency.time_in_model_decode": 0.7, "gen_ai.usage.completion_tokens": 41,
	}},
	{service: "engine", id: "c000000000000002", parent: "b000000000000002", name: "llm_request", start: 3_600_000, end: 3_601_700, attributes: map[string]float64{
		"gen_ai.latency.time_to_first_token": 0.4, "gen_ai.latency.e2e": 1.7, "gen_ai.latency.time_in_queue": 0.1,
		"gen_ai.latency.time_in_model_prefill": 0.28, "gen_ai.latency.time_in_model_decode": 1.3, "gen_ai.usage.completion_tokens": 131,
	}},
}

const (
	agentTraceStart = 1_795_233_292_000_000_000
	agentTraceID    = "5b8efff798038103d269b633813fc60c"
)

// The trace of an agent arrives in pieces, its root span last. The expected numbers are
// computed from the spans that were sent.
func TestAgentTrace_RootGetsTotalsAndCallsGetEnginePhases(t *testing.T) {
	spansFile := collector.ExampleEnvironment(t)
	collector.Setenv(t, "TRACE_WAIT", "2s")
	c := collector.Start(t, collector.Example(t, "agent-traces.yaml"), "--config", collector.WriteFile(t, t.TempDir(), "slos.yaml", agentSLOs))
	for _, piece := range [][]int{{1, 6}, {5, 4}, {2}, {7, 3}, {0}, {}} {
		for _, i := range piece {
			postTrace(t, agentTrace[i])
		}
	}
	require.Eventually(t, func() bool {
		written, err := os.ReadFile(spansFile)
		return err == nil && bytes.Contains(written, []byte(agentTraceID))
	}, collector.Patience, 50*time.Millisecond)
	requireTraceMetrics(t, c)
	c.Stop(t)

	byID := map[string]ptrace.Span{}
	var phases []ptrace.Span
	for _, span := range otlpfile.ReadSpans(t, spansFile) {
		otlpfile.RequireReadable(t, span)
		if _, ours := map[string]bool{"queue": true, "prefill": true, "decode": true}[span.Name()]; ours {
			phases = append(phases, span)
			continue
		}
		byID[span.SpanID().String()] = span
	}
	require.Len(t, byID, len(agentTrace))
	requireRollUp(t, byID["a000000000000001"])
	requireJoined(t, byID["a000000000000002"], agentTrace[1], agentTrace[6])
	requireJoined(t, byID["b000000000000002"], agentTrace[5], agentTrace[7])
	requireNumber(t, byID["a000000000000003"], "tokenpulse.network.duration", nil)
	requireNumber(t, byID["a000000000000003"], "tokenpulse.queue.duration", nil)
	for _, plain := range []string{"a000000000000004", "b000000000000001"} {
		require.Zero(t, byID[plain].Attributes().Len())
	}
	requirePhases(t, phases)

	for id, model := range map[string]any{"c000000000000001": nil, "c000000000000002": "writer"} {
		require.Equal(t, model, byID[id].Attributes().AsRaw()["gen_ai.request.model"], "join writes the client's, unless the resource has one")
	}
	root := byID["a000000000000001"]
	require.True(t, otlpfile.Lists(root, "tokenpulse.slo.met", "answer-in-3s"))
	require.True(t, otlpfile.Lists(root, "tokenpulse.slo.breached", "answer-in-2s"))
	require.False(t, otlpfile.Lists(byID["a000000000000002"], "tokenpulse.slo.met", "answer-in-3s"))
}

// agentSLOs are SLOs of the time to answer, which is 2.6 s, and of the network: 90 ms in
// one call, 100 ms in the other that was joined with its engine.
const agentSLOs = `
processors:
  token_latency:
    slos:
      - {name: answer-in-3s, indicator: trace.time_to_answer, threshold: 3s}
      - {name: answer-in-2s, indicator: trace.time_to_answer, threshold: 2s}
      - {name: network, indicator: network.duration, threshold: 95ms, match: {tokenpulse.vantage: client}}
`

// requireTraceMetrics compares a scrape with the spans that were sent.
func requireTraceMetrics(t *testing.T, c *collector.Collector) {
	t.Helper()
	var families map[string]*dto.MetricFamily
	require.Eventually(t, func() bool {
		families = exposition.Scrape(t, c)
		return families["tokenpulse_trace_time_to_answer_seconds"] != nil
	}, collector.Patience, 50*time.Millisecond)

	answers := families["tokenpulse_trace_time_to_answer_seconds"].GetMetric()
	require.Len(t, answers, 1)
	require.Equal(t, "agent", exposition.Label(answers[0], "service_name"))
	require.Equal(t, "success", exposition.Label(answers[0], "outcome"))
	require.Empty(t, exposition.Label(answers[0], "gen_ai_request_model"))
	require.EqualValues(t, 1, answers[0].GetHistogram().GetSampleCount())
	require.InDelta(t, 2.1+0.5, answers[0].GetHistogram().GetSampleSum(), 1e-9)

	network, requests := map[string]float64{}, map[string]float64{}
	for _, m := range families["tokenpulse_phase_duration_seconds"].GetMetric() {
		if exposition.Label(m, "phase") == "network" {
			network[exposition.Label(m, "service_name")+" "+exposition.Label(m, "gen_ai_request_model")] = m.GetHistogram().GetSampleSum()
		}
	}
	require.Len(t, network, 2)
	require.InDelta(t, 0.3-0.21, network["agent large"], 1e-9)
	require.InDelta(t, 0.5-0.4, network["writer writer"], 1e-9)

	for _, m := range families["tokenpulse_requests_total"].GetMetric() {
		requests[exposition.Label(m, "service_name")+" "+exposition.Label(m, "gen_ai_request_model")] += m.GetCounter().GetValue()
	}
	require.Equal(t, map[string]float64{"agent large": 2, "writer writer": 1, "engine llama-70b": 1, "engine writer": 1}, requests)

	verdicts := map[string]float64{}
	for _, m := range families["tokenpulse_slo_requests_total"].GetMetric() {
		if n := m.GetCounter().GetValue(); n > 0 {
			verdicts[exposition.Label(m, "service_name")+" "+exposition.Label(m, "slo")+" "+exposition.Label(m, "verdict")] += n
		}
	}
	require.Equal(t, map[string]float64{
		"agent answer-in-3s good": 1, "agent answer-in-2s bad": 1,
		"agent network good": 1, "agent network not_eligible": 1, "writer network bad": 1,
		"agent all good": 1, "agent all not_eligible": 1, "writer all bad": 1,
	}, verdicts)
}

func postTrace(t *testing.T, s sent) {
	t.Helper()
	collector.PostSpans(t, collector.Getenv(t, "OTLP_HTTP_ENDPOINT"), "application/json", asJSON(t, s))
}

// asJSON returns a span as a service exports it.
func asJSON(t *testing.T, s sent) []byte {
	t.Helper()
	var attributes []any
	for key, v := range s.attributes {
		value := map[string]any{"doubleValue": v}
		if v >= 10 { // tokens
			value = map[string]any{"intValue": strconv.Itoa(int(v))}
		}
		attributes = append(attributes, map[string]any{"key": key, "value": value})
	}
	text := func(key, value string) any {
		return map[string]any{"key": key, "value": map[string]any{"stringValue": value}}
	}
	attributesOfProcess := []any{text("service.name", s.service)}
	if s.processModel != "" { // read by OpenTelemetry's SDK, as in the process of vLLM
		t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "gen_ai.request.model="+s.processModel)
		detected, err := resource.New(t.Context(), resource.WithFromEnv())
		require.NoError(t, err)
		for _, attribute := range detected.Attributes() {
			attributesOfProcess = append(attributesOfProcess, text(string(attribute.Key), attribute.Value.AsString()))
		}
	}
	if s.operation != "" {
		attributes = append(attributes, text("gen_ai.operation.name", s.operation), text("gen_ai.request.model", s.model))
	}
	body, err := json.Marshal(map[string]any{"resourceSpans": []any{map[string]any{
		"resource": map[string]any{"attributes": attributesOfProcess},
		"scopeSpans": []any{map[string]any{"spans": []any{map[string]any{
			"traceId": cmp.Or(s.trace, agentTraceID), "spanId": s.id, "parentSpanId": s.parent, "name": s.name, "kind": 1, "attributes": attributes,
			"startTimeUnixNano": strconv.Itoa(agentTraceStart + s.start*1_000_000),
			"endTimeUnixNano":   strconv.Itoa(agentTraceStart + s.end*1_000_000),
		}}}},
	}}})
	require.NoError(t, err)
	return body
}

// requireNumber compares an attribute. A nil want means an absent attribute.
func requireNumber(t *testing.T, span ptrace.Span, name string, want any) {
	t.Helper()
	v, ok := span.Attributes().Get(name)
	if want == nil {
		require.False(t, ok, "%s is present", name)
		return
	}
	require.True(t, ok, "%s is missing", name)
	if v.Type() == pcommon.ValueTypeInt {
		require.EqualValues(t, want, v.Int(), name)
		return
	}
	require.InDelta(t, want, v.Double(), 1e-9, name)
}

func requireRollUp(t *testing.T, root ptrace.Span) {
	t.Helper()
	var inCall [4000]bool // per millisecond
	var calls, input, output, last int
	for i, s := range agentTrace {
		if s.operation != "chat" {
			continue
		}
		calls++
		input += int(s.attributes["gen_ai.usage.input_tokens"])
		output += int(s.attributes["gen_ai.usage.output_tokens"])
		for ms := s.start; ms < s.end; ms++ {
			inCall[ms] = true
		}
		if s.start > agentTrace[last].start {
			last = i
		}
	}
	busy := 0
	for _, during := range inCall {
		if during {
			busy++
		}
	}
	requireNumber(t, root, "tokenpulse.trace.model_call.count", calls)
	requireNumber(t, root, "tokenpulse.trace.input_tokens", input)
	requireNumber(t, root, "tokenpulse.trace.output_tokens", output)
	requireNumber(t, root, "tokenpulse.trace.model_call.duration", float64(busy)/1000)
	requireNumber(t, root, "tokenpulse.trace.model_call.share", float64(busy)/float64(len(inCall)))
	answer := float64(agentTrace[last].start)/1000 + agentTrace[last].attributes["gen_ai.response.time_to_first_chunk"]
	requireNumber(t, root, "tokenpulse.trace.time_to_answer", answer)
}

func requireJoined(t *testing.T, span ptrace.Span, client, engine sent) {
	t.Helper()
	of := engine.attributes
	requireNumber(t, span, "tokenpulse.queue.duration", of["gen_ai.latency.time_in_queue"])
	requireNumber(t, span, "tokenpulse.prefill.duration", of["gen_ai.latency.time_in_model_prefill"])
	requireNumber(t, span, "tokenpulse.decode.duration", of["gen_ai.latency.time_in_model_decode"])
	requireNumber(t, span, "tokenpulse.network.duration",
		client.attributes["gen_ai.response.time_to_first_chunk"]-of["gen_ai.latency.time_to_first_token"])
}

// requirePhases checks the length of each phase. A client whose engine sends spans has the
// phases that the engine reported. Another one has two: until the first token, and from
// then on. Engines have none of their own.
func requirePhases(t *testing.T, phases []ptrace.Span) {
	t.Helper()
	want := map[string]float64{} // seconds, by parent and name
	for _, s := range agentTrace {
		if s.operation == "chat" {
			first := s.attributes["gen_ai.response.time_to_first_chunk"]
			want[s.id+" prefill"] = first
			want[s.id+" decode"] = float64(s.end-s.start)/1000 - first
		}
	}
	for _, s := range agentTrace {
		if s.service == "engine" {
			want[s.parent+" queue"] = s.attributes["gen_ai.latency.time_in_queue"]
			want[s.parent+" prefill"] = s.attributes["gen_ai.latency.time_in_model_prefill"]
			want[s.parent+" decode"] = s.attributes["gen_ai.latency.time_in_model_decode"]
		}
	}
	require.Len(t, phases, len(want))
	for _, phase := range phases {
		key := phase.ParentSpanID().String() + " " + phase.Name()
		require.Contains(t, want, key)
		require.InDelta(t, want[key], float64(phase.EndTimestamp()-phase.StartTimestamp())/1e9, 1e-9, key)
		require.Equal(t, agentTraceID, phase.TraceID().String())
	}
}
