// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package engines

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/tokenpulse/tokenpulse/internal/inprocess"
	"github.com/tokenpulse/tokenpulse/internal/liveness"
	"github.com/tokenpulse/tokenpulse/internal/storagetest"
)

var receiver = component.MustNewID("token_tap")

// strict lets engines be silent for two seconds.
func strict() *Config {
	config := DefaultConfig()
	config.Bound, config.MaxBound = time.Second, 2*time.Second
	return &config
}

// bubble runs a test with a virtual clock, in a process that began an hour ago.
func bubble(t *testing.T, test func(*testing.T)) {
	t.Helper()
	began := origin
	defer func() { origin = began }()
	synctest.Test(t, func(t *testing.T) {
		hourAgo := time.Now().Add(-time.Hour)
		origin = func() time.Time { return hourAgo }
		test(t)
	})
}

// running is a watch in a virtual clock.
type running struct {
	*Watch
	logs *observer.ObservedLogs
}

func start(t *testing.T, config *Config, host component.Host, storage *component.ID) running {
	t.Helper()
	core, logs := observer.New(zap.DebugLevel)
	w := New(config, liveness.Limits{Keep: 24 * time.Hour}, nil, zap.New(core))
	require.NoError(t, w.Start(t.Context(), host, storage, receiver))
	t.Cleanup(func() {
		if t.Failed() {
			_ = w.Shutdown(context.Background())
		}
	})
	return running{w, logs}
}

func (w running) end(t *testing.T) {
	t.Helper()
	require.NoError(t, w.Shutdown(context.Background()))
}

// wedge opens a request that gets no token, of an engine that had one.
func (w running) wedge(name string) *liveness.Request {
	engine := w.Find(name)
	engine.Produced(Now())
	return engine.Begin(Now(), 1000, true)
}

// wait lets the watch judge so many times.
func wait(seconds int) {
	time.Sleep(time.Duration(seconds) * time.Second)
	synctest.Wait()
}

func states(all []liveness.Status) map[string]liveness.State {
	states := map[string]liveness.State{}
	for _, s := range all {
		states[s.Engine] = s.State
	}
	return states
}

func messages(logs *observer.ObservedLogs) (all []string) {
	for _, entry := range logs.TakeAll() {
		all = append(all, entry.Level.String()+": "+entry.Message)
	}
	return all
}

func TestStatuses_OfSeveralReceiversTheOneThatSeesMostIsRight(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a, b := start(t, strict(), componenttest.NewNopHost(), nil), start(t, strict(), componenttest.NewNopHost(), nil)
		require.Equal(t, []liveness.Status{}, Statuses(), "known to be none")
		for _, name := range []string{"seen", "unseen", "idle"} {
			a.wedge(name)
		}
		seen := b.wedge("seen")
		b.Find("unseen")               // never a token: unknown
		b.Find("idle").Produced(Now()) // no request
		b.Find("of-b").Produced(Now())
		for range 4 {
			wait(1)
			seen.Token(Now())
		}
		wait(1)
		require.Equal(t, map[string]liveness.State{"seen": liveness.Stuck, "unseen": liveness.Stuck, "idle": liveness.Stuck}, states(a.Statuses()))
		require.Equal(t, map[string]liveness.State{
			"seen": liveness.Producing, "unseen": liveness.Unknown, "idle": liveness.Idle, "of-b": liveness.Idle,
		}, states(b.Statuses()))
		merged := Statuses()
		require.Len(t, merged, 4, "one of each engine")
		require.Equal(t, map[string]liveness.State{
			"seen": liveness.Producing, "unseen": liveness.Stuck, "idle": liveness.Stuck, "of-b": liveness.Idle,
		}, states(merged))
		require.Equal(t, []string{"idle", "of-b", "seen", "unseen"}, []string{merged[0].Engine, merged[1].Engine, merged[2].Engine, merged[3].Engine})
		a.end(t)
		require.Equal(t, states(b.Statuses()), states(Statuses()), "a receiver that has stopped has no engines")
		b.end(t)
		require.Nil(t, Statuses())
		require.Empty(t, inprocess.Engines.All())
	})
}

