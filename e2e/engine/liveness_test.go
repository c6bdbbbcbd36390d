// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

//go:build engine

package engine

import (
	"bufio"
	"net/http"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/e2e/internal/collector"
)

// answer counts the events of an answer as they arrive.
type answer struct {
	events atomic.Int64
	ended  chan error
}

// begin asks the engine for tokens, and reads the answer in the background.
func begin(t *testing.T, url string, prompt, tokens int) *answer {
	t.Helper()
	a := &answer{ended: make(chan error, 1)}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/completion", asking(prompt, tokens))
	require.NoError(t, err)
	go func() {
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			a.ended <- err
			return
		}
		defer response.Body.Close()
		lines := bufio.NewScanner(response.Body)
		for lines.Scan() {
			if strings.HasPrefix(lines.Text(), "data: ") {
				a.events.Add(1)
			}
		}
		a.ended <- lines.Err()
	}()
	return a
}

// A process that is stopped accepts requests, and says nothing.
func TestEngine_IsStuckWhileItsProcessIsStopped(t *testing.T) {
	const prompt, tokens = 32, 200
	process, upstream := startEngine(t)
	t.Cleanup(func() { process.Signal(syscall.SIGCONT) }) // to be stopped for good
	tap := collector.StartJudgingTap(t, upstream)
	name := strings.TrimPrefix(upstream, "http://")
	for range 5 {
		complete(t, tap.URL(""), prompt, tokens/10)
	}
	tap.WaitForEvidence(t, name, func(of *collector.Evidence) bool { return of.Learned })

	computes := func() int { return strings.Count(process.Output(t), "computing") }
	for when, c := range map[string]struct {
		reached           func(a *answer, before int) bool
		waiting, decoding int
	}{
		"before the first token": {func(_ *answer, before int) bool { return computes() > before }, 1, 0},
		"in mid-answer":          {func(a *answer, _ int) bool { return a.events.Load() > tokens/10 }, 0, 1},
	} {
		t.Run(when, func(t *testing.T) {
			before := computes()
			a := begin(t, tap.URL(""), prompt, tokens)
			require.Eventually(t, func() bool { return c.reached(a, before) }, collector.Patience, time.Millisecond)
			process.Signal(syscall.SIGSTOP)
			stopped := time.Now()
			require.Equal(t, "stuck", collector.WaitForReady(t, tap.ReadyURL(name), http.StatusServiceUnavailable).State)
			took := time.Since(stopped)
			e := tap.Evidence(t, name)
			require.Equal(t, [2]int{c.waiting, c.decoding}, [2]int{e.Waiting, e.Decoding})
			require.True(t, e.Learned)
			require.Greater(t, e.Silence, e.Bound)
			require.Less(t, took.Seconds(), e.Bound+2, "judged each second")

			process.Signal(syscall.SIGCONT)
			resumed := time.Now()
			require.Equal(t, "producing", collector.WaitForReady(t, tap.ReadyURL(name), http.StatusOK).State)
			recovered := time.Since(resumed)
			require.Less(t, recovered, 2*time.Second)
			t.Logf("stuck after %.1f s, with a bound of %.1f s; not stuck after %.1f s", took.Seconds(), e.Bound, recovered.Seconds())
			require.NoError(t, <-a.ended)
			require.EqualValues(t, tokens+1, a.events.Load())
		})
	}
}
