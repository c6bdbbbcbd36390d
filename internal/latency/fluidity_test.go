// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package latency

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/timeline"
)

// referenceFluidity counts deadlines token by token, as definitions.md describes.
type referenceFluidity struct {
	deadlines   Deadlines
	slack       time.Duration
	met, missed int
	later       bool
}

func (e *referenceFluidity) token(wait time.Duration) {
	deadline, late := e.deadlines.NextToken, 0
	if !e.later {
		deadline, late, e.later = e.deadlines.FirstToken, 1, true
	}
	if wait <= deadline+e.slack {
		e.met++
		e.slack += deadline - wait
		return
	}
	if late == 1 {
		e.missed += 1 + int((wait-e.slack-deadline)/e.deadlines.NextToken)
	} else {
		e.missed += int((wait - e.slack) / deadline)
	}
	e.slack = 0
}

func TestFluidity_EqualsCountingTokenByToken(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	for range 3000 {
		deadlines := Deadlines{1 + time.Duration(random.IntN(100)), 1 + time.Duration(random.IntN(20))}
		quick, slow := fluidity{deadlines: deadlines}, referenceFluidity{deadlines: deadlines}

		first, tokens := time.Duration(random.IntN(200)), 1+random.Int64N(5)
		quick.start(first, tokens)
		slow.token(first)
		for range tokens - 1 {
			slow.token(0)
		}
		for range random.IntN(20) {
			tokens := 1 + random.Int64N(6)
			gap := time.Duration(random.IntN(120))
			quick.addChunk(gap, tokens)
			for i := range tokens { // the last tokens get the remaining nanoseconds
				wait := gap / time.Duration(tokens)
				if i >= tokens-int64(gap)%tokens {
					wait++
				}
				slow.token(wait)
			}
		}
		require.EqualValues(t, slow.met, quick.met)
		require.EqualValues(t, slow.missed, quick.missed)
		require.Equal(t, slow.slack, quick.slack)
	}
}

// Counts stay exact and the slack does not overflow for a thousand chunks of a
// million tokens at the longest deadlines.
func TestFluidity_HugeChunksDoNotOverflow(t *testing.T) {
	f := fluidity{deadlines: Deadlines{MaxDeadline, MaxDeadline}}
	f.start(0, timeline.MaxTokensPerChunk)
	for range 1000 {
		f.addChunk(0, timeline.MaxTokensPerChunk)
	}
	require.EqualValues(t, 1001*timeline.MaxTokensPerChunk, f.met)
	require.Positive(t, f.slack)

	f = fluidity{deadlines: Deadlines{1, 1}}
	f.start(2, 1)
	f.addChunk(3*timeline.MaxTokensPerChunk, timeline.MaxTokensPerChunk)
	require.Zero(t, f.met)
	require.EqualValues(t, 2+3*timeline.MaxTokensPerChunk, f.missed)
}
