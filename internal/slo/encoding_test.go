// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package slo

import (
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A history that is saved and decoded again and again equals one that is not.
func TestDecodeHistory_ContinuesASavedHistory(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 3))
			length := time.Hour + time.Duration(random.Int64N(int64(month)))
			longest := []time.Duration{time.Second, time.Minute, time.Hour, 100 * time.Hour}
			whole, saved := NewHistory(length), NewHistory(length)
			now := 56 * 365 * 24 * time.Hour // 2026, since 1970
			for range 500 {
				now += time.Duration(random.Int64N(int64(longest[random.IntN(len(longest)-random.IntN(2))])))
				good := random.IntN(3) > 0
				whole.Add(now, one(good))
				saved.Add(now, one(good))
				if random.IntN(10) == 0 {
					now += time.Duration(random.Int64N(int64(time.Hour))) // downtime
					encoded := saved.AppendBinary(nil)
					require.Less(t, len(encoded), 3000)
					var err error
					saved, err = DecodeHistory(encoded, length, now)
					require.NoError(t, err)
				}
				require.Equal(t, whole.Recent(now), saved.Recent(now))
			}
		})
	}
}

func TestDecodeHistory_OtherBudgetWindowStartsEmpty(t *testing.T) {
	h := NewHistory(month)
	h.Add(time.Hour, Counts{Bad: 1})
	read, err := DecodeHistory(h.AppendBinary(nil), 2*month, time.Hour)
	require.NoError(t, err)
	bad := Counts{Bad: 1}
	require.Equal(t, Recent{Burn: [5]Counts{bad, bad, bad, bad, bad}}, read.Recent(time.Hour))
}

// If the clock was ahead at the save, or was set back since, requests stay and leave
// their windows as if they had been counted by the correct clock.
func TestDecodeHistory_MovesFutureRequestsToNow(t *testing.T) {
	for _, ahead := range []time.Duration{time.Second, time.Minute, 100 * time.Hour, 20_000 * time.Hour} {
		h := NewHistory(month)
		h.Add(72*time.Hour+ahead-4*time.Minute, Counts{Good: 1})
		h.Add(72*time.Hour+ahead, Counts{Bad: 1})
		read, err := DecodeHistory(h.AppendBinary(nil), month, 72*time.Hour)
		require.NoError(t, err)
		both, bad := Counts{Good: 1, Bad: 1}, Counts{Bad: 1}
		require.Equal(t, Recent{[5]Counts{both, both, both, both, both}, both}, read.Recent(72*time.Hour), ahead)
		require.Equal(t, bad, read.Recent(72*time.Hour + 2*time.Minute).Burn[0], ahead)
		require.Equal(t, Counts{}, read.Recent(72*time.Hour + 6*time.Minute).Burn[0], ahead)
	}
}

func TestDecodeHistory_RejectsMalformedInput(t *testing.T) {
	h := NewHistory(month)
	h.Add(time.Hour, Counts{Bad: 1})
	encoded := h.AppendBinary(nil)
	for length := range encoded {
		_, err := DecodeHistory(encoded[:length], month, time.Hour)
		require.ErrorIs(t, err, errMalformed, length)
	}
	_, err := DecodeHistory(append(encoded, 0), month, time.Hour)
	require.ErrorIs(t, err, errMalformed)
}

func FuzzDecodeHistory(f *testing.F) {
	h := NewHistory(month)
	h.Add(time.Hour, Counts{Good: 1})
	f.Add(h.AppendBinary(nil))
	f.Fuzz(func(t *testing.T, encoded []byte) {
		read, err := DecodeHistory(encoded, month, 1000*time.Hour)
		if err != nil {
			return
		}
		read.Add(1000*time.Hour, Counts{Bad: 1})
		again, err := DecodeHistory(read.AppendBinary(nil), month, 1000*time.Hour)
		require.NoError(t, err)
		require.Equal(t, read.Recent(1000*time.Hour), again.Recent(1000*time.Hour))
	})
}

func one(good bool) Counts {
	if good {
		return Counts{Good: 1}
	}
	return Counts{Bad: 1}
}
