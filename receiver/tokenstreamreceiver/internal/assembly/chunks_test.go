// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package assembly

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestChunks_OrderAndRepeats(t *testing.T) {
	tests := map[string]struct {
		parts      []script
		want       []int
		duplicates int
	}{
		"in order, by time":                      {[]script{chunks(1, 2), chunks(3), chunks(4, 5)}, []int{1, 2, 3, 4, 5}, 0},
		"out of order, by time":                  {[]script{chunks(3, 1), chunks(2), chunks(5, 4)}, []int{1, 2, 3, 4, 5}, 0},
		"late part, by time":                     {[]script{chunks(3, 4), chunks(1, 2)}, []int{1, 2, 3, 4}, 0},
		"in order, by number":                    {[]script{numbered(0, 1, 1, 2), numbered(2, 3)}, []int{1, 2, 3}, 0},
		"first number is not zero":               {[]script{numbered(7, 1, 8, 2), numbered(9, 3)}, []int{1, 2, 3}, 0},
		"out of order, by number":                {[]script{numbered(2, 3, 0, 1), numbered(1, 2)}, []int{1, 2, 3}, 0},
		"parts out of order, by number":          {[]script{numbered(2, 3, 3, 4), numbered(0, 1, 1, 2)}, []int{1, 2, 3, 4}, 0},
		"numbers contradict times":               {[]script{numbered(0, 5, 1, 3), numbered(2, 9)}, []int{5, 3, 9}, 0},
		"numbers contradict times, out of order": {[]script{numbered(1, 3, 0, 5), numbered(2, 9)}, []int{5, 3, 9}, 0},
		"repeats in order":                       {[]script{numbered(0, 1, 1, 2), numbered(0, 1, 1, 2, 2, 3)}, []int{1, 2, 3}, 2},
		"repeats out of order":                   {[]script{numbered(2, 3, 0, 1), numbered(2, 3, 1, 2, 1, 2)}, []int{1, 2, 3}, 2},
		"missing number":                         {[]script{numbered(0, 1, 2, 3), numbered(3, 4)}, []int{1, 3, 4}, 0},
		"last without a number: time decides":    {[]script{numbered(0, 5, 1, 3), chunks(4)}, []int{3, 4, 5}, 0},
		"first without a number: time decides":   {[]script{chunks(4), numbered(0, 5, 1, 3)}, []int{3, 4, 5}, 0},
		"last without a number, repeats":         {[]script{numbered(0, 5, 1, 3), chunks(4), numbered(1, 3)}, []int{3, 4, 5}, 1},
		"same times keep their order":            {[]script{chunks(2, 2), chunks(1, 2)}, []int{1, 2, 2, 2}, 0},
		"before the start":                       {[]script{chunks(-3, 1)}, []int{-3, 1}, 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			whole, _ := newStore(roomy)
			tx := apply(t, whole, batchOf(t, whole, "s", append(append([]script{started}, tt.parts...), ended)...))
			require.Equal(t, tt.want, offsets(t, tx.Finished[0]), "in one request")
			require.Equal(t, tt.duplicates, tx.Finished[0].Duplicates())

			s, _ := newStore(roomy)
			apply(t, s, batchOf(t, s, "s", started))
			for _, part := range tt.parts {
				apply(t, s, batchOf(t, s, "s", part))
			}
			for range 3 { // a rollback changes nothing
				tx := begin(t, s, batchOf(t, s, "s", ended))
				require.Equal(t, tt.want, offsets(t, tx.Finished[0]), "in parts")
				tx.Rollback()
			}
			tx = apply(t, s, batchOf(t, s, "s", ended))
			require.Equal(t, tt.want, offsets(t, tx.Finished[0]))
			require.Equal(t, tt.duplicates, tx.Finished[0].Duplicates())
			require.Zero(t, s.Memory())
			require.Zero(t, s.Streams())
		})
	}
}

func TestChunks_TruncationDoesNotBreakOrder(t *testing.T) {
	s, _ := newStore(roomy)
	apply(t, s, batchOf(t, s, "s", started))
	at := t0
	two := func(t testing.TB, p *Part) { // the second is truncated
		for range 2 {
			at += 333
			require.NoError(t, p.AddChunk(Chunk{UnixNano: at, Tokens: 1}))
		}
	}
	for range 100 { // chunks closer than a tick, in separate requests
		apply(t, s, batchOf(t, s, "s", two))
	}
	tx := apply(t, s, batchOf(t, s, "s", ended))
	require.False(t, tx.Finished[0].Chunks.spilled, "truncated times stay in order")
	line := tx.Finished[0].Chunks.Timeline()
	require.Equal(t, 200, line.Len())
	require.InDelta(t, at, line.Last(), 1000)
}

