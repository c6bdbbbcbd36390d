// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package liveness

import (
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// fleet is a table whose engines have served prompts that take 2 seconds.
type fleet struct {
	*Engines
	now     time.Duration
	changes []string
}

func newFleet(t *testing.T, ejected float64, names ...string) *fleet {
	f := &fleet{Engines: NewEngines(Settings{}, Limits{Engines: len(names), Ejected: ejected}), now: second}
	for _, name := range names {
		e := f.Find(name)
		require.NotNil(t, e)
		now := second
		for range 40 {
			r := e.Begin(now, 100_000, true)
			r.Token(now + 2*second)
			r.End(now+3*second, Completed, Usage{Input: 25_000})
			now += 30 * second
		}
		f.now = now
	}
	f.pass(second)
	f.changes = nil
	return f
}

// pass judges each second, and asks each engine for a machine.
func (f *fleet) pass(d time.Duration) {
	for end := f.now + d; f.now < end; {
		f.now += second
		f.Judge(f.now, func(before State, s Status) {
			f.changes = append(f.changes, fmt.Sprintf("%s: %s to %s", s.Engine, before, s.State))
		})
		for _, s := range f.Statuses() {
			f.Ready(f.now, s.Engine)
		}
	}
}

func (f *fleet) notReady() (names []string) {
	for _, s := range f.Statuses() {
		if _, _, ready := f.Ready(f.now, s.Engine); !ready {
			names = append(names, s.Engine)
		}
	}
	return names
}

// wedge begins a request that gets no token, and waits until the engine is stuck.
func (f *fleet) wedge(t *testing.T, name string) *Request {
	t.Helper()
	r := f.Find(name).Begin(f.now, 100_000, true)
	f.pass(15 * second)
	s, known, _ := f.Ready(f.now, name)
	require.True(t, known)
	require.Equal(t, Stuck, s.State)
	return r
}

func TestReady_StuckIsNotReadyUntilAToken(t *testing.T) {
	f := newFleet(t, 0.5, "a", "b")
	require.Empty(t, f.notReady())
	r := f.wedge(t, "a")
	require.Equal(t, []string{"a"}, f.notReady())
	r.Token(f.now)
	f.pass(second)
	require.Empty(t, f.notReady())
	require.Equal(t, []string{"a: idle to producing", "a: producing to stuck", "a: stuck to producing"}, f.changes)
}

func TestReady_NotReadyEnginesGetAnotherChanceAfterTwiceTheTime(t *testing.T) {
	f := newFleet(t, 0.5, "a", "b")
	f.wedge(t, "a")
	began := f.now
	var after []int
	for range 6 {
		for range 400 {
			if f.pass(second); f.notReady() == nil {
				break
			}
		}
		after = append(after, int((f.now-began)/second))
		s, _, _ := f.Ready(f.now, "a")
		require.Equal(t, Unknown, s.State)
		require.Equal(t, Trial, s.Reason)
		f.wedge(t, "a") // what waited before is no witness: the bound begins with the new request
		began = f.now
	}
	for i, want := range []int{30, 60, 120, 240, 300, 300} {
		require.InDelta(t, want, after[i], 6, "%v", after) // the engine is stuck some seconds before wedge returns
	}
}

func TestReady_AChanceThatSucceedsBeginsAnew(t *testing.T) {
	f := newFleet(t, 0.5, "a", "b")
	old := f.wedge(t, "a")
	f.pass(31 * second)
	f.wedge(t, "a")
	f.pass(61 * second)
	require.Empty(t, f.notReady())
	old.Token(f.now) // a request from before
	f.pass(second)
	s, _, _ := f.Ready(f.now, "a")
	require.Equal(t, Producing, s.State)
	f.wedge(t, "a")
	f.pass(31 * second)
	require.Empty(t, f.notReady(), "30 seconds, as for the first time")
}

// Nobody avoids the engine, so requests go on to show whether it works.
func TestReady_StaysStuckIfNoMachineAsks(t *testing.T) {
	f := newFleet(t, 0.5, "a", "b")
	f.now += watched
	f.Find("a").Begin(f.now, 100_000, true)
	for range 300 {
		f.now += second
		f.Judge(f.now, func(State, Status) {})
	}
	require.Equal(t, Stuck, f.Statuses()[0].State)
}

func TestReady_AtMostAShareIsNotReady(t *testing.T) {
	for _, test := range []struct {
		engines int
		share   float64
		want    int
	}{{1, 0.5, 1}, {1, 0, 1}, {2, 0.5, 1}, {3, 0.5, 1}, {4, 0.5, 2}, {4, 1, 4}, {4, 0, 0}} {
		var names []string
		for i := range test.engines {
			names = append(names, strconv.Itoa(i))
		}
		f := newFleet(t, test.share, names...)
		for _, name := range names {
			f.Find(name).Begin(f.now, 100_000, true)
		}
		f.pass(15 * second)
		require.Len(t, f.notReady(), test.want, test)
	}
}

// An engine that was not ready stays so while others fail: machines do not see a change without a reason.
func TestReady_TheFirstOnesStayNotReady(t *testing.T) {
	f := newFleet(t, 0.5, "a", "b", "c")
	f.wedge(t, "c")
	f.wedge(t, "a")
	require.Equal(t, []string{"c"}, f.notReady())
}

func TestReady_FailsOpen(t *testing.T) {
	f := newFleet(t, 0.5, "a", "b")
	_, known, ready := f.Ready(f.now, "c")
	require.False(t, known)
	require.True(t, ready, "an engine that is not known")
	require.Nil(t, f.Find("c"), "the table is full")
	require.True(t, f.Judge(f.now, func(State, Status) {}))
	require.False(t, f.Judge(f.now, func(State, Status) {}), "it is reported once")
	f.wedge(t, "a")
	require.NotEmpty(t, f.notReady())
	f.now += stale + 1
	require.Empty(t, f.notReady(), "nobody judges any more")
}

func TestReady_DownIsNotReady(t *testing.T) {
	f := newFleet(t, 0.5, "a", "b")
	for range 3 {
		f.Find("b").Fail(f.now, true, 0)
	}
	f.pass(second)
	require.Equal(t, []string{"b"}, f.notReady())
	f.pass(62 * second)
	require.Empty(t, f.notReady(), "no failure since")
	s, _, _ := f.Ready(f.now, "b")
	require.Equal(t, Unknown, s.State)
}

// The process was stopped, or starved: tokens may wait in the sockets.
func TestJudge_ATimeWithoutJudgementsIsNoSilence(t *testing.T) {
	f := newFleet(t, 0.5, "a", "b")
	f.Find("a").Begin(f.now, 100_000, true)
	f.now += time.Minute
	f.pass(9 * second)
	require.Equal(t, Producing, f.Statuses()[0].State)
	f.pass(6 * second)
	require.Equal(t, Stuck, f.Statuses()[0].State)
}

// A pause that is short by itself may be longer than a short bound.
func TestJudge_APauseThatIsMostOfTheBoundIsNoSilence(t *testing.T) {
	f := &fleet{Engines: NewEngines(Settings{Base: second, MaxBound: second}, Limits{Engines: 1, Ejected: 1}), now: second}
	r := f.Find("a").Begin(f.now, 100_000, true)
	r.Token(f.now)
	f.pass(second)
	f.now += second
	f.pass(second)
	require.Empty(t, f.notReady(), "2 s without a judgement, and without a token")
	f.pass(2 * second)
	require.Equal(t, []string{"a"}, f.notReady())
}

// For the race detector: streams, judgements, questions and savings at the same time.
func TestEngines_AllMethodsMayBeCalledConcurrently(t *testing.T) {
	f := newFleet(t, 0.5, "a", "b")
	const rounds = 2000
	var all sync.WaitGroup
	repeat := func(do func(now time.Duration)) {
		all.Go(func() {
			for i := range time.Duration(rounds) {
				do(f.now + i*second/10)
			}
		})
	}
	for client := range uint64(4) {
		repeat(func(now time.Duration) {
			e := f.Find("a")
			r := e.Begin(now, 1000, true)
			r.SetWitness(now, client > 0)
			r.Token(now)
			r.Token(now)
			if client == 1 {
				r.Unseen(now)
			}
			r.End(now, Completed, Usage{Input: 250})
			e.Produced(now)
			e.Fail(now, false, client)
			e.Answered()
			f.JudgeRequest(now, "a", client == 2)
		})
	}
	repeat(func(now time.Duration) {
		f.Judge(now, func(State, Status) {})
		f.Statuses()
		f.Ready(now, "a")
		f.Knows("a")
	})
	repeat(func(now time.Duration) {
		f.Visit(func(_ string, e *Engine) {
			e.Try(now)
			e.Learned()
			require.NoError(t, New(Settings{}).Restore(e.AppendBinary(nil, now), now))
		})
	})
	all.Wait()
	v := f.Find("a").Verdict(f.now + rounds*second)
	require.Zero(t, v.Open(), "all requests have ended")
}

func TestEngines_UnusedOnesAreForgotten(t *testing.T) {
	f := newFleet(t, 0.5, "old", "open")
	f.Find("open").Begin(f.now, 1, false)
	f.now += time.Hour
	f.pass(second)
	require.Len(t, f.Statuses(), 2, "without Keep, none is")
	f.limits.Keep = time.Hour
	f.now -= 10 * time.Minute
	f.pass(second)
	require.Len(t, f.Statuses(), 2)
	require.Nil(t, f.Find("new"))
	f.now += 11 * time.Minute
	f.pass(second)
	f.Find("new").Begin(f.now, 1, false)
	f.pass(second)
	require.Equal(t, "new", f.Statuses()[0].Engine)
	require.Equal(t, "open", f.Statuses()[1].Engine)
}

func TestUnseen_AnEngineWithRequestsThatCannotBeSeenIsNeverStuck(t *testing.T) {
	e, now := taught()
	e.Begin(now, 100_000, true)
	unseen := e.Begin(now, 100_000, true)
	unseen.Unseen(now)
	v := e.Verdict(now + 60*second)
	require.Equal(t, Unknown, v.State)
	require.Equal(t, TooMany, v.Reason)
	require.Equal(t, 1, v.Untracked)
	unseen.End(now+60*second, Completed, Usage{})
	v = e.Verdict(now + 61*second)
	require.Zero(t, v.Untracked)
	require.Equal(t, Stuck, v.State)
}

func TestJudgeRequest_MostRequestsMissTheirObjective(t *testing.T) {
	f := newFleet(t, 0.5, "a", "b")
	for range 5 {
		f.JudgeRequest(f.now, "a", true)
		f.JudgeRequest(f.now, "c", true)
	}
	f.Find("a").Begin(f.now, 100_000, true).Token(f.now)
	f.pass(second)
	require.Equal(t, Slow, f.Statuses()[0].State)
	require.Len(t, f.Statuses(), 2)
}

// Its process may be gone, and with it all who could show that it works.
func TestReady_AStuckEngineWithoutRequestsIsUnknownAfterFiveMinutes(t *testing.T) {
	f := newFleet(t, 0.5, "a", "b")
	f.now += watched
	r := f.Find("a").Begin(f.now, 100_000, true)
	judge := func(seconds int) State {
		for range seconds {
			f.now += second
			f.Judge(f.now, func(State, Status) {})
		}
		return f.Statuses()[0].State
	}
	require.Equal(t, Stuck, judge(140), "after a pause, it may take two minutes")
	r.End(f.now, Abandoned, Usage{})
	require.Equal(t, Stuck, judge(270))
	require.Equal(t, Unknown, judge(30))
}
