// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"fmt"
	"maps"
	"math"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/series"
	"github.com/tokenpulse/tokenpulse/internal/sketch"
	"github.com/tokenpulse/tokenpulse/internal/slo"
)

func together() *Want { return &Want{Quantities: math.MaxUint32, Prompts: true} }

func unlimited(t *testing.T) *world { t.Helper(); return newWorld(t, 1<<30) }

func TestHistory_PercentilesEqualThoseOfAllValues(t *testing.T) {
	w := unlimited(t)
	w.run(26*time.Hour, 19*time.Second, 2, 1)
	for _, length := range []time.Duration{5 * time.Minute, time.Hour, 24*time.Hour - 15*time.Minute} {
		view := w.store.View(w.now.Add(-length), forever)
		var first Slot
		for slot := range view.Slots() {
			first = slot
			break
		}
		values := w.expect(func(s *sample) bool { return !s.at.Before(first.Start) })
		require.Greater(t, len(values), 10)
		requireSame(t, values, w.sum(first.Start, together()).Parts[0].Of(numbers.TimeToFirstToken))
		require.InDelta(t, length.Seconds(), w.now.Sub(first.Start).Seconds(), view.Step.Seconds()+20, "the view starts with the first slot that it touches")
	}
}

// A view has all requests of the range that it names. This is the one asked for, widened by less than a slot at each end.
func TestHistory_ViewsAreWidenedToWholeSlots(t *testing.T) {
	w := unlimited(t)
	w.run(50*time.Hour, 7*time.Minute, 1, 1)
	w.run(2*time.Hour, 20*time.Second, 1, 1)
	for range 500 {
		until := w.now.Add(-time.Duration(w.random.Int64N(int64(52 * time.Hour)))).Truncate(time.Second)
		from := until.Add(-time.Duration(1+w.random.IntN(5*3600)) * time.Second)
		view, sum := w.store.View(from, until), new(Sum)
		for slot := range view.Slots() {
			slot.AddTo(func(Key) *Sum { return sum }, together())
		}
		requireSame(t, w.expect(func(s *sample) bool { return !s.at.Before(view.From) && s.at.Before(view.Until) }), sum.Parts[0].Of(numbers.TimeToFirstToken))
		require.False(t, view.From.After(from) || view.Until.Before(until))
		require.Less(t, max(from.Sub(view.From), view.Until.Sub(until)), max(view.Step, 1))
	}
}

func TestHistory_KeepsOutcomesApart(t *testing.T) {
	w := unlimited(t)
	w.run(2*time.Hour, 10*time.Second, 3, 2)
	apart := w.sum(time.Time{}, &everything)
	for outcome := range series.OutcomeNames {
		values := w.expect(func(s *sample) bool { return int(s.outcome) == outcome })
		require.Equal(t, uint64(len(values)), apart.Requests[outcome])
		requireSame(t, values, apart.Parts[outcome].Of(numbers.TimeToFirstToken))
	}
	require.InDelta(t, 200*len(w.ttfts), apart.Counts[series.CountOf(numbers.OutputTokens)], 0, "each request has 200")
	require.Equal(t, uint64(len(w.ttfts)), apart.SLOs["ttft"][slo.Good]+apart.SLOs["ttft"][slo.Bad]+apart.SLOs["ttft"][slo.NotEligible])
	some := w.sum(time.Time{}, &Want{Part: [Outcomes]int{0, Skip, 0, Skip}, Quantities: 1 << numbers.TimeToFirstToken})
	requireSame(t, w.expect(func(s *sample) bool { return s.outcome == series.Success || s.outcome == series.Cancelled }), some.Parts[0].Of(numbers.TimeToFirstToken))
	require.Zero(t, some.Requests[series.Error])
	require.Zero(t, some.Parts[0].Of(numbers.RequestDuration).Count(), "not wanted")
}

