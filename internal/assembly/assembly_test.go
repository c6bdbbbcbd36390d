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
)

const t0 = int64(1_795_233_292_181_556_000)

// clock is a monotonic clock that tests advance.
type clock struct{ now time.Duration }

func (c *clock) read() time.Duration { return c.now }

var roomy = Limits{MaxStreams: 1000, MaxChunksPerStream: 1000, MaxStreamBytes: 1 << 16, MaxMemory: 1 << 30}

func newStore(limits Limits) (*Store, *clock) {
	c := &clock{now: time.Hour}
	return NewStore(limits, c.read), c
}

// script adds events to a part and fails the test on errors.
type script func(t testing.TB, part *Part)

func started(t testing.TB, part *Part) {
	require.NoError(t, part.AddStart(Start{UnixNano: t0}, nil, nil))
}

func ended(t testing.TB, part *Part) { require.NoError(t, part.AddEnd(End{}, nil)) }

// chunks adds one-token chunks, at offsets from the start in milliseconds.
func chunks(offsets ...int) script {
	return func(t testing.TB, part *Part) {
		for _, ms := range offsets {
			require.NoError(t, part.AddChunk(Chunk{UnixNano: t0 + int64(ms)*1e6, Tokens: 1}))
		}
	}
}

// numbered adds chunks, given as pairs of a sequence number and an offset.
func numbered(pairs ...int) script {
	return func(t testing.TB, part *Part) {
		for i := 0; i < len(pairs); i += 2 {
			require.NoError(t, part.AddChunk(Chunk{UnixNano: t0 + int64(pairs[i+1])*1e6, Tokens: 1, Seq: uint64(pairs[i]), Numbered: true}))
		}
	}
}

// batchOf returns a batch of one stream.
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
	tx.Commit()
	return tx
}

// offsets returns the chunks of a finished stream, in milliseconds after the start.
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

func TestChunks_OrderAndRepeats(t *testing.T) {
	tests := map[string]struct {
		parts      []script
		want       []int
		duplicates int
	}{
		"in order, by time":                      {[]script{chunks(1, 2), chunks(3), chunks(4, 5)}, []int{1, 2, 3, 4, 5}, 0},
		"out of order, by time":                  {[]script{chunks(3, 1), chunks(2), chunks(5, 4)}, []int{1, 2, 3, 4, 5}, 0},
		"late part, by time":                     {[]script{chunks(3, 4), chunks(1, 2)}, []int{1, 2, 3, 4}, 0},
		"in order, by number":                    {[]script{numbered(0, 1, 1, 2), numbered(2, 3)}, []int{1, 2, 3}, 0},
		"first number is not zero":               {[]script{numbered(7, 1, 8, 2), numbered(9, 3)}, []int{1, 2, 3}, 0},
		"out of order, by number":                {[]script{numbered(2, 3, 0, 1), numbered(1, 2)}, []int{1, 2, 3}, 0},
		"parts out of order, by number":          {[]script{numbered(2, 3, 3, 4), numbered(0, 1, 1, 2)}, []int{1, 2, 3, 4}, 0},
		"numbers contradict times":               {[]script{numbered(0, 5, 1, 3), numbered(2, 9)}, []int{5, 3, 9}, 0},
		"numbers contradict times, out of order": {[]script{numbered(1, 3, 0, 5), numbered(2, 9)}, []int{5, 3, 9}, 0},
		"repeats in order":                       {[]script{numbered(0, 1, 1, 2), numbered(0, 1, 1, 2, 2, 3)}, []int{1, 2, 3}, 2},
		"repeats out of order":                   {[]script{numbered(2, 3, 0, 1), numbered(2, 3, 1, 2, 1, 2)}, []int{1, 2, 3}, 2},
		"missing number":                         {[]script{numbered(0, 1, 2, 3), numbered(3, 4)}, []int{1, 3, 4}, 0},
		"last without a number: time decides":    {[]script{numbered(0, 5, 1, 3), chunks(4)}, []int{3, 4, 5}, 0},
		"first without a number: time decides":   {[]script{chunks(4), numbered(0, 5, 1, 3)}, []int{3, 4, 5}, 0},
		"last without a number, repeats":         {[]script{numbered(0, 5, 1, 3), chunks(4), numbered(1, 3)}, []int{3, 4, 5}, 1},
		"same times keep their order":            {[]script{chunks(2, 2), chunks(1, 2)}, []int{1, 2, 2, 2}, 0},
		"before the start":                       {[]script{chunks(-3, 1)}, []int{-3, 1}, 0},
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
			for range 3 { // a rollback changes nothing
				tx := begin(t, s, batchOf(t, s, "s", ended))
				require.Equal(t, tt.want, offsets(t, tx.Finished[0]), "in parts")
				tx.Rollback()
			}
			tx = apply(t, s, batchOf(t, s, "s", ended))
			require.Equal(t, tt.want, offsets(t, tx.Finished[0]))
			require.Equal(t, tt.duplicates, tx.Finished[0].Duplicates())
			require.Zero(t, s.Memory())
			require.Zero(t, s.Streams())
		})
	}
}

