// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package liveness

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// An engine that unloads its model takes longer after a sleep. How much is not known before three sleeps as long.
func TestBound_AfterASleepNeedsThreeSleepsAsLong(t *testing.T) {
	e, now := taught()
	now += 3*second - 30*second // the end of the last request
	// after returns the bound of a request after an idle time. It gets its token after the prefill and a time for waking up.
	after := func(idle, waking time.Duration) float64 {
		now += idle
		r := e.Begin(now, 100_000, true)
		bound := e.Verdict(now).Bound
		now += 2*second + waking
		r.Token(now)
		r.End(now, Completed, Usage{Input: 25_000})
		return bound.Seconds()
	}
	const tolerated = 1
	require.InDelta(t, 11, after(50*second, 0), tolerated, "no sleep")
	for range 3 {
		require.InDelta(t, 120, after(5*time.Minute, 10*second), tolerated, "not three as long")
	}
	require.InDelta(t, 5+3*(2+10), after(5*time.Minute, 10*second), tolerated)
	for range 3 {
		require.InDelta(t, 120, after(7*time.Minute, 20*second), tolerated, "only shorter ones were seen, though of the same class")
	}
	require.InDelta(t, 5+3*(2+20), after(7*time.Minute, 20*second), tolerated)
	require.InDelta(t, 5+3*(2+20), after(90*second, 0), tolerated, "longer ones show the most that it may be")
	require.InDelta(t, 120, after(8*time.Hour, 0), tolerated)
	require.InDelta(t, 11, after(50*second, 0), tolerated, "no sleep")
	restarted := New(Settings{})
	require.NoError(t, restarted.Restore(e.AppendBinary(nil, now), 0))
	require.Equal(t, e.wake.seen, restarted.wake.seen)
}
