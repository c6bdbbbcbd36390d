// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package slo

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/names"
)

var begin = time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC) // a slot of every window opens here

// newTracker returns a tracker whose clock starts at begin.
func newTracker(change func(*TrackerOptions)) *Tracker {
	o := TrackerOptions{
		Objectives: []Objective{{SLO: "A", Objective: 0.95, Window: month}, {SLO: names.SLOAll, Objective: 0.9, Window: month}},
		MaxSeries:  100,
		IdleAfter:  time.Hour,
	}
	if change != nil {
		change(&o)
	}
	return NewTracker(o, begin)
}

// verdicts returns a set of verdicts. A name is an SLO after its verdict: "b" bad, "g"
// good, "n" not eligible.
func verdicts(slos ...string) *VerdictSet {
	var s VerdictSet
	for _, slo := range slos {
		s.Add(slo[1:], map[byte]Verdict{'b': Bad, 'g': Good, 'n': NotEligible}[slo[0]])
	}
	return &s
}

func (t *Tracker) judged(key string, at time.Duration, slos ...string) {
	t.Record([]byte(key), verdicts(slos...), begin.Add(at))
}

// recent returns the counts of every objective of a series.
func (t *Tracker) recent(key string, at time.Duration) map[string]Recent {
	all := map[string]Recent{}
	t.Visit(begin.Add(at), func(b *Budgets) {
		if b.Key != key {
			return
		}
		for _, budget := range b.Each {
			all[budget.SLO] = budget.Recent
		}
	})
	return all
}

func (t *Tracker) keys(at time.Duration) (all []string) {
	t.Visit(begin.Add(at), func(b *Budgets) { all = append(all, b.Key) })
	return all
}

// saved returns all budgets, encoded.
func (t *Tracker) saved() map[string][]byte {
	all := map[string][]byte{}
	t.Saved(func(key string, _ Version, encode func() []byte) { all[key] = encode() })
	return all
}

// restarted returns a new tracker with the saved budgets of another.
func (t *Tracker) restarted(tb testing.TB, at time.Duration, change func(*TrackerOptions)) *Tracker {
	tb.Helper()
	next := newTracker(change)
	next.epoch = begin.Add(at)
	for key, encoded := range t.saved() {
		require.NoError(tb, next.Restore(key, encoded, begin.Add(at)))
	}
	return next
}

func TestTracker_CountsVerdictsOfEachWindow(t *testing.T) {
	tracker := newTracker(func(o *TrackerOptions) {
		o.Objectives = []Objective{{SLO: "A", Objective: 0.95, Window: 2 * time.Hour}, {SLO: names.SLOAll, Objective: 0.5, Window: time.Hour}}
	})
	tracker.judged("m", 0, "gA", "bB")
	tracker.judged("m", time.Minute, "nA")
	tracker.judged("m", 59*time.Minute, "bA")

	all := tracker.recent("m", 59*time.Minute)
	require.Len(t, all, 2, "B has no objective")
	both, bad := Counts{Good: 1, Bad: 1}, Counts{Bad: 1}
	require.Equal(t, Recent{Burn: [5]Counts{bad, bad, both, both, both}, Budget: both}, all["A"])
	require.Equal(t, Counts{Bad: 2}, all[names.SLOAll].Budget)

	later := tracker.recent("m", time.Hour)
	require.Equal(t, both, later["A"].Budget, "the two-hour budget")
	require.Equal(t, bad, later["A"].Burn[2])
	require.Equal(t, bad, later[names.SLOAll].Budget, "the one-hour budget has moved on")
	require.Equal(t, Recent{Burn: [5]Counts{4: both}}, tracker.recent("m", 7*time.Hour)["A"])
}

func TestTracker_SeriesDoNotShareBudgets(t *testing.T) {
	tracker := newTracker(nil)
	tracker.judged("m", 0, "bA")
	tracker.judged("n", 0, "gA")
	tracker.judged("o", 0)
	require.Equal(t, Counts{Bad: 1}, tracker.recent("m", 0)["A"].Budget)
	require.Equal(t, Counts{Good: 1}, tracker.recent("n", 0)["A"].Budget)
	require.Equal(t, []string{"m", "n"}, tracker.keys(0))
}

