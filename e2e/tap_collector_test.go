// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"
)

// tapCollectorConfig has the tap, and everything behind it that shows what it did.
const tapCollectorConfig = `
extensions:
  pprof: {endpoint: "${env:PPROF}"}
receivers:
  token_tap:
    endpoint: ${env:TAP}
    upstream: {endpoint: "${env:TAP_UPSTREAM}"}
    %s
processors: {token_latency: }
exporters:
  token_sli:
  file: {path: "${env:SPANS_FILE}", flush_interval: 100ms}
service:
  extensions: [pprof]
  pipelines:
    traces: {receivers: [token_tap], processors: [token_latency], exporters: [%s]}
`

// tapCollector is a Collector with the tap in front of an upstream of the test.
type tapCollector struct {
	*collector
	address           string // of the tap
	self, pprof, file string
}

// startTapCollector starts a tap with further settings in front of an upstream. more are
// further configs.
func startTapCollector(t *testing.T, upstream, settings, exporters string, more ...string) *tapCollector {
	t.Helper()
	self, reportSelf := withSelfMetrics(t)
	c := &tapCollector{address: freeAddress(t), self: self, pprof: freeAddress(t), file: filepath.Join(t.TempDir(), "spans.jsonl")}
	for name, value := range map[string]string{"PPROF": c.pprof, "TAP": c.address, "TAP_UPSTREAM": upstream, "SPANS_FILE": c.file} {
		t.Setenv(name, value)
	}
	config := fmt.Sprintf(tapCollectorConfig, settings, exporters)
	for _, config := range more {
		reportSelf = append(reportSelf, "--config", "yaml:"+config)
	}
	c.collector = startCollector(t, writeFile(t, t.TempDir(), "config.yaml", config), reportSelf...)
	c.waitForListener(t, c.address)
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
