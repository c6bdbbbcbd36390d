// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

//go:build engine

// Package engine compares what the token_tap receiver says of an engine with what the engine does.
package engine

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/e2e/internal/collector"
	"github.com/tokenpulse/tokenpulse/e2e/internal/otlpfile"
	"github.com/tokenpulse/tokenpulse/internal/testenv"
)

// engineTimings are times in milliseconds.
type engineTimings struct {
	Prompt    float64 `json:"prompt_ms"`
	Predicted float64 `json:"predicted_ms"`
}

// startEngine starts llama.cpp, and returns its URL.
func startEngine(t *testing.T) (engine *collector.Process, url string) {
	t.Helper()
	engine = collector.StartProcess(t, testenv.Program(t, "node"), filepath.Join(testenv.Root(t), "e2e", "engine", "server.mjs"), filepath.Join(t.TempDir(), "random.gguf"))
	listening := regexp.MustCompile(`listening on (\d+)`)
	require.Eventually(t, func() bool { return listening.MatchString(engine.Output(t)) }, 2*collector.Patience, 100*time.Millisecond, "the engine does not start")
	return engine, "http://127.0.0.1:" + listening.FindStringSubmatch(engine.Output(t))[1]
}

// asking is the body of a request for a number of tokens.
func asking(prompt, tokens int) io.Reader {
	return strings.NewReader(fmt.Sprintf(`{"stream":true,"n_predict":%d,"prompt_tokens":%d}`, tokens, prompt))
}

// complete asks the engine for a number of tokens, and returns the timings of its last
// event: on the clock of its server, and as counted by llama.cpp.
func complete(t *testing.T, url string, prompt, tokens int) (server, counted engineTimings) {
	t.Helper()
	answer, err := http.Post(url+"/completion", "application/json", asking(prompt, tokens))
	require.NoError(t, err)
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	events := bytes.Split(bytes.TrimSpace(body), []byte("\n\n"))
	require.Len(t, events, tokens+1, "an event for each token, and the last")
	var last struct {
		Timings engineTimings `json:"timings"`
		Counted engineTimings `json:"counted"`
	}
	require.NoError(t, json.Unmarshal(bytes.TrimPrefix(events[tokens], []byte("data: ")), &last))
	require.Positive(t, last.Timings.Predicted)
	require.Positive(t, last.Counted.Predicted)
	return last.Timings, last.Counted
}

// medianOf returns the middle of an odd number of values.
func medianOf(values []float64) float64 { return slices.Sorted(slices.Values(values))[len(values)/2] }

// llama.cpp computes a prompt and tokens. The first token and the time per token that the
// tap sees in passing agree with the times that the engine's process measures.
func TestEngine_LlamaTimingsAgreeWithTheTap(t *testing.T) {
	const prompt, tokens, requests, tolerance = 256, 64, 5, 0.02
	_, upstream := startEngine(t)
	c := collector.StartTap(t, upstream)
	complete(t, c.URL(""), prompt, 2) // the first one allocates

	var server, counted []engineTimings
	for range requests {
		s, k := complete(t, c.URL(""), prompt, tokens)
		server, counted = append(server, s), append(counted, k)
	}
	var spans []ptrace.Span
	require.Eventually(t, func() bool {
		spans = otlpfile.ReadSpans(t, c.Derived)
		return len(spans) == requests+1
	}, collector.Patience, 50*time.Millisecond, "a span for each request")

	seconds := func(span ptrace.Span, name string) float64 {
		value, ok := span.Attributes().Get(name)
		require.True(t, ok, name)
		return value.Double()
	}
	var prefill, decode []float64
	for i, span := range spans[1:] {
		tapPrefill := 1000 * seconds(span, "tokenpulse.time_to_first_token")
		tapDecode := 1000 * (tokens - 1) * seconds(span, "tokenpulse.inter_chunk_latency.mean") // of the arrivals, whatever the engine reports
		t.Logf("prefill: tap %.1f ms, engine %.1f ms, computing %.1f ms; decode: tap %.1f ms, engine %.1f ms, computing %.1f ms",
			tapPrefill, server[i].Prompt, counted[i].Prompt, tapDecode, server[i].Predicted, counted[i].Predicted)
		require.Greater(t, tapPrefill, counted[i].Prompt, "llama.cpp cannot compute for longer than the tap waits")
		require.Greater(t, tapDecode, counted[i].Predicted)
		prefill = append(prefill, tapPrefill/server[i].Prompt)
		decode = append(decode, tapDecode/server[i].Predicted)
		require.InDelta(t, tapDecode/(tokens-1), 1000*seconds(span, "tokenpulse.time_per_output_token"), 1e-3)
		// What the engine reports is on the span, to the microsecond.
		require.InDelta(t, server[i].Prompt, 1000*seconds(span, "tokenpulse.prefill.duration"), 1e-3)
		require.InDelta(t, server[i].Predicted, 1000*seconds(span, "tokenpulse.decode.duration"), 1e-3)
	}
	t.Logf("tap / engine, median of %d requests: prefill %.4f, decode %.4f", requests, medianOf(prefill), medianOf(decode))
	require.InDelta(t, 1, medianOf(prefill), tolerance)
	require.InDelta(t, 1, medianOf(decode), tolerance)
}