func TestChunks_TruncationDoesNotBreakOrder(t *testing.T) {
	s, _ := newStore(roomy)
	apply(t, s, batchOf(t, s, "s", started))
	at := t0
	two := func(t testing.TB, p *Part) { // the second is truncated
		for range 2 {
			at += 333
			require.NoError(t, p.AddChunk(Chunk{UnixNano: at, Tokens: 1}))
		}
	}
	for range 100 { // chunks closer than a tick, in separate requests
		apply(t, s, batchOf(t, s, "s", two))
	}
	tx := apply(t, s, batchOf(t, s, "s", ended))
	require.False(t, tx.Finished[0].Chunks.spilled, "truncated times stay in order")
	line := tx.Finished[0].Chunks.Timeline()
	require.Equal(t, 200, line.Len())
	require.InDelta(t, at, line.Last(), 1000)
}

func TestMerge_KeepsFirstValues(t *testing.T) {
	s, _ := newStore(roomy)
	first := func(t testing.TB, p *Part) {
		require.NoError(t, p.AddStart(Start{UnixNano: t0, Vantage: VantageEngine}, []byte("a"), []byte("r")))
		require.NoError(t, p.AddScheduled(t0+5))
	}
	second := func(t testing.TB, p *Part) {
		require.NoError(t, p.AddStart(Start{UnixNano: t0, Vantage: VantageClient}, []byte("b"), []byte("q")))
		require.NoError(t, p.AddScheduled(t0+7))
	}
	apply(t, s, batchOf(t, s, "s", first))
	apply(t, s, batchOf(t, s, "s", second))
	tx := apply(t, s, batchOf(t, s, "s", func(t testing.TB, p *Part) { require.NoError(t, p.AddEnd(End{Cancelled: true}, []byte("c"))) }))
	got := tx.Finished[0]
	require.Equal(t, Start{UnixNano: t0, Vantage: VantageEngine}, got.Start)
	require.Equal(t, t0+5, got.Scheduled)
	require.Equal(t, "abc", string(got.Attributes)+string(got.End.Attributes), "attributes are merged")
	require.Equal(t, "r", string(got.Resource))
	require.Equal(t, 2, got.Duplicates())
	require.Equal(t, t0+5, got.EndUnixNano(), "the latest time of any event")
}

func TestFrames_SetByAnyPart(t *testing.T) {
	frames := func(_ testing.TB, p *Part) { p.Frames = true }
	for name, requests := range map[string][][]script{
		"whole in one request": {{started, frames, ended}},
		"in the first request": {{started, frames}, {chunks(1)}, {ended}},
		"in a later request":   {{started}, {frames}, {chunks(1)}, {ended}},
		"in the last request":  {{started}, {frames, ended}},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := newStore(roomy)
			var last *Transaction
			for _, scripts := range requests {
				begin(t, s, batchOf(t, s, "s", scripts...)).Rollback() // must change nothing
				last = apply(t, s, batchOf(t, s, "s", scripts...))
			}
			require.True(t, last.Finished[0].Frames)
		})
	}
	t.Run("not set by a request that was rolled back", func(t *testing.T) {
		s, _ := newStore(roomy)
		apply(t, s, batchOf(t, s, "s", started))
		begin(t, s, batchOf(t, s, "s", frames)).Rollback()
		begin(t, s, batchOf(t, s, "s", frames, ended)).Rollback()
		require.False(t, apply(t, s, batchOf(t, s, "s", ended)).Finished[0].Frames)
	})
	t.Run("not set by the batch before", func(t *testing.T) {
		s, _ := newStore(roomy)
		batch := batchOf(t, s, "s", started, frames)
		batch.Reset()
		part, err := batch.Part([]byte("s"))
		require.NoError(t, err)
		require.False(t, part.Frames)
	})
}

func TestBegin_RejectsEventsAfterTheEnd(t *testing.T) {
	s, _ := newStore(roomy)
	apply(t, s, batchOf(t, s, "s", started, ended))
	tx := apply(t, s, batchOf(t, s, "s", chunks(1)))
	require.Zero(t, tx.Units)
	require.Len(t, tx.Rejected, 1)
	require.Equal(t, UnknownStream, ReasonOf(tx.Rejected[0].Err))
	require.Equal(t, 1, tx.Rejected[0].Units)
}

func TestRollback_LeavesStoreUnchanged(t *testing.T) {
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
		tx.Rollback()
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

func TestMaxStreams_RefusesNewStreams(t *testing.T) {
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
			tx.Commit()
		}
		return err
	}
	require.ErrorAs(t, open("a", "b", "c"), new(*FullError))
	require.Zero(t, s.Streams(), "all or nothing")
	require.NoError(t, open("a", "b"))
	require.ErrorContains(t, open("c"), "max_streams")
	require.NoError(t, open("a"), "an open stream is not new")
	apply(t, s, batchOf(t, s, "whole", started, ended))
	apply(t, s, batchOf(t, s, "a", chunks(1), ended))
	require.NoError(t, open("c"))
	require.EqualValues(t, 2, s.Streams())
}

