package assembly

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/timeline"
)

// Packed gaps have the same result as their times one by one, also at the limits. If
// they are not accepted, the part is unchanged.
func TestAddGaps_EqualsAddChunk(t *testing.T) {
	random := rand.New(rand.NewPCG(21, 22))
	limits := roomy
	limits.MaxChunksPerStream = 60
	accepted, refused := 0, 0
	for range 2000 {
		s, _ := newStore(limits)
		var parts [2]*Part
		for i := range parts {
			part, err := s.NewBatch().Part([]byte("a"))
			require.NoError(t, err)
			started(t, part)
			parts[i] = part
		}
		one, gaps := parts[0], parts[1]
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
			channel := timeline.Channel(random.IntN(3))
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

// A stream is the same in one request and in several, with chunks in and out of order,
// with and without sequence numbers, and at the limit.
func TestMerge_PartsEqualWholeStream(t *testing.T) {
	random := rand.New(rand.NewPCG(23, 24))
	limits := roomy
	limits.MaxChunksPerStream = 80
	for range 1000 {
		whole, _ := newStore(limits)
		inParts, _ := newStore(limits)
		all := batchOf(t, whole, "a", started)
		apply(t, inParts, batchOf(t, inParts, "a", started))
		at, seq := t0+int64(1e9), uint64(0)
		for range random.IntN(6) {
			var chunks []Chunk
			for range random.IntN(30) {
				at += random.Int64N(1e8)
				k := Chunk{UnixNano: at, Tokens: 1 + uint32(random.IntN(6)/5), Channel: timeline.Channel(random.IntN(6) / 5)}
				switch random.IntN(150) {
				case 0:
					k.UnixNano -= random.Int64N(1e9)
				case 1:
					k.Numbered, k.Seq = true, seq
					seq++
				}
				chunks = append(chunks, k)
			}
			add := func(t testing.TB, p *Part) {
				for _, k := range chunks {
					require.NoError(t, p.AddChunk(k))
				}
			}
			add(t, all.parts[0])
			apply(t, inParts, batchOf(t, inParts, "a", add))
		}
		ended(t, all.parts[0])
		one := apply(t, whole, all)
		several := apply(t, inParts, batchOf(t, inParts, "a", ended))
		require.Len(t, one.Finished, 1)
		require.Len(t, several.Finished, 1)
		want, got := one.Finished[0].Chunks.Timeline(), several.Finished[0].Chunks.Timeline()
		require.Equal(t, want.AppendBinary(nil, t0), got.AppendBinary(nil, t0))
		require.Equal(t, one.Finished[0].Dropped(), several.Finished[0].Dropped())
		require.InDelta(t, 0, one.Finished[0].EndUnixNano()-several.Finished[0].EndUnixNano(), 999, "times are truncated to a tick")
	}
}
