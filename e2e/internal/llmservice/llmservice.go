// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Package llmservice stands in for a service that streams chat completions.
package llmservice

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// The service answers in the format of OpenAI.
const (
	// ChatPath is answered with chunks of ChatChunk, and ChatEnd.
	ChatPath = "/v1/chat/completions"
	// ChatAsked is the body of a request for a streamed answer.
	ChatAsked = `{"model":"asked","stream":true,"messages":[{"role":"user","content":"go"}]}`
	// ChatChunk is an event with one word of an answer.
	ChatChunk = `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"served","choices":[{"index":0,"delta":{"content":"word"},"finish_reason":null}]}` + "\n\n"
	// ChatEnd are the last events of an answer.
	ChatEnd = `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"served","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n"
)

// Start starts an LLM service of the test.
func Start(t *testing.T, answer http.HandlerFunc) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	return server
}

// WriteChunks writes chunks one by one.
func WriteChunks(w http.ResponseWriter, chunks int) {
	w.Header().Set("Content-Type", "text/event-stream")
	for range chunks {
		_, _ = w.Write([]byte(ChatChunk))
		_ = http.NewResponseController(w).Flush()
	}
}
