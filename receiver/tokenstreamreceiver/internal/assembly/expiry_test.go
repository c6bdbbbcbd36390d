// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package assembly

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func idsOf(finished []Finished) (ids []string) {
	for _, f := range finished {
		ids = append(ids, f.ID)
	}
	slices.Sort(ids)
	return ids
}

func TestExpire_WaitsLongerForTheFirstChunk(t *testing.T) {
	s, c := newStore(roomy)
	timeouts := Timeouts{Idle: time.Minute, FirstToken: 10 * time.Minute}
	expire := func() []string {
		tx := s.Expire(timeouts, 10)
		require.NoError(t, tx.Commit())
		return idsOf(tx.Finished)
	}
	scheduled := func(t testing.TB, p *Part) { require.NoError(t, p.AddScheduled(t0+1)) }
	noToken := func(t testing.TB, p *Part) { require.NoError(t, p.AddChunk(Chunk{UnixNano: t0})) }
	apply(t, s, batchOf(t, s, "started", started))
	apply(t, s, batchOf(t, s, "scheduled", started, scheduled, noToken))
	apply(t, s, batchOf(t, s, "chunk", started, chunks(1)))
	apply(t, s, batchOf(t, s, "late chunk", started))
	c.now += time.Minute
	require.Equal(t, []string{"chunk"}, expire())
	c.now += 8 * time.Minute
	apply(t, s, batchOf(t, s, "late chunk", chunks(1)))
	require.Empty(t, expire())
	c.now += time.Minute
	require.Equal(t, []string{"late chunk", "scheduled", "started"}, expire())
	require.Zero(t, s.Memory())
}

func TestCut_MarksStreamsThatHadNotExpired(t *testing.T) {
	s, c := newStore(roomy)
	timeouts := Timeouts{Idle: time.Minute, FirstToken: 10 * time.Minute}
	apply(t, s, batchOf(t, s, "expired", started, chunks(1)))
	c.now += time.Minute
	apply(t, s, batchOf(t, s, "waiting", started))
	apply(t, s, batchOf(t, s, "active", started, chunks(1)))
	now := c.now
	for range 3 { // it is refused twice
		tx := s.Cut(timeouts, now, 10)
		require.Len(t, tx.Finished, 3)
		for _, f := range tx.Finished {
			require.Equal(t, f.ID != "expired", f.Cut, f.ID)
		}
		tx.Rollback()
		c.now += time.Hour
	}
	tx := s.Cut(timeouts, now, 2)
	require.Len(t, tx.Finished, 2, "at most limit")
	require.NoError(t, tx.Commit())
	require.NoError(t, s.Cut(timeouts, now, 2).Commit())
	require.Zero(t, s.Streams())
	require.Zero(t, s.Memory())
}

// Streams that are refused again and again do not keep others waiting.
func TestExpire_StartsWithAnotherShardEachTime(t *testing.T) {
	s, _ := newStore(roomy)
	for i := range 1000 {
		apply(t, s, batchOf(t, s, strconv.Itoa(i), started))
	}
	seen := map[string]bool{}
	for range shards {
		tx := s.Expire(Timeouts{}, 1)
		seen[tx.Finished[0].ID] = true
		tx.Rollback()
	}
	require.Len(t, seen, shards)
}
