// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package assembly

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// units returns a batch of one stream with a number of units.
func units(t testing.TB, s *Store, byEvent bool, n int, scripts ...script) *Batch {
	batch := batchOf(t, s, "s", scripts...)
	batch.ByEvent = byEvent
	part, err := batch.Part([]byte("s"))
	require.NoError(t, err)
	for range n - 1 {
		part.Count(1)
	}
	return batch
}

// Accepted units are in open streams or in finished ones, whatever is rejected, repeated
// or rolled back.
func TestAccepted_UnitsAreOpenOrFinished(t *testing.T) {
	limits := roomy
	limits.MaxChunksPerStream = 3
	t.Run("by event", func(t *testing.T) {
		s, _ := newStore(limits)
		begin(t, s, units(t, s, true, 3, started, chunks(1, 2))).Rollback()
		require.Zero(t, s.Accepted())

		require.Equal(t, 3, apply(t, s, units(t, s, true, 3, started, chunks(1, 2))).Units)
		require.EqualValues(t, 3, s.Accepted())
		require.Equal(t, 1, apply(t, s, units(t, s, true, 3, chunks(3, 4, 5))).Units, "two chunks are too many")
		require.EqualValues(t, 4, s.Accepted())
		require.Equal(t, 1, apply(t, s, units(t, s, true, 1, started)).Units, "a repeat")
		require.EqualValues(t, 5, s.Accepted())
		begin(t, s, units(t, s, true, 2, chunks(6), ended)).Rollback()
		require.EqualValues(t, 5, s.Accepted())

		tx := apply(t, s, units(t, s, true, 2, chunks(6), ended))
		require.Equal(t, 1, tx.Units)
		require.Equal(t, 1, tx.Rejected[0].Units)
		require.EqualValues(t, 6, tx.Finished[0].Accepted)
		require.Zero(t, s.Accepted())

		whole := apply(t, s, units(t, s, true, 6, started, chunks(1, 2, 3, 4), ended))
		require.Equal(t, 5, whole.Units)
		require.EqualValues(t, 5, whole.Finished[0].Accepted)
		require.Zero(t, s.Accepted())
	})
	t.Run("by message", func(t *testing.T) {
		s, _ := newStore(limits)
		require.Equal(t, 1, apply(t, s, units(t, s, false, 1, started, chunks(1, 2, 3, 4))).Units)
		require.EqualValues(t, 1, s.Accepted())
		tx := apply(t, s, units(t, s, false, 1, chunks(5, 6), ended))
		require.Equal(t, 1, tx.Units)
		require.Zero(t, tx.Rejected[0].Units)
		require.EqualValues(t, 2, tx.Finished[0].Accepted)
		require.Zero(t, s.Accepted())
	})
	t.Run("expired", func(t *testing.T) {
		s, clock := newStore(limits)
		apply(t, s, units(t, s, true, 2, started, chunks(1)))
		clock.now += minute.Idle
		s.Expire(minute, 1).Rollback()
		require.EqualValues(t, 2, s.Accepted())
		tx := s.Expire(minute, math.MaxInt)
		require.NoError(t, tx.Commit())
		require.EqualValues(t, 2, tx.Finished[0].Accepted)
		require.Zero(t, s.Accepted())
	})
}
