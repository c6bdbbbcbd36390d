package assembly

import (
	"context"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/timeline"
	"github.com/tokenpulse/tokenpulse/internal/vantage"
)

const t0 = int64(1_795_233_292_181_556_000)

// clock is a monotonic clock that tests move.
type clock struct{ now time.Duration }

func (c *clock) read() time.Duration { return c.now }

var roomy = Limits{MaxStreams: 1000, MaxChunksPerStream: 1000, MaxStreamBytes: 1 << 16, MaxMemory: 1 << 30}

func newStore(limits Limits) (*Store, *clock) {
	c := &clock{now: time.Hour}
	return NewStore(limits, c.read), c
}

// script adds to a part; errors are the test's.
type script func(t testing.TB, part *Part)

func started(t testing.TB, part *Part) {
	require.NoError(t, part.AddStart(Start{UnixNano: t0}, nil, nil))
}

func ended(t testing.TB, part *Part) { require.NoError(t, part.AddEnd(End{}, nil)) }

// chunks adds one-token chunks, in milliseconds after the start.
func chunks(offsets ...int) script {
	return func(t testing.TB, part *Part) {
		for _, ms := range offsets {
			require.NoError(t, part.AddChunk(Chunk{UnixNano: t0 + int64(ms)*1e6, Tokens: 1}))
		}
	}
}

// numbered adds chunks in pairs of a sequence number and an offset.
func numbered(pairs ...int) script {
	return func(t testing.TB, part *Part) {
		for i := 0; i < len(pairs); i += 2 {
			require.NoError(t, part.AddChunk(Chunk{UnixNano: t0 + int64(pairs[i+1])*1e6, Tokens: 1, Seq: uint64(pairs[i]), Numbered: true}))
		}
	}
}

// batchOf is a batch of one stream.
func batchOf(t testing.TB, s *Store, id string, scripts ...script) *Batch {
	batch := s.NewBatch()
	part, err := batch.Part([]byte(id))
	require.NoError(t, err)
	for _, f := range scripts {
		f(t, part)
	}
	part.Count(1)
	return batch
}

func begin(t testing.TB, s *Store, batch *Batch) *Transaction {
	tx, err := s.Begin(context.Background(), batch)
	require.NoError(t, err)
	return tx
}

func apply(t testing.TB, s *Store, batch *Batch) *Transaction {
	tx := begin(t, s, batch)
	tx.Accept()
	return tx
}

// offsets returns a finished stream's chunks in milliseconds after the start.
func offsets(t testing.TB, f Finished) (out []int) {
	line := f.Chunks.Timeline()
	walk, err := timeline.Decode(line.AppendBinary(nil, f.Start.UnixNano))
	require.NoError(t, err)
	for walk.Next() {
		out = append(out, int(walk.Offset()/time.Millisecond))
	}
	require.NoError(t, walk.Err())
	return out
}

