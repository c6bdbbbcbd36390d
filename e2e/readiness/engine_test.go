// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package readiness

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/e2e/internal/llmservice"
)

// engine answers requests with ten tokens, until it is wedged: it then accepts requests and sends nothing.
type engine struct {
	address string
	wedged  atomic.Bool
	asked   atomic.Int64
	prefill func(bytes int) time.Duration
}

const (
	prefill = 100 * time.Millisecond
	perWord = 20 * time.Millisecond
	words   = 10
)

func startEngine(t *testing.T) *engine {
	t.Helper()
	e := &engine{prefill: func(int) time.Duration { return prefill }}
	e.address = llmservice.Start(t, e.answer).Listener.Addr().String()
	return e
}

func (e *engine) answer(w http.ResponseWriter, r *http.Request) {
	prompt, _ := io.ReadAll(r.Body)
	e.asked.Add(1)
	if !e.work(r.Context(), e.prefill(len(prompt))) {
		return
	}
	for range words {
		llmservice.WriteChunks(w, 1)
		if !e.work(r.Context(), perWord) {
			return
		}
	}
	_, _ = io.WriteString(w, llmservice.ChatEnd)
}

// work takes time, for ever while the engine is wedged. It reports whether the client is still there.
func (e *engine) work(ctx context.Context, long time.Duration) bool {
	for {
		select {
		case <-ctx.Done():
			return false
		case <-time.After(long):
		}
		if !e.wedged.Load() {
			return true
		}
		long = perWord
	}
}

// check asks whether an engine is ready.
func check(url string) (status int, answer map[string]any) {
	response, err := (&http.Client{Timeout: 2 * time.Second}).Get(url)
	if err != nil {
		return 0, nil
	}
	defer response.Body.Close()
	_ = json.NewDecoder(response.Body).Decode(&answer)
	return response.StatusCode, answer
}

// requireStatus waits for a status.
func requireStatus(t *testing.T, url string, status int) {
	t.Helper()
	var answer map[string]any
	require.Eventually(t, func() bool {
		var got int
		got, answer = check(url)
		return got == status
	}, 30*time.Second, 20*time.Millisecond, "%v", answer)
}