func TestWatch_LogsThatAnEngineFailsOnceAMinuteAndThatItRecovers(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := start(t, strict(), componenttest.NewNopHost(), nil)
		defer w.end(t)
		r := w.wedge("a:1")
		wait(2)
		require.Empty(t, messages(w.logs), "the bound explains it")
		wait(2)
		require.Equal(t, map[string]any{"state": "stuck", "reason": "no token for 3s, though open requests explain at most 2s"}, w.logs.All()[0].ContextMap())
		require.Equal(t, []string{"warn: engine a:1 produces no tokens"}, messages(w.logs))
		w.wedge("b:1")
		wait(4)
		require.Equal(t, []string{"warn: engine b:1 produces no tokens"}, messages(w.logs), "another engine has its own message")
		for i := range 3 {
			r.Token(Now())
			wait(4)
			if i > 0 {
				require.Empty(t, messages(w.logs), "it fails again within the minute")
			} else {
				require.Equal(t, []string{"info: engine a:1 is not stuck or down any more"}, messages(w.logs))
			}
			require.Equal(t, liveness.Stuck, states(w.Statuses())["a:1"])
		}
		wait(60)
		r.Token(Now())
		wait(4)
		require.Equal(t, []string{"info: engine a:1 is not stuck or down any more", "warn: engine a:1 produces no tokens"}, messages(w.logs))
	})
}

func TestWatch_WarnsThatEnginesFindNoRoom(t *testing.T) {
	bubble(t, func(t *testing.T) {
		config := strict()
		config.MaxEngines = 2
		w := start(t, config, componenttest.NewNopHost(), nil)
		defer w.end(t)
		require.NotNil(t, w.Find("a:1"))
		require.NotNil(t, w.Find("b:1"))
		wait(2)
		require.Empty(t, messages(w.logs))
		for range 3 {
			require.Nil(t, w.Find("c:1"))
			wait(2)
		}
		logged := w.logs.All()
		require.Len(t, logged, 1, "once a minute")
		require.Equal(t, zap.WarnLevel, logged[0].Level)
		require.Contains(t, logged[0].Message, "`max_engines`")
		require.Len(t, w.Statuses(), 2)
	})
}

// learn lets an engine answer requests after 100 ms, and pause after each. It learns from so many: the first one wakes it.
func learn(engine *liveness.Engine, requests int, pause time.Duration) {
	for range requests + 1 {
		r := engine.Begin(Now(), 1000, true)
		time.Sleep(100 * time.Millisecond)
		r.Token(Now())
		r.End(Now(), liveness.Completed, liveness.Usage{Input: 250})
		time.Sleep(pause)
	}
}

func TestWatch_KeepsWhatItLearnedInTheStorage(t *testing.T) {
	folder := t.TempDir()
	host, stop := storagetest.NewHostIn(t, folder)
	bubble(t, func(t *testing.T) {
		w := start(t, strict(), host, &storagetest.FileStorage)
		learn(w.Find("a:1"), 200, 20*time.Second)
		learn(w.Find("b:1"), 1, 0)
		w.end(t)
	})
	stop()
	host, stop = storagetest.NewHostIn(t, folder)
	defer stop()
	bubble(t, func(t *testing.T) {
		w := start(t, strict(), host, &storagetest.FileStorage)
		require.Empty(t, messages(w.logs))
		for _, name := range []string{"a:1", "c:1"} {
			learn(w.Find(name), 0, 0)
			w.Find(name).Begin(Now(), 1000, true)
		}
		wait(1)
		found := map[string]liveness.Status{}
		for _, s := range w.Statuses() {
			found[s.Engine] = s
		}
		require.EqualValues(t, 200, found["a:1"].Prompts)
		require.EqualValues(t, 1, found["b:1"].Prompts)
		require.EqualValues(t, 250, found["a:1"].Tokens)
		require.Less(t, found["a:1"].Bound, 2*time.Second, "learned")
		require.Equal(t, 2*time.Second, found["c:1"].Bound, "a new engine")
		w.end(t)
	})
}

func TestWatch_SavesEveryMinute(t *testing.T) {
	storage := storagetest.NewMemory()
	bubble(t, func(t *testing.T) {
		w := start(t, strict(), storagetest.Host{storagetest.FileStorage: storage}, &storagetest.FileStorage)
		learn(w.Find("a:1"), 1, 0)
		wait(50)
		require.Empty(t, storage.Stored())
		wait(10)
		require.Contains(t, storage.Stored(), "engine/a:1")
		storage.FailWith(context.DeadlineExceeded)
		learn(w.Find("a:1"), 1, 0)
		wait(60)
		require.Equal(t, []string{"warn: cannot save what was learned about engines; if this repeats, check the storage extension and its disk"}, messages(w.logs))
		storage.FailWith(nil)
		w.end(t)
	})
}

