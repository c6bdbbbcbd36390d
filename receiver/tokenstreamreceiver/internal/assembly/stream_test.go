// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package assembly

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/timeline"
)

func TestMerge_KeepsFirstValues(t *testing.T) {
	s, _ := newStore(roomy)
	first := func(t testing.TB, p *Part) {
		require.NoError(t, p.AddStart(Start{UnixNano: t0, Vantage: timeline.VantageEngine}, []byte("a"), []byte("r")))
		require.NoError(t, p.AddScheduled(t0+5))
	}
	second := func(t testing.TB, p *Part) {
		require.NoError(t, p.AddStart(Start{UnixNano: t0, Vantage: timeline.VantageClient}, []byte("b"), []byte("q")))
		require.NoError(t, p.AddScheduled(t0+7))
	}
	apply(t, s, batchOf(t, s, "s", first))
	apply(t, s, batchOf(t, s, "s", second))
	tx := apply(t, s, batchOf(t, s, "s", func(t testing.TB, p *Part) { require.NoError(t, p.AddEnd(End{Cancelled: true}, []byte("c"))) }))
	got := tx.Finished[0]
	require.Equal(t, Start{UnixNano: t0, Vantage: timeline.VantageEngine}, got.Start)
	require.Equal(t, t0+5, got.Scheduled)
	require.Equal(t, "abc", string(got.Attributes)+string(got.End.Attributes), "attributes are merged")
	require.Equal(t, "r", string(got.Resource))
	require.Equal(t, 2, got.Duplicates())
	require.Equal(t, t0+5, got.EndUnixNano(), "the latest time of any event")
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

func TestMaxChunksPerStream_IgnoresRepeats(t *testing.T) {
	limits := roomy
	limits.MaxChunksPerStream = 10
	run := func(first, last int) script {
		return func(t testing.TB, p *Part) {
			for seq := first; seq <= last; seq++ {
				require.NoError(t, p.AddChunk(*number(seq)))
			}
		}
	}
	t.Run("in one request", func(t *testing.T) {
		s, _ := newStore(limits)
		tx := apply(t, s, batchOf(t, s, "s", started, run(0, 9), run(5, 9), ended))
		require.Empty(t, tx.Rejected)
		require.Zero(t, tx.Finished[0].Dropped())
		require.Equal(t, 5, tx.Finished[0].Duplicates())
	})
	t.Run("in parts", func(t *testing.T) {
		s, _ := newStore(limits)
		apply(t, s, batchOf(t, s, "s", started, run(0, 7)))
		require.Empty(t, apply(t, s, batchOf(t, s, "s", run(5, 9))).Rejected)
		tx := apply(t, s, batchOf(t, s, "s", run(8, 10)))
		require.Equal(t, 1, tx.Rejected[0].Events)
		tx = apply(t, s, batchOf(t, s, "s", ended))
		require.Len(t, offsets(t, tx.Finished[0]), 10)
		require.Equal(t, 1, tx.Finished[0].Dropped())
		require.Equal(t, 5, tx.Finished[0].Duplicates())
	})
}

// Without an end time, the stream ends at its latest chunk, exact to the nanosecond,
// however the stream is split into requests.
func TestEndUnixNano_IsExactTimeOfLatestChunk(t *testing.T) {
	for name, chunks := range map[string][]Chunk{
		"unnumbered":      {{UnixNano: t0 + 500, Tokens: 1}, {UnixNano: t0 + 1999, Tokens: 1}},
		"numbered":        {{UnixNano: t0 + 500, Tokens: 1, Numbered: true}, {UnixNano: t0 + 1999, Tokens: 1, Seq: 1, Numbered: true}},
		"clock goes back": {{UnixNano: t0 + 1999, Tokens: 1, Numbered: true}, {UnixNano: t0 + 500, Tokens: 1, Seq: 1, Numbered: true}},
		"clock goes back after the second of three": {
			{UnixNano: t0 + 300, Tokens: 1, Numbered: true},
			{UnixNano: t0 + 1999, Tokens: 1, Seq: 1, Numbered: true},
			{UnixNano: t0 + 500, Tokens: 1, Seq: 2, Numbered: true},
		},
	} {
		for cut := range len(chunks) + 1 {
			t.Run(fmt.Sprint(name, ", ", cut, " in the first request"), func(t *testing.T) {
				s, _ := newStore(roomy)
				adding := func(chunks []Chunk) script {
					return func(t testing.TB, p *Part) {
						for _, chunk := range chunks {
							require.NoError(t, p.AddChunk(chunk))
						}
					}
				}
				apply(t, s, batchOf(t, s, "s", started, adding(chunks[:cut])))
				apply(t, s, batchOf(t, s, "s", adding(chunks[cut:])))
				tx := apply(t, s, batchOf(t, s, "s", ended))
				require.Equal(t, t0+1999, tx.Finished[0].EndUnixNano())
				line := tx.Finished[0].Chunks.Timeline()
				walk := line.Walk()
				for _, chunk := range chunks {
					require.True(t, walk.Next())
					require.InDelta(t, 0, line.First()+int64(walk.Offset())-chunk.UnixNano, 999, "chunk times are exact to a tick")
				}
			})
		}
	}
}

func TestMaxChunksPerStream_ChunksInOrderAreNotSpilled(t *testing.T) {
	limits := roomy
	limits.MaxChunksPerStream = maxSpilled + 10
	s, _ := newStore(limits)
	tx := apply(t, s, batchOf(t, s, "s", started, func(t testing.TB, p *Part) {
		for i := range maxSpilled + 20 {
			if err := p.AddChunk(Chunk{UnixNano: t0 + int64(i)*1000, Tokens: 1}); err != nil {
				require.NoError(t, err)
			}
		}
	}, ended))
	require.Equal(t, 10, tx.Finished[0].Dropped())
}
