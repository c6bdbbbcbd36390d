// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	aiperfEvents   = "../../testdata/recordings/aiperf.jsonl.gz"
	aiperfRequests = "../../testdata/recordings/aiperf.requests.json"
	agentSpans     = "../../testdata/spans/agent.jsonl"
)

// slowestRequest has numbers of a request in the JSON of slowest, in seconds.
type slowestRequest struct {
	TraceID string  `json:"trace_id"`
	TTFT    float64 `json:"time_to_first_token"`
	TPOT    float64 `json:"time_per_output_token"`
	E2E     float64 `json:"request_duration"`
}

func slowestOf(t *testing.T, args ...string) []slowestRequest {
	t.Helper()
	code, out, problems := execute(t.Context(), append([]string{"slowest", "--format", "json"}, args...)...)
	require.Zero(t, code, problems)
	var l struct{ Requests []slowestRequest }
	require.NoError(t, json.Unmarshal([]byte(out), &l))
	return l.Requests
}

// AIPerf computed the latencies of the same requests, in milliseconds.
func TestSlowest_EqualsASortOfTheLatenciesOfARecording(t *testing.T) {
	text, err := os.ReadFile(aiperfRequests)
	require.NoError(t, err)
	var measured []struct {
		TTFT float64 `json:"ttft"`
		TPOT float64 `json:"inter_token_latency"`
		E2E  float64 `json:"request_latency"`
	}
	require.NoError(t, json.Unmarshal(text, &measured))
	for by, of := range map[string]struct {
		want func(i int) float64
		got  func(slowestRequest) float64
	}{
		"time_to_first_token":   {func(i int) float64 { return measured[i].TTFT }, func(r slowestRequest) float64 { return r.TTFT }},
		"time_per_output_token": {func(i int) float64 { return measured[i].TPOT }, func(r slowestRequest) float64 { return r.TPOT }},
		"request_duration":      {func(i int) float64 { return measured[i].E2E }, func(r slowestRequest) float64 { return r.E2E }},
	} {
		var want []float64
		for i := range measured {
			want = append(want, of.want(i))
		}
		slices.Sort(want)
		slices.Reverse(want)
		for _, n := range []int{1, 20, 1000} {
			found := slowestOf(t, aiperfEvents, "--where", "outcome=success", "--by", by, "-n", strconv.Itoa(n))
			require.Len(t, found, min(n, len(measured)))
			for i := range found {
				require.InDelta(t, want[i]/1000, of.got(found[i]), 2e-6, "%s of the request at %d", by, i)
			}
		}
	}
}

func TestSlowest_ListsStallReplicaAndBreach(t *testing.T) {
	slos := filepath.Join(t.TempDir(), "slos.yaml")
	require.NoError(t, os.WriteFile(slos, []byte("slos: [{name: fast, indicator: time_to_first_token, threshold: 200ms}]\n"), 0o600))
	code, out, problems := execute(t.Context(), "slowest", agentSpans, "--slos", slos, "--where", "vantage=client")
	require.Zero(t, code)
	require.Empty(t, problems)
	require.Contains(t, out, "The 2 slowest by request_duration of 2 of 3 requests that match\n")
	require.Regexp(t, `950ms +180ms +123ms +610ms +812 +7 +stalls +1 \(610ms\) +success +client +gpt-oss-120b +4bf92f3577b34da6a3ce929d0e0e4736 +a1b2c3d4e5f60718 +llm.example.com:443 +-\n`, out)
	require.Regexp(t, `860ms +240ms .* f60718293a4b5c6d +llm.example.com:443 +fast\n`, out)
}

func TestSlowest_WarnsOfAnAttributeThatNoRequestHas(t *testing.T) {
	code, out, problems := execute(t.Context(), "slowest", agentSpans, "--where", "gen_ai.model=gpt-oss-120b")
	require.Zero(t, code)
	require.Contains(t, out, "of 0 of 3 requests")
	require.Equal(t, "tokenpulse: warning: no request has the attribute \"gen_ai.model\" of --where; check its name\n", problems)
}

