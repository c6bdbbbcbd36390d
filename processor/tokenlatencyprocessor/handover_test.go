// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokenlatencyprocessor

import (
	"encoding/hex"
	"maps"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor/processortest"

	"github.com/tokenpulse/tokenpulse/internal/annotate"
	"github.com/tokenpulse/tokenpulse/internal/attributes"
	"github.com/tokenpulse/tokenpulse/internal/names"
)

// The spans of these tests are made by hand. Names and attributes follow the sources of the engines and proxies:
// vllm/v1/engine/output_processor.py (do_tracing), sglang/srt/observability/trace.py (trace_req_start) at 02a58088,
// dynamo's adapter of the backends (engine.generate), llm-d-router/pkg/sidecar/proxy/connector_nixlv2.go at 05457890,
// and vllm-project/vllm#44402 for vllm_async_kv_transfer.

// prefillEngine returns vLLM's span of a prefill, from 10 to 260 ms: queue 40 ms, prefill 190 ms, so until 240 ms.
func prefillEngine(changes map[string]any) placed {
	return vllmSpan(3, 10, 260, map[string]any{
		"gen_ai.latency.time_to_first_token": 0.24, "gen_ai.latency.time_in_queue": 0.04, "gen_ai.latency.time_in_model_prefill": 0.19,
		"gen_ai.latency.time_in_model_decode": 0.0, "gen_ai.usage.prompt_tokens": 100, "gen_ai.usage.completion_tokens": 1, "gen_ai.request.max_tokens": 1,
	}, changes)
}

// decodeEngine returns vLLM's span of a decode, from 280 to 1980 ms: first token at 460 ms.
func decodeEngine(changes map[string]any) placed {
	return vllmSpan(4, 280, 1980, map[string]any{
		"gen_ai.latency.time_to_first_token": 0.18, "gen_ai.latency.time_in_queue": 0.1, "gen_ai.latency.time_in_model_prefill": 0.05,
		"gen_ai.latency.time_in_model_decode": 1.5, "gen_ai.usage.prompt_tokens": 100, "gen_ai.usage.completion_tokens": 16, "gen_ai.request.max_tokens": 512,
	}, changes)
}

func vllmSpan(id byte, start, end int64, attributes, changes map[string]any) placed {
	attributes["gen_ai.latency.e2e"] = float64(end-start) / 1e3
	maps.Copy(attributes, changes)
	return placed{id, 2, "llm_request", start, end, attributes}
}

func at(s placed, start, end int64) placed { s.start, s.end = start, end; return s }
func below(s placed, parent byte) placed   { s.parent = parent; return s }

// halfSecondClient returns the client's span of the request, whose first token comes after 500 ms.
func halfSecondClient() placed {
	return clientSpan(1, 0, 0, 2000, map[string]any{names.GenAITimeToFirstChunk: 0.5, names.GenAIOutputTokens: 16})
}

// onHosts names the hosts of spans by ID.
func onHosts(traces ptrace.Traces, hosts map[byte]string) ptrace.Traces {
	for _, resource := range traces.ResourceSpans().All() {
		if host := hosts[resource.ScopeSpans().At(0).Spans().At(0).SpanID()[0]]; host != "" {
			resource.Resource().Attributes().PutStr("host.name", host)
		}
	}
	return traces
}

// whole has the numbers of the request of both engines: it begins at 10 ms, its first token comes at 460 ms, 220 ms after the
// end of the prefill, and it ends at 1980 ms.
var whole = map[string]float64{
	"tokenpulse.time_to_first_token": 0.45, "tokenpulse.request.duration": 1.97, "tokenpulse.queue.duration": 0.04,
	"tokenpulse.prefill.duration": 0.19, "tokenpulse.transfer.duration": 0.22, "tokenpulse.decode.duration": 1.5,
	"tokenpulse.time_per_output_token": 0.1, "tokenpulse.decode.share": 1.5 / 1.69, "tokenpulse.request_token_rate": 16 / 1.97,
	"tokenpulse.clock.anomalies": -1,
}