func TestOrder(t *testing.T) {
	tests := map[string]struct {
		parts      []script
		want       []int
		duplicates int
	}{
		"in order, by time":                   {[]script{chunks(1, 2), chunks(3), chunks(4, 5)}, []int{1, 2, 3, 4, 5}, 0},
		"out of order, by time":               {[]script{chunks(3, 1), chunks(2), chunks(5, 4)}, []int{1, 2, 3, 4, 5}, 0},
		"one late part, by time":              {[]script{chunks(3, 4), chunks(1, 2)}, []int{1, 2, 3, 4}, 0},
		"in order, by number":                 {[]script{numbered(0, 1, 1, 2), numbered(2, 3)}, []int{1, 2, 3}, 0},
		"first number is not zero":            {[]script{numbered(7, 1, 8, 2), numbered(9, 3)}, []int{1, 2, 3}, 0},
		"out of order, by number":             {[]script{numbered(2, 3, 0, 1), numbered(1, 2)}, []int{1, 2, 3}, 0},
		"parts out of order, by number":       {[]script{numbered(2, 3, 3, 4), numbered(0, 1, 1, 2)}, []int{1, 2, 3, 4}, 0},
		"numbers against the clock":           {[]script{numbered(0, 5, 1, 3), numbered(2, 9)}, []int{5, 3, 9}, 0},
		"numbers against the clock, mixed up": {[]script{numbered(1, 3, 0, 5), numbered(2, 9)}, []int{5, 3, 9}, 0},
		"repeats in order":                    {[]script{numbered(0, 1, 1, 2), numbered(0, 1, 1, 2, 2, 3)}, []int{1, 2, 3}, 2},
		"repeats out of order":                {[]script{numbered(2, 3, 0, 1), numbered(2, 3, 1, 2, 1, 2)}, []int{1, 2, 3}, 2},
		"a number is missing for good":        {[]script{numbered(0, 1, 2, 3), numbered(3, 4)}, []int{1, 3, 4}, 0},
		"one without a number: time decides":  {[]script{numbered(0, 5, 1, 3), chunks(4)}, []int{3, 4, 5}, 0},
		"the first without: time decides":     {[]script{chunks(4), numbered(0, 5, 1, 3)}, []int{3, 4, 5}, 0},
		"mixed, repeats still go":             {[]script{numbered(0, 5, 1, 3), chunks(4), numbered(1, 3)}, []int{3, 4, 5}, 1},
		"same times stay as they came":        {[]script{chunks(2, 2), chunks(1, 2)}, []int{1, 2, 2, 2}, 0},
		"before the start":                    {[]script{chunks(-3, 1)}, []int{-3, 1}, 0},
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
			for range 3 { // a refusal in between changes nothing
				tx := begin(t, s, batchOf(t, s, "s", ended))
				require.Equal(t, tt.want, offsets(t, tx.Finished[0]), "in parts")
				tx.Refuse()
			}
			tx = apply(t, s, batchOf(t, s, "s", ended))
			require.Equal(t, tt.want, offsets(t, tx.Finished[0]))
			require.Equal(t, tt.duplicates, tx.Finished[0].Duplicates())
			require.Zero(t, s.Memory())
			require.Zero(t, s.Streams())
		})
	}
}

func TestMillisecondsAreExactToATick(t *testing.T) {
	s, _ := newStore(roomy)
	apply(t, s, batchOf(t, s, "s", started))
	at := t0
	two := func(t testing.TB, p *Part) { // the second is packed, rounded
		for range 2 {
			at += 333
			require.NoError(t, p.AddChunk(Chunk{UnixNano: at, Tokens: 1}))
		}
	}
	for range 100 { // closer than a tick, in requests of their own
		apply(t, s, batchOf(t, s, "s", two))
	}
	tx := apply(t, s, batchOf(t, s, "s", ended))
	require.False(t, tx.Finished[0].Chunks.spilled, "rounding is no disorder")
	line := tx.Finished[0].Chunks.Timeline()
	require.Equal(t, 200, line.Len())
	require.InDelta(t, at, line.Last(), 1000)
}

func TestWhatWasToldFirstStays(t *testing.T) {
	s, _ := newStore(roomy)
	first := func(t testing.TB, p *Part) {
		require.NoError(t, p.AddStart(Start{UnixNano: t0, Vantage: vantage.Engine}, []byte("a"), []byte("r")))
		require.NoError(t, p.AddScheduled(t0+5))
	}
	second := func(t testing.TB, p *Part) {
		require.NoError(t, p.AddStart(Start{UnixNano: t0, Vantage: vantage.Client}, []byte("b"), []byte("q")))
		require.NoError(t, p.AddScheduled(t0+7))
	}
	apply(t, s, batchOf(t, s, "s", first))
	apply(t, s, batchOf(t, s, "s", second))
	tx := apply(t, s, batchOf(t, s, "s", func(t testing.TB, p *Part) { require.NoError(t, p.AddEnd(End{Cancelled: true}, []byte("c"))) }))
	got := tx.Finished[0]
	require.Equal(t, Start{UnixNano: t0, Vantage: vantage.Engine}, got.Start)
	require.Equal(t, t0+5, got.Scheduled)
	require.Equal(t, "abc", string(got.Attributes)+string(got.End.Attributes), "attributes are merged")
	require.Equal(t, "r", string(got.Resource))
	require.Equal(t, 2, got.Duplicates())
	require.Equal(t, t0+5, got.EndUnixNano(), "the last time known")
}

