// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

//go:build clients

package e2e

import (
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/internal/testenv"
)

// late is how much later than the server sent a chunk a client may see it. A busy machine delays some calls by more.
const late = 5 // milliseconds

// timedLibraries are the libraries of clients/timed.mjs, and two streams at the same time.
var timedLibraries = []string{
	"chat", "chat-helper", "responses", "responses-helper", "anthropic", "anthropic-helper", "vercel", "together-a", "together-b",
}

// timedCalls are the calls that differ from the others.
var timedCalls = map[string]struct {
	outcome  string
	streamed bool
}{
	"left-aborted": {"cancelled", true},
	"teed":         {"success", true},
	"missing":      {"error", false},
	"whole":        {"success", false},
	"own":          {"success", true},
}

func TestTimedClients(t *testing.T) {
	folder := clientsFolder(t)
	installTimed(t, folder)
	for mode, own := range map[string]string{"otel": "chunk_offsets", "post": "token_stream"} {
		t.Run(mode, func(t *testing.T) {
			requests, spans := runTimed(t, testenv.Program(t, "node"), filepath.Join(folder, "timed.mjs"), mode)
			requireTimed(t, requests, spans, own, timedLibraries)
			require.True(t, slices.ContainsFunc(spans, func(span ptrace.Span) bool {
				return text(t, span.Attributes(), "gen_ai.request.model") == "missing"
			}), "a failed request is a request")
		})
	}
}

func TestPythonClients(t *testing.T) {
	python := testenv.Program(t, "python3")
	requests, spans := runTimed(t, python, "-B", filepath.Join(clientsFolder(t), "timed.py"), "post")
	requireTimed(t, requests, spans, "token_stream", []string{"python", "python-async", "together-a", "together-b"})
}

// The helpers' own tests.
func TestTimedClients_Units(t *testing.T) {
	clients := filepath.Join(testenv.Root(t), "clients")
	run(t, testenv.Program(t, "node"), "--test", filepath.Join(clients, "js", "tokenpulse.test.mjs"))
	run(t, testenv.Program(t, "python3"), "-B", "-m", "unittest", "discover", "-s", filepath.Join(clients, "python"))
}

// runTimed runs a script beside a Collector and a model server, and returns what the server sent and the spans
// that the Collector derived.
func runTimed(t *testing.T, program string, args ...string) (map[string]served, []ptrace.Span) {
	t.Helper()
	server, otlp := startModelServer(t), freeAddress(t)
	derived := filepath.Join(t.TempDir(), "derived.jsonl")
	for name, value := range map[string]string{
		"SPANS_FILE": derived, "SENT_SPANS_FILE": filepath.Join(t.TempDir(), "sent.jsonl"), "OTLP_HTTP_ENDPOINT": otlp,
	} {
		setenv(t, name, value)
	}
	c := startCollector(t, filepath.Join(clientsFolder(t), "collector.yaml"))
	for name, value := range map[string]string{
		"OTEL_EXPORTER_OTLP_ENDPOINT": "http://" + otlp,
		"TOKENPULSE_ENDPOINT":         "http://" + c.http,
		"OTEL_SERVICE_NAME":           "timed",
		"OPENAI_BASE_URL":             server.url,
		"OPENAI_API_KEY":              "none",
		"ANTHROPIC_BASE_URL":          strings.TrimSuffix(server.url, "/v1"),
		"ANSWER":                      strings.Join(answerTokens, ""),
	} {
		setenv(t, name, value)
	}
	run(t, program, args...)
	requests := server.stop(t)
	c.stop(t)
	return requests, readSpans(t, derived)
}

// maxOverhead is far above what timed adds to a chunk on an idle machine.
const maxOverhead = 100 * time.Microsecond

func TestTimedClients_Overhead(t *testing.T) {
	folder := clientsFolder(t)
	installTimed(t, folder)
	for program, args := range map[string][]string{"node": {"timed_overhead.mjs"}, "python3": {"timed.py", "overhead"}} {
		command := exec.CommandContext(t.Context(), testenv.Program(t, program), args...)
		command.Dir = folder
		output, err := command.Output()
		require.NoError(t, err)
		added, err := strconv.ParseFloat(strings.TrimSpace(string(output)), 64)
		require.NoError(t, err)
		t.Logf("%s: timed adds %v us per chunk", program, added)
		require.Less(t, added, float64(maxOverhead.Microseconds()))
	}
}

