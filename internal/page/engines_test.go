// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/engines"
	"github.com/tokenpulse/tokenpulse/internal/liveness"
)

// enginesReply has what an answer says of engines.
type enginesReply struct {
	Engines []map[string]any
	Total   *int `json:"engines_total"`
}

// names returns each engine with its state, in the order of the answer.
func (r *enginesReply) names() (all []string) {
	for _, e := range r.Engines {
		all = append(all, fmt.Sprint(e["engine"], " ", e["state"]))
	}
	return all
}

// enginesOf returns an answer of a page whose receivers know these engines.
func enginesOf(t *testing.T, path string, known []liveness.Status) (r enginesReply) {
	t.Helper()
	page, _ := pageAt(time.Now())
	page.Engines = func() []liveness.Status { return slices.Clone(known) }
	get(t, page, path, &r)
	return r
}

// judged is an engine with a state.
func judged(name string, state liveness.State) liveness.Status {
	return liveness.Status{Engine: name, Verdict: liveness.Verdict{State: state}, Judged: engines.Now()}
}

func TestEngines_WithoutAReceiverThatJudgesThemTheyAreUnknown(t *testing.T) {
	for _, path := range []string{"now", "engines", "meta"} {
		require.Equal(t, enginesReply{}, enginesOf(t, path, nil), path)
	}
	none := enginesOf(t, "now", []liveness.Status{})
	require.Equal(t, []map[string]any{}, none.Engines)
	require.Zero(t, *none.Total)
	require.Zero(t, *enginesOf(t, "meta", []liveness.Status{}).Total)
	require.NotNil(t, enginesOf(t, "engines", []liveness.Status{}).Engines)
}

func TestEngines_ThoseThatNeedAttentionComeFirst(t *testing.T) {
	known := []liveness.Status{
		judged("a", liveness.Idle), judged("b", liveness.Producing), judged("c", liveness.Unknown), judged("d", liveness.Slow), judged("e", liveness.Down),
		judged("f", liveness.Stuck), judged("g", liveness.Idle), judged("h", liveness.Stuck),
	}
	for _, path := range []string{"now", "engines"} {
		listed := enginesOf(t, path, known)
		require.Equal(t, []string{"f stuck", "h stuck", "e down", "d slow", "c unknown", "b producing", "a idle", "g idle"}, listed.names(), path)
	}
}

func TestEngines_NowHasTheFirst20AndTheNumberOfAll(t *testing.T) {
	var known []liveness.Status
	for i := range 25 {
		known = append(known, judged(fmt.Sprintf("engine-%02d", i), liveness.Producing))
	}
	known[24].State = liveness.Stuck
	now := enginesOf(t, "now", known)
	require.Len(t, now.Engines, 20)
	require.Equal(t, 25, *now.Total)
	require.Equal(t, 25, *enginesOf(t, "meta", known).Total)
	require.Equal(t, []string{"engine-24 stuck", "engine-00 producing"}, now.names()[:2])
	require.Len(t, enginesOf(t, "engines", known).Engines, 25)
}

func TestEngines_HaveTheEvidenceInTheUnitsOfTheAPI(t *testing.T) {
	now := engines.Now()
	stuck := liveness.Status{Engine: "localhost:8000", Judged: now, Verdict: liveness.Verdict{
		State: liveness.Stuck, Reason: liveness.NoToken, Since: now - time.Hour, Waiting: 2, Decoding: 3, Silent: 4, Hung: 5, Untracked: 6,
		LastToken: now, Silence: 30 * time.Second, Largest: 4000, Tokens: 1000, Bound: 7500 * time.Millisecond, Learned: true, Prompts: 9,
	}}
	for _, path := range []string{"now", "engines"} {
		got := enginesOf(t, path, []liveness.Status{stuck}).Engines[0]
		require.InDelta(t, time.Now().Add(-time.Hour).Unix(), got["since"], 60, "seconds since 1970")
		require.InDelta(t, 0, got["last_token_age"], 60)
		delete(got, "since")
		delete(got, "last_token_age")
		require.Equal(t, map[string]any{
			"engine": "localhost:8000", "state": "stuck", "reason": "no token for 30s, though open requests explain at most 7.5s",
			"open": 20.0, "waiting": 2.0, "decoding": 3.0, "silent": 4.0, "hung": 5.0, "untracked": 6.0,
			"silence": 30.0, "bound": 7.5, "learned": true, "learned_from": 9.0, "largest_prompt_bytes": 4000.0, "largest_prompt_tokens": 1000.0,
		}, got, path)
	}
	never := judged("new", liveness.Unknown)
	require.Nil(t, enginesOf(t, "now", []liveness.Status{never}).Engines[0]["last_token_age"], "it had no token")
}

func TestEngines_HaveNoFiltersAndNoPast(t *testing.T) {
	known := []liveness.Status{judged("a", liveness.Producing)}
	require.Len(t, enginesOf(t, "now?where=m=other&vantage=client&outcome=error&range=24h", known).Engines, 1)
	require.Equal(t, enginesReply{}, enginesOf(t, "now?end=1", known), "of the past, nothing is known")
}