func TestFramesAreThoseOfAnyPart(t *testing.T) {
	frames := func(_ testing.TB, p *Part) { p.Frames = true }
	for name, requests := range map[string][][]script{
		"whole in one request": {{started, frames, ended}},
		"in the first":         {{started, frames}, {chunks(1)}, {ended}},
		"in a later one":       {{started}, {frames}, {chunks(1)}, {ended}},
		"in the last":          {{started}, {frames, ended}},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := newStore(roomy)
			var last *Transaction
			for _, scripts := range requests {
				begin(t, s, batchOf(t, s, "s", scripts...)).Refuse() // changes nothing
				last = apply(t, s, batchOf(t, s, "s", scripts...))
			}
			require.True(t, last.Finished[0].Frames)
		})
	}
	t.Run("not those of a request that was refused", func(t *testing.T) {
		s, _ := newStore(roomy)
		apply(t, s, batchOf(t, s, "s", started))
		begin(t, s, batchOf(t, s, "s", frames)).Refuse()
		begin(t, s, batchOf(t, s, "s", frames, ended)).Refuse()
		require.False(t, apply(t, s, batchOf(t, s, "s", ended)).Finished[0].Frames)
	})
	t.Run("not those of the batch before", func(t *testing.T) {
		s, _ := newStore(roomy)
		batch := batchOf(t, s, "s", started, frames)
		batch.Reset()
		part, err := batch.Part([]byte("s"))
		require.NoError(t, err)
		require.False(t, part.Frames)
	})
}

func TestEventsAfterTheEndAreRejected(t *testing.T) {
	s, _ := newStore(roomy)
	apply(t, s, batchOf(t, s, "s", started, ended))
	tx := apply(t, s, batchOf(t, s, "s", chunks(1)))
	require.Zero(t, tx.Units)
	require.Len(t, tx.Rejected, 1)
	require.Equal(t, UnknownStream, ReasonOf(tx.Rejected[0].Err))
	require.Equal(t, 1, tx.Rejected[0].Units)
}

func TestRefusedBatchLeavesNoTrace(t *testing.T) {
	s, _ := newStore(roomy)
	apply(t, s, batchOf(t, s, "open", started, chunks(5, 1)))
	memory := s.Memory()
	batch := s.NewBatch()
	for id, scripts := range map[string][]script{
		"open": {chunks(3), ended}, "new": {started, chunks(1)}, "whole": {started, ended}, "unknown": {chunks(1)},
	} {
		part, err := batch.Part([]byte(id))
		require.NoError(t, err)
		for _, f := range scripts {
			f(t, part)
		}
		part.Count(0)
	}
	for range 2 {
		tx := begin(t, s, batch)
		require.Len(t, tx.Finished, 2)
		require.Len(t, tx.Rejected, 1)
		require.Equal(t, 3, tx.Units)
		tx.Refuse()
		require.EqualValues(t, 1, s.Streams())
		require.Equal(t, memory, s.Memory())
	}
	tx := apply(t, s, batch)
	for _, f := range tx.Finished {
		if f.ID == "open" {
			require.Equal(t, []int{1, 3, 5}, offsets(t, f))
		}
	}
	require.EqualValues(t, 1, s.Streams())
}

func TestMaxStreams(t *testing.T) {
	limits := roomy
	limits.MaxStreams = 2
	s, _ := newStore(limits)
	open := func(ids ...string) error {
		batch := s.NewBatch()
		for _, id := range ids {
			part, err := batch.Part([]byte(id))
			require.NoError(t, err)
			started(t, part)
			part.Count(0)
		}
		tx, err := s.Begin(context.Background(), batch)
		if err == nil {
			tx.Accept()
		}
		return err
	}
	require.ErrorAs(t, open("a", "b", "c"), new(*FullError))
	require.Zero(t, s.Streams(), "all or nothing")
	require.NoError(t, open("a", "b"))
	require.ErrorContains(t, open("c"), "max_streams")
	require.NoError(t, open("a"), "one that is open is not new")
	apply(t, s, batchOf(t, s, "whole", started, ended))
	apply(t, s, batchOf(t, s, "a", chunks(1), ended))
	require.NoError(t, open("c"))
	require.EqualValues(t, 2, s.Streams())
}