// A tracker with idle times and restarts is compared with one that has neither.
func TestTracker_BudgetsSurviveIdleTimesAndRestarts(t *testing.T) {
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 4))
		short := func(o *TrackerOptions) { o.IdleAfter = 10 * time.Minute }
		whole, tracker := newTracker(nil), newTracker(short)
		now := time.Duration(0)
		for range 400 {
			step := []time.Duration{time.Minute, time.Hour}[random.IntN(10)/9]
			now += time.Duration(random.Int64N(int64(step)))
			key := fmt.Sprint("m", random.IntN(3))
			verdict := []string{"gA", "bA", "nA", "gB"}[now%4]
			whole.judged(key, now, verdict)
			tracker.judged(key, now, verdict)
			switch random.IntN(20) {
			case 0:
				tracker.Expire(begin.Add(now))
			case 1:
				now += time.Minute
				tracker = tracker.restarted(t, now, short)
			}
			want, got := whole.recent(key, now), tracker.recent(key, now)
			for slo, recent := range got {
				require.Equal(t, want[slo], recent, "seed %d: %s of %s after %v", seed, slo, key, now)
			}
		}
	}
}

func TestTracker_IdleSeriesKeepTheirBudgets(t *testing.T) {
	tracker := newTracker(nil)
	tracker.judged("m", 0, "bA")
	visit := func(at time.Duration) (idle []bool, seen []time.Time) {
		tracker.Visit(begin.Add(at), func(b *Budgets) { idle, seen = append(idle, b.Idle), append(seen, b.LastSeen) })
		return idle, seen
	}
	idle, seen := visit(time.Hour)
	require.Equal(t, []bool{false}, idle)
	require.Equal(t, []time.Time{begin}, seen)
	idle, _ = visit(time.Hour + 1)
	require.Equal(t, []bool{true}, idle)
	tracker.judged("m", 2*time.Hour, "nA")
	idle, _ = visit(2 * time.Hour)
	require.Equal(t, []bool{false}, idle)
	require.Equal(t, Counts{Bad: 1}, tracker.recent("m", 2*time.Hour)["A"].Budget)
}

func TestTracker_RestoreSkipsObjectivesThatAreGone(t *testing.T) {
	tracker := newTracker(nil)
	tracker.judged("m", 0, "bA")
	without := tracker.restarted(t, time.Minute, func(o *TrackerOptions) { o.Objectives = nil })
	require.Empty(t, without.keys(time.Minute))

	other := tracker.restarted(t, time.Minute, func(o *TrackerOptions) {
		o.Objectives = []Objective{{SLO: "A", Objective: 0.5, Window: 2 * month}}
	})
	all := other.recent("m", time.Minute)
	require.Len(t, all, 1)
	require.Equal(t, Counts{Bad: 1}, all["A"].Burn[4], "burn rates continue")
	require.Zero(t, all["A"].Budget, "a budget with another window starts empty")
}

func TestTracker_RestoreRejectsMalformedBudgets(t *testing.T) {
	tracker := newTracker(nil)
	tracker.judged("m", 0, "bA")
	for key, encoded := range tracker.saved() {
		for length := range encoded {
			next := newTracker(nil)
			if err := next.Restore(key, encoded[:length], begin); err == nil {
				require.Less(t, len(next.recent(key, 0)), 2, "%d of %d bytes hold at most one of two", length, len(encoded))
			}
		}
	}
}

// The clock was ahead when the budgets were saved.
func TestTracker_RestoredSeriesFromTheFutureBecomesIdle(t *testing.T) {
	tracker := newTracker(nil)
	tracker.judged("m", 10*time.Hour, "bA")
	next := tracker.restarted(t, 0, nil)
	next.Visit(begin.Add(time.Hour+time.Second), func(b *Budgets) { require.True(t, b.Idle) })
}

func TestTracker_ExpireRemovesBudgetsWithEmptyWindows(t *testing.T) {
	tracker := newTracker(nil)
	tracker.judged("m", 0, "bA")
	tracker.Expire(begin.Add(month))
	require.Len(t, tracker.saved(), 1)
	tracker.Expire(begin.Add(month + time.Hour))
	require.Empty(t, tracker.saved())
	require.Zero(t, tracker.byAge.Len())
}

