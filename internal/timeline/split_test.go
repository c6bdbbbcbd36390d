// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// chunkAt is a chunk as a walk shows it.
type chunkAt struct {
	offset  int64
	tokens  uint32
	channel Channel
}

func chunksOf(t *testing.T, walk Walk) (all []chunkAt) {
	t.Helper()
	for walk.Next() {
		all = append(all, chunkAt{int64(walk.Offset()), walk.Tokens(), walk.Channel()})
	}
	require.NoError(t, walk.Err())
	return all
}

// Each part has the chunks of the whole that are its own, at the same times, also where the clock goes back.
func TestSplit_EqualsTheChunksOfTheWhole(t *testing.T) {
	random := rand.New(rand.NewPCG(4, 5))
	for range 2000 {
		const start = 1_795_233_292_181_556_789
		var line Timeline
		at := int64(start)
		for range random.IntN(12) {
			line.Append(at, 1+uint32(random.IntN(3)), Channel(random.IntN(4)))
			at += random.Int64N(90_000_000) - 10_000_000
		}
		stored, err := Decode(line.AppendBinary(nil, start-5_000))
		require.NoError(t, err)
		for _, walk := range []Walk{stored, line.WalkFrom(start - 5_000)} {
			whole := chunksOf(t, walk)
			tokens, audio := walk.Split()
			isAudio := func(c chunkAt) bool { return c.channel == Audio }
			require.Equal(t, slices.ContainsFunc(whole, isAudio), line.HasAudio())
			require.Equal(t, slices.Collect(filtered(whole, isAudio)), chunksOf(t, audio))
			require.Equal(t, slices.Collect(filtered(whole, func(c chunkAt) bool { return !isAudio(c) })), chunksOf(t, tokens))
			for _, c := range whole {
				require.Equal(t, isAudio(c), c.tokens == 0)
			}
		}
	}
}

func filtered(all []chunkAt, keep func(chunkAt) bool) func(func(chunkAt) bool) {
	return func(yield func(chunkAt) bool) {
		for _, c := range all {
			if keep(c) && !yield(c) {
				return
			}
		}
	}
}

// A part that is cut short has no numbers, instead of those of its first chunks.
func TestSplit_OfAMalformedTimelineHasErrors(t *testing.T) {
	var line Timeline
	line.Append(1_000_000_000, 1, Content)
	line.Append(1_900_000_000, 0, Audio)
	encoded := line.AppendBinary(nil, 0)
	walk, err := Decode(encoded[:len(encoded)-1])
	require.NoError(t, err)
	tokens, audio := walk.Split()
	require.False(t, tokens.Next())
	require.Error(t, tokens.Err())
	require.False(t, audio.Next())
	require.Error(t, audio.Err())
}

func TestSplit_WithoutAudioAllocatesNothing(t *testing.T) {
	var line Timeline
	for i := range int64(100) {
		line.Append(1_000_000_000+i*20_000_000, 1, Content)
	}
	require.Zero(t, testing.AllocsPerRun(100, func() {
		walk := line.Walk()
		_, _ = walk.Split()
	}))
}
