// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package llmstream

import (
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/testenv/recorded"
)

func TestAccount_SharesALimit(t *testing.T) {
	memory := NewMemory(10)
	one, other := memory.Account(), memory.Account()
	require.True(t, one.Take(4))
	require.True(t, other.Take(6))
	require.False(t, one.Take(1))
	require.EqualValues(t, 10, memory.Held())
	require.EqualValues(t, 1, one.Refusals())
	require.Zero(t, other.Refusals())
	other.Give(2)
	require.True(t, one.Take(2))
	one.Close()
	require.EqualValues(t, 4, memory.Held())
	require.False(t, one.Take(1), "it is closed")
	require.EqualValues(t, 1, one.Refusals(), "not for the limit")
	one.Give(1)
	one.Close()
	require.EqualValues(t, 4, memory.Held())
	require.True(t, other.TakeSpare(1))
	require.False(t, other.TakeSpare(1), "half of the limit is for Take")
	require.True(t, other.Take(1))
	require.Zero(t, other.Refusals())
	other.Close()
	require.False(t, other.TakeSpare(1), "it is closed")
	require.Zero(t, memory.Held())
}

// A refused request for many bytes must not take the room of one for few, not even for a moment.
func TestAccount_ManyBytesThatAreRefusedCostNobodyElse(t *testing.T) {
	memory := NewMemory(1000)
	greedy, modest := memory.Account(), memory.Account()
	require.True(t, modest.Take(500))
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 10_000 {
				greedy.Take(900)
			}
		})
	}
	for range 10_000 {
		require.True(t, modest.Take(1))
		modest.Give(1)
	}
	all.Wait()
	require.EqualValues(t, 40_000, greedy.Refusals())
}

// capacities returns the bytes of a decoder's buffers.
func capacities(d answerDecoder) (bytes int) {
	switch d := d.(type) {
	case *serverSide:
		return framerCapacity(&d.server) + framerCapacity(&d.client.framer)
	case *Decoder:
		return framerCapacity(d.framer) + cap(d.known.data)
	default:
		panic("unknown decoder")
	}
}

func framerCapacity(f framer) (bytes int) {
	switch f := f.(type) {
	case *sseFramer:
		return cap(f.line.bytes) + cap(f.data.bytes)
	case *linesFramer:
		return cap(f.line.bytes)
	case *documentFramer:
		return cap(f.text.bytes)
	case *awsFramer:
		return cap(f.frame.bytes)
	case *webSocketFramer:
		bytes = cap(f.message.bytes)
		if f.inflater != nil {
			if bytes += cap(f.inflater.text.bytes); f.inflater.reader != nil {
				bytes += inflaterBytes
			}
		}
		return bytes
	default:
		return 0
	}
}

// What the buffers of a decoder hold is charged to its memory and stays within it. Events without room are skipped
// whole: the framing is not lost.
func TestDecoder_HoldsNoMoreThanItsMemory(t *testing.T) {
	skipped := 0
	for _, r := range recorded.Answers(t) {
		x := headOf(&r)
		whole := decode(x, testLimits, r.Body)
		for _, limit := range []int64{0, 300, 2000, 1 << 30} {
			seed := uint64(len(r.Body)) + uint64(limit)
			random := rand.New(rand.NewPCG(seed, 0))
			memory := NewMemory(limit)
			account := memory.Account()
			d := newAnswerDecoder(x, Limits{EventBytes: 1 << 20, Memory: &account}, func(Chunk) {})
			for rest := r.Body; len(rest) > 0; {
				n := min(len(rest), 1+random.IntN(500))
				d.Write(rest[:n], 1)
				rest = rest[n:]
				require.EqualValues(t, capacities(d), memory.Held(), r.File)
				require.LessOrEqual(t, memory.Held(), limit, r.File)
			}
			d.End(2)
			o := d.Observation()
			assert.LessOrEqual(t, o.TokenChunks, whole.TokenChunks, r.File)
			assert.LessOrEqual(t, o.Unparsed.Corrupt, whole.Unparsed.Corrupt, "%s at %d bytes", r.File, limit)
			if o.TokenChunks < whole.TokenChunks {
				assert.Positive(t, account.Refusals(), r.File)
				skipped++
			}
			account.Close()
			require.Zero(t, memory.Held(), r.File)
		}
	}
	require.Greater(t, skipped, 100)
}