func TestTracker_EvictsTheSeriesIdleForLongestAtTheLimit(t *testing.T) {
	tracker := newTracker(func(o *TrackerOptions) { o.MaxSeries = 3 })
	for i := range 5 {
		tracker.judged(strconv.Itoa(i), time.Duration(i)*2*time.Hour, "bA")
	}
	require.EqualValues(t, 2, tracker.Evicted())
	require.Equal(t, []string{"2", "3", "4"}, tracker.keys(8*time.Hour))
	tracker.judged("2", 10*time.Hour, "bA") // is now the latest
	tracker.judged("5", 12*time.Hour, "bA")
	require.Equal(t, []string{"2", "4", "5"}, tracker.keys(12*time.Hour))
}

func TestTracker_OverflowsAtTheLimitIfNoSeriesIsIdle(t *testing.T) {
	tracker := newTracker(func(o *TrackerOptions) { o.MaxSeries = 2 })
	for i := range 10 {
		tracker.judged(strconv.Itoa(i), time.Duration(i)*time.Second, "bA")
	}
	require.Zero(t, tracker.Evicted())
	require.Equal(t, []string{OverflowKey, "0", "1"}, tracker.keys(10*time.Second))
	require.Equal(t, Counts{Bad: 8}, tracker.recent(OverflowKey, 10*time.Second)["A"].Budget)

	next := tracker.restarted(t, time.Minute, nil)
	require.Equal(t, Counts{Bad: 8}, next.recent(OverflowKey, time.Minute)["A"].Budget)
}

func TestTracker_RestoreKeepsTheLatestSeriesAtTheLimit(t *testing.T) {
	tracker := newTracker(nil)
	for i := range 5 {
		tracker.judged(strconv.Itoa(i), time.Duration(i)*time.Second, "bA")
	}
	next := tracker.restarted(t, time.Minute, func(o *TrackerOptions) { o.MaxSeries = 2 })
	require.Equal(t, []string{"3", "4"}, next.keys(time.Minute))
	require.EqualValues(t, 3, next.Evicted())
	next.judged("5", 2*time.Hour, "bA")
	require.Equal(t, []string{"4", "5"}, next.keys(2*time.Hour))
}

func TestTracker_VersionChangesWithEachCountedVerdict(t *testing.T) {
	tracker := newTracker(nil)
	versions := func() (all []Version) {
		tracker.Saved(func(_ string, v Version, _ func() []byte) { all = append(all, v) })
		return all
	}
	tracker.judged("m", 0, "gB")
	first := versions()
	require.Len(t, first, 1, "`all` has an objective")
	tracker.recent("m", time.Hour)
	require.Equal(t, first, versions())
	tracker.judged("m", 0, "nA")
	require.Equal(t, first, versions())
	tracker.Expire(begin.Add(2 * time.Hour))
	require.Equal(t, first, versions())
	tracker.judged("m", 2*time.Hour, "gB")
	require.NotEqual(t, first, versions())
	require.Len(t, versions(), 1)
}

func TestTracker_ReportsObjectivesWithoutVerdicts(t *testing.T) {
	tracker := newTracker(func(o *TrackerOptions) {
		o.Objectives = []Objective{{SLO: "A", Objective: 0.9, Window: month}, {SLO: "tpto", Objective: 0.9, Window: month}}
	})
	for range 50 {
		tracker.judged("m", 0, "gA", "btpot")
		tracker.judged("m", 0)
	}
	require.Equal(t, Unjudged{SLOs: []string{"tpto"}, Seen: []string{"A", "tpot"}, Requests: 100, Ran: time.Hour}, tracker.Unjudged(begin.Add(time.Hour)))
	tracker.judged("m", 0, "ntpto")
	require.Empty(t, tracker.Unjudged(begin.Add(time.Hour)).SLOs, "NotEligible verdicts count, too")
}

func TestTracker_LimitsSeenNames(t *testing.T) {
	tracker := newTracker(nil)
	for i := range 1000 {
		tracker.judged("m", 0, "gslo-"+strconv.Itoa(i))
	}
	require.Len(t, tracker.sightings.seen, MaxSLOs)
}

