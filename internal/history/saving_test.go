// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"encoding/hex"
	"math"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/series"
	"github.com/tokenpulse/tokenpulse/internal/sketch"
)

type saved struct {
	span    Span
	encoded []byte
}

func (w *world) saved() (all []saved) {
	w.engine.Fold(w.now)
	w.store.Saved(func(span Span, _ Version, encode func() []byte) { all = append(all, saved{span, encode()}) })
	return all
}

func TestRestore_ContinuesTheHistory(t *testing.T) {
	w := unlimited(t)
	w.run(3*24*time.Hour, 20*time.Minute, 3, 1)
	w.run(2*time.Hour, 20*time.Second, 3, 1)
	restored := New(1 << 30)
	slots := w.saved()
	for i := range slots { // in any order
		slot := &slots[len(slots)-1-i]
		require.NoError(t, restored.Restore(slot.span, slot.encoded, 1, w.now))
	}
	requireEqual(t, sumOf(w.store), sumOf(restored))
	require.Len(t, restored.slots, len(w.store.slots))
	usedBefore, _ := w.store.Memory()
	used, _ := restored.Memory()
	require.Equal(t, usedBefore, used)

	require.NoError(t, restored.Restore(slots[0].span, slots[0].encoded, 1, w.now))
	require.Len(t, restored.slots, len(w.store.slots), "a slot that is there already")
}

// An earlier build saved three requests whose prompts have no time per output token. What it saved is kept.
func TestRestore_ReadsWhatEarlierBuildsSaved(t *testing.T) {
	saved, err := os.ReadFile("testdata/slot-without-tpot-of-prompts.hex")
	require.NoError(t, err)
	slot, err := hex.DecodeString(string(saved))
	require.NoError(t, err)
	now, restored := time.Unix(1_800_000_000, 0), New(1<<30)
	require.NoError(t, restored.Restore(Span{now.Unix(), finest}, slot, 1, now))
	part, tenth, hundredth := &sumOf(restored).Parts[0], 0.1, 0.01
	requireSame(t, []float64{tenth, 2 * tenth, 3 * tenth}, part.Of(numbers.TimeToFirstToken))
	requireSame(t, []float64{hundredth, 2 * hundredth, 3 * hundredth}, part.Of(numbers.TimePerOutputToken))
	requireSame(t, []float64{tenth}, part.TTFTOfPrompts(0, false))
	requireSame(t, []float64{2 * tenth}, part.TTFTOfPrompts(1, true))
	requireSame(t, []float64{3 * tenth}, part.TTFTOfPrompts(2, true))
	for length := range series.PromptLength(series.PromptLengths) {
		require.Zero(t, part.TPOTOfPrompts(length).Count())
	}
}

// At the memory limit, slots older than a day are half a day wide.
func TestRestore_HasTheSlotsOfEachLevel(t *testing.T) {
	w := unlimited(t)
	w.run(3*24*time.Hour, 20*time.Minute, 1, 1)
	for level := range maxLevel + 1 {
		w.store.coarsen(w.now.Unix(), level)
		restored := New(1 << 30)
		for _, slot := range w.saved() {
			require.NoError(t, restored.Restore(slot.span, slot.encoded, 1, w.now))
		}
		require.Len(t, restored.slots, len(w.store.slots))
	}
}

func TestRestore_LeavesOutWhatIsOldOrFromTheFuture(t *testing.T) {
	w := unlimited(t)
	w.request("a")
	slot := w.saved()[0]
	for _, now := range []time.Time{w.now.Add(7*24*time.Hour + time.Minute), w.now.Add(-time.Hour)} {
		restored := New(1 << 30)
		require.NoError(t, restored.Restore(slot.span, slot.encoded, 1, now))
		require.Empty(t, restored.slots)
	}
}

func TestRestore_RejectsDamage(t *testing.T) {
	w := unlimited(t)
	w.request("a")
	slot := w.saved()[0]
	s := New(1 << 30)
	require.Error(t, s.Restore(Span{slot.span.Start, 7}, slot.encoded, 1, w.now))
	require.Error(t, s.Restore(Span{slot.span.Start + 1, slot.span.Width}, slot.encoded, 1, w.now))
	require.Error(t, s.Restore(slot.span, slot.encoded[:len(slot.encoded)-1], 1, w.now))
	require.Error(t, s.Restore(slot.span, slot.encoded, 2, w.now), "the keys have one dimension")

	key := (&series.Labels{Dimensions: []string{"a"}, Vantage: "server"}).AppendKey(nil)
	restore := func(field protowire.Number, value float64) error {
		cell := protowire.AppendFixed64(protowire.AppendTag(nil, field, protowire.Fixed64Type), math.Float64bits(value))
		return New(1<<30).Restore(slot.span, protowire.AppendBytes(protowire.AppendBytes(nil, key), cell), 1, w.now)
	}
	require.NoError(t, restore(101, 2))
	require.Error(t, restore(199, 2), "there is no such distribution")
	require.Error(t, restore(501, 2), "there is no such outcome")
	for _, value := range []float64{-1, math.NaN(), math.Inf(1), 2 * sketch.MaxValue} {
		require.Error(t, restore(101, value))
	}
	require.Empty(t, s.slots)
}

// Whatever a damaged storage holds, a restored slot can be read, widened and saved.
func FuzzRestore(f *testing.F) {
	w := newWorld(f, 1<<30)
	w.request("a")
	f.Add(w.saved()[0].encoded)
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, encoded []byte) {
		now := time.Unix(1_800_000_000, 0)
		s := New(1 << 30)
		if s.Restore(Span{now.Unix() - 600, finest}, encoded, 1, now) != nil {
			require.Empty(t, s.slots)
			return
		}
		before := sumOf(s)
		s.Maintain(now)
		after := sumOf(s)
		require.Equal(t, before.Requests, after.Requests)
		require.Equal(t, before.SLOs, after.SLOs)
		for span, encode := range s.all() {
			require.NoError(t, New(1<<30).Restore(span, encode, 1, now))
		}
	})
}

func (s *Store) all() map[Span][]byte {
	all := map[Span][]byte{}
	s.Saved(func(span Span, _ Version, encode func() []byte) { all[span] = encode() })
	return all
}
