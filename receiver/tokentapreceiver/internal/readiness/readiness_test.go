// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package readiness

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/tokenpulse/tokenpulse/internal/engines"
	"github.com/tokenpulse/tokenpulse/internal/liveness"
)

// table is a handler over engines at a time that the test sets.
type table struct {
	http.Handler
	watch *engines.Watch
	logs  *observer.ObservedLogs
	now   time.Duration
}

func newTable(of ...string) *table {
	core, logs := observer.New(zap.DebugLevel)
	config := engines.DefaultConfig()
	t := &table{watch: engines.New(&config, liveness.Limits{Ejected: 0.5}, nil, zap.NewNop()), logs: logs, now: time.Hour}
	r := &readiness{t.watch, func() time.Duration { return t.now }, zap.New(core)}
	t.Handler = r.handler()
	for _, name := range of {
		t.watch.Find(name).Produced(t.now)
	}
	t.judge()
	return t
}

func (e *table) judge() { e.watch.Judge(e.now, func(liveness.State, liveness.Status) {}) }

// wait lets time pass in which the receiver judges.
func (e *table) wait(seconds int) {
	for range seconds {
		e.now += time.Second
		e.judge()
	}
}

// wedge opens a request to each engine that gets no token.
func (e *table) wedge(of ...string) {
	for _, name := range of {
		e.watch.Find(name).Begin(e.now, 1000, true)
	}
}

func (e *table) get(t *testing.T, path string) (status int, answer map[string]any) {
	t.Helper()
	w := httptest.NewRecorder()
	e.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, http.NoBody))
	require.Equal(t, "no-store", w.Header().Get("Cache-Control"), path)
	require.Equal(t, "application/json", w.Header().Get("Content-Type"), path)
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &answer), w.Body)
	return w.Code, answer
}

func TestReady_AStuckEngineIs503UntilItsToken(t *testing.T) {
	table := newTable("a:1", "b:2")
	table.wedge("a:1")
	table.wait(120)
	status, answer := table.get(t, "/engines/a:1/ready")
	require.Equal(t, 200, status, "the bound of an engine that has taught nothing is two minutes")
	require.Equal(t, "producing", answer["state"])
	table.wait(1)
	for _, path := range []string{"/engines/a:1/ready", "/engines/a_1/ready", "/engines/a%3A1/ready"} {
		status, answer = table.get(t, path)
		require.Equal(t, 503, status)
	}
	since, err := time.Parse(time.RFC3339, answer["since"].(string))
	require.NoError(t, err)
	require.WithinDuration(t, time.Now(), since, time.Minute)
	delete(answer, "since")
	require.Equal(t, map[string]any{
		"engine": "a:1", "state": "stuck", "reason": "no token for 2m1s, though open requests explain at most 2m0s",
		"open": 1.0, "waiting": 1.0, "last_token_age": 121.0, "bound": 120.0,
	}, answer)
	status, answer = table.get(t, "/engines/b_2/ready")
	require.Equal(t, 200, status)
	require.Equal(t, "idle", answer["state"])
	table.watch.Find("a:1").Produced(table.now)
	table.wait(1)
	status, _ = table.get(t, "/engines/a:1/ready")
	require.Equal(t, 200, status)
}

// The default check of HAProxy is OPTIONS; some monitors send HEAD.
func TestReady_OtherMethodsGetTheSameStatus(t *testing.T) {
	table := newTable("a:1")
	for _, expected := range []int{200, 503} {
		for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodOptions} {
			w := httptest.NewRecorder()
			table.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), method, "/engines/a_1/ready", http.NoBody))
			require.Equal(t, expected, w.Code, method)
		}
		table.wedge("a:1")
		table.wait(121)
	}
	w := httptest.NewRecorder()
	table.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/engines/a_1/ready", http.NoBody))
	require.Equal(t, http.StatusMethodNotAllowed, w.Code)
}

func TestReady_MoreStuckEnginesThanMaxEjectedGet200AndTheReason(t *testing.T) {
	table := newTable("a:1", "b:1", "c:1")
	table.wedge("a:1", "b:1")
	table.wait(121)
	status, _ := table.get(t, "/engines/a:1/ready")
	require.Equal(t, 503, status)
	status, answer := table.get(t, "/engines/b:1/ready")
	require.Equal(t, 200, status, "half of three engines, rounded down, is one")
	require.Equal(t, "stuck", answer["state"])
	require.Contains(t, answer["reason"], "open requests explain at most 2m0s; but answered 200, because max_ejected allows no further 503")
}

