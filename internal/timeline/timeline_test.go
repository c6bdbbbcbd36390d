// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

type chunk struct {
	offset  time.Duration
	tokens  uint32
	channel Channel
}

const start = int64(1_795_233_292_181_556_000)

func pack(chunks []chunk) *Timeline {
	var t Timeline
	for _, c := range chunks {
		t.Append(start+int64(c.offset), c.tokens, c.channel)
	}
	return &t
}

func unpack(t *testing.T, walk Walk) []chunk {
	t.Helper()
	var out []chunk
	for walk.Next() {
		out = append(out, chunk{walk.Offset(), walk.Tokens(), walk.Channel()})
	}
	require.NoError(t, walk.Err())
	return out
}

// A sender may split a stream into requests anywhere.
func TestAppend_PartsMakeSameTimelineAsWhole(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var whole, fromParts Timeline
	at := start
	for range 200 {
		var part Timeline
		for range 1 + random.IntN(4) {
			whole.Append(at, 1, Content)
			part.Append(at, 1, Content)
			at += random.Int64N(3_000) // often within one tick
		}
		for walk := part.Walk(); walk.Next(); {
			fromParts.Append(part.First()+int64(walk.Offset()), walk.Tokens(), walk.Channel())
		}
	}
	require.Equal(t, whole.AppendBinary(nil, start), fromParts.AppendBinary(nil, start))
	require.Equal(t, whole.Last(), fromParts.Last())
}

// Truncation must neither reorder chunks nor move one past the stream's end.
func TestAppend_TruncationKeepsOrder(t *testing.T) {
	for nanos := range int64(2_000) {
		var line Timeline
		line.Append(start+nanos, 1, Content)
		line.Append(start+nanos, 1, Content)
		line.Append(start+nanos+1, 1, Content)
		got := unpack(t, line.Walk())
		require.Equal(t, got[0].offset, got[1].offset, "two chunks at the same time")
		require.GreaterOrEqual(t, got[2].offset, got[1].offset)
		require.LessOrEqual(t, line.Last(), start+nanos+1)
	}
}

// Truncating each gap instead of each time would drift by up to half a microsecond
// per chunk: half a millisecond here.
func TestAppend_TruncationErrorsDoNotAddUp(t *testing.T) {
	var chunks []chunk
	for i := range 1000 {
		chunks = append(chunks, chunk{time.Duration(i) * 7_333_499, 1, Content})
	}
	for i, got := range unpack(t, pack(chunks).Walk()) {
		require.InDelta(t, chunks[i].offset, got.offset, 1000, "chunk %d", i)
	}
}

func TestTimeline_FirstLastAndReset(t *testing.T) {
	line := pack([]chunk{{123, 1, Content}})
	require.Equal(t, start+123, line.First())
	require.Equal(t, start+123, line.Last())
	line.Append(start+int64(20*time.Millisecond), 2, Content)
	require.Equal(t, start+int64(20*time.Millisecond), line.Last())
	require.Equal(t, 2, line.Len())
	require.EqualValues(t, 3, line.Tokens())
	line.Reset()
	require.Zero(t, line.Len())
	require.Zero(t, line.Tokens())
	line.Append(start, 1, Content)
	require.Equal(t, []chunk{{0, 1, Content}}, unpack(t, line.Walk()))
}

func TestAppendAndWalk_DoNotAllocate(t *testing.T) {
	line := pack([]chunk{{0, 1, Content}, {time.Second, 300, Reasoning}})
	require.Zero(t, testing.AllocsPerRun(100, func() {
		line.Reset()
		for i := range int64(2) {
			line.Append(start+i*20_000_000, 1, Content)
		}
		for walk := line.Walk(); walk.Next(); {
		}
	}))
}

// Copied gaps make the same timeline as their times one by one, at any position.
func TestAppendGaps_EqualsAppend(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 5))
		var line, want Timeline
		at := start + random.Int64N(3000)
		for range random.IntN(4) {
			at += random.Int64N(1e9)
			channel := Channel(random.IntN(3))
			first, packed, ticks, count := at, []byte(nil), int64(0), random.IntN(200)
			want.Append(at, 1, channel)
			for range count {
				gap := random.Int64N(1 << (1 + random.IntN(20))) // one to three bytes
				packed = binary.AppendUvarint(packed, uint64(gap<<1))
				at += gap * 1000
				ticks += gap
				want.Append(at, 1, channel)
			}
			chunks, sum, ok := ScanGaps(packed)
			require.True(t, ok)
			require.Equal(t, count, chunks)
			require.Equal(t, ticks, sum)
			line.AppendGaps(first, packed, chunks, sum, channel)
			require.Equal(t, want.Last(), line.Last())
			if random.IntN(2) == 0 {
				at += random.Int64N(1e6)
				line.Append(at, 2, channel)
				want.Append(at, 2, channel)
			}
		}
		require.Equal(t, want.AppendBinary(nil, start), line.AppendBinary(nil, start))
		require.Equal(t, want.Len(), line.Len())
		requireRunsAgree(t, line.AppendBinary(nil, start))
	}
}

func TestAppendTimeline_EqualsAppend(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 7))
		var whole, fromParts Timeline
		at := start
		for range random.IntN(5) {
			var part Timeline
			for range random.IntN(50) {
				at += random.Int64N(1<<random.IntN(35)) - random.Int64N(1000)
				tokens, channel := 1+uint32(random.IntN(6)/5), Channel(random.IntN(6)/5)
				whole.Append(at, tokens, channel)
				part.Append(at, tokens, channel)
			}
			fromParts.AppendTimeline(&part)
		}
		require.Equal(t, whole.AppendBinary(nil, start), fromParts.AppendBinary(nil, start))
		require.Equal(t, whole.Last(), fromParts.Last())
		require.Equal(t, whole.Len(), fromParts.Len())
	}
}

func TestParseChannel(t *testing.T) {
	for c := Content; c <= Audio; c++ {
		parsed, ok := ParseChannel(c.String())
		require.True(t, ok)
		require.Equal(t, c, parsed)
	}
	_, ok := ParseChannel([]byte("Content"))
	require.False(t, ok)
	require.Empty(t, (Audio + 1).String())
}
