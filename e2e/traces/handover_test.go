// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package traces

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/e2e/internal/collector"
	"github.com/tokenpulse/tokenpulse/e2e/internal/exposition"
	"github.com/tokenpulse/tokenpulse/internal/testenv"
)

// handedOver is a request of a client that one engine of vLLM hands over to another, after 230 ms: a queue of 40 ms and a
// prefill of 190 ms. Made by hand, with the attributes of vLLM's vllm/v1/engine/output_processor.py (do_tracing).
//
// From 10 ms, when the prefill's engine gets it, to the first token of the decode's engine at 280 + 180 ms, are 450 ms. The
// client sees that token after 500 ms.
var handedOver = []sent{
	{service: "shop", id: "a000000000000001", name: "chat m", start: 0, end: 2000, operation: "chat", model: "large", attributes: map[string]float64{
		"gen_ai.response.time_to_first_chunk": 0.5, "gen_ai.usage.input_tokens": 100, "gen_ai.usage.output_tokens": 16,
	}},
	{service: "proxy", id: "b000000000000001", parent: "a000000000000001", name: "POST /v1/chat/completions", start: 5, end: 1990},
	{service: "prefill", id: "c000000000000001", parent: "b000000000000001", name: "llm_request", start: 10, end: 260, attributes: map[string]float64{
		"gen_ai.latency.time_to_first_token": 0.24, "gen_ai.latency.e2e": 0.25, "gen_ai.latency.time_in_queue": 0.04,
		"gen_ai.latency.time_in_model_prefill": 0.19, "gen_ai.latency.time_in_model_decode": 0, "gen_ai.usage.prompt_tokens": 100, "gen_ai.usage.completion_tokens": 1,
	}},
	{service: "decode", id: "d000000000000001", parent: "b000000000000001", name: "llm_request", start: 280, end: 1980, attributes: map[string]float64{
		"gen_ai.latency.time_to_first_token": 0.18, "gen_ai.latency.e2e": 1.7, "gen_ai.latency.time_in_queue": 0.1,
		"gen_ai.latency.time_in_model_prefill": 0.05, "gen_ai.latency.time_in_model_decode": 1.5, "gen_ai.usage.prompt_tokens": 100, "gen_ai.usage.completion_tokens": 16,
	}},
}

// transferred is how long the request waited between the end of the prefill and the first token of the decode: 460 - 240 ms.
const transferred = 0.22

func TestHandover_CountsOnceInMetrics(t *testing.T) {
	spansFile := collector.ExampleEnvironment(t)
	collector.Setenv(t, "TRACE_WAIT", "1s")
	c := collector.Start(t, collector.Example(t, "agent-traces.yaml"), collector.OwnMetricsOff)
	for _, s := range handedOver {
		postTrace(t, s)
	}
	require.Eventually(t, func() bool {
		written, err := os.ReadFile(spansFile)
		return err == nil && bytes.Contains(written, []byte(agentTraceID))
	}, collector.Patience, 50*time.Millisecond)
	var families map[string]*dto.MetricFamily
	require.Eventually(t, func() bool {
		families = exposition.Scrape(t, c)
		return families["tokenpulse_requests_total"] != nil
	}, collector.Patience, 50*time.Millisecond)

	requests, transfer, firstToken := map[string]float64{}, map[string]float64{}, map[string]float64{}
	for _, m := range families["tokenpulse_requests_total"].GetMetric() {
		requests[exposition.Label(m, "service_name")] += m.GetCounter().GetValue()
	}
	require.Equal(t, map[string]float64{"shop": 1, "decode": 1}, requests)
	for _, m := range families["tokenpulse_phase_duration_seconds"].GetMetric() {
		if exposition.Label(m, "phase") == "transfer" {
			transfer[exposition.Label(m, "service_name")] = m.GetHistogram().GetSampleSum()
		}
	}
	require.InDeltaMapValues(t, map[string]float64{"shop": transferred, "decode": transferred}, transfer, 1e-9)
	for _, m := range families["tokenpulse_time_to_first_token_seconds"].GetMetric() {
		firstToken[exposition.Label(m, "service_name")] = m.GetHistogram().GetSampleSum()
	}
	require.InDeltaMapValues(t, map[string]float64{"shop": 0.5, "decode": 0.45}, firstToken, 1e-9)
}

// The command reads the same spans from a file.
func TestHandover_CountsOnceInAReport(t *testing.T) {
	t.Parallel()
	var lines []byte
	for _, s := range handedOver {
		lines = append(append(lines, asJSON(t, s)...), '\n')
	}
	file := filepath.Join(t.TempDir(), "spans.jsonl")
	require.NoError(t, os.WriteFile(file, lines, 0o600))
	command := exec.CommandContext(t.Context(), collector.Built(t, "tokenpulse"), "report", file, "--format", "json",
		"--config", filepath.Join(testenv.Root(t), "examples", "agent-traces.yaml"))
	var warnings bytes.Buffer
	command.Stderr = &warnings
	out, err := command.Output()
	require.NoError(t, err, warnings.String())
	var report struct {
		Groups []struct {
			Vantage  string
			Outcomes map[string]struct {
				Requests   int
				Indicators map[string]struct{ Sum float64 }
			}
		}
	}
	require.NoError(t, json.Unmarshal(out, &report))
	require.Len(t, report.Groups, 2)
	for _, g := range report.Groups {
		success := g.Outcomes["success"]
		require.Equal(t, 1, success.Requests, g.Vantage)
		require.InDelta(t, transferred, success.Indicators["transfer"].Sum, 1e-9, g.Vantage)
	}
}