// Merging slots must equal merging requests: nothing is lost or counted twice, whatever the
// slots went through.
func TestHistory_WideningChangesNoSum(t *testing.T) {
	fine, coarse := unlimited(t), unlimited(t)
	coarse.random = nil
	for range 2000 {
		fine.now = fine.now.Add(time.Duration(fine.random.IntN(20000)) * time.Millisecond)
		fine.request(fmt.Sprint("model-", fine.random.IntN(3)))
	}
	fine.engine.Fold(fine.now)
	coarse.store.slots = append(coarse.store.slots, fine.store.slots...)
	for i, level := range []int{0, 1, 3, 5} {
		coarse.store.coarsen(fine.now.Unix(), level)
		a, b := fine.sum(time.Time{}, &everything), sumOf(coarse.store)
		require.Less(t, len(coarse.store.slots), len(fine.store.slots)/(i+1))
		requireEqual(t, a, b)
	}
}

// requireEqual compares sums exactly, but for the rounding of floats.
func requireEqual(t *testing.T, a, b *Sum) {
	t.Helper()
	require.Equal(t, a.Requests, b.Requests)
	require.Equal(t, a.SLOs, b.SLOs)
	for c := range a.Counts {
		require.InDelta(t, a.Counts[c], b.Counts[c], 1e-6)
	}
	for p := range a.Parts {
		for i := range a.Parts[p] {
			require.Equal(t, buckets(orEmpty(a.Parts[p][i])), buckets(orEmpty(b.Parts[p][i])))
		}
	}
}

func sumOf(s *Store) *Sum {
	sum, view := new(Sum), s.View(time.Time{}, forever)
	for slot := range view.Slots() {
		slot.AddTo(func(Key) *Sum { return sum }, &everything)
	}
	return sum
}

func buckets(s *sketch.Sketch) map[int]uint64 {
	all := map[int]uint64{math.MinInt: s.Zeros()}
	maps.Insert(all, s.Buckets())
	return all
}

func TestHistory_WidensWithAge(t *testing.T) {
	w := unlimited(t)
	w.run(8*24*time.Hour, time.Minute, 1, 1)
	w.run(26*time.Hour, 10*time.Second, 1, 1)
	w.maintain()
	slots := w.store.slots
	require.Less(t, len(slots), 75+61+104+74, "slots: 5 s for 5 minutes, 1 minute for an hour, 15 minutes for a day, 2 hours for a week")
	for i, slot := range slots {
		require.Zero(t, slot.start%slot.width)
		if i > 0 {
			require.GreaterOrEqual(t, slot.start, slots[i-1].end(), "slots must not overlap")
		}
		switch age := w.now.Unix() - slot.end(); {
		case age < 5*minute:
			require.Equal(t, finest, slot.width)
		case age < hour:
			require.LessOrEqual(t, slot.width, int64(minute))
		case age < day:
			require.LessOrEqual(t, slot.width, int64(quarter))
		default:
			require.LessOrEqual(t, slot.width, int64(2*hour))
		}
		switch age := w.now.Unix() - slot.start; {
		case age > day+2*hour:
			require.Equal(t, int64(2*hour), slot.width)
		case age > hour+quarter:
			require.GreaterOrEqual(t, slot.width, int64(quarter))
		}
	}
	require.LessOrEqual(t, w.now.Unix()-slots[0].end(), int64(week))
	from := w.now.Add(-72 * time.Hour).Truncate(2 * time.Hour)
	requireSame(t, w.expect(func(s *sample) bool { return !s.at.Before(from) }), w.sum(from, together()).Parts[0].Of(numbers.TimeToFirstToken))
	require.Greater(t, w.now.Unix()-slots[0].start, int64(week-2*hour))
	require.Zero(t, w.store.Coarsening())
}

