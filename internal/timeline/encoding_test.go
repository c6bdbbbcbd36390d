// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestDecode_ReturnsAppendedChunks(t *testing.T) {
	tests := map[string][]chunk{
		"empty":                         nil,
		"one chunk":                     {{120 * time.Millisecond, 1, Content}},
		"reasoning, then content":       {{1, 1, Reasoning}, {20 * time.Millisecond, 1, Reasoning}, {40 * time.Millisecond, 1, Content}, {60 * time.Millisecond, 1, Content}},
		"bundled chunks":                {{0, 3, Content}, {time.Millisecond, 1, Content}, {2 * time.Millisecond, MaxTokensPerChunk, ToolCall}},
		"same time twice":               {{time.Second, 1, Content}, {time.Second, 1, Content}},
		"clock going backwards":         {{time.Second, 1, Content}, {time.Second - 5*time.Millisecond, 1, Content}, {2 * time.Second, 1, Content}},
		"first chunk before start":      {{-3 * time.Millisecond, 1, Content}, {5 * time.Millisecond, 1, Content}},
		"pause of a day":                {{0, 1, Content}, {24 * time.Hour, 1, Content}},
		"first chunk off the tick grid": {{123_456_789, 1, Content}, {130_456_000, 1, Content}},
	}
	for name, chunks := range tests {
		t.Run(name, func(t *testing.T) {
			stored := pack(chunks).AppendBinary(nil, start)
			walk, err := Decode(stored)
			require.NoError(t, err)
			require.Equal(t, len(chunks), walk.Left())
			require.Equal(t, chunks, unpack(t, walk))
		})
	}
}

// The contract promises at most 3.2 bytes per one-token chunk.
func TestAppendBinary_SizePerTokenIsBounded(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var line Timeline
	at := start
	const count = 10_000
	for range count {
		at += int64(20*time.Millisecond) + random.Int64N(int64(200*time.Millisecond))
		line.Append(at, 1, Content)
	}
	require.LessOrEqual(t, float64(len(line.AppendBinary(nil, start)))/count, 3.2)
}

func TestDecode_RejectsMalformedTimelines(t *testing.T) {
	good := pack([]chunk{{0, 1, Content}, {time.Second, 300, Reasoning}}).AppendBinary(nil, start)
	tests := map[string][]byte{
		"empty input":                     {},
		"unknown version":                 append([]byte{9}, good[1:]...),
		"trailing byte":                   append(append([]byte{}, good...), 0),
		"huge chunk count":                {version, 0xff, 0xff, 0xff, 0xff, 0x0f, 0, 0, 0},
		"zero tokens":                     {version, 1, 0, 0, 1, 0, 0},
		"unknown channel":                 {version, 1, 0, 0, 1, 1<<channelBits | 3, 0},
		"run without chunks":              {version, 1, 0, 0, 0, 1 << channelBits, 1, 1 << channelBits, 0},
		"run longer than the chunk count": {version, 1, 0, 0, 2, 1 << channelBits, 0, 0},
	}
	const beyond = maxTicks + 1
	tests["first chunk out of range"] = encode(zigzag(beyond*int64(Tick)), 0)
	tests["first chunk out of range, before the start"] = encode(zigzag(-beyond*int64(Tick)), 0)
	tests["gap out of range"] = encode(0, 0, zigzag(beyond))
	tests["negative gap out of range"] = encode(0, 0, zigzag(-beyond))
	tests["gap that overflows in nanoseconds"] = encode(0, 0, math.MaxUint64)
	tests["sum of gaps out of range"] = encode(0, 0, zigzag(maxTicks), zigzag(1<<20))
	tests["sum of gaps that overflows"] = encode(0, slices.Repeat([]uint64{zigzag(maxTicks)}, 1<<13)...)
	for i := 1; i < len(good); i++ {
		tests[fmt.Sprint("only the first ", i, " bytes")] = good[:i]
	}
	for name, stored := range tests {
		t.Run(name, func(t *testing.T) {
			require.Error(t, walkAll(stored))
			if _, err := Decode(stored); err == nil {
				requireRunsAgree(t, stored)
			}
		})
	}
}