func repeatedOf(span ptrace.Span) string { return attributes.Text(span.Attributes(), names.Repeated) }

func TestHandover_OneRequestHasThePhasesOfBothEngines(t *testing.T) {
	traces := traceOf(t, halfSecondClient(), plainSpan(2, 1, 5, 1990), prefillEngine(nil), decodeEngine(nil))
	spans := processTrace(t, joining(), traces)
	requireNumbers(t, whole, spans[4])
	require.Equal(t, "0400000000000000", repeatedOf(spans[3]))
	require.Empty(t, repeatedOf(spans[4]))
	require.ElementsMatch(t, []any{"time_to_first_token", "request.duration", "request_token_rate", "transfer.duration"}, estimatesOf(spans[4]),
		"they compare the clocks of two hosts")
	require.ElementsMatch(t, []any{
		"queue.duration=0300000000000000", "prefill.duration=0300000000000000", "transfer.duration=0300000000000000",
		"time_to_first_token=0300000000000000", "request.duration=0300000000000000",
	}, joinedOf(spans[4]))
	requireNumbers(t, map[string]float64{
		"tokenpulse.time_to_first_token": 0.5, "tokenpulse.queue.duration": 0.04, "tokenpulse.prefill.duration": 0.19,
		"tokenpulse.transfer.duration": 0.22, "tokenpulse.decode.duration": 1.5, "tokenpulse.network.duration": 0.05, // 0.5 - 0.45
	}, spans[1])
	require.Contains(t, estimatesOf(spans[1]), "transfer.duration")
	require.Contains(t, estimatesOf(spans[1]), "network.duration")
	requireNumbers(t, map[string]float64{"tokenpulse.time_to_first_token": 0.24, "tokenpulse.request.duration": 0.25}, spans[3])
}

func TestHandover_OnOneHostHasNoEstimates(t *testing.T) {
	spans := processTrace(t, joining(), onHosts(
		traceOf(t, halfSecondClient(), plainSpan(2, 1, 5, 1990), prefillEngine(nil), decodeEngine(nil)), map[byte]string{3: "a", 4: "a"}))
	requireNumbers(t, whole, spans[4])
	require.Empty(t, estimatesOf(spans[4]))
}

// Joined again, by a Collector that trusts the annotations, and with the annotations removed.
func TestHandover_JoinedAgainStaysTheSame(t *testing.T) {
	for name, trust := range map[string]bool{"trusted": true, "derived anew": false} {
		t.Run(name, func(t *testing.T) {
			cfg := joining()
			cfg.TrustAnnotations = trust
			p, sink := newProcessor(t, processortest.NewNopSettings(typ), cfg)
			traces := traceOf(t, halfSecondClient(), plainSpan(2, 1, 5, 1990), prefillEngine(nil), decodeEngine(nil))
			for range 2 {
				require.NoError(t, p.ConsumeTraces(t.Context(), traces))
				traces = sink.AllTraces()[len(sink.AllTraces())-1]
			}
			for _, span := range allSpans(traces) {
				switch span.SpanID()[0] {
				case 3:
					require.Equal(t, "0400000000000000", repeatedOf(span))
				case 4:
					requireNumbers(t, whole, span)
				case 1:
					requireNumbers(t, map[string]float64{"tokenpulse.transfer.duration": 0.22, "tokenpulse.network.duration": 0.05}, span)
				}
			}
		})
	}
}