func TestReady_AnOldVerdictIs200(t *testing.T) {
	table := newTable("a:1")
	table.wedge("a:1")
	table.wait(121)
	table.now += 10 * time.Second
	status, _ := table.get(t, "/engines/a:1/ready")
	require.Equal(t, 503, status)
	table.now += time.Second
	status, answer := table.get(t, "/engines/a:1/ready")
	require.Equal(t, 200, status, "the process judges too late, so it may also have read tokens too late")
	require.Equal(t, "stuck", answer["state"])
	require.Contains(t, answer["reason"], "but answered 200, because this verdict is 11 s old: the Collector is overloaded")
	table.judge()
	status, _ = table.get(t, "/engines/a:1/ready")
	require.Equal(t, 503, status)
}

func TestReady_AnUnknownNameIs200AndLogged(t *testing.T) {
	table := newTable("a:1", "[::1]:8000")
	status, answer := table.get(t, "/engines/other_1/ready")
	require.Equal(t, 200, status)
	require.Equal(t, map[string]any{
		"engine": "other:1", "state": "unknown", "since": nil, "open": 0.0, "waiting": 0.0, "last_token_age": nil, "bound": nil,
		"reason": "no upstream of this receiver has this name, or max_engines is reached",
	}, answer)
	logs := table.logs.All()
	require.Len(t, logs, 1)
	require.Equal(t, zap.WarnLevel, logs[0].Level)
	require.Equal(t, map[string]any{"engine": "other:1", "engines": []any{"[::1]:8000", "a:1"}}, logs[0].ContextMap())
}

func TestReady_AnEngineThatIsNotJudgedYetIs200(t *testing.T) {
	table := newTable()
	table.wedge("a:1")
	status, answer := table.get(t, "/engines/a:1/ready")
	require.Equal(t, 200, status)
	require.Equal(t, "unknown", answer["state"])
	require.Nil(t, answer["since"])
	require.Equal(t, "this engine is judged within a second", answer["reason"])
	require.Zero(t, table.logs.Len(), "it is in the table")
}

func TestEngineOf(t *testing.T) {
	for path, name := range map[string]string{
		"vllm_8000": "vllm:8000", "vllm:8000": "vllm:8000", "my_engine_80": "my_engine:80", "my_engine:80": "my_engine:80",
		"10.0.0.1_443": "10.0.0.1:443", "[__1]_8000": "[::1]:8000", "[::1]:8000": "[::1]:8000", "[fe80__1%eth0]_1": "[fe80::1%eth0]:1",
		"vllm": "vllm", "_": ":",
	} {
		require.Equal(t, name, engineOf(path), path)
	}
}

func TestEngines_HasTheEvidence(t *testing.T) {
	table := newTable()
	status, answer := table.get(t, "/engines")
	require.Equal(t, 200, status)
	require.Equal(t, map[string]any{"engines": []any{}}, answer)

	e := table.watch.Find("a:1")
	e.Begin(table.now, 4000, true)
	started := e.Begin(table.now, 1000, true)
	e.Begin(table.now, 8000, false) // not streamed
	started.Token(table.now)
	reported := e.Begin(table.now, 2000, true)
	reported.Token(table.now)
	reported.End(table.now, liveness.Completed, liveness.Usage{Input: 500})
	table.wait(3)
	_, answer = table.get(t, "/engines")
	all := answer["engines"].([]any)
	require.Len(t, all, 1)
	found := all[0].(map[string]any)
	require.NotNil(t, found["since"])
	delete(found, "since")
	require.Equal(t, map[string]any{
		"engine": "a:1", "state": "producing", "ready": true, "reason": "no token for 3s; open requests explain up to 2m0s",
		"open": 3.0, "waiting": 1.0, "decoding": 1.0, "silent": 1.0, "hung": 0.0, "untracked": 0.0,
		"last_token_age": 3.0, "silence": 3.0, "bound": 120.0, "learned": false, "learned_from": found["learned_from"],
		"largest_prompt_bytes": 8000.0, "largest_prompt_tokens": 2000.0,
	}, found)

	table.watch.Find("b:1").Produced(table.now)
	started.End(table.now, liveness.Completed, liveness.Usage{})
	table.wait(121)
	_, answer = table.get(t, "/engines")
	all = answer["engines"].([]any)
	require.Len(t, all, 2)
	found = all[0].(map[string]any)
	require.Equal(t, "stuck", found["state"])
	require.Equal(t, false, found["ready"])
	require.Equal(t, true, all[1].(map[string]any)["ready"])
}

// A person who reads the list is no machine that acts on it: the engine gets no trial for that.
func TestEngines_IsNoQuestionOfAMachine(t *testing.T) {
	table := newTable("a:1")
	table.wedge("a:1")
	for range 121 + 60 {
		table.wait(1)
		_, _ = table.get(t, "/engines")
	}
	status, _ := table.get(t, "/engines/a_1/ready")
	require.Equal(t, 503, status)
}