func TestMaxMemory(t *testing.T) {
	limits := roomy
	limits.MaxMemory = 4096
	s, _ := newStore(limits)
	apply(t, s, batchOf(t, s, "s", started))
	var err error
	sent := 0
	for ; err == nil && sent < 1000; sent++ {
		var tx *Transaction
		if tx, err = s.Begin(context.Background(), batchOf(t, s, "s", chunks(1000-sent))); err == nil { // backwards: a list
			tx.Accept()
		}
	}
	require.ErrorContains(t, err, "max_memory_mib")
	require.LessOrEqual(t, s.Memory(), int64(4096+4096), "at most a doubled list over")
	require.Greater(t, sent, 50)
	tx := apply(t, s, batchOf(t, s, "s", ended))
	require.Len(t, offsets(t, tx.Finished[0]), sent-1)
	require.Zero(t, s.Memory())
}

func TestMaxChunksPerStream(t *testing.T) {
	limits := roomy
	limits.MaxChunksPerStream = 3
	s, _ := newStore(limits)
	tx := apply(t, s, batchOf(t, s, "s", started, chunks(1, 2, 3, 4)))
	require.Equal(t, 1, tx.Rejected[0].Events)
	tx = apply(t, s, batchOf(t, s, "s", chunks(5, 6)))
	require.Equal(t, 2, tx.Rejected[0].Events)
	tx = apply(t, s, batchOf(t, s, "s", chunks(7), ended))
	require.Equal(t, 1, tx.Rejected[0].Events)
	require.Equal(t, Limit, ReasonOf(tx.Rejected[0].Err))
	require.Equal(t, []int{1, 2, 3}, offsets(t, tx.Finished[0]))
	require.Equal(t, 4, tx.Finished[0].Dropped())
}

func TestChunksOutOfOrderInABatchAreBounded(t *testing.T) {
	limits := roomy
	limits.MaxChunksPerStream = 1 << 30
	s, _ := newStore(limits)
	batch := s.NewBatch()
	part, err := batch.Part([]byte("s"))
	require.NoError(t, err)
	started(t, part)
	for i := 0; err == nil; i++ {
		require.LessOrEqual(t, i, maxSpilled+1)
		err = part.AddChunk(Chunk{UnixNano: t0 - int64(i)*1e6, Tokens: 1})
	}
	require.ErrorContains(t, err, "out of order")
	require.Equal(t, Limit, ReasonOf(err))
}

func TestExpiry(t *testing.T) {
	s, c := newStore(roomy)
	expire := func() (ids []string) {
		tx := s.Expire(time.Minute, 10)
		for _, f := range tx.Finished {
			require.Nil(t, f.End)
			ids = append(ids, f.ID)
		}
		tx.Accept()
		return ids
	}
	apply(t, s, batchOf(t, s, "a", started, chunks(2, 1)))
	c.now += 40 * time.Second
	apply(t, s, batchOf(t, s, "b", started))
	require.Empty(t, expire())
	c.now += 20 * time.Second
	tx := s.Expire(time.Minute, 10)
	require.Len(t, tx.Finished, 1)
	require.Equal(t, []int{1, 2}, offsets(t, tx.Finished[0]))
	tx.Refuse()
	apply(t, s, batchOf(t, s, "a", chunks(3)))
	require.Empty(t, expire(), "it was heard of")
	c.now += 40 * time.Second
	require.Equal(t, []string{"b"}, expire())
	c.now += 20 * time.Second
	require.Equal(t, []string{"a"}, expire())
	require.Zero(t, s.Streams())
	require.Zero(t, s.Memory())
	for i := range 25 {
		apply(t, s, batchOf(t, s, strconv.Itoa(i), started))
	}
	require.Len(t, s.Expire(0, 10).Finished, 10, "not more than asked for")
}

