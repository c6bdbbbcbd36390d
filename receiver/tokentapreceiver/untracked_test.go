// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokentapreceiver

import (
	"bufio"
	"compress/gzip"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

const (
	workersAI     = "/client/v4/accounts/023e105f4ecef8ad9ca31a8372d0c353/ai/run/@cf/meta/llama-3.1-8b-instruct"
	unknownEvent  = `data: {"progress":1,"note":"half"}` + "\n\n"
	namedUnknown  = "forwarded an answer in no known format without a span; if it is an LLM's, report the format"
	untrackedRead = 64 << 10
)

// answer answers with a status, a content type and a body.
func answer(status int, contentType, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// padding is a comment of SSE.
func padding(bytes int) string { return ":" + strings.Repeat("x", bytes-2) + "\n" }

func TestUntracked_StreamInAKnownFormatIsMeasured(t *testing.T) {
	for name, test := range map[string]struct{ contentType, body string }{
		"OpenAI's chunks":              {"text/event-stream", chatAnswer(3)},
		"after events that say little": {"text/event-stream; charset=utf-8", strings.Repeat(unknownEvent, 3) + chatAnswer(3)},
		"just within what is read":     {"text/event-stream", padding(untrackedRead-len(roleEvent)) + chatAnswer(3)},
		"JSON lines":                   {"application/x-ndjson", strings.Repeat(`{"model":"m-1","response":"a","done":false}`+"\n", 3) + `{"model":"m-1","done":true,"response":"","eval_count":5}` + "\n"},
	} {
		t.Run(name, func(t *testing.T) {
			p := start(t, answer(http.StatusOK, test.contentType, test.body))
			_, body := p.post(workersAI, `{"stream":true,"messages":[]}`)
			require.Equal(t, test.body, body)
			span := p.span()
			times, _ := arrivals(t, span)
			require.Len(t, times, 3)
			require.Equal(t, "m-1", attributesOf(span)["gen_ai.request.model"])
			require.EqualValues(t, 5, attributesOf(span)["gen_ai.usage.output_tokens"])
			require.Zero(t, p.logs.FilterMessage(namedUnknown).Len())
		})
	}
}

func TestUntracked_OtherAnswersHaveNoSpanAndAreNamed(t *testing.T) {
	whole := `{"object":"chat.completion","choices":[{"message":{"content":"a"},"finish_reason":"stop"}]}`
	for name, test := range map[string]struct {
		status            int
		contentType, body string
	}{
		"an error":                    {http.StatusInternalServerError, "text/event-stream", chatAnswer(3)},
		"no content type of a stream": {http.StatusOK, "application/json", whole},
		"SSE in no known format":      {http.StatusOK, "text/event-stream", strings.Repeat(unknownEvent, 2000)},
		"a run of OpenAI's Assistants": {http.StatusOK, "text/event-stream", "event: thread.run.created\ndata: {\"id\":\"r\",\"object\":\"thread.run\",\"status\":\"queued\",\"model\":\"m\"}\n\n" +
			"event: thread.message.delta\ndata: {\"object\":\"thread.message.delta\",\"delta\":{\"content\":[{\"text\":{\"value\":\"a\"}}]}}\n\n"},
		"JSON lines in no known format": {http.StatusOK, "application/x-ndjson", strings.Repeat(`{"progress":1}`+"\n", 9)},
		"a large first event":           {http.StatusOK, "text/event-stream", `data: {"object":"chat.completion.chunk","pad":"` + strings.Repeat("x", untrackedRead) + `"}` + "\n\n" + chatAnswer(3)},
		"a large first line":            {http.StatusOK, "application/x-ndjson", `{"pad":"` + strings.Repeat("x", untrackedRead) + `","response":"a","done":false}` + "\n"},
		"a known event too late":        {http.StatusOK, "text/event-stream", padding(untrackedRead-len(roleEvent)+1) + chatAnswer(3)},
		"a known event after 16 others": {http.StatusOK, "text/event-stream", strings.Repeat(unknownEvent, 16) + chatAnswer(3)},
		"no event":                      {http.StatusOK, "text/event-stream", strings.Repeat(": keep-alive\n\n", 9)},
		"nothing":                       {http.StatusOK, "text/event-stream", ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := start(t, answer(test.status, test.contentType, test.body))
			_, body := p.post(workersAI, `{"stream":true}`)
			require.Equal(t, test.body, body)
			require.Eventually(t, func() bool { return p.logs.FilterFieldKey("path").Len() == 1 }, 10*time.Second, time.Millisecond)
			require.Len(t, p.logs.FilterMessage(namedUnknown).All(), 1, "%v", p.logs.All())
			require.EqualValues(t, 1, p.counter("exchanges_unrecognised"))
			require.Eventually(t, func() bool { return p.receiver.memory.Held() == 0 }, 10*time.Second, time.Millisecond)
			require.Zero(t, p.spans.SpanCount())
			require.Zero(t, p.counter("unparsed"))
			require.Equal(t, map[string]any{
				"path": "/client/v0/accounts/*/ai/run/@cf/meta/llama-0.0-0b-instruct", "upstream": p.receiver.routes[0].endpoint.Host,
				"content_type": test.contentType, "status": int64(test.status),
			}, p.logs.FilterMessage(namedUnknown).All()[0].ContextMap())
		})
	}
}

// Each piece reaches the client before the next one is sent, and the memory of what cannot be recognised is
// given back while the stream is open. The stream counts toward max_streams.
func TestUntracked_StreamIsNotDelayedNorHeld(t *testing.T) {
	for _, compressed := range []bool{false, true} {
		next := make(chan struct{})
		var handle http.HandlerFunc = func(w http.ResponseWriter, req *http.Request) {
			if req.URL.Path == chatPath {
				answerChat(w, req)
				return
			}
			w.Header().Set("Content-Type", "text/event-stream")
			var out io.Writer = w
			flush := func() { _ = http.NewResponseController(w).Flush() }
			if compressed {
				w.Header().Set("Content-Encoding", "gzip")
				z := gzip.NewWriter(w)
				defer func() { _ = z.Close() }()
				out, flush = z, func() { _ = z.Flush(); _ = http.NewResponseController(w).Flush() }
			}
			for i := range 20 {
				_, _ = fmt.Fprintf(out, "data: {\"i\":%d,\"pad\":%q\n", i, strings.Repeat("x", 8<<10)) // an event without an end
				flush()
				select {
				case <-next:
				case <-req.Context().Done():
					return
				}
			}
		}
		p := start(t, handle, func(cfg *Config) { cfg.MaxStreams = 1 })
		response := p.open("/events", "{}")
		var body io.Reader = response.Body
		if compressed {
			var err error
			body, err = gzip.NewReader(body)
			require.NoError(t, err)
		}
		lines := bufio.NewReader(body)
		for i := range 20 {
			line, err := lines.ReadString('\n')
			require.NoError(t, err)
			require.True(t, strings.HasPrefix(line, fmt.Sprintf(`data: {"i":%d,`, i)))
			if i == 10 {
				require.Eventually(t, func() bool { return p.receiver.memory.Held() == 0 }, 10*time.Second, time.Millisecond)
				_, chat := p.post(chatPath, chatRequest)
				require.Equal(t, chatAnswer(3), chat)
				require.EqualValues(t, 1, p.counter("exchanges_unobserved"))
			}
			next <- struct{}{}
		}
		_, err := io.ReadAll(body)
		require.NoError(t, err)
	}
}

// Whatever an unknown service answers, in whatever pieces, the client gets its bytes.
func TestUntracked_RandomAnswersPassUnchanged(t *testing.T) {
	parts := []string{
		unknownEvent, roleEvent, tokenEvent, doneEvent, padding(9000), padding(untrackedRead), "event: ping\n", "\r\n", "\xef\xbb\xbf", "{", "[", "]", "null\n",
		`{"jsonrpc":"2.0"}` + "\n", `{"response":"a","done":false}` + "\n", "\x00\x00\x00\x20", "data: ", "\n\n", numbered(70000), "\xff\xfe",
	}
	types := []string{"text/event-stream", "application/x-ndjson", "application/jsonl", "application/vnd.amazon.eventstream", "application/stream+json"}
	var body string
	p := start(t, func(w http.ResponseWriter, req *http.Request) {
		random := rand.New(rand.NewPCG(uint64(req.ContentLength), 1))
		w.Header().Set("Content-Type", types[random.IntN(len(types))])
		for rest := body; rest != ""; {
			n := min(len(rest), 1+random.IntN(20000))
			_, _ = io.WriteString(w, rest[:n])
			_ = http.NewResponseController(w).Flush()
			rest = rest[n:]
		}
	})
	for seed := range 60 {
		random := rand.New(rand.NewPCG(uint64(seed), 2))
		var chosen strings.Builder
		for range random.IntN(12) {
			chosen.WriteString(parts[random.IntN(len(parts))])
		}
		body = chosen.String()
		_, got := p.post("/unknown", strings.Repeat("x", seed+1))
		require.Equal(t, body, got, "seed %d", seed)
	}
	require.Eventually(t, func() bool { return p.receiver.open.Load() == 0 && p.receiver.memory.Held() == 0 }, time.Minute, time.Millisecond)
	require.Zero(t, p.logs.FilterMessageSnippet("failed to decode").Len())
}

func TestUntracked_NamesEachPathOnceAMinuteUpToALimit(t *testing.T) {
	core, logs := observer.New(zap.InfoLevel)
	now := time.Now()
	u := newUntracked(zap.New(core), func() time.Time { return now })
	named := func(paths ...string) (all []string) {
		logs.TakeAll()
		for _, path := range paths {
			u.name(path, "host", "text/event-stream", http.StatusOK)
		}
		for _, entry := range logs.TakeAll() {
			all = append(all, entry.ContextMap()["path"].(string))
		}
		return all
	}
	require.Equal(t, []string{"/a/0", "/b"}, named("/a/1", "/b", "/a/22", "/b"))
	now = now.Add(time.Minute - 1)
	require.Empty(t, named("/a/3"))
	now = now.Add(1)
	require.Equal(t, []string{"/a/0"}, named("/a/4"))
	var many []string
	for i := range 1000 {
		many = append(many, "/"+strings.Repeat("x", i%20)+strings.Repeat("/y", i/20%10))
	}
	require.Len(t, named(many...), maxNamed-1)
	require.Len(t, u.named, maxNamed)

	u.name("/c", "host", "", http.StatusOK)
	now = now.Add(time.Minute)
	for _, contentType := range []string{"", "text/html; charset=utf-8", "not a type", "text/" + strings.Repeat("x", 70)} {
		u.name("/"+strings.Repeat("c", len(contentType)%20), "host", contentType, http.StatusOK)
	}
	var types []any
	for _, entry := range logs.All() {
		types = append(types, entry.ContextMap()["content_type"])
	}
	require.Equal(t, []any{"_OTHER", "text/html", "_OTHER", "_OTHER"}, types)
}

func TestPathPattern(t *testing.T) {
	for path, expected := range map[string]string{
		"/":                             "/",
		"/v1/chat":                      "/v0/chat",
		"/jobs/1234/run.2":              "/jobs/0/run.0",
		"/u/" + strings.Repeat("a", 24): "/u/" + strings.Repeat("a", 24),
		"/u/" + strings.Repeat("a", 25): "/u/*",
		"/ask/tell%20me":                "/ask/*",
		"/ask/\u00e9":                   "/ask/*",
		"/m/@cf/org:x~y+z_w-v.u":        "/m/@cf/org:x~y+z_w-v.u",
		strings.Repeat("/a", 20):        strings.Repeat("/a", 15) + "/...",
	} {
		require.Equal(t, expected, pathPattern(path), path)
	}
}
