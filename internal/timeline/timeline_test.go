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

func TestRoundTrip(t *testing.T) {
	tests := map[string][]chunk{
		"empty":                     nil,
		"one chunk":                 {{120 * time.Millisecond, 1, Content}},
		"reasoning, then content":   {{1, 1, Reasoning}, {20 * time.Millisecond, 1, Reasoning}, {40 * time.Millisecond, 1, Content}, {60 * time.Millisecond, 1, Content}},
		"bundled chunks":            {{0, 3, Content}, {time.Millisecond, 1, Content}, {2 * time.Millisecond, MaxTokensPerChunk, ToolCall}},
		"same time twice":           {{time.Second, 1, Content}, {time.Second, 1, Content}},
		"clock going backwards":     {{time.Second, 1, Content}, {time.Second - 5*time.Millisecond, 1, Content}, {2 * time.Second, 1, Content}},
		"first chunk before start":  {{-3 * time.Millisecond, 1, Content}, {5 * time.Millisecond, 1, Content}},
		"a pause of a day":          {{0, 1, Content}, {24 * time.Hour, 1, Content}},
		"first chunk's nanoseconds": {{123_456_789, 1, Content}, {130_456_000, 1, Content}},
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

// A sender may split a stream over requests as it likes.
func TestPartsMakeTheSameTimeline(t *testing.T) {
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

// A gap of exactly so much is that, whatever the nanoseconds of the times: a
// deadline or a threshold must not flip.
func TestGapsAreExactMultiples(t *testing.T) {
	for nanos := range int64(2_000) {
		var line Timeline
		for i := range int64(4) {
			line.Append(start+nanos+i*int64(50*time.Millisecond), 1, Content)
		}
		walk := line.Walk()
		var gaps [4]int64
		n, _, _ := walk.NextRun(gaps[:])
		require.Equal(t, 4, n)
		require.Equal(t, []int64{0, 50_000, 50_000, 50_000}, gaps[:])
	}
}

// Cutting must not make time go backwards, nor a chunk pass the stream's end.
func TestOrderSurvivesCutting(t *testing.T) {
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

// Cutting each gap instead of each time would drift by up to half a
// microsecond a chunk: half a millisecond here.
func TestErrorsDoNotAddUp(t *testing.T) {
	var chunks []chunk
	for i := range 1000 {
		chunks = append(chunks, chunk{time.Duration(i) * 7_333_499, 1, Content})
	}
	for i, got := range unpack(t, pack(chunks).Walk()) {
		require.InDelta(t, chunks[i].offset, got.offset, 1000, "chunk %d", i)
	}
}

func TestFirstAndLast(t *testing.T) {
	line := pack([]chunk{{123, 1, Content}})
	require.Equal(t, start+123, line.First())
	require.Equal(t, start+123, line.Last())
	line.Append(start+int64(20*time.Millisecond), 2, Content)
	require.Equal(t, start+int64(20*time.Millisecond), line.Last())
	require.Equal(t, 2, line.Len())
	line.Reset()
	require.Zero(t, line.Len())
	line.Append(start, 1, Content)
	require.Equal(t, []chunk{{0, 1, Content}}, unpack(t, line.Walk()))
}

// The contract promises 3.2 bytes per one-token chunk.
func TestSizePerChunk(t *testing.T) {
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

func TestDecodeRejects(t *testing.T) {
	good := pack([]chunk{{0, 1, Content}, {time.Second, 300, Reasoning}}).AppendBinary(nil, start)
	tests := map[string][]byte{
		"nothing":            {},
		"an unknown version": append([]byte{9}, good[1:]...),
		"more after the end": append(append([]byte{}, good...), 0),
		"a huge count":       {version, 0xff, 0xff, 0xff, 0xff, 0x0f, 0, 0, 0},
		"zero tokens":        {version, 1, 0, 0, 1, 0, 0},
		"an unknown channel": {version, 1, 0, 0, 1, 1<<channelBits | 3, 0},
		"a run of no chunks": {version, 1, 0, 0, 0, 1 << channelBits, 1, 1 << channelBits, 0},
		"too long a run":     {version, 1, 0, 0, 2, 1 << channelBits, 0, 0},
	}
	for i := 1; i < len(good); i++ {
		tests["the first bytes only: "+string(rune('0'+i))] = good[:i]
	}
	for name, stored := range tests {
		t.Run(name, func(t *testing.T) {
			walk, err := Decode(stored)
			if err == nil {
				for walk.Next() {
				}
				err = walk.Err()
			}
			require.Error(t, err)
		})
	}
}

// What is faster must be the same.
func TestAppendEachIsAppend(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	for range 200 {
		var one, each Timeline
		at := start
		for range 4 {
			channel := Channel(random.IntN(int(channels)))
			times := make([]int64, random.IntN(20))
			for i := range times {
				at += random.Int64N(1 << random.IntN(50))
				times[i] = at
				one.Append(at, 1, channel)
			}
			each.AppendEach(times, channel)
			at++
			one.Append(at, 2, channel)
			each.Append(at, 2, channel)
		}
		require.Equal(t, one.AppendBinary(nil, start), each.AppendBinary(nil, start))
		require.Equal(t, one.Last(), each.Last())
	}
}

func TestNextRunIsNext(t *testing.T) {
	random := rand.New(rand.NewPCG(9, 10))
	for range 200 {
		var line Timeline
		at := start + random.Int64N(1000)
		for range random.IntN(100) {
			at += random.Int64N(1<<random.IntN(50)) - random.Int64N(1000)
			line.Append(at, 1+uint32(random.IntN(5)/4), Channel(random.IntN(5)/4))
		}
		requireRunsAgree(t, line.AppendBinary(nil, start))
	}
}

// requireRunsAgree walks a stored timeline by chunks and by runs.
func requireRunsAgree(t *testing.T, stored []byte) {
	t.Helper()
	walk, err := Decode(stored)
	require.NoError(t, err)
	runs := walk
	var gaps [7]int64
	for n, first, all := runs.NextRun(gaps[:]); n > 0; n, first, all = runs.NextRun(gaps[:]) {
		bits := int64(0)
		for i, gap := range gaps[:n] {
			before := walk.grid
			require.True(t, walk.Next())
			require.Equal(t, (walk.grid-before)/1000, gap)
			bits |= gap
			if i == 0 {
				require.Equal(t, walk.Offset(), first)
			}
			require.Equal(t, walk.Tokens(), runs.Tokens())
			require.Equal(t, walk.Channel(), runs.Channel())
		}
		require.Equal(t, bits, all)
		require.Equal(t, walk, runs)
	}
	require.False(t, walk.Next())
	require.Equal(t, walk.Err(), runs.Err())
}

func FuzzDecode(f *testing.F) {
	f.Add(pack([]chunk{{0, 1, Content}, {time.Second, 300, Reasoning}, {-5, 1, ToolCall}}).AppendBinary(nil, start))
	f.Fuzz(func(t *testing.T, stored []byte) {
		walk, err := Decode(stored)
		if err != nil {
			return
		}
		for walk.Next() {
			require.NotZero(t, walk.Tokens())
			require.LessOrEqual(t, walk.Tokens(), uint32(MaxTokensPerChunk))
			require.Less(t, walk.Channel(), channels)
		}
		requireRunsAgree(t, stored)
	})
}

func TestNoAllocation(t *testing.T) {
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

func BenchmarkAppend(b *testing.B) {
	var line Timeline
	b.ReportAllocs()
	for i := range b.N {
		if i%1000 == 0 {
			line.Reset()
		}
		line.Append(start+int64(i)*20_000_000, 1, Content)
	}
}

func BenchmarkWalk(b *testing.B) {
	var line Timeline
	for i := range int64(1000) {
		line.Append(start+i*20_000_000, 1, Content)
	}
	stored := line.AppendBinary(nil, start)
	b.SetBytes(int64(len(stored)) / 1000)
	b.ReportAllocs()
	for n := 0; n < b.N; {
		walk, err := Decode(stored)
		if err != nil {
			b.Fatal(err)
		}
		for ; walk.Next(); n++ {
		}
	}
}

func BenchmarkAppendEach(b *testing.B) {
	var line Timeline
	times := make([]int64, 1000)
	for i := range times {
		times[i] = start + int64(i)*20_000_000
	}
	b.ReportAllocs()
	for i := 0; i < b.N; i += len(times) {
		line.Reset()
		line.AppendEach(times, Content)
	}
}

func BenchmarkNextRun(b *testing.B) {
	var line Timeline
	for i := range int64(1000) {
		line.Append(start+i*20_000_000, 1, Content)
	}
	stored := line.AppendBinary(nil, start)
	var gaps [256]int64
	b.ReportAllocs()
	for i := 0; i < b.N; {
		walk, err := Decode(stored)
		if err != nil {
			b.Fatal(err)
		}
		for n, _, _ := walk.NextRun(gaps[:]); n > 0; n, _, _ = walk.NextRun(gaps[:]) {
			i += n
		}
	}
}

// Gaps that are copied as they are packed make the same timeline as their times one
// by one, wherever they come in it.
func TestAppendGapsIsAppend(t *testing.T) {
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
			chunks, sum, ok := Ascending(packed)
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

// Timelines of any parts of a stream make that of the whole.
func TestAppendTimelineIsAppend(t *testing.T) {
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

func TestAscendingTurnsAway(t *testing.T) {
	uvarints := func(values ...uint64) (packed []byte) {
		for _, v := range values {
			packed = binary.AppendUvarint(packed, v)
		}
		return packed
	}
	for name, packed := range map[string][]byte{
		"time that goes backwards":     uvarints(40_000, 39_999, 40_000, 40_000),
		"backwards at the end":         uvarints(40_000, 3),
		"a gap of four bytes":          uvarints(40_000, 1<<21, 40_000, 40_000),
		"a gap of four bytes, at last": uvarints(40_000, 1<<21),
		"cut off":                      uvarints(40_000, 40_000, 40_000)[:8],
		"cut off, of four bytes":       {0x80, 0x80, 0x80, 0x80},
	} {
		_, _, ok := Ascending(packed)
		require.False(t, ok, name)
	}
	chunks, ticks, ok := Ascending(uvarints(0, 2, 1<<21-2, 254, 256, 16_382, 16_384))
	require.True(t, ok)
	require.Equal(t, 7, chunks)
	require.EqualValues(t, 1+1<<20-1+127+128+8191+8192, ticks)
	_, _, ok = Ascending([]byte{0x82, 0x80, 0x00}) // not the shortest form of 2
	require.True(t, ok)
}

func FuzzAscending(f *testing.F) {
	f.Add([]byte{0, 0x80, 0x01, 0xa0, 0x9c, 0x01, 0xa0, 0x9c, 0x01, 0xa0, 0x9c, 0x01})
	f.Fuzz(func(t *testing.T, packed []byte) {
		chunks, ticks, ok := Ascending(packed)
		var plainChunks int
		var plainTicks int64
		plain := true
		for rest := packed; len(rest) > 0 && plain; plainChunks++ {
			v, n := binary.Uvarint(rest)
			if plain = n > 0 && n <= 3 && v&1 == 0; plain {
				plainTicks += int64(v / 2)
				rest = rest[n:]
			}
		}
		require.Equal(t, plain, ok)
		if ok {
			require.Equal(t, plainChunks, chunks)
			require.Equal(t, plainTicks, ticks)
		}
	})
}

func BenchmarkAscending(b *testing.B) {
	var packed []byte
	for range 1000 {
		packed = binary.AppendUvarint(packed, 40_000)
	}
	b.ReportAllocs()
	for i := 0; i < b.N; i += 1000 {
		if _, _, ok := Ascending(packed); !ok {
			b.Fatal()
		}
	}
}

func TestParseChannel(t *testing.T) {
	for c := Content; c <= ToolCall; c++ {
		parsed, ok := ParseChannel(c.String())
		require.True(t, ok)
		require.Equal(t, c, parsed)
	}
	_, ok := ParseChannel([]byte("Content"))
	require.False(t, ok)
	require.Empty(t, (ToolCall + 1).String())
}