func TestHistory_EqualsAllValuesThoughItCoarsens(t *testing.T) {
	const limit = 3 << 20
	w := newWorld(t, limit)
	w.run(5*time.Hour, 30*time.Second, 20, 4)
	used, _ := w.store.Memory()
	require.LessOrEqual(t, used, limit)
	require.Positive(t, w.store.Coarsening())
	require.Greater(t, w.now.Sub(w.store.View(time.Time{}, forever).Since), 3*time.Hour, "it coarsens before it forgets")
	view := w.store.View(time.Time{}, forever)
	requireSame(t, w.expect(func(s *sample) bool { return !s.at.Before(view.Since) }), w.sum(view.Since, together()).Parts[0].Of(numbers.TimeToFirstToken))

	for range 2 * (7*24 + 12) { // without requests, the pressure goes, and the last slot, of half a day, becomes a week old
		w.now = w.now.Add(31 * time.Minute)
		w.maintain()
	}
	require.Zero(t, w.store.Coarsening())
	used, _ = w.store.Memory()
	require.Zero(t, used, "an empty history takes no memory")
}

// A limit that holds less than a minute leaves the open slot only.
func TestHistory_ForgetsAtLast(t *testing.T) {
	const limit = 50 << 10
	w := newWorld(t, limit)
	w.run(10*time.Minute, 5*time.Second, 100, 1)
	used, _ := w.store.Memory()
	require.LessOrEqual(t, used, limit)
	require.Greater(t, w.now.Sub(w.store.View(time.Time{}, forever).Since), 2*series.HistorySlot)
	w.run(20*time.Second, 5*time.Second, 500, 1)
	require.Len(t, w.store.slots, 1, "more than the limit, in one slot")
}

// Maintenance merges slots without the lock. A request may arrive meanwhile.
func TestSwap_KeepsWhatWasAddedMeanwhile(t *testing.T) {
	w := unlimited(t)
	w.now = w.now.Truncate(time.Minute).Add(time.Minute)
	w.success("a")
	w.now = w.now.Add(series.HistorySlot)
	w.success("a")
	w.engine.Fold(w.now)
	old := w.store.before(math.MaxInt64)
	wide := merged(old, old[0].start, minute)
	w.success("a") // in the last of two slots
	w.engine.Fold(w.now)
	w.store.swap(old, wide)
	require.Equal(t, uint64(3), sumOf(w.store).Requests[series.Success])
	old = w.store.before(math.MaxInt64)
	w.store.swap(old, merged(old, old[0].start, minute))
	require.Len(t, w.store.slots, 1, "the next call merges all")
	require.Equal(t, uint64(3), sumOf(w.store).Requests[series.Success])
}

// The estimate must be close to what the heap has.
func TestMemory_EqualsTheHeap(t *testing.T) {
	heap := func() uint64 {
		var stats runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&stats)
		return stats.HeapAlloc
	}
	w := unlimited(t)
	w.run(90*time.Minute, 10*time.Second, 20, 1)
	w.engine, w.ttfts = nil, nil
	with := heap()
	used, _ := w.store.Memory()
	w.store.slots = nil
	without := heap()
	runtime.KeepAlive(w)
	require.InEpsilon(t, with-without, used, 0.25)
}

func TestHistory_ViewsAreNotChanged(t *testing.T) {
	w := unlimited(t)
	w.request("a")
	w.engine.Fold(w.now)
	view := w.store.View(time.Time{}, forever)
	w.request("a")
	w.engine.Fold(w.now)
	count := func(v *View) (n uint64) {
		sum := new(Sum)
		for slot := range v.Slots() {
			slot.AddTo(func(Key) *Sum { return sum }, together())
		}
		return sum.Parts[0].Of(numbers.TimeToFirstToken).Count()
	}
	require.Equal(t, uint64(1), count(&view))
	view = w.store.View(time.Time{}, forever)
	require.Equal(t, uint64(2), count(&view))
}

func TestHistory_OutlivesExpiredSeries(t *testing.T) {
	w := unlimited(t)
	w.request("a")
	w.now = w.now.Add(2 * time.Hour)
	w.maintain()
	require.Zero(t, w.engine.Held())
	require.Equal(t, uint64(1), w.sum(time.Time{}, together()).Parts[0].Of(numbers.TimeToFirstToken).Count())
}