// encode encodes a timeline of one-token chunks from its zigzag-encoded numbers.
func encode(first uint64, gaps ...uint64) []byte {
	stored := binary.AppendUvarint([]byte{version}, uint64(len(gaps)))
	stored = append(binary.AppendUvarint(stored, first), 0)
	stored = binary.AppendUvarint(stored, uint64(len(gaps)))
	stored = append(stored, 1<<channelBits)
	for _, gap := range gaps {
		stored = binary.AppendUvarint(stored, gap)
	}
	return stored
}

// walkAll decodes a timeline and returns the error of the decoder or of the walk.
func walkAll(stored []byte) error {
	walk, err := Decode(stored)
	if err != nil {
		return err
	}
	for walk.Next() {
	}
	return walk.Err()
}

func TestDecode_AcceptsLargestOffsets(t *testing.T) {
	for name, stored := range map[string][]byte{
		"first chunk":                   encode(zigzag(maxTicks*int64(Tick)), 0),
		"first chunk, before the start": encode(zigzag(-maxTicks*int64(Tick)), 0),
		"gap":                           encode(0, 0, zigzag(maxTicks)),
		"there and back, often":         encode(0, slices.Repeat([]uint64{zigzag(maxTicks), zigzag(-maxTicks)}, 1<<13)...),
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, walkAll(stored))
			requireRunsAgree(t, stored)
		})
	}
}

// Events of a span may have any timestamp. Times out of range end the walk of such a
// timeline, too.
func TestWalkFrom_RejectsTimesOutOfRange(t *testing.T) {
	var line Timeline
	for _, at := range []int64{start, math.MaxInt64, math.MinInt64, math.MaxInt64} {
		line.Append(at, 1, Content)
	}
	walk := line.WalkFrom(start)
	require.True(t, walk.Next())
	require.False(t, walk.Next())
	require.Error(t, walk.Err())
}

func FuzzDecode(f *testing.F) {
	f.Add(pack([]chunk{{0, 1, Content}, {time.Second, 300, Reasoning}, {-5, 1, ToolCall}}).AppendBinary(nil, start))
	f.Add([]byte("\x02\x06\x06\x06\x06\x06\x06\x06\xf0\x00\x9c\xd6\xd6\xd6\xd6\xd6\xd6\xd6b")) // a gap that overflows in nanoseconds
	f.Add(encode(0, 0, zigzag(maxTicks), zigzag(-2*maxTicks), zigzag(maxTicks)))
	f.Fuzz(func(t *testing.T, stored []byte) {
		walk, err := Decode(stored)
		if err != nil {
			return
		}
		for walk.Next() {
			require.NotZero(t, walk.Tokens())
			require.LessOrEqual(t, walk.Tokens(), uint32(MaxTokensPerChunk))
			require.Less(t, walk.Channel(), channels)
			require.LessOrEqual(t, walk.Offset().Abs(), 2*maxTicks*Tick)
		}
		requireRunsAgree(t, stored)
		requireRoundTrip(t, stored)
	})
}

// requireRoundTrip appends the chunks of a stored timeline to a new one, which must have
// the same chunks when stored and decoded. Times are within 35 years of 2005.
func requireRoundTrip(t *testing.T, stored []byte) {
	t.Helper()
	const span = 35 * 365 * 24 * time.Hour
	const start = int64(span)
	decoded := func(stored []byte) (chunks []chunk, err error) {
		walk, err := Decode(stored)
		require.NoError(t, err)
		for walk.Next() {
			chunks = append(chunks, chunk{walk.Offset(), walk.Tokens(), walk.Channel()})
		}
		return chunks, walk.Err()
	}
	chunks, err := decoded(stored)
	if err != nil {
		return
	}
	var line Timeline
	for _, c := range chunks {
		if c.offset.Abs() > span {
			return
		}
		line.Append(start+int64(c.offset), c.tokens, c.channel)
	}
	again, err := decoded(line.AppendBinary(nil, start))
	require.NoError(t, err)
	require.Len(t, again, len(chunks))
	for i, c := range chunks {
		off := c.offset - again[i].offset // later times are truncated to ticks of Unix time
		require.True(t, off == 0 || i > 0 && 0 < off && off < Tick, "chunk %d: %v, then %v", i, c.offset, again[i].offset)
		require.Equal(t, chunk{again[i].offset, c.tokens, c.channel}, again[i])
	}
}