// While a transaction holds a stream, others wait for it, or give up with their
// request.
func TestClaims(t *testing.T) {
	s, c := newStore(roomy)
	apply(t, s, batchOf(t, s, "s", started))
	tx := begin(t, s, batchOf(t, s, "s", ended))

	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := s.Begin(ctx, batchOf(t, s, "s", chunks(1)))
	require.ErrorIs(t, err, context.Canceled)
	c.now += time.Hour
	idle := s.Expire(time.Minute, 10)
	require.Empty(t, idle.Finished, "it is being heard of")
	idle.Accept()

	rejected := make(chan int)
	late := batchOf(t, s, "s", chunks(1))
	go func() {
		tx, err := s.Begin(context.Background(), late)
		if err != nil {
			rejected <- -1
			return
		}
		tx.Accept()
		rejected <- len(tx.Rejected)
	}()
	tx.Accept()
	require.Equal(t, 1, <-rejected, "the stream is over")
	require.Zero(t, s.Streams())
}

func TestConcurrentTransactions(t *testing.T) {
	const workers, rounds, streams = 8, 300, 5
	s, _ := newStore(roomy)
	var mu sync.Mutex
	finished := map[string]int{}
	told := 0
	var wg sync.WaitGroup
	for worker := range workers {
		wg.Go(func() {
			random := rand.New(rand.NewPCG(uint64(worker), 7))
			for range rounds {
				batch := s.NewBatch()
				for _, i := range random.Perm(streams)[:3] { // in any order: claims must not deadlock
					part, err := batch.Part([]byte{byte('a' + i)})
					require.NoError(t, err)
					started(t, part)
					chunks(random.IntN(100))(t, part)
					if random.IntN(4) == 0 {
						ended(t, part)
					}
					part.Count(0)
				}
				tx := begin(t, s, batch)
				if random.IntN(3) == 0 {
					tx.Refuse()
					continue
				}
				mu.Lock()
				told += 3
				for _, f := range tx.Finished {
					finished[f.ID] += f.Chunks.Len()
				}
				mu.Unlock()
				tx.Accept()
			}
		})
	}
	wg.Wait()
	tx := s.Expire(0, 100)
	for _, f := range tx.Finished {
		finished[f.ID] += f.Chunks.Len()
	}
	tx.Accept()
	total := 0
	for _, n := range finished {
		total += n
	}
	require.Equal(t, told, total, "every accepted chunk came out once")
	require.Zero(t, s.Streams())
	require.Zero(t, s.Memory())
}

func TestSizeOfAnOpenStream(t *testing.T) {
	require.LessOrEqual(t, unsafe.Sizeof(open{}), uintptr(384))
}

// What is faster must be the same, also at the limits.
func TestAddEachIsAddChunk(t *testing.T) {
	random := rand.New(rand.NewPCG(11, 12))
	limits := roomy
	limits.MaxChunksPerStream = 30
	for range 500 {
		s, _ := newStore(limits)
		var parts [2]*Part
		for i := range parts {
			batch := s.NewBatch()
			part, err := batch.Part([]byte("a"))
			require.NoError(t, err)
			started(t, part)
			parts[i] = part
		}
		one, each := parts[0], parts[1]
		at := t0
		for range 4 {
			times := make([]int64, random.IntN(12))
			for i := range times {
				at += random.Int64N(1000)
				switch random.IntN(60) {
				case 0:
					at -= random.Int64N(2000)
				case 1:
					at += int64(MaxDuration)
				}
				times[i] = at
			}
			channel := timeline.Channel(random.IntN(3))
			var first error
			for _, unixNano := range times {
				if first = one.AddChunk(Chunk{UnixNano: unixNano, Tokens: 1, Channel: channel}); first != nil {
					break
				}
			}
			require.Equal(t, first, each.AddEach(times, channel))
			if random.IntN(3) == 0 {
				last := Chunk{UnixNano: t0, Tokens: 1, Numbered: true}
				require.NoError(t, one.AddChunk(last))
				require.NoError(t, each.AddChunk(last))
			}
			at = min(at, t0+int64(time.Second))
		}
		require.Equal(t, one.batch.events, each.batch.events)
		require.Equal(t, one.dropped, each.dropped)
		want, got := one.Chunks.Timeline(), each.Chunks.Timeline()
		require.Equal(t, want.AppendBinary(nil, t0), got.AppendBinary(nil, t0))
	}
}
