// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

//go:build clients

package clients

import (
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os/exec"
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
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/testenv"
	"github.com/tokenpulse/tokenpulse/internal/testenv/recorded"
)

// tapLibraries are client libraries with the recordings that answer their calls. A call
// is the requested model.
var tapLibraries = map[string]map[string]string{
	"openai":    openAICalls,
	"vercel":    openAICalls,
	"langchain": openAICalls,
	"responses": {
		"stream": "openai_responses/text.sse",
		"tools":  "openai_responses/function_call.sse",
		"whole":  "openai_responses/unary_tool_calls.json",
		"error":  "openai_responses/error_401_json.json",
		"abort":  "openai_responses/reasoning_summary.sse",
	},
	"anthropic": {
		"stream": "anthropic_messages/cache_read_usage.sse",
		"tools":  "anthropic_messages/two_tool_use.sse",
		"whole":  "anthropic_messages/unary_thinking.json",
		"error":  "anthropic_messages/error_400_too_long.json",
		"retry":  "anthropic_messages/text_ping_between_deltas_padding.sse",
		"abort":  "anthropic_messages/cache_read_usage.sse",
	},
	"genai": {
		"stream": "gemini/text_crlf.sse",
		"tools":  "gemini/thinking_function_call_signature.sse",
		"whole":  "gemini/unary_thinking.json",
		"error":  "gemini/error_429_quota.json",
		"abort":  "gemini/thought_summaries.sse",
	},
	"ollama": {
		"stream": "ollama/chat_stream.ndjson",
		"whole":  "ollama/generate_unary.json",
		"error":  "ollama/error_404_json.json",
		"abort":  "ollama/chat_stream_http1_chunked_wire.bin",
	},
	"bedrock": {
		"stream":          "bedrock_converse/claude_thinking.bin",
		"tools":           "bedrock_converse/claude3_tool_use.bin",
		"whole":           "bedrock_converse/unary_converse.json",
		"error":           "bedrock_converse/error_400_validation.json",
		"throttled":       "bedrock_converse/derived_throttling_exception_midstream.bin",
		"invoke":          "bedrock_invoke/claude3_messages.bin",
		"invoke-mistral7": "bedrock_invoke/mistral7b.bin",
		"abort":           "bedrock_converse/prompt_cache_read.bin",
	},
}

var openAICalls = map[string]string{
	"stream": "openai_chat/web_search_trailing_space_tokens.sse",
	"tools":  "openai_chat/parallel_tool_calls.sse",
	"whole":  "llamacpp/unary_chat.json",
	"error":  "openai_chat/error_400_json_for_stream.json",
	"abort":  "openai_chat/deepseek_beta_emoji_usage.sse",
}

// clientUpstream answers the calls of client libraries with recordings.
type clientUpstream struct {
	*httptest.Server
	answers map[string]*recorded.Answer // by file
	aborted chan struct{}               // one per stream that its client left
}

func startClientUpstream(t *testing.T) *clientUpstream {
	t.Helper()
	u := &clientUpstream{answers: map[string]*recorded.Answer{}, aborted: make(chan struct{}, 2)}
	for _, r := range recorded.Answers(t) {
		u.answers[r.File] = &r
	}
	u.Server = httptest.NewUnstartedServer(u)
	u.Config.Protocols = &http.Protocols{}
	u.Config.Protocols.SetHTTP1(true)
	u.Config.Protocols.SetUnencryptedHTTP2(true)
	u.Start()
	t.Cleanup(u.Close)
	return u
}

var requestedModel = regexp.MustCompile(`"model":\s*"([^"]+)"`)

// modelInPath finds the models of Gemini and Bedrock.
var modelInPath = regexp.MustCompile(`/models?/([^/:]+)`)

func (u *clientUpstream) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	library, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	call := modelInPath.FindStringSubmatch(r.URL.Path)
	if call == nil {
		call = requestedModel.FindStringSubmatch(string(body))
	}
	if call == nil {
		http.Error(w, "no model", http.StatusTeapot)
		return
	}
	answer, ok := u.answers[tapLibraries[library][call[1]]]
	if !ok {
		http.Error(w, "no such call: "+library+" "+call[1], http.StatusTeapot)
		return
	}
	if call[1] == "retry" && r.Header.Get("X-Stainless-Retry-Count") == "0" {
		http.Error(w, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, 529)
		return
	}
	w.Header().Set("Content-Type", answer.ContentType)
	for name, value := range answer.ResponseHeaders {
		w.Header().Set(name, value)
	}
	w.WriteHeader(answer.Status)
	pieces := [][]byte{answer.Raw}
	if half := len(answer.Raw) / 2; call[1] == "abort" {
		pieces = [][]byte{answer.Raw[:half]}
	} else if answer.Status == http.StatusOK {
		pieces = slices.Collect(slices.Chunk(answer.Raw, 100))
	}
	for _, piece := range pieces {
		_, _ = w.Write(piece)
		_ = http.NewResponseController(w).Flush()
	}
	if call[1] == "abort" {
		<-r.Context().Done()
		u.aborted <- struct{}{}
	}
}

