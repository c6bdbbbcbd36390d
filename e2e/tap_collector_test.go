// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// tapConfig writes the spans of the tap as they are, and with the numbers derived from them.
const tapConfig = `
extensions:
  pprof: {endpoint: "${env:PPROF}"}
receivers:
  token_tap:
    endpoint: ${env:TAP_ENDPOINT}
    upstream: {endpoint: "${env:TAP_UPSTREAM}"}
processors:
  token_latency: {detail: full}
exporters:
  token_sli:
  file/sent: {path: "${env:SENT_SPANS_FILE}", flush_interval: 100ms}
  file/derived: {path: "${env:SPANS_FILE}", flush_interval: 100ms}
service:
  extensions: [pprof]
  pipelines:
    traces/sent: {receivers: [token_tap], exporters: [file/sent]}
    traces: {receivers: [token_tap], processors: [token_latency], exporters: [token_sli, file/derived]}
`

// tapCollector is a Collector with the tap in front of an upstream of the test.
type tapCollector struct {
	*collector
	address       string // of the tap
	self, pprof   string
	sent, derived string // files of spans
}

// startTap starts a tap in front of an upstream. more are configs that are merged into
// tapConfig.
func startTap(t *testing.T, upstream string, more ...string) *tapCollector {
	t.Helper()
	folder := t.TempDir()
	self, arguments := withSelfMetrics(t)
	c := &tapCollector{
		address: freeAddress(t), self: self, pprof: freeAddress(t), sent: folder + "/sent.jsonl", derived: folder + "/derived.jsonl",
	}
	for name, value := range map[string]string{
		"PPROF": c.pprof, "TAP_ENDPOINT": c.address, "TAP_UPSTREAM": upstream, "SENT_SPANS_FILE": c.sent, "SPANS_FILE": c.derived,
	} {
		setenv(t, name, value)
	}
	for _, config := range more {
		arguments = append(arguments, "--config", "yaml:"+config)
	}
	c.collector = startCollector(t, writeFile(t, folder, "tap.yaml", tapConfig), arguments...)
	return c
}

func (c *tapCollector) url(path string) string { return "http://" + c.address + path }

// startUpstream starts an LLM service of the test.
func startUpstream(t *testing.T, answer http.HandlerFunc) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	return server
}

// chatPath is answered in the format of OpenAI, with chunks of chatChunk, and chatEnd.
const (
	chatPath  = "/v1/chat/completions"
	chatChunk = `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"served","choices":[{"index":0,"delta":{"content":"word"},"finish_reason":null}]}` + "\n\n"
	chatEnd   = `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"served","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n"
	chatAsked = `{"model":"asked","stream":true,"messages":[{"role":"user","content":"go"}]}`
)

// writeChunks writes chunks one by one.
func writeChunks(w http.ResponseWriter, chunks int) {
	w.Header().Set("Content-Type", "text/event-stream")
	for range chunks {
		_, _ = w.Write([]byte(chatChunk))
		_ = http.NewResponseController(w).Flush()
	}
}
