package assembly

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

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

func TestMemory_ReusedBuffersDoNotCount(t *testing.T) {
	limits := roomy
	limits.MaxChunksPerStream = 200_000
	limits.MaxMemory = 100_000
	s, _ := newStore(limits)
	batch := s.NewBatch()
	part, err := batch.Part([]byte("large"))
	require.NoError(t, err)
	started(t, part)
	for i := range 200_000 {
		if err := part.AddChunk(Chunk{UnixNano: t0 + int64(i)*1e6, Tokens: 1}); err != nil {
			require.NoError(t, err)
		}
	}
	require.NoError(t, part.AddEnd(End{}, nil))
	part.Count(0)
	apply(t, s, batch)
	batch.Reset()
	part, err = batch.Part([]byte("small"))
	require.NoError(t, err)
	started(t, part)
	chunks(1)(t, part)
	part.Count(0)
	apply(t, s, batch)
	require.LessOrEqual(t, s.Memory(), int64(1000))
}

// Another batch opens the stream after the start was added: only Begin detects it.
func TestBegin_RejectsStartThatConflictsMeanwhile(t *testing.T) {
	s, _ := newStore(roomy)
	late := batchOf(t, s, "s", func(t testing.TB, p *Part) {
		require.NoError(t, p.AddStart(Start{UnixNano: t0 + 1}, nil, nil))
	}, chunks(1))
	apply(t, s, batchOf(t, s, "s", started))
	tx := apply(t, s, late)
	require.Zero(t, tx.Units)
	require.ErrorContains(t, tx.Rejected[0].Err, "already open with another start time")
	require.EqualValues(t, 1, s.Streams())
}
