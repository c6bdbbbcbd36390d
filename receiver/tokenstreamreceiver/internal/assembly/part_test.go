// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package assembly

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/timeline"
)

func TestAddChunk_LimitsChunksOutOfOrder(t *testing.T) {
	limits := roomy
	limits.MaxChunksPerStream = 1 << 30
	s, _ := newStore(limits)
	part := startedPart(t, s)
	var err error
	for i := 0; err == nil; i++ {
		require.LessOrEqual(t, i, maxSpilled+1)
		err = part.AddChunk(Chunk{UnixNano: t0 - int64(i)*1e6, Tokens: 1})
	}
	require.ErrorContains(t, err, "out of order")
	require.Equal(t, Limit, ReasonOf(err))
}

// startedPart returns a part with a start, in a batch of its own.
func startedPart(t testing.TB, s *Store) *Part {
	return batchOf(t, s, "a", started).parts[0]
}

// Packed gaps have the same result as their times one by one, also at the limits. If
// they are not accepted, the part is unchanged.
func TestAddGaps_EqualsAddChunk(t *testing.T) {
	random := rand.New(rand.NewPCG(21, 22))
	limits := roomy
	limits.MaxChunksPerStream = 60
	accepted, refused := 0, 0
	for range 2000 {
		s, _ := newStore(limits)
		one, gaps := startedPart(t, s), startedPart(t, s)
		at := t0 + random.Int64N(1e9)
		for range 4 {
			switch random.IntN(14) {
			case 0:
				at -= random.Int64N(2e9) // before earlier chunks
			case 2:
				at = t0 - int64(MaxDuration) + random.Int64N(2e9) - 1e9 // around the earliest accepted time
			case 1:
				at += int64(MaxDuration) - random.Int64N(2e9) // around the latest accepted time
			}
			first, packed, times := at, []byte(nil), []int64{at}
			for range random.IntN(25) {
				gap := random.Int64N(1 << (1 + random.IntN(19)))
				if random.IntN(200) == 0 {
					gap = -gap
				}
				packed = binary.AppendUvarint(packed, uint64(gap<<1)^uint64(gap>>63))
				at += gap * 1000
				times = append(times, at)
			}
			channel := timeline.Channel(random.IntN(4))
			before := gaps.Snapshot()
			if gaps.AddGaps(first, packed, channel) {
				accepted++
				for _, unixNano := range times {
					require.NoError(t, one.AddChunk(Chunk{UnixNano: unixNano, Tokens: 1, Channel: channel}))
				}
			} else {
				refused++
				require.Equal(t, before, *gaps)
			}
			require.Equal(t, one.batch.events, gaps.batch.events)
			require.Equal(t, one.dropped, gaps.dropped)
			require.Equal(t, one.Chunks.latest, gaps.Chunks.latest)
			want, got := one.Chunks.Timeline(), gaps.Chunks.Timeline()
			require.Equal(t, want.AppendBinary(nil, t0), got.AppendBinary(nil, t0))
		}
	}
	require.Greater(t, accepted, 1000)
	require.Greater(t, refused, 100)
}