// Two requests that only look like a handover stay two, with their own numbers.
func TestHandover_OtherEnginesStayApart(t *testing.T) {
	client, proxy := halfSecondClient(), plainSpan(2, 1, 5, 1990)
	anotherClient := clientSpan(5, 2, 270, 1985, nil)
	tests := map[string]struct {
		spans []placed
		hosts map[byte]string
	}{
		"without a call above both":                    {spans: []placed{below(proxy, 9), prefillEngine(nil), decodeEngine(nil)}},
		"calls of an agent":                            {spans: []placed{plainSpan(2, 0, 0, 2000), clientSpan(1, 2, 5, 265, nil), anotherClient, below(prefillEngine(nil), 1), below(decodeEngine(nil), 5)}},
		"a service that calls models while it answers": {spans: []placed{withVantage(client, "server"), proxy, clientSpan(6, 2, 5, 265, nil), anotherClient, below(prefillEngine(nil), 6), below(decodeEngine(nil), 5)}},
		"a tool of the client":                         {spans: []placed{client, {2, 1, "tool", 5, 1990, map[string]any{"openinference.span.kind": "TOOL"}}, prefillEngine(nil), decodeEngine(nil)}},
		"another prompt":                               {spans: []placed{client, proxy, prefillEngine(map[string]any{"gen_ai.usage.prompt_tokens": 90}), decodeEngine(nil)}},
		"the first one answered":                       {spans: []placed{client, proxy, prefillEngine(map[string]any{"gen_ai.usage.completion_tokens": 2}), decodeEngine(nil)}},
		"the first one was asked for more":             {spans: []placed{client, proxy, prefillEngine(map[string]any{"gen_ai.request.max_tokens": 512}), decodeEngine(nil)}},
		"the first one reports no tokens":              {spans: []placed{client, proxy, engineSpan(3, 2, 10, 260, nil), decodeEngine(nil)}},
		"another model":                                {spans: []placed{client, proxy, withModel(prefillEngine(nil), "a"), withModel(decodeEngine(nil), "b")}},
		"a retry in between":                           {spans: []placed{client, proxy, prefillEngine(nil), decodeEngine(nil), vllmSpan(5, 300, 400, map[string]any{}, nil)}},
		"at the same time on one clock":                {spans: []placed{client, proxy, prefillEngine(nil), at(decodeEngine(nil), 20, 1720)}, hosts: map[byte]string{3: "a", 4: "a"}},
		"two answers of one token at the same time": {spans: []placed{client, proxy, prefillEngine(nil), at(decodeEngine(map[string]any{ // such as n = 2 of a classifier
			"gen_ai.usage.completion_tokens": 1, "gen_ai.request.max_tokens": 1, "gen_ai.latency.time_to_first_token": 0.24}), 11, 262)}},
		"two tokens at the same time":                      {spans: []placed{client, proxy, prefillEngine(nil), at(decodeEngine(map[string]any{"gen_ai.usage.completion_tokens": 1, "gen_ai.request.max_tokens": 1}), 20, 1720)}},
		"an engine of another kind":                        {spans: []placed{client, proxy, prefillEngine(nil), {4, 2, " Req abcd1234", 280, 1980, decodeEngine(nil).attributes}}},
		"a prefill and a decode of two requests of SGLang": {spans: []placed{client, proxy, sglangSpan(3, "prefill", "0x1f", 10, 600), sglangSpan(4, "decode", "0x20", 10, 1980)}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			spans := processTrace(t, joining(), onHosts(traceOf(t, test.spans...), test.hosts))
			for id, span := range spans {
				require.Empty(t, repeatedOf(span), "span %d", id)
			}
			requireNumbers(t, map[string]float64{"tokenpulse.transfer.duration": -1}, spans[4])
		})
	}
	t.Run("the first one failed", func(t *testing.T) {
		traces := traceOf(t, client, proxy, prefillEngine(nil), decodeEngine(nil))
		allSpans(traces)[2].Status().SetCode(ptrace.StatusCodeError)
		require.Empty(t, repeatedOf(processTrace(t, joining(), traces)[3]))
	})
	t.Run("the same instance", func(t *testing.T) {
		traces := traceOf(t, client, proxy, prefillEngine(nil), decodeEngine(nil))
		for _, resource := range traces.ResourceSpans().All() {
			resource.Resource().Attributes().PutStr(names.ServiceInstanceID, "pod-1")
		}
		require.Empty(t, repeatedOf(processTrace(t, joining(), traces)[3]))
	})
	t.Run("one resource", func(t *testing.T) {
		traces := traceOf(t, client, proxy, prefillEngine(nil), decodeEngine(nil))
		all := traces.ResourceSpans()
		all.At(3).ScopeSpans().At(0).Spans().MoveAndAppendTo(all.At(2).ScopeSpans().At(0).Spans())
		require.Empty(t, repeatedOf(processTrace(t, joining(), traces)[3]))
	})
	t.Run("the first one failed, and the second one names it", func(t *testing.T) {
		traces := traceOf(t, dynamoPair()...)
		allSpans(traces)[2].Status().SetCode(ptrace.StatusCodeError)
		require.Empty(t, repeatedOf(processTrace(t, joining(), traces)[3]))
	})
	t.Run("without join", func(t *testing.T) {
		spans := processTrace(t, annotate.DefaultConfig(), traceOf(t, client, proxy, prefillEngine(nil), decodeEngine(nil)))
		require.Empty(t, repeatedOf(spans[3]))
		requireNumbers(t, map[string]float64{"tokenpulse.time_to_first_token": 0.18, "tokenpulse.transfer.duration": -1}, spans[4])
	})
}