// Writers, readers and saves run at once. At the end every verdict is counted.
func TestTracker_ConcurrentUseLosesNothing(t *testing.T) {
	const writers, each, keys = 4, 3000, 12
	tracker := newTracker(func(o *TrackerOptions) { o.MaxSeries = 8 }) // four keys overflow
	background := startReaders(t, tracker)
	var writing sync.WaitGroup
	for range writers {
		writing.Go(func() {
			for i := range each {
				tracker.judged(strconv.Itoa(i%keys), time.Duration(i)*time.Millisecond, []string{"gA", "bA", "nA"}[i/keys%3])
			}
		})
	}
	writing.Wait()
	background()

	total := func(of *Tracker) (c Counts) {
		of.Visit(begin.Add(time.Minute), func(b *Budgets) {
			for _, budget := range b.Each {
				if budget.SLO == "A" {
					c.Good, c.Bad = c.Good+budget.Recent.Budget.Good, c.Bad+budget.Recent.Budget.Bad
				}
			}
		})
		return c
	}
	var want Counts
	for i := range each {
		switch i / keys % 3 {
		case 0:
			want.Good += writers
		case 1:
			want.Bad += writers
		}
	}
	require.Equal(t, want, total(tracker))
	require.Len(t, tracker.keys(time.Minute), 9, "8 series and the overflow budgets")
	require.Equal(t, want, total(tracker.restarted(t, time.Minute, nil)))
}

// startReaders visits, saves and expires until the returned function is called. It
// checks that each saved state can be restored.
func startReaders(t *testing.T, tracker *Tracker) (stop func()) {
	t.Helper()
	var reading sync.WaitGroup
	done := make(chan struct{})
	loop := func(read func()) {
		reading.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					read()
				}
			}
		})
	}
	loop(func() {
		tracker.Visit(begin.Add(time.Minute), func(b *Budgets) {
			if len(b.Each) == 0 {
				t.Errorf("the budgets of %q are empty", b.Key)
			}
		})
		tracker.Expire(begin) // no budget is old enough
		tracker.Evicted()
	})
	loop(func() {
		next := newTracker(nil)
		for key, encoded := range tracker.saved() {
			if err := next.Restore(key, encoded, begin.Add(time.Minute)); err != nil {
				t.Error(err)
			}
		}
	})
	return func() {
		close(done)
		reading.Wait()
	}
}

func TestTracker_RecordDoesNotAllocate(t *testing.T) {
	tracker := newTracker(nil)
	key, set := []byte(strings.Repeat("k", 100)), verdicts("gA", "bB", "nC")
	tracker.Record(key, set, begin)
	require.Zero(t, testing.AllocsPerRun(100, func() { tracker.Record(key, set, begin) }))
}

// Counts of many requests are those of each request.
func TestAdd_EqualsRecordingEachRequest(t *testing.T) {
	begin := time.Now()
	o := TrackerOptions{Objectives: []Objective{{SLO: "a", Objective: 0.9, Window: time.Hour}, {SLO: "all", Objective: 0.9, Window: time.Hour}}, MaxSeries: 10}
	added, recorded := NewTracker(o, begin), NewTracker(o, begin)
	for range 150 {
		var verdicts VerdictSet
		verdicts.Add("a", Bad)
		recorded.Record([]byte("key"), &verdicts, begin.Add(time.Minute))
	}
	added.Add([]byte("key"), "a", Bad, 150, begin.Add(time.Minute))
	added.Add([]byte("key"), "all", Bad, 150, begin.Add(time.Minute))
	added.Add([]byte("key"), "b", Bad, 150, begin.Add(time.Minute))
	read := func(tracker *Tracker) (all []Counts) {
		tracker.Visit(begin.Add(time.Minute), func(b *Budgets) {
			for _, budget := range b.Each {
				all = append(all, budget.Recent.Budget, budget.Recent.Burn[0])
			}
		})
		return all
	}
	require.Equal(t, []Counts{{Bad: 150}, {Bad: 150}, {Bad: 150}, {Bad: 150}}, read(recorded))
	require.Equal(t, read(recorded), read(added))

	misspelled := NewTracker(TrackerOptions{Objectives: []Objective{{SLO: "A", Objective: 0.9, Window: time.Hour}}, MaxSeries: 10}, begin)
	misspelled.Add([]byte("key"), "a", Bad, 150, begin)
	require.Zero(t, misspelled.Unjudged(begin.Add(time.Hour)).Requests, "no request was judged yet")
	misspelled.Add([]byte("key"), "all", Bad, 150, begin)
	require.Equal(t, Unjudged{SLOs: []string{"A"}, Seen: []string{"a"}, Requests: 150, Ran: time.Hour}, misspelled.Unjudged(begin.Add(time.Hour)))
}
