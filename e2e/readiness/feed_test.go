// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package readiness

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/e2e/internal/collector"
)

// maxBound is the bound of an engine that has taught nothing, in seconds.
const maxBound = 120.0

// The other engine of the tap is ready all the time.
func TestReadiness_StuckOrDownUntilTheEngineWorks(t *testing.T) {
	t.Parallel()
	c := startTap(t, []*engine{startEngine(t), startEngine(t)})
	failing, url := c.engines[0], c.ReadyURL(c.engines[0].address)
	body := asking(900)
	c.teach(t, 0, 5, body)
	c.teach(t, 1, 1, body)
	requireOther := func() {
		t.Helper()
		status, other, err := collector.AskReady(c.ReadyURL(c.engines[1].address))
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, status)
		require.Equal(t, "idle", other.State)
	}

	failing.wedged.Store(true)
	answered := c.askInBackground(t, 0, body)
	require.Equal(t, "stuck", collector.WaitForReady(t, url, http.StatusServiceUnavailable).State)
	e := c.Evidence(t, failing.address)
	require.Equal(t, "stuck", e.State)
	require.False(t, e.Ready)
	require.Equal(t, 1, e.Waiting)
	require.Zero(t, e.Decoding)
	require.EqualValues(t, len(body), e.LargestPromptBytes)
	require.True(t, e.Learned)
	require.Positive(t, e.LearnedFrom)
	require.Greater(t, e.Silence, e.Bound)
	require.Less(t, e.Bound, maxBound)
	requireOther()
	failing.wedged.Store(false)
	require.NotEqual(t, "stuck", collector.WaitForReady(t, url, http.StatusOK).State)
	require.NoError(t, <-answered)
	c.WaitForState(t, failing.address, "idle")

	failing.close()
	for range 3 {
		require.Error(t, c.ask(t.Context(), 0, body))
	}
	require.Equal(t, "down", collector.WaitForReady(t, url, http.StatusServiceUnavailable).State)
	require.Equal(t, "connections were refused or reset", c.Evidence(t, failing.address).Reason)
	requireOther()
	failing.listen(t)
	require.NoError(t, c.ask(t.Context(), 0, body))
	collector.WaitForReady(t, url, http.StatusOK)
	c.WaitForState(t, failing.address, "idle")
}

// After a restart an engine has no state before its next token. It is then stuck as soon as before, if there is a storage, and
// after the bound of an engine that has taught nothing, if there is none.
func TestReadiness_RestartKeepsWhatWasLearnedIfThereIsAStorage(t *testing.T) {
	t.Parallel()
	for name, stored := range map[string]bool{"storage": true, "no storage": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var more []string
			if stored {
				more = append(more, storage(t))
			}
			c := startTap(t, []*engine{startEngine(t)}, more...)
			e := c.engines[0]
			const requests = 5
			c.teach(t, 0, requests, asking(0))
			before := c.WaitForEvidence(t, e.address, func(of *collector.Evidence) bool { return of.LearnedFrom == requests-1 }) // the first one shows only that there are tokens
			require.True(t, before.Learned)

			learned := 0
			if stored {
				learned = requests - 1
			}
			for _, restart := range []func(){
				func() { c.Reload(t) },
				func() { c.Stop(t); c.Collector = c.Again(t) },
			} {
				restart()
				after := c.WaitForState(t, e.address, "unknown")
				require.True(t, after.Ready)
				require.Equal(t, learned, after.LearnedFrom)
			}

			c.teach(t, 0, 1, asking(0))
			e.wedged.Store(true)
			c.askInBackground(t, 0, asking(0))
			if stored {
				e := c.WaitForState(t, e.address, "stuck")
				require.False(t, e.Ready)
				require.InDelta(t, before.Bound, e.Bound, 0.5)
				return
			}
			after := c.WaitForEvidence(t, e.address, func(of *collector.Evidence) bool { return of.Silence > 2*before.Bound })
			require.True(t, after.Ready)
			require.Equal(t, "producing", after.State)
			require.InDelta(t, maxBound, after.Bound, 0)
		})
	}
}