func TestWatch_ADamagedEntryIsLearnedAgain(t *testing.T) {
	storage := storagetest.NewMemory()
	host := storagetest.Host{storagetest.FileStorage: storage}
	for name, damage := range map[string]func([]byte) []byte{
		"cut":             func(b []byte) []byte { return b[:len(b)/2] },
		"empty":           func([]byte) []byte { return []byte{} },
		"another version": func(b []byte) []byte { return append([]byte{99}, b[1:]...) },
		"not a number":    func(b []byte) []byte { return append(b[:1:1], make255(len(b)-1)...) },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := start(t, strict(), host, &storagetest.FileStorage)
				learn(w.Find("a:1"), 3, 0)
				learn(w.Find("b:1"), 3, 0)
				w.end(t)
				storage.Values["engine/a:1"] = damage(storage.Values["engine/a:1"])

				w = start(t, strict(), host, &storagetest.FileStorage)
				require.Equal(t, []string{"error: cannot restore what was learned about some engines, which is learned again; if this repeats, check the storage extension and its disk"}, messages(w.logs))
				require.Zero(t, w.Find("a:1").Learned())
				require.NotZero(t, w.Find("b:1").Learned(), "the entry beside it")
				learn(w.Find("a:1"), 2, 0)
				w.end(t)
				w = start(t, strict(), host, &storagetest.FileStorage)
				require.Empty(t, messages(w.logs))
				require.EqualValues(t, 2, w.Find("a:1").Learned())
				w.end(t)
				clear(storage.Values)
			})
		})
	}
}

func make255(n int) []byte {
	all := make([]byte, n)
	for i := range all {
		all[i] = 0xff
	}
	return all
}

// stepped returns the same moment after the wall clock was set: a time of time.Now has both clocks.
func stepped(t time.Time, step time.Duration) time.Time {
	const secondsFrom = 30 // bits of nanoseconds below those of wall seconds
	wall := (*uint64)(unsafe.Pointer(&t))
	*wall += uint64(step/time.Second) << secondsFrom
	return t
}

func TestWatch_AStepOfTheWallClockChangesNoVerdict(t *testing.T) {
	now := time.Now()
	for _, step := range []time.Duration{time.Hour, -time.Hour} {
		require.Equal(t, now.Round(0).Add(step), stepped(now, step).Round(0), "the wall clock has stepped")
		require.Equal(t, At(now), At(stepped(now, step)))

		w := New(strict(), liveness.Limits{}, nil, zap.NewNop())
		busy, wedged := w.Find("busy"), w.Find("wedged")
		for _, engine := range []*liveness.Engine{busy, wedged} {
			engine.Produced(At(now))
			engine.Begin(At(now), 1000, true)
		}
		for second := range 10 {
			later := now.Add(time.Duration(second) * time.Second)
			if second >= 2 {
				later = stepped(later, step)
			}
			busy.Produced(At(later))
			w.judge(later)
			require.Equal(t, liveness.Producing, states(w.Statuses())["busy"], "%d s", second)
			require.Equal(t, second > 2, states(w.Statuses())["wedged"] == liveness.Stuck, "%d s", second)
		}
	}
}

func TestExplain_EachStateHasAReasonForPeople(t *testing.T) {
	for state := range liveness.States {
		for reason := liveness.None; reason <= liveness.Trial; reason++ {
			decided := state == liveness.Down || state == liveness.Stuck || state == liveness.Unknown
			if decided == (reason == liveness.None) {
				continue
			}
			require.NotEmpty(t, Explain(&liveness.Status{Verdict: liveness.Verdict{State: state, Reason: reason}}), "%s %s", state, reason)
		}
	}
	producing := liveness.Status{Verdict: liveness.Verdict{State: liveness.Producing, Silence: 100 * time.Millisecond, Bound: 6 * time.Second}}
	require.Equal(t, "tokens arrive", Explain(&producing))
	producing.Silence = 3 * time.Second
	require.Equal(t, "no token for 3s; open requests explain up to 6s", Explain(&producing))
}
