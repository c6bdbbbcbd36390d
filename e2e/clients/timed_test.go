// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

//go:build clients

package clients

import (
	"encoding/json"
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

	"github.com/tokenpulse/tokenpulse/e2e/internal/collector"
	"github.com/tokenpulse/tokenpulse/e2e/internal/otlpfile"
	"github.com/tokenpulse/tokenpulse/internal/testenv"
)

// late is how far what `timed` sees may lie from what the process around it sees. It is not compared with the server, since
// a busy machine delays the process by more.
const late = 5 // milliseconds

// arrived is a stream as the process of the client saw it.
type arrived struct {
	served             // with the time when the process got each frame
	read   []time.Time // when the application read each token, if it says so
}

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
				return otlpfile.Text(t, span.Attributes(), "gen_ai.request.model") == "missing"
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
	collector.Run(t, testenv.Program(t, "node"), "--test", filepath.Join(clients, "js", "tokenpulse.test.mjs"))
	collector.Run(t, testenv.Program(t, "python3"), "-B", "-m", "unittest", "discover", "-s", filepath.Join(clients, "python"))
}

// runTimed runs a script beside a Collector and a model server, and returns what the script saw and the spans that the
// Collector derived.
func runTimed(t *testing.T, program string, args ...string) (map[string]arrived, []ptrace.Span) {
	t.Helper()
	server, otlp := startModelServer(t), collector.FreeAddress(t)
	derived, arrivals := filepath.Join(t.TempDir(), "derived.jsonl"), filepath.Join(t.TempDir(), "arrivals.json")
	for name, value := range map[string]string{
		"ARRIVALS_FILE": arrivals, "SPANS_FILE": derived, "SENT_SPANS_FILE": filepath.Join(t.TempDir(), "sent.jsonl"), "OTLP_HTTP_ENDPOINT": otlp,
	} {
		collector.Setenv(t, name, value)
	}
	c := collector.Start(t, filepath.Join(clientsFolder(t), "collector.yaml"))
	for name, value := range map[string]string{
		"OTEL_EXPORTER_OTLP_ENDPOINT": "http://" + otlp,
		"TOKENPULSE_ENDPOINT":         "http://" + c.HTTP,
		"OTEL_SERVICE_NAME":           "timed",
		"OPENAI_BASE_URL":             server.url,
		"OPENAI_API_KEY":              "none",
		"ANTHROPIC_BASE_URL":          strings.TrimSuffix(server.url, "/v1"),
		"ANSWER":                      strings.Join(answerTokens, ""),
	} {
		collector.Setenv(t, name, value)
	}
	collector.Run(t, program, args...)
	requests := readArrivals(t, arrivals, server.stop(t))
	c.Stop(t)
	return requests, otlpfile.ReadSpans(t, derived)
}

// readArrivals reads what e2e/clients/timed wrote of the requests that the server answered.
func readArrivals(t *testing.T, file string, requests map[string]served) map[string]arrived {
	t.Helper()
	content, err := os.ReadFile(filepath.Clean(file))
	require.NoError(t, err)
	var written struct{ Got, Read map[string][]float64 } // milliseconds of Unix time
	require.NoError(t, json.Unmarshal(content, &written))
	all := make(map[string]arrived, len(requests))
	for model, request := range requests {
		got, read := unixTimes(written.Got[model]), unixTimes(written.Read[model])
		require.LessOrEqual(t, len(got), len(request.sent), model)
		for i := range got {
			require.Greater(t, got[i].Sub(request.sent[i].at), -2*clockStep*time.Millisecond, "%s: got before it was sent", model)
			request.sent[i].at = got[i]
		}
		if request.streamed {
			request.sent = request.sent[:len(got)]
		}
		all[model] = arrived{served: request, read: read}
	}
	return all
}

func unixTimes(milliseconds []float64) []time.Time {
	var times []time.Time
	for _, at := range milliseconds {
		times = append(times, time.UnixMicro(int64(at*1e3)))
	}
	return times
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

// requireTimed compares the spans with what the process saw.
func requireTimed(t *testing.T, requests map[string]arrived, spans []ptrace.Span, source string, libraries []string) {
	t.Helper()
	best := map[string]float64{} // by library: the largest deviation in the call that has the smallest
	seen := map[string]bool{}
	for _, span := range spans {
		attributes := span.Attributes()
		model := otlpfile.Text(t, attributes, "gen_ai.request.model")
		require.False(t, seen[model], "two spans of %s", model)
		seen[model] = true
		if call, ok := timedCalls[model]; ok {
			require.Equal(t, call.outcome, otlpfile.Text(t, attributes, "tokenpulse.outcome"), model)
			_, found := attributes.Get("tokenpulse.time_to_first_token")
			require.Equal(t, call.streamed, found, model)
			if !call.streamed {
				continue
			}
		} else {
			require.Equal(t, "success", otlpfile.Text(t, attributes, "tokenpulse.outcome"), model)
		}
		require.Equal(t, source, otlpfile.Text(t, attributes, "tokenpulse.source"), model)
		require.Equal(t, "client", otlpfile.Text(t, attributes, "tokenpulse.vantage"), model)
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

// requireArrivals returns by how many milliseconds a number of the span lies outside of the same number of the chunks as the
// process got them and as the application read them: time to first token, decode duration, and the largest and mean gap.
func requireArrivals(t *testing.T, model string, request arrived, span ptrace.Span) float64 {
	t.Helper()
	got, attributes := request.times(contentFrame), span.Attributes()
	require.GreaterOrEqual(t, len(got), abortedAfter, model)
	count, _ := attributes.Get("tokenpulse.chunk.count")
	require.EqualValues(t, len(got), count.Int(), model)
	start := span.StartTimestamp().AsTime()
	low := paceOf(start, got)
	high := low
	if request.read != nil {
		require.Len(t, request.read, len(got), model)
		high = paceOf(start, request.read)
	}
	deviation := 0.0
	for name := range low {
		measured := otlpfile.Milliseconds(t, attributes, "tokenpulse."+name)
		if name == "time_to_first_token" {
			require.GreaterOrEqual(t, measured, low[name]-clockStep-1, "%s: timed cannot see a chunk before its process", model)
		}
		deviation = max(deviation, min(low[name], high[name])-measured, measured-max(low[name], high[name]))
	}
	return deviation
}

// paceOf returns the numbers of a span, in milliseconds, of tokens that were seen at these times.
func paceOf(start time.Time, tokens []time.Time) map[string]float64 {
	longest := time.Duration(0)
	for i := 1; i < len(tokens); i++ {
		longest = max(longest, tokens[i].Sub(tokens[i-1]))
	}
	first, decode := inMilliseconds(tokens[0].Sub(start)), inMilliseconds(tokens[len(tokens)-1].Sub(tokens[0]))
	return map[string]float64{
		"time_to_first_token": first, "time_to_first_output_token": first, "decode.duration": decode,
		"inter_chunk_latency.max": inMilliseconds(longest), "inter_chunk_latency.mean": decode / float64(len(tokens)-1),
	}
}

func requireTokens(t *testing.T, model string, attributes pcommon.Map) {
	t.Helper()
	for name, want := range map[string]int64{"gen_ai.usage.input_tokens": inputTokens, "gen_ai.usage.output_tokens": outputTokens} {
		value, found := attributes.Get(name)
		require.True(t, found, "%s of %s", name, model)
		require.Equal(t, want, value.Int(), "%s of %s", name, model)
	}
}