func TestMaxMemory_RefusesBatch(t *testing.T) {
	limits := roomy
	limits.MaxMemory = 4096
	s, _ := newStore(limits)
	apply(t, s, batchOf(t, s, "s", started))
	var err error
	sent := 0
	for ; err == nil && sent < 1000; sent++ {
		var tx *Transaction
		if tx, err = s.Begin(context.Background(), batchOf(t, s, "s", chunks(1000-sent))); err == nil { // in reverse order, so they spill
			tx.Commit()
		}
	}
	require.ErrorContains(t, err, "max_memory_mib")
	require.LessOrEqual(t, s.Memory(), int64(4096+4096), "exceeded by at most one growth of the list")
	require.Greater(t, sent, 50)
	tx := apply(t, s, batchOf(t, s, "s", ended))
	require.Len(t, offsets(t, tx.Finished[0]), sent-1)
	require.Zero(t, s.Memory())
}

func TestMaxChunksPerStream_DropsFurtherChunks(t *testing.T) {
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

func TestAddChunk_LimitsChunksOutOfOrder(t *testing.T) {
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

func TestExpire_EndsIdleStreams(t *testing.T) {
	s, c := newStore(roomy)
	expire := func() (ids []string) {
		tx := s.Expire(time.Minute, 10)
		for _, f := range tx.Finished {
			require.Nil(t, f.End)
			ids = append(ids, f.ID)
		}
		tx.Commit()
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
	tx.Rollback()
	apply(t, s, batchOf(t, s, "a", chunks(3)))
	require.Empty(t, expire(), "it had an event meanwhile")
	c.now += 40 * time.Second
	require.Equal(t, []string{"b"}, expire())
	c.now += 20 * time.Second
	require.Equal(t, []string{"a"}, expire())
	require.Zero(t, s.Streams())
	require.Zero(t, s.Memory())
	for i := range 25 {
		apply(t, s, batchOf(t, s, strconv.Itoa(i), started))
	}
	require.Len(t, s.Expire(0, 10).Finished, 10, "at most limit")
}

// While a transaction has claimed a stream, other transactions wait until it ends or
// their context is canceled.
func TestBegin_WaitsForClaimedStream(t *testing.T) {
	s, c := newStore(roomy)
	apply(t, s, batchOf(t, s, "s", started))
	tx := begin(t, s, batchOf(t, s, "s", ended))

	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := s.Begin(ctx, batchOf(t, s, "s", chunks(1)))
	require.ErrorIs(t, err, context.Canceled)
	c.now += time.Hour
	idle := s.Expire(time.Minute, 10)
	require.Empty(t, idle.Finished, "the stream is claimed")
	idle.Commit()

	rejected := make(chan int)
	late := batchOf(t, s, "s", chunks(1))
	go func() {
		tx, err := s.Begin(context.Background(), late)
		if err != nil {
			rejected <- -1
			return
		}
		tx.Commit()
		rejected <- len(tx.Rejected)
	}()
	tx.Commit()
	require.Equal(t, 1, <-rejected, "the stream has ended")
	require.Zero(t, s.Streams())
}

func TestBegin_ConcurrentTransactionsLoseNoChunk(t *testing.T) {
	const workers, rounds, streams = 8, 300, 5
	s, _ := newStore(roomy)
	var mu sync.Mutex
	finished := map[string]int{}
	committed := 0
	var wg sync.WaitGroup
	for worker := range workers {
		wg.Go(func() {
			random := rand.New(rand.NewPCG(uint64(worker), 7))
			for range rounds {
				batch := s.NewBatch()
				for _, i := range random.Perm(streams)[:3] { // random order: claims must not deadlock
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
					tx.Rollback()
					continue
				}
				mu.Lock()
				committed += 3
				for _, f := range tx.Finished {
					finished[f.ID] += f.Chunks.Len()
				}
				mu.Unlock()
				tx.Commit()
			}
		})
	}
	wg.Wait()
	tx := s.Expire(0, 100)
	for _, f := range tx.Finished {
		finished[f.ID] += f.Chunks.Len()
	}
	tx.Commit()
	total := 0
	for _, n := range finished {
		total += n
	}
	require.Equal(t, committed, total, "each committed chunk is delivered once")
	require.Zero(t, s.Streams())
	require.Zero(t, s.Memory())
}

func TestOpen_SizeIsBounded(t *testing.T) {
	require.LessOrEqual(t, unsafe.Sizeof(open{}), uintptr(384))
}

func TestAddEach_EqualsAddChunk(t *testing.T) {
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