func withVantage(s placed, vantage string) placed {
	s.attributes[names.Vantage] = vantage
	return s
}

// A decode whose first token comes before the end of the prefill, or later than the client's request took: the clocks are
// off. No number that compares them is written.
func TestHandover_ClocksThatContradictEachOther(t *testing.T) {
	for name, offset := range map[string]int64{"behind by an hour": -3_600_000, "ahead by an hour": 3_600_000} {
		t.Run(name, func(t *testing.T) {
			spans := processTrace(t, joining(), traceOf(t,
				halfSecondClient(), plainSpan(2, 1, 5, 1990), prefillEngine(nil), at(decodeEngine(nil), 280+offset, 1980+offset)))
			require.Equal(t, "0400000000000000", repeatedOf(spans[3]))
			requireNumbers(t, map[string]float64{
				"tokenpulse.transfer.duration": -1, "tokenpulse.time_to_first_token": -1, "tokenpulse.clock.anomalies": 1,
				"tokenpulse.queue.duration": 0.04, "tokenpulse.prefill.duration": 0.19, "tokenpulse.decode.duration": 1.5,
				"tokenpulse.request.duration": 1.7,
			}, spans[4])
			v, _ := spans[4].Attributes().Get(names.Unmeasured)
			require.Contains(t, v.AsRaw(), "time_to_first_token=implausible")
			requireNumbers(t, map[string]float64{
				"tokenpulse.queue.duration": 0.04, "tokenpulse.prefill.duration": 0.19, "tokenpulse.decode.duration": 1.5,
				"tokenpulse.transfer.duration": -1, "tokenpulse.network.duration": -1,
			}, spans[1])
		})
	}
}

func sglangSpan(id byte, role, room string, start, end int64) placed {
	s := vllmSpan(id, start, end, map[string]any{"bootstrap_room": room, "rid": "abcd1234ef", "gen_ai.usage.prompt_tokens": 100}, nil)
	s.name = role + " Req abcd1234"
	return s
}

func dynamoWorker(id byte, start, end int64, more map[string]any) placed {
	attributes := map[string]any{"model": "m", "input_tokens": 100, "ttft_ms": "180.00", "output_tokens": 16, "disagg_role": "decode"}
	maps.Copy(attributes, more)
	return placed{id, 2, "engine.generate", start, end, attributes}
}

// dynamoPair returns the spans of a client, a frontend, and two workers, of which the decode names the prefill.
func dynamoPair() []placed {
	return []placed{
		halfSecondClient(), plainSpan(2, 1, 0, 2000),
		dynamoWorker(3, 10, 260, map[string]any{"disagg_role": "prefill", "output_tokens": 1, "ttft_ms": "240.00"}),
		dynamoWorker(4, 280, 1980, map[string]any{"prefill_trace_id": "01000000000000000000000000000000", "prefill_span_id": "0300000000000000"}),
	}
}

