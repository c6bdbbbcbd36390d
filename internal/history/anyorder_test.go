// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/series"
)

// newRecording returns a world whose requests arrive in any order, as of files that were written side by side.
func newRecording(t *testing.T, limit int) *world {
	t.Helper()
	w := newWorld(t, limit)
	w.now = time.Date(2026, 1, 12, 9, 0, 0, 0, time.UTC)
	w.engine = series.NewEngine(series.Options{
		Config:  series.Config{Dimensions: series.DimensionsOf("gen_ai.request.model"), MaxSeries: 1000},
		History: w.store, AnyOrder: true,
	})
	return w
}

// scatter records requests at random times of a range.
func (w *world) scatter(begin time.Time, length time.Duration, requests int) {
	for range requests {
		w.now = begin.Add(time.Duration(w.random.Int64N(int64(length))))
		w.request(fmt.Sprint("model-", w.random.IntN(3)))
		w.store.Shrink()
	}
	w.now = begin.Add(length)
}

// requireSlots compares each slot with the requests that arrived within it.
func requireSlots(t *testing.T, w *world) (widths map[time.Duration]int) {
	t.Helper()
	w.engine.Fold(w.now)
	view := w.store.View(time.Time{}, forever)
	widths, end := map[time.Duration]int{}, time.Time{}
	for slot := range view.Slots() {
		require.False(t, slot.Start.Before(end), "slots overlap")
		end = slot.Start.Add(slot.Width)
		widths[slot.Width]++
		sum := new(Sum)
		slot.AddTo(func(Key) *Sum { return sum }, together())
		requireSame(t, w.expect(func(s *sample) bool { return !s.at.Before(slot.Start) && s.at.Before(end) }), sum.Parts[0].Of(numbers.TimeToFirstToken))
	}
	return widths
}

func TestAnyOrder_RequestsCountInTheSlotOfTheirArrival(t *testing.T) {
	w := newRecording(t, 1<<30)
	begin := w.now
	w.scatter(begin.Add(2*time.Hour), 10*time.Minute, 300)
	w.scatter(begin, 10*time.Minute, 300) // a file that is older than the one before
	require.Equal(t, []time.Duration{series.HistorySlot}, keys(requireSlots(t, w)), "under the limit, no slot widens")
	requireSame(t, w.expect(func(*sample) bool { return true }), w.sum(time.Time{}, together()).Parts[0].Of(numbers.TimeToFirstToken))
}

func TestWiden_WidensThePresentAndLaterSlots(t *testing.T) {
	w := newRecording(t, 1<<30)
	begin := w.now
	w.scatter(begin, time.Hour, 500)
	for _, step := range []struct{ width, want time.Duration }{
		{time.Second, series.HistorySlot},
		{30 * time.Second, series.HistorySlot},
		{time.Minute, time.Minute},
		{10 * time.Minute, time.Minute},
		{30 * time.Minute, 15 * time.Minute},
		{time.Second, 15 * time.Minute},
		{6 * time.Hour, 2 * time.Hour},
		{36 * time.Hour, 12 * time.Hour},
	} {
		w.store.Widen(step.width)
		w.scatter(begin.Add(-time.Hour), 3*time.Hour, 100)
		require.Equal(t, []time.Duration{step.want}, keys(requireSlots(t, w)))
	}
}

func TestShrink_WidensAllSlotsAlikeAndLosesNoRequest(t *testing.T) {
	const limit = 1 << 20
	w := newRecording(t, limit)
	w.scatter(w.now, 10*time.Hour, 4000)
	used, _ := w.store.Memory()
	require.LessOrEqual(t, used, limit)
	require.Equal(t, []time.Duration{time.Minute}, keys(requireSlots(t, w)), "minutes are wide enough")
	requireSame(t, w.expect(func(*sample) bool { return true }), w.sum(time.Time{}, together()).Parts[0].Of(numbers.TimeToFirstToken))
}

func TestShrink_DropsTheOldestSlotsIfHalfDaysAreTooMany(t *testing.T) {
	const limit = 256 << 10
	w := newRecording(t, limit)
	w.scatter(w.now, 90*24*time.Hour, 3000)
	used, _ := w.store.Memory()
	require.LessOrEqual(t, used, limit)
	requests := sumOf(w.store).Requests
	left := requests[0] + requests[1] + requests[2] + requests[3]
	require.Less(t, left, uint64(2900))
	require.Greater(t, left, uint64(100))
	require.Less(t, w.now.Sub(w.store.View(time.Time{}, forever).Since), 89*24*time.Hour)
}

func keys(widths map[time.Duration]int) (all []time.Duration) {
	for width := range widths {
		all = append(all, width)
	}
	return all
}
