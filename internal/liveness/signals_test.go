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

// sleeps lets an engine sleep and wake up some times.
func (w *wake) sleeps(times int, idle, took time.Duration) {
	for range times {
		w.begin(idle)
		w.learn(took)
	}
}

func TestWake_SleepsAreOverAMinute(t *testing.T) {
	var w wake
	w.begin(time.Minute)
	require.False(t, w.waking)
	w.begin(time.Minute + 1)
	require.True(t, w.waking)
}

func TestWake_KnowsSleepsAsLongAsThoseBefore(t *testing.T) {
	var w wake
	requireKnown := func(idle, want time.Duration, known bool) {
		t.Helper()
		w.begin(idle)
		most, ok := w.expect()
		require.Equal(t, known, ok)
		if known {
			require.InDelta(t, want.Seconds(), most.Seconds(), 0.001)
		}
	}
	w.sleeps(2, 90*second, 5*second)
	requireKnown(80*second, 0, false)
	w.sleeps(1, 80*second, 5*second)
	requireKnown(80*second, 5*second, true)
	requireKnown(81*second, 0, false)
	w.sleeps(1, 90*second, 5*second)
	requireKnown(90*second, 5*second, true)
	requireKnown(91*second, 0, false)

	w.sleeps(3, 10*time.Minute, 30*second)
	requireKnown(90*second, 5*second, true)
	requireKnown(91*second, 30*second, true) // 10 minutes are longer
	requireKnown(3*time.Minute, 30*second, true)
	requireKnown(10*time.Minute, 30*second, true)
	requireKnown(11*time.Minute, 0, false)
	requireKnown(24*time.Hour, 0, false)

	w.sleeps(3, 2*time.Hour, 20*second)
	requireKnown(time.Hour, 30*second, true) // no less than after shorter sleeps
	w.sleeps(3, 24*time.Hour, 20*second)     // of the same class
	requireKnown(24*time.Hour, 30*second, true)
}

func TestWake_TheLastClassIsOf64MinutesAndMore(t *testing.T) {
	var w wake
	w.sleeps(3, 40*time.Minute, second)
	w.sleeps(3, 70*time.Minute, 5*second)
	w.sleeps(1, 24*time.Hour, 30*second)
	for idle, want := range map[time.Duration]time.Duration{40 * time.Minute: second, 70 * time.Minute: 30 * second} {
		w.begin(idle)
		most, known := w.expect()
		require.True(t, known)
		require.Equal(t, want, most)
	}
}

func TestWake_EachShorterWakingLowersTheLongestBy1Percent(t *testing.T) {
	var w wake
	w.sleeps(3, 90*second, 10*second)
	w.sleeps(1, 90*second, second)
	most, _ := w.expect()
	require.InDelta(t, 9.9, most.Seconds(), 0.001)
	w.sleeps(68, 90*second, second)
	most, _ = w.expect()
	require.InDelta(t, 5, most.Seconds(), 0.01, "halved after 69")
}

func TestPhase_StallsIfFarMoreStreamsEndThanBeforeAnyAdmission(t *testing.T) {
	p := phase{most: 2, ended: 32 + 4*2}
	require.False(t, p.stalled(1))
	p.ended++
	require.True(t, p.stalled(1))
	require.False(t, p.stalled(0), "nobody waits")
}

func TestPhase_LearnsHowManyStreamsEndBeforeAnAdmission(t *testing.T) {
	p := phase{most: 2, ended: 10}
	p.admitted()
	require.InDelta(t, 10, p.most, 0)
	p.ended = 0
	p.admitted()
	require.InDelta(t, 10, p.most, 0)
	p.ended = 1
	for range 1386 { // which halve 0.9995
		p.admitted()
	}
	require.InDelta(t, 5, p.most, 0.01)
}

func TestFailures_CountThoseWithinAMinuteOfEachOther(t *testing.T) {
	e, now := taught()
	fail := func(after time.Duration, client uint64) State {
		now += after
		e.Fail(now, false, client)
		return e.Verdict(now).State
	}
	fail(0, 1)
	fail(time.Minute, 2)
	require.Equal(t, Down, fail(time.Minute, 2), "several clients, of which one failed again")
	require.Equal(t, Down, e.Verdict(now+time.Minute).State)
	now += time.Minute + 1
	require.NotEqual(t, Down, e.Verdict(now).State)
	fail(0, 1)
	require.NotEqual(t, Down, fail(0, 2), "the third one of several clients is a minute too old")
	require.Equal(t, Down, fail(0, 2))
}

// paced judges requests, and returns whether the engine is slow after a while.
func paced(after time.Duration, missed ...bool) bool {
	e, now := taught()
	for _, m := range missed {
		e.Judge(now, m)
	}
	e.Begin(now+after, 1000, true).Token(now + after)
	return e.Verdict(now+after).State == Slow
}

func TestPace_SlowIfMostOfAtLeastTwoMissTheirObjective(t *testing.T) {
	require.True(t, paced(0, true, true))
	require.False(t, paced(0, true), "one says little")
	require.False(t, paced(0, true, true, false, false))
	require.True(t, paced(0, true, true, true, false, false))
	require.True(t, paced(29*second, true, true, true, true))
	require.False(t, paced(31*second, true, true, true, true), "half of them are forgotten after 30 s")
}

func TestPace_NewRequestsCountForMore(t *testing.T) {
	e, now := taught()
	for range 4 {
		e.Judge(now, true)
	}
	now += 60 * second
	e.Judge(now, false)
	e.Judge(now, false)
	require.False(t, e.pace.slow(now), "four that are a minute old count as one")
	for range 8 {
		e.Judge(now, false)
	}
	now += 120 * second
	e.Judge(now, true)
	e.Judge(now, true)
	require.True(t, e.pace.slow(now), "as do ten of two minutes")
}

func TestRatio_FollowsTheLatestPrompts(t *testing.T) {
	var r ratio
	require.Zero(t, r.tokens(1000))
	r.add(1000, 250)
	require.EqualValues(t, 250, r.tokens(1000))
	for range 22 { // which halve 31/32
		r.add(1000, 500)
	}
	require.InDelta(t, 375, r.tokens(1000), 3)
}