// Marks of SGLang, Dynamo and llm-d need no call above both engines.
func TestHandover_ByMarksOfTheEngines(t *testing.T) {
	// SGLang's router sends the request to both at once. The prefill's span ends after the cache was sent, its prefill after
	// 200 ms. The decode's first token comes at 12 + 300 ms: 0.302 s after the start, 0.102 s after the prefill.
	prefill, decode := sglangSpan(3, "prefill", "0x1f", 10, 600), sglangSpan(4, "decode", "0x1f", 12, 1980)
	maps.Copy(prefill.attributes, map[string]any{"gen_ai.latency.time_in_model_prefill": 0.19, "gen_ai.latency.time_to_first_token": 0.5, "gen_ai.usage.completion_tokens": 1, "gen_ai.request.max_tokens": 512})
	maps.Copy(decode.attributes, map[string]any{"gen_ai.latency.time_to_first_token": 0.3, "gen_ai.latency.time_in_model_decode": 1.6, "gen_ai.usage.completion_tokens": 17})
	sglang := map[string]float64{"tokenpulse.time_to_first_token": 0.302, "tokenpulse.prefill.duration": 0.19, "tokenpulse.transfer.duration": 0.112, "tokenpulse.decode.duration": 1.6}

	stage := func(id, parent byte, name string, start, end int64) placed {
		return placed{id, parent, name, start, end, map[string]any{"llm_d.pd_proxy.connector": "nixlv2"}}
	}
	// The sidecar starts the span of the decode below that of the prefill.
	llmD := []placed{
		plainSpan(9, 0, 0, 2000), stage(2, 9, "forward_request", 5, 1990), stage(5, 2, "prefill", 8, 262), plainSpan(6, 5, 9, 261), below(prefillEngine(map[string]any{"gen_ai.usage.prompt_tokens": 99}), 6),
		stage(7, 5, "decode", 270, 1985), plainSpan(8, 7, 271, 1984), below(decodeEngine(nil), 8),
	}
	maps.Copy(llmD[5].attributes, map[string]any{"llm_d.pd_proxy.total_duration_ms": 1700.0, "llm_d.pd_proxy.prefill_duration_ms": 254.0, "llm_d.pd_proxy.decode_duration_ms": 1700.0})
	tests := map[string]struct {
		spans []placed
		want  map[string]float64
	}{
		"SGLang": {[]placed{plainSpan(2, 0, 0, 2000), prefill, decode}, sglang},
		"SGLang, and the span of the transfer": {
			[]placed{plainSpan(2, 0, 0, 2000), prefill, decode, plainSpan(7, 3, 10, 600), {8, 7, "prefill_transfer_kv_cache", 200, 290, nil}},
			map[string]float64{"tokenpulse.time_to_first_token": 0.302, "tokenpulse.prefill.duration": 0.19, "tokenpulse.transfer.duration": 0.09},
		},
		"Dynamo": {dynamoPair()[1:], map[string]float64{
			"tokenpulse.time_to_first_token": 0.45, "tokenpulse.prefill.duration": 0.24, "tokenpulse.transfer.duration": 0.21, "tokenpulse.decode.duration": 1.52,
		}},
		"llm-d": {llmD, whole},
		"llm-d, a prefill longer than the proxy's call of the decode": { // first token at 5210 ms, prefill until 4990 ms
			[]placed{
				stage(2, 0, "forward_request", 5, 6990), stage(5, 2, "prefill", 8, 5012),
				below(at(prefillEngine(map[string]any{"gen_ai.latency.time_to_first_token": 4.99, "gen_ai.latency.time_in_model_prefill": 4.94, "gen_ai.latency.e2e": 5.0}), 10, 5010), 5),
				{7, 5, "decode", 5020, 6735, llmD[5].attributes},
				below(at(decodeEngine(nil), 5030, 6730), 7),
			},
			map[string]float64{"tokenpulse.time_to_first_token": 5.2, "tokenpulse.prefill.duration": 4.94, "tokenpulse.transfer.duration": 0.22, "tokenpulse.request.duration": 6.72},
		},
		"llm-d, the decode first in the batch": {append([]placed{llmD[7]}, llmD[:7]...), whole},
		"vLLM, and the span of the transfer": {
			[]placed{halfSecondClient(), plainSpan(2, 1, 5, 1990), prefillEngine(nil), decodeEngine(nil), {5, 4, "vllm_async_kv_transfer", 290, 380, nil}},
			map[string]float64{"tokenpulse.time_to_first_token": 0.45, "tokenpulse.prefill.duration": 0.19, "tokenpulse.transfer.duration": 0.09},
		},
		"TensorRT-LLM, which reports the transfer": {
			[]placed{
				halfSecondClient(), plainSpan(2, 1, 5, 1990),
				prefillEngine(map[string]any{"gen_ai.latency.kv_cache_transfer_time": 0.3, "gen_ai.response.finish_reasons": `["not_finished"]`, "gen_ai.request.max_tokens": 512}),
				decodeEngine(map[string]any{"gen_ai.latency.kv_cache_transfer_time": 0.07}),
			},
			map[string]float64{"tokenpulse.time_to_first_token": 0.45, "tokenpulse.prefill.duration": 0.19, "tokenpulse.transfer.duration": 0.07},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			spans := processTrace(t, joining(), traceOf(t, test.spans...))
			require.Equal(t, "0400000000000000", repeatedOf(spans[3]))
			require.Empty(t, repeatedOf(spans[4]))
			requireNumbers(t, test.want, spans[4])
			if name == "llm-d" { // its span of the decode is a gateway's call, with estimates of its own
				requireNumbers(t, map[string]float64{"tokenpulse.prefill.duration": 0.19, "tokenpulse.transfer.duration": 0.22, "tokenpulse.decode.duration": 1.5}, spans[7])
			}
		})
	}
}