// installTimed copies clients/js to where the scripts import it from, as a user would.
func installTimed(t *testing.T, folder string) {
	t.Helper()
	to := filepath.Join(folder, "node_modules", "tokenpulse")
	require.NoError(t, os.RemoveAll(to))
	require.NoError(t, os.CopyFS(to, os.DirFS(filepath.Join(testenv.Root(t), "clients", "js"))))
}

// requireTimed compares the spans with what the server sent.
func requireTimed(t *testing.T, requests map[string]served, spans []ptrace.Span, source string, libraries []string) {
	t.Helper()
	best := map[string]float64{} // by library: the largest deviation in the call that has the smallest
	seen := map[string]bool{}
	for _, span := range spans {
		attributes := span.Attributes()
		model := text(t, attributes, "gen_ai.request.model")
		require.False(t, seen[model], "two spans of %s", model)
		seen[model] = true
		if call, ok := timedCalls[model]; ok {
			require.Equal(t, call.outcome, text(t, attributes, "tokenpulse.outcome"), model)
			_, found := attributes.Get("tokenpulse.time_to_first_token")
			require.Equal(t, call.streamed, found, model)
			if !call.streamed {
				continue
			}
		} else {
			require.Equal(t, "success", text(t, attributes, "tokenpulse.outcome"), model)
		}
		require.Equal(t, source, text(t, attributes, "tokenpulse.source"), model)
		require.Equal(t, "client", text(t, attributes, "tokenpulse.vantage"), model)
		request := requests[model]
		deviation := requireArrivals(t, model, request, span)
		library, call, _ := strings.Cut(model, ".")
		t.Logf("%-24s largest deviation %.2f ms", model, deviation)
		if known, ok := best[library]; call != "warmup" && call != "" && (!ok || deviation < known) {
			best[library] = deviation
		}
		if request.reportedUsage() {
			requireTokens(t, model, attributes)
		}
	}
	for model := range requests {
		// Without an SDK, only streams are posted.
		require.Equal(t, source == "chunk_offsets" || model != "whole", seen[model], model)
	}
	for _, library := range libraries {
		require.Contains(t, best, library)
		require.LessOrEqual(t, best[library], float64(late), library)
	}
}

// requireArrivals returns the largest difference, in milliseconds, between a number of the span and the same number at
// the server: time to first token, and the smallest, largest and mean gap. Client and server share this machine's clock.
func requireArrivals(t *testing.T, model string, request served, span ptrace.Span) float64 {
	t.Helper()
	tokens := request.times(contentFrame)
	require.GreaterOrEqual(t, len(tokens), abortedAfter, model)
	attributes := span.Attributes()
	count, _ := attributes.Get("tokenpulse.chunk.count")
	require.EqualValues(t, len(tokens), count.Int(), model)
	longest := time.Duration(0)
	for i := 1; i < len(tokens); i++ {
		longest = max(longest, tokens[i].Sub(tokens[i-1]))
	}
	first := inMilliseconds(tokens[0].Sub(span.StartTimestamp().AsTime()))
	decode := inMilliseconds(tokens[len(tokens)-1].Sub(tokens[0]))
	deviation := 0.0
	for name, truth := range map[string]float64{
		"tokenpulse.time_to_first_token":        first,
		"tokenpulse.decode.duration":            decode,
		"tokenpulse.inter_chunk_latency.max":    inMilliseconds(longest),
		"tokenpulse.inter_chunk_latency.mean":   decode / float64(len(tokens)-1),
		"tokenpulse.time_to_first_output_token": first,
	} {
		measured := milliseconds(t, attributes, name)
		if name == "tokenpulse.time_to_first_token" {
			require.GreaterOrEqual(t, measured, truth-clockStep-1, "%s: a client cannot see a chunk before it is sent", model)
		}
		deviation = max(deviation, math.Abs(measured-truth))
	}
	return deviation
}

func requireTokens(t *testing.T, model string, attributes pcommon.Map) {
	t.Helper()
	for name, want := range map[string]int64{"gen_ai.usage.input_tokens": inputTokens, "gen_ai.usage.output_tokens": outputTokens} {
		value, found := attributes.Get(name)
		require.True(t, found, "%s of %s", name, model)
		require.Equal(t, want, value.Int(), "%s of %s", name, model)
	}
}
