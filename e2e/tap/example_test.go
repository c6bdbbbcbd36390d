// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tap

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/e2e/internal/collector"
	"github.com/tokenpulse/tokenpulse/e2e/internal/exposition"
	"github.com/tokenpulse/tokenpulse/e2e/internal/llmservice"
)

// An OpenAI stream through the default upstream and an Ollama stream through a route become
// series with the numbers of their chunks, and each upstream gets the path without a prefix.
func TestExampleTap_TimesStreamsOfTheUpstreamAndOfARoute(t *testing.T) {
	const tokens, wait, between = 5, 200 * time.Millisecond, 40 * time.Millisecond
	pause := func(i int) time.Duration {
		if i == 0 {
			return wait
		}
		return between
	}
	vllm := llmservice.Start(t, func(w http.ResponseWriter, r *http.Request) {
		assert.Equal(t, llmservice.ChatPath, r.URL.Path)
		for i := range tokens {
			time.Sleep(pause(i))
			llmservice.WriteChunks(w, 1)
		}
		_, _ = io.WriteString(w, llmservice.ChatEnd)
	})
	ollama := llmservice.Start(t, func(w http.ResponseWriter, r *http.Request) {
		assert.Equal(t, "/api/chat", r.URL.Path)
		w.Header().Set("Content-Type", "application/x-ndjson")
		for i := range tokens {
			time.Sleep(pause(i))
			_, _ = fmt.Fprintln(w, `{"model":"llama","created_at":"2026-01-01T00:00:00Z","message":{"role":"assistant","content":"word"},"done":false}`)
			_ = http.NewResponseController(w).Flush()
		}
		_, _ = fmt.Fprintln(w, `{"model":"llama","created_at":"2026-01-01T00:00:00Z","message":{"role":"assistant","content":""},"done":true,"done_reason":"stop","prompt_eval_count":7,"eval_count":5}`)
	})
	tap := collector.FreeAddress(t)
	collector.Setenv(t, "TAP_ENDPOINT", tap)
	collector.Setenv(t, "TAP_UPSTREAM", vllm.URL)
	collector.Setenv(t, "TAP_OLLAMA", ollama.URL)
	c := collector.Start(t, collector.Example(t, "tap.yaml"))
	for path, request := range map[string]string{llmservice.ChatPath: llmservice.ChatAsked, "/ollama/api/chat": `{"model":"llama"}`} {
		answer, err := http.Post("http://"+tap+path, "application/json", strings.NewReader(request))
		require.NoError(t, err)
		_, err = io.Copy(io.Discard, answer.Body)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		require.Equal(t, http.StatusOK, answer.StatusCode)
	}
	for model, provider := range map[string]string{"asked": "openai", "llama": "ollama"} {
		labels := map[string]string{
			"gen_ai_request_model": model, "gen_ai_provider_name": provider, "server_address": "127.0.0.1", "vantage": "gateway", "outcome": "success",
		}
		require.Eventually(t, func() bool {
			for _, series := range exposition.Scrape(t, c)["tokenpulse_requests_total"].GetMetric() {
				if exposition.Label(series, "gen_ai_request_model") == model {
					return true
				}
			}
			return false
		}, collector.Patience, 50*time.Millisecond, model)
		families := exposition.Scrape(t, c)
		first := exposition.Find(t, families["tokenpulse_time_to_first_token_seconds"], labels).GetHistogram()
		require.EqualValues(t, 1, first.GetSampleCount())
		require.GreaterOrEqual(t, first.GetSampleSum(), wait.Seconds())
		gaps := exposition.Find(t, families["tokenpulse_inter_token_latency_seconds"], labels).GetHistogram()
		require.EqualValues(t, tokens-1, gaps.GetSampleCount())
		perToken := exposition.Find(t, families["tokenpulse_time_per_output_token_seconds"], labels).GetHistogram()
		require.InDelta(t, gaps.GetSampleSum()/(tokens-1), perToken.GetSampleSum(), 1e-6)
	}
}