// The spans of the phases lie in the client's span. Without a client, they begin when the prefill's engine got the request.
func TestHandover_PhasesAreThoseOfTheRequest(t *testing.T) {
	for name, test := range map[string]struct {
		spans []placed
		want  []phase
	}{
		"client": {
			[]placed{halfSecondClient(), plainSpan(2, 1, 5, 1990), prefillEngine(nil), decodeEngine(nil)},
			[]phase{{1, "queue", 0, 40}, {1, "prefill", 40, 230}, {1, "transfer", 230, 450}, {1, "decode", 500, 2000}},
		},
		"engines alone": {
			[]placed{{2, 0, "forward_request", 5, 1990, map[string]any{"llm_d.pd_proxy.connector": "nixlv2"}}, prefillEngine(nil), decodeEngine(nil)},
			[]phase{{4, "queue", -270, -230}, {4, "prefill", -230, -40}, {4, "transfer", -40, 180}, {4, "decode", 180, 1680}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			p, sink := newProcessor(t, processortest.NewNopSettings(typ), joiningWithPhases())
			require.NoError(t, p.ConsumeTraces(t.Context(), traceOf(t, test.spans...)))
			require.ElementsMatch(t, test.want, phasesIn(sink.AllTraces()[0]))
		})
	}
}

// A trace of the engines alone has one call, from 10 to 1980 ms, whose first token comes at 460 ms.
func TestHandover_RollsUpAsOneCall(t *testing.T) {
	cfg := joining()
	cfg.RollUp = true
	spans := processTrace(t, cfg, traceOf(t,
		placed{2, 0, "forward_request", 5, 1990, map[string]any{"llm_d.pd_proxy.connector": "nixlv2"}}, prefillEngine(nil), decodeEngine(nil)))
	requireNumbers(t, map[string]float64{
		names.TraceCalls: 1, names.TraceInputTokens: 100, names.TraceOutputTokens: 16, names.TraceCallDuration: 1.97, "tokenpulse.trace.time_to_answer": 0.455,
	}, spans[2])
}