// number returns a chunk with a sequence number.
func number(seq int) *Chunk {
	return &Chunk{UnixNano: t0 + int64(seq)*1e6, Seq: uint64(seq), Tokens: 1, Numbered: true}
}

// Zero-token chunks, such as keep-alives, leave gaps in the sequence numbers.
func TestChunks_GapsInSequenceNumbersStayPacked(t *testing.T) {
	s, _ := newStore(roomy)
	apply(t, s, batchOf(t, s, "s", started, numbered(3, 3, 4, 4), func(t testing.TB, p *Part) {
		require.NoError(t, p.AddChunk(Chunk{UnixNano: t0, Seq: 5, Numbered: true}))
	}, numbered(6, 6)))
	apply(t, s, batchOf(t, s, "s", numbered(9, 9, 10, 10)))
	tx := begin(t, s, batchOf(t, s, "s", numbered(6, 6, 4, 4, 11, 11), ended))
	require.False(t, tx.Finished[0].Chunks.spilled, "packed")
	require.Equal(t, []int{3, 4, 6, 9, 10, 11}, offsets(t, tx.Finished[0]))
	require.Equal(t, 2, tx.Finished[0].Duplicates())
	tx.Rollback()

	apply(t, s, batchOf(t, s, "s", numbered(7, 7, 2, 2, 6, 6)))
	tx = apply(t, s, batchOf(t, s, "s", ended))
	require.Equal(t, []int{2, 3, 4, 6, 7, 9, 10}, offsets(t, tx.Finished[0]), "late chunks fill the gaps")
	require.Equal(t, 1, tx.Finished[0].Duplicates())
}

func TestChunks_SpillBeyondMaxGaps(t *testing.T) {
	var c Chunks
	for i := range maxGaps + 1 {
		require.True(t, c.append(number(2*i)))
	}
	require.False(t, c.append(number(9*maxGaps)))
	require.True(t, c.append(number(2*maxGaps+1)))
	c.add(number(9 * maxGaps))
	require.True(t, c.spilled)
	line := c.Timeline()
	require.Equal(t, maxGaps+3, line.Len())
}

func TestChunks_SequenceNumbersDecideOrderAndRepeats(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	for range 2000 {
		var c Chunks
		sent := map[int]bool{}
		seq, adds := random.IntN(5), 0
		for range random.IntN(30) {
			seq += random.IntN(3)
			at := seq
			if random.IntN(8) == 0 {
				at = max(0, seq-random.IntN(6))
			}
			c.add(number(at))
			sent[at] = true
			adds++
		}
		var want, got []int
		for at := range sent {
			want = append(want, at)
		}
		slices.Sort(want)
		line := c.Timeline()
		for walk := line.Walk(); walk.Next(); {
			got = append(got, int((line.First()+int64(walk.Offset())-t0)/1e6))
		}
		require.Equal(t, want, got)
		require.EqualValues(t, adds-len(sent), c.duplicates)
	}
}

func TestChunks_OrderBeforeFirstIsExactBelowATick(t *testing.T) {
	var c Chunks
	c.add(&Chunk{UnixNano: t0 + 900, Tokens: 1})
	c.add(&Chunk{UnixNano: t0 + 600, Tokens: 2})
	line := c.Timeline()
	require.Equal(t, t0+600, line.First())
	walk := line.Walk()
	require.True(t, walk.Next())
	require.EqualValues(t, 2, walk.Tokens())
}

func TestChunks_OrderBeforeLastIsExactBelowATick(t *testing.T) {
	var c Chunks
	c.add(&Chunk{UnixNano: t0, Tokens: 1})
	c.add(&Chunk{UnixNano: t0 + 20_000_050, Tokens: 3})
	c.add(&Chunk{UnixNano: t0 + 20_000_900, Tokens: 5})
	c.add(&Chunk{UnixNano: t0 + 20_000_100, Tokens: 2})
	line := c.Timeline()
	var tokens []uint32
	for walk := line.Walk(); walk.Next(); {
		tokens = append(tokens, walk.Tokens())
	}
	require.Equal(t, []uint32{1, 3, 2, 5}, tokens)
}
