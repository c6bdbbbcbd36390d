// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package latency

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/testenv/reference"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
)

// randomStream returns the duration and chunks of a stream whose clock sometimes goes
// back or jumps ahead.
func randomStream(random *rand.Rand) (time.Duration, []chunk) {
	var chunks []chunk
	at := float64(random.IntN(3_000_000)) / 1e3
	if random.IntN(10) == 0 {
		at = -at
	}
	for range 1 + random.IntN(200) {
		channel := timeline.Channel(random.IntN(3))
		tokens := uint32(1)
		if random.IntN(4) == 0 {
			tokens = 1 + uint32(random.IntN(50))
		}
		chunks = append(chunks, chunk{at, tokens, channel})
		switch random.IntN(50) {
		case 0: // goes back
			at -= float64(random.IntN(100_000)) / 1e3
		case 1: // jumps ahead
			at += float64(random.IntN(5_000_000)) / 1e3
		case 2: // same time again
		default:
			at += 20 * math.Exp(random.NormFloat64())
		}
		at = math.Round(at*1e3) / 1e3 // the resolution of a timeline
	}
	return time.Duration(1e6 * (math.Abs(at) + 500*random.NormFloat64())), chunks
}

func TestAnalyze_EqualsReference(t *testing.T) {
	const start = 1_795_233_292_000_000_000
	random := rand.New(rand.NewPCG(7, 8))
	a := NewAnalyzer(standard)
	for i := range 2000 {
		duration, chunks := randomStream(random)
		if duration <= 0 {
			continue
		}
		l, err := a.Analyze(Observed{Duration: duration}, pack(t, chunks))
		require.NoError(t, err)
		s := reference.Stream{Start: start, End: start + int64(duration), Usage: reference.NoUsage}
		for seq, c := range chunks {
			s.Chunks = append(s.Chunks, reference.Chunk{
				At: start + int64(math.Round(c.at*1e6)), Tokens: int64(c.tokens), Channel: c.channel.String(),
				Sequence: uint64(seq), Numbered: true, // the clock may go back
			})
		}
		want := reference.Of(&s, reference.Usual)
		for id, m := range l.Measures {
			number, known := want.Numbers[numbers.ID(id).Attribute()]
			about := fmt.Sprintf("%s of stream %d", numbers.ID(id).Name(), i)
			if m.Known && m.Value != 0 || known {
				require.Equal(t, known, m.Known, about)
				reference.RequireNear(t, number, m.Value, about)
			}
		}
		require.EqualValues(t, len(want.ChunkTokens), l.ChunkTokens.Count(), i)
		for rank, tokens := range reference.Values(want.ChunkTokens) {
			quantile := (float64(rank) + 0.5) / float64(len(want.ChunkTokens))
			require.InEpsilon(t, tokens, l.ChunkTokens.Quantile(quantile), reference.SketchError, i)
		}
	}
}