// An SLO of 400 ms: the decode's engine alone would meet it.
func TestHandover_IsJudgedByTheWholeRequest(t *testing.T) {
	cfg := joining()
	cfg.SLOs = []SLOConfig{{Name: "ttft", Indicator: "time_to_first_token", Threshold: "400ms"}}
	spans := processTrace(t, cfg, traceOf(t, halfSecondClient(), plainSpan(2, 1, 5, 1990), prefillEngine(nil), decodeEngine(nil)))
	require.Equal(t, bad("ttft"), verdictsOn(spans[4]))
	require.Empty(t, verdictsOn(spans[3]))
}

// Each of Dynamo's workers has vLLM's span below it. Queue and prefill are those of the prefill's vLLM.
func TestHandover_EnginesBelowBothReportTheirOwnPhases(t *testing.T) {
	nested := []placed{below(at(prefillEngine(nil), 15, 258), 3), below(at(decodeEngine(nil), 285, 1975), 4)}
	nested[0].id, nested[1].id = 5, 6
	nested[1].attributes["gen_ai.latency.e2e"] = 1.69
	nested[0].attributes["gen_ai.latency.e2e"] = 0.243
	spans := processTrace(t, joining(), traceOf(t, append(dynamoPair(), nested...)...))
	require.Equal(t, "0400000000000000", repeatedOf(spans[3]))
	for _, id := range []byte{1, 4} {
		requireNumbers(t, map[string]float64{"tokenpulse.queue.duration": 0.04, "tokenpulse.prefill.duration": 0.19, "tokenpulse.decode.duration": 1.5}, spans[id])
	}
}

// The sums of the trace and the spans of the phases begin at the prefill, also if an earlier processor joined the engines.
func TestHandover_ALaterProcessorKnowsWhenTheRequestBegan(t *testing.T) {
	second := map[string]*Config{"joins again": joiningWithPhases(), "only rolls up": annotate.DefaultConfig()}
	for name, cfg := range second {
		t.Run(name, func(t *testing.T) {
			cfg.RollUp = true
			p, sink := newProcessor(t, processortest.NewNopSettings(typ), joiningWithPhases())
			require.NoError(t, p.ConsumeTraces(t.Context(), traceOf(t,
				placed{2, 0, "forward_request", 5, 1990, map[string]any{"llm_d.pd_proxy.connector": "nixlv2"}}, prefillEngine(nil), decodeEngine(nil))))
			later, laterSink := newProcessor(t, processortest.NewNopSettings(typ), cfg)
			require.NoError(t, later.ConsumeTraces(t.Context(), sink.AllTraces()[0]))
			traces := laterSink.AllTraces()[0]
			require.ElementsMatch(t, []phase{{4, "queue", -270, -230}, {4, "prefill", -230, -40}, {4, "transfer", -40, 180}, {4, "decode", 180, 1680}}, phasesIn(traces))
			for _, span := range allSpans(traces) {
				if span.SpanID() == (pcommon.SpanID{2}) {
					requireNumbers(t, map[string]float64{names.TraceCalls: 1, names.TraceCallDuration: 1.97, "tokenpulse.trace.time_to_answer": 0.455}, span)
				}
			}
		})
	}
}

// Engines that send chunks: the first token comes after 300 ms, the first audio after 400 ms of a decode that began 270 ms late.
func TestHandover_AudioBeginsWithTheRequestToo(t *testing.T) {
	engine := func(id byte, start, end int64, tokens int, offsets, channels []any) placed {
		return placed{id, 2, "chat", start, end, map[string]any{
			names.GenAIOperationName: "chat", names.Vantage: "engine", names.ChunkOffsets: offsets, names.ChunkChannels: channels,
			names.GenAIInputTokens: 100, names.GenAIOutputTokens: tokens,
		}}
	}
	spans := processTrace(t, joining(), traceOf(t, halfSecondClient(), plainSpan(2, 1, 5, 1990),
		engine(3, 10, 260, 1, []any{240_000}, []any{"content"}),
		engine(4, 280, 1980, 2, []any{300_000, 310_000, 400_000}, []any{"content", "content", "audio"})))
	require.Equal(t, "0400000000000000", repeatedOf(spans[3]))
	requireNumbers(t, map[string]float64{"tokenpulse.time_to_first_token": 0.57, "tokenpulse.time_to_first_audio": 0.67}, spans[4])
}

