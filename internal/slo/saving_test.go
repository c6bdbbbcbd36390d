// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package slo

import (
	"encoding/binary"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// saved returns the encoded budgets of a series with a good and a bad request.
func saved(t testing.TB) (encoded []byte) {
	t.Helper()
	tracker := newTracker(nil)
	tracker.judged("a", 0, "gA")
	tracker.judged("a", 0, "bA")
	tracker.Saved(func(_ string, _ Version, encode func() []byte) { encoded = encode() })
	require.NotEmpty(t, encoded)
	return encoded
}

// The index of a damaged storage may hold a key twice.
func TestRestore_TheLastOfTwoEntriesOfAKeyWins(t *testing.T) {
	tracker := newTracker(nil)
	for range 3 {
		require.NoError(t, tracker.Restore("a", saved(t), begin))
	}
	require.Len(t, tracker.budgets, 1)
	require.Equal(t, 1, tracker.byAge.Len())
	require.Equal(t, Counts{Good: 1, Bad: 1}, tracker.recent("a", 0)["A"].Budget)
}

func TestDecodeWindows_RejectsImpossibleCounts(t *testing.T) {
	for _, count := range []uint64{maxCount, maxCount + 1, math.MaxUint64} {
		encoded := binary.AppendUvarint(nil, uint64(month)) // the length of the budget's window
		encoded = append(encoded, 0, 1, 0)                  // the first window: open slot, slots in use, age
		encoded = binary.AppendUvarint(encoded, count)
		encoded = append(encoded, 0)                    // bad requests
		encoded = append(encoded, make([]byte, 2*5)...) // five empty windows
		_, err := DecodeWindows(encoded, month, time.Hour)
		if count <= maxCount {
			require.NoError(t, err)
			continue
		}
		require.ErrorIs(t, err, errMalformed, count)
	}
}

// FuzzRestore restores hostile budgets, as a damaged storage may hold them.
func FuzzRestore(f *testing.F) {
	f.Add("a", saved(f))
	f.Add("", []byte{0})
	f.Add("b", []byte{0xff})
	f.Fuzz(func(t *testing.T, key string, encoded []byte) {
		tracker := newTracker(nil)
		_ = tracker.Restore(key, encoded, begin)
		_ = tracker.Restore(key, encoded, begin)
		_ = tracker.Restore("other", saved(t), begin)
		tracker.judged(key, time.Second, "gA", "bB")
		require.LessOrEqual(t, tracker.byAge.Len(), len(tracker.budgets))
		tracker.Visit(begin.Add(time.Second), func(b *Budgets) {
			for i := range b.Each {
				for j := range Alerts {
					Alerts[j].Fires(&b.Each[i])
				}
				rate, ok := b.Each[i].Recent.Budget.BurnRate(b.Each[i].Objective.Objective)
				require.False(t, ok && (math.IsNaN(rate) || math.IsInf(rate, 0) || rate < 0))
			}
		})
		again := tracker.restarted(t, time.Second, nil)
		require.Equal(t, tracker.recent(key, time.Second), again.recent(key, time.Second))
		tracker.Expire(begin.Add(365 * 24 * time.Hour))
		require.Zero(t, tracker.byAge.Len())
		require.Empty(t, tracker.budgets)
	})
}
