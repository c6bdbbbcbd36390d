package assembly

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/timeline"
)

// Gaps that are taken as they are packed are what their times are one by one, also at
// the limits. Those that are not taken leave the part as it was.
func TestAddGapsIsAddChunk(t *testing.T) {
	random := rand.New(rand.NewPCG(21, 22))
	limits := roomy
	limits.MaxChunksPerStream = 60
	taken, left := 0, 0
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
				at -= random.Int64N(2e9) // before what came
			case 2:
				at = t0 - int64(MaxDuration) + random.Int64N(2e9) - 1e9 // about the earliest time
			case 1:
				at += int64(MaxDuration) - random.Int64N(2e9) // up to the latest time and past it
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
				taken++
				for _, unixNano := range times {
					require.NoError(t, one.AddChunk(Chunk{UnixNano: unixNano, Tokens: 1, Channel: channel}))
				}
			} else {
				left++
				require.Equal(t, before, *gaps)
			}
			require.Equal(t, one.batch.events, gaps.batch.events)
			require.Equal(t, one.dropped, gaps.dropped)
			require.Equal(t, one.Chunks.latest, gaps.Chunks.latest)
			want, got := one.Chunks.Timeline(), gaps.Chunks.Timeline()
			require.Equal(t, want.AppendBinary(nil, t0), got.AppendBinary(nil, t0))
		}
	}
	require.Greater(t, taken, 1000)
	require.Greater(t, left, 100)
}

// A stream in any parts is the stream in one, whether its parts are taken as a whole or
// chunk by chunk: in order or not, with numbers or without, and at the limit.
func TestPartsAreTheWhole(t *testing.T) {
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
		require.InDelta(t, 0, one.Finished[0].EndUnixNano()-several.Finished[0].EndUnixNano(), 999, "times are cut to a tick")
	}
}