func TestHistory_PromptsByLengthAndCache(t *testing.T) {
	w := unlimited(t)
	w.run(10*time.Minute, time.Second, 1, 2) // more than wait for a fold
	part := &w.sum(time.Time{}, together()).Parts[0]
	shorter := 0 // the longest prompt of the range before
	for length := range series.PromptLength(series.PromptLengths) {
		longest := 128 << length
		of := func(s *sample) bool { return shorter < s.prompt && s.prompt <= longest }
		for _, cached := range []bool{false, true} {
			requireSame(t, w.expect(func(s *sample) bool { return of(s) && s.cached == cached }), part.TTFTOfPrompts(length, cached))
		}
		requireSame(t, w.expectOf(func(s *sample) float64 { return s.tpot }, of), part.TPOTOfPrompts(length))
		shorter = longest
	}
}

// An answer of one token has no time per output token, and one that is not streamed no time to first token.
func TestHistory_PromptsWithOneNumber(t *testing.T) {
	w := unlimited(t)
	for quantity, value := range map[numbers.ID]float64{numbers.TimeToFirstToken: 1, numbers.TimePerOutputToken: 0.02, numbers.RequestDuration: 3} {
		r := &series.Contribution{Dimensions: []string{"a"}, Arrival: w.now}
		r.SetValue(quantity, value)
		r.SetValue(numbers.InputTokens, 100)
		w.engine.Record(r)
	}
	part := &w.sum(time.Time{}, together()).Parts[0]
	requireSame(t, []float64{1}, part.TTFTOfPrompts(0, false))
	requireSame(t, []float64{0.02}, part.TPOTOfPrompts(0))
}

// Requests, queries and maintenance run at the same time.
func TestHistory_Concurrently(t *testing.T) {
	store := New(1 << 18)
	engine := series.NewEngine(series.Options{Config: series.Config{Dimensions: series.DimensionsOf("m"), MaxSeries: 100}, History: store})
	start := time.Now()
	const writers, each = 4, 2000
	var group sync.WaitGroup
	for i := range writers {
		group.Go(func() {
			for n := range each {
				r := &series.Contribution{Dimensions: []string{strconv.Itoa(i)}, Arrival: start.Add(time.Duration(n) * time.Second)}
				r.SetValue(numbers.TimeToFirstToken, 1)
				r.Verdicts.Add("s", slo.Good)
				engine.Record(r)
			}
		})
	}
	done := make(chan struct{})
	var reader sync.WaitGroup
	reader.Go(func() {
		for n := 0; ; n++ {
			select {
			case <-done:
				return
			default:
				sumOf(store)
				store.Maintain(start.Add(time.Duration(n) * time.Second))
			}
		}
	})
	group.Wait()
	close(done)
	reader.Wait()
	engine.Fold(start.Add(each * time.Second))
	require.Equal(t, uint64(writers*each), sumOf(store).Requests[series.Success])
}

// Of a history that is too large, what is older than a day widens before anything younger does.
func TestTiers_FirstWidenWhatIsOlderThanADay(t *testing.T) {
	of := func(level int) (within []tier, old tier) {
		all := tiers(level)
		require.Equal(t, int64(week), all[len(all)-1].age)
		return all[:len(all)-1], all[len(all)-1]
	}
	recent, old := of(0)
	first, wide := of(1)
	require.Equal(t, recent, first)
	require.Greater(t, wide.width, old.width)
	second, _ := of(2)
	require.Equal(t, []tier{{5, 150}, {60, 1800}, {900, 43200}, {3600, 86400}}, second)
	last, _ := of(maxLevel)
	require.Equal(t, []tier{{5, 4}, {60, 56}, {900, 1350}, {3600, 86400}}, last)
}
