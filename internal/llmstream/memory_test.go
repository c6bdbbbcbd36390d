// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package llmstream

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/llmstream/recorded"
)

func TestAccount_SharesALimit(t *testing.T) {
	memory := NewMemory(10)
	one, other := memory.NewAccount(), memory.NewAccount()
	require.True(t, one.Take(4))
	require.True(t, other.Take(6))
	require.False(t, one.Take(1))
	require.EqualValues(t, 10, memory.Held())
	require.True(t, one.Refused())
	require.False(t, one.Refused(), "it is asked once")
	require.False(t, other.Refused())
	other.Give(2)
	require.True(t, one.Take(2))
	one.Close()
	require.EqualValues(t, 4, memory.Held())
	require.False(t, one.Take(1), "it is closed")
	require.False(t, one.Refused(), "not for the limit")
	one.Give(1)
	one.Close()
	require.EqualValues(t, 4, memory.Held())
	other.Close()
	require.Zero(t, memory.Held())
}

// capacities returns the bytes of a decoder's buffers.
func capacities(d answerDecoder) (bytes int) {
	switch d := d.(type) {
	case *serverSide:
		return framerCapacity(&d.server) + framerCapacity(&d.client.framer)
	case *Decoder:
		return framerCapacity(d.framer)
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
		x := exchangeOf(&r)
		whole := decode(x, testLimits, r.Body)
		for _, limit := range []int64{0, 300, 2000, 1 << 30} {
			seed := uint64(len(r.Body)) + uint64(limit)
			random := rand.New(rand.NewPCG(seed, 0))
			memory := NewMemory(limit)
			account := memory.NewAccount()
			d := newAnswerDecoder(x, Limits{EventBytes: 1 << 20, Memory: account}, func(Chunk) {})
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
				assert.True(t, account.Refused(), r.File)
				skipped++
			}
			account.Close()
			require.Zero(t, memory.Held(), r.File)
		}
	}
	require.Greater(t, skipped, 100)
}