// Real client libraries get the same through the tap as without it, and each of their
// requests has a span.
func TestTapClients(t *testing.T) {
	folder := clientsFolder(t)
	require.DirExists(t, filepath.Join(folder, "node_modules"), "the libraries are not installed; run: make suite-clients")
	upstream := startClientUpstream(t)
	for library, answers := range tapLibraries {
		t.Run(library, func(t *testing.T) {
			c := collector.StartTap(t, upstream.URL)
			calls := slices.Sorted(maps.Keys(answers))
			direct := runTapClient(t, folder, library, upstream.URL, calls)
			require.Equal(t, direct, runTapClient(t, folder, library, "http://"+c.Address, calls))
			requireResults(t, direct, calls)
			for range 2 { // without the tap and through it
				select {
				case <-upstream.aborted:
				case <-time.After(collector.Patience):
					require.Fail(t, "the upstream does not learn that the client left")
				}
			}
			c.Stop(t)
			spans := map[string][]ptrace.Span{}
			for _, span := range otlpfile.ReadSpans(t, c.Sent) {
				call := otlpfile.Text(t, span.Attributes(), "gen_ai.request.model")
				spans[call] = append(spans[call], span)
			}
			for call, file := range answers {
				t.Run(call, func(t *testing.T) { requireSpans(t, spans[call], call, upstream.answers[file]) })
			}
		})
	}
}

// runTapClient returns what a library returned for its calls, one line each.
func runTapClient(t *testing.T, folder, library, base string, calls []string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	arguments := append([]string{filepath.Join(folder, "tap.mjs"), library, base + "/" + library}, calls...)
	command := exec.CommandContext(ctx, testenv.Program(t, "node"), arguments...)
	var problems strings.Builder
	command.Stderr = &problems
	output, err := command.Output()
	require.NoError(t, err, "%s%s", output, problems.String())
	return string(output)
}

// requireResults requires that the library understood the answers and the errors.
func requireResults(t *testing.T, output string, calls []string) {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(output), "\n")
	require.Len(t, lines, len(calls))
	for i, line := range lines {
		var result struct {
			Call, Error string
			Parts       []struct{ Text, Tool any }
		}
		require.NoError(t, json.Unmarshal([]byte(line), &result), line)
		require.Equal(t, calls[i], result.Call)
		switch result.Call {
		case "abort":
		case "error", "throttled":
			require.NotEmpty(t, result.Error, line)
		default:
			require.Empty(t, result.Error, line)
			require.True(t, slices.ContainsFunc(result.Parts, func(part struct{ Text, Tool any }) bool {
				return part.Text != nil && part.Text != "" || part.Tool != nil
			}), line)
		}
	}
}

func requireSpans(t *testing.T, spans []ptrace.Span, call string, answer *recorded.Answer) {
	t.Helper()
	if call == "retry" {
		require.Len(t, spans, 2, "a span per attempt")
		slices.SortFunc(spans, func(a, b ptrace.Span) int { return int(a.StartTimestamp()) - int(b.StartTimestamp()) })
		require.Equal(t, "error", otlpfile.Text(t, spans[0].Attributes(), names.Outcome))
		require.Equal(t, "overloaded_error", otlpfile.Text(t, spans[0].Attributes(), "error.type"))
		spans = spans[1:]
	}
	require.Len(t, spans, 1)
	times, _ := otlpfile.ChunksOf(t, spans[0])
	chunks := len(times)
	outcome := otlpfile.Text(t, spans[0].Attributes(), names.Outcome)
	switch {
	case call == "abort":
		require.Equal(t, "cancelled", outcome)
		require.Positive(t, chunks)
		require.Less(t, chunks, int(answer.TokenChunks))
	case answer.Error != "":
		require.Equal(t, "error", outcome)
		require.NotEmpty(t, otlpfile.Text(t, spans[0].Attributes(), "error.type"))
	case answer.ChunkUnit == "json_document":
		require.Equal(t, "success", outcome)
		require.Zero(t, chunks)
	default:
		require.Equal(t, "success", outcome)
		require.Equal(t, int(answer.TokenChunks), chunks)
	}
}