func TestSlowest_MistakesOfTheCommandLineExitWith64(t *testing.T) {
	for expected, args := range map[string]string{
		"requires at least 1 arg":          "slowest",
		"-n is 0; give a number from 1 to": "slowest x -n 0",
		"-n is 1001; give a number":        "slowest x -n 1001",
		`--by is "ttft"; valid values: request_duration, time_to_first_token, time_per_output_token`: "slowest x --by ttft",
		`--where: "m" is no condition`:            "slowest x --where m",
		`--format is "html"; valid values: table`: "slowest x --format html",
		"no such file":               "slowest missing.jsonl",
		"requires at least 2 arg(s)": "trace 4bf92f",
		`"4bf9" is no ID; give a trace or span ID in hexadecimal,`: "trace 4bf9 x",
		"stat missing.jsonl: no such file":                         "trace 4bf92f missing.jsonl",
	} {
		code, out, problems := execute(t.Context(), strings.Fields(args)...)
		require.Equal(t, 64, code, args)
		require.Empty(t, out)
		require.Contains(t, problems, expected)
	}
}

func TestTrace_DrawsTheTraceOfAPrefixOrASpan(t *testing.T) {
	_, want, _ := execute(t.Context(), "trace", "4bf92f3577b34da6a3ce929d0e0e4736", agentSpans)
	require.Contains(t, want, "7 spans, 3 requests")
	require.Contains(t, want, "network 30ms, queue 30ms", "joined with the engine's span")
	for _, id := range []string{"4bf92f", "00f067aa0ba902b7", "F6071829"} { // of the last span, and one in the middle
		code, out, problems := execute(t.Context(), "trace", id, agentSpans)
		require.Zero(t, code, problems)
		require.Equal(t, want, out)
	}
}

func TestTrace_OfARequestThatSlowestLists(t *testing.T) {
	found := slowestOf(t, aiperfEvents, "-n", "1")
	code, out, problems := execute(t.Context(), "trace", found[0].TraceID, aiperfEvents)
	require.Zero(t, code, problems)
	require.Contains(t, out, "Trace "+found[0].TraceID+": 1 span, 1 request, ")
	require.Contains(t, out, "longest gaps: ")
}

func TestTrace_SaysThatThereIsNone(t *testing.T) {
	code, out, problems := execute(t.Context(), "trace", "abcdef", agentSpans)
	require.Equal(t, 1, code)
	require.Empty(t, out)
	require.Equal(t, "tokenpulse: no span has the trace or span ID abcdef; `tokenpulse slowest` lists IDs\n", problems)
	code, _, problems = execute(t.Context(), "trace", "010203", writeSpans(t, 2))
	require.Equal(t, 1, code)
	require.Contains(t, problems, "the ID 010203 is not unique: traces 0102030405060708090a0b0c0d0e0f00 and 0102030405060708090a0b0c0d0e0f01 have it")
}

// A pipe cannot be read a second time for the spans before the one with the ID.
func TestTrace_SpanIDInAPipe(t *testing.T) {
	text, err := os.ReadFile(agentSpans)
	require.NoError(t, err)
	read, write, err := os.Pipe()
	require.NoError(t, err)
	defer read.Close()
	_, err = write.Write(text) // a pipe holds 64 KiB
	require.NoError(t, err)
	require.NoError(t, write.Close())
	stdin := os.Stdin
	os.Stdin = read
	defer func() { os.Stdin = stdin }()
	code, _, problems := execute(t.Context(), "trace", "00f067aa0ba902b7", "-")
	require.Equal(t, 64, code)
	require.Contains(t, problems, "give the ID of its trace, 4bf92f3577b34da6a3ce929d0e0e4736")
}

// A trace that was not found may be in the files.
func TestTrace_InterruptedBeforeItIsFound(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	code, _, problems := execute(ctx, "trace", "4bf92f", agentSpans)
	require.Equal(t, 1, code)
	require.Contains(t, problems, "reading was interrupted: no span has")
}

// Ctrl-C shows what was read, and a script sees that it is a part.
func TestSlowest_InterruptedSaysSo(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	code, out, _ := execute(ctx, "slowest", agentSpans)
	require.Equal(t, 130, code)
	require.Contains(t, out, "PART of the files")
}