func TestHandover_IsColdIfEitherEngineIs(t *testing.T) {
	for name, test := range map[string]struct{ prefill, decode, want bool }{"prefill": {true, false, true}, "decode": {false, true, true}, "neither": {}} {
		t.Run(name, func(t *testing.T) {
			prefill, decode := prefillEngine(nil), decodeEngine(nil)
			if test.prefill {
				prefill.attributes[names.Cold] = true
			}
			if test.decode {
				decode.attributes[names.Cold] = true
			}
			require.Equal(t, test.want, isCold(processTrace(t, joining(), traceOf(t, halfSecondClient(), plainSpan(2, 1, 5, 1990), prefill, decode))[4]))
		})
	}
}

// Engines inside the prefill's engine are part of the prefill.
func TestHandover_EnginesBelowThePrefillDoNotCount(t *testing.T) {
	spans := processTrace(t, joining(), traceOf(t,
		halfSecondClient(), plainSpan(2, 1, 5, 1990), prefillEngine(nil), engineSpan(5, 3, 20, 250, nil), decodeEngine(nil), engineSpan(6, 4, 290, 1970, nil)))
	require.Equal(t, "0400000000000000", repeatedOf(spans[5]))
	require.Empty(t, repeatedOf(spans[6]))
	requireNumbers(t, whole, spans[4])
}

// Whatever spans a trace has, a span that is marked points to one that counts, and no first token is after the end.
func TestHandover_OfAnyTraceEachMarkPointsToOneThatCounts(t *testing.T) {
	random, pairs := rand.New(rand.NewPCG(1, 2)), 0
	of := func(values ...any) any { return values[random.IntN(len(values))] }
	for n := range 3000 {
		var spans []placed
		for id := byte(1); id <= byte(2+random.IntN(7)); id++ {
			start := int64(random.IntN(500))
			s := placed{id, byte(random.IntN(int(id) + 2)), of("llm_request", "engine.generate", "engine.generate", "engine.generate", "engine.generate", "prefill Req a", "decode Req a", "prefill", "decode", "chat m", "vllm_async_kv_transfer").(string), start, start + int64(random.IntN(2000)), map[string]any{}}
			for name, v := range map[string]any{
				"gen_ai.latency.time_to_first_token": of(0.1, 0.3, 5.0), "gen_ai.latency.time_in_model_prefill": of(0.05, 0.2), "gen_ai.usage.prompt_tokens": of(7, 8),
				"gen_ai.usage.completion_tokens": of(1, 1, 9), "bootstrap_room": of("0x1", "0x2"), "llm_d.pd_proxy.connector": "nixlv2", "disagg_role": of("prefill", "decode"),
				"prefill_span_id": of("0100000000000000", "0200000000000000", "0300000000000000", "x"), "ttft_ms": "50.00", names.GenAIOperationName: "chat",
			} {
				if random.IntN(3) > 0 && (name != names.GenAIOperationName || s.name == "chat m") {
					s.attributes[name] = v
				}
			}
			spans = append(spans, s)
		}
		byID := processTrace(t, joiningWithPhases(), traceOf(t, spans...))
		for _, span := range byID {
			first, whole := attributes.Measured(span.Attributes(), "tokenpulse.time_to_first_token"), attributes.Measured(span.Attributes(), "tokenpulse.request.duration")
			require.LessOrEqual(t, first.Value, whole.Value+1e-9, "trace %d", n)
			if repeated := repeatedOf(span); repeated != "" {
				id, err := hex.DecodeString(repeated)
				require.NoError(t, err)
				require.True(t, attributes.IsAnnotated(byID[id[0]]))
				require.Empty(t, repeatedOf(byID[id[0]]), "trace %d", n)
				pairs++
			}
		}
	}
	require.Greater(t, pairs, 50)
}
