// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package readiness

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/e2e/internal/collector"
	"github.com/tokenpulse/tokenpulse/e2e/internal/llmservice"
)

// engine answers requests with ten tokens, until it is wedged: it then accepts requests and sends nothing.
type engine struct {
	address string
	server  *http.Server
	wedged  atomic.Bool
	asked   atomic.Int64
	prefill func(bytes int) time.Duration
	// prefilling is locked during a prefill: prompts are prefilled one by one, and no stream has a token meanwhile.
	prefilling sync.RWMutex
}

const (
	prefill = 100 * time.Millisecond
	perWord = 20 * time.Millisecond
	words   = 10
)

func startEngine(t *testing.T) *engine {
	t.Helper()
	e := &engine{address: collector.FreeAddress(t), prefill: func(int) time.Duration { return prefill }}
	e.listen(t)
	t.Cleanup(e.close)
	return e
}

func (e *engine) listen(t *testing.T) {
	t.Helper()
	var listener net.Listener
	require.Eventually(t, func() bool { // a program that another test starts holds closed listeners until it is executed
		var err error
		listener, err = net.Listen("tcp", e.address)
		return err == nil
	}, collector.Patience, time.Millisecond)
	server := &http.Server{Handler: http.HandlerFunc(e.answer), ReadHeaderTimeout: time.Minute}
	e.server = server
	go func() { _ = server.Serve(listener) }()
}

// close resets the connections, and refuses further ones.
func (e *engine) close() { _ = e.server.Close() }

func (e *engine) answer(w http.ResponseWriter, r *http.Request) {
	prompt, _ := io.ReadAll(r.Body)
	e.asked.Add(1)
	e.prefilling.Lock()
	here := e.work(r.Context(), e.prefill(len(prompt)))
	e.prefilling.Unlock()
	for range words {
		if !here {
			return
		}
		e.prefilling.RLock()
		llmservice.WriteChunks(w, 1)
		e.prefilling.RUnlock()
		here = e.work(r.Context(), perWord)
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

// asking is the body of a request whose prompt is so long.
func asking(bytes int) string {
	return strings.Replace(llmservice.ChatAsked, "go", strings.Repeat("go ", bytes/3), 1)
}
