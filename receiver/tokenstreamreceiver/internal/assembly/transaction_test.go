// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package assembly

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

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
	open := func(ids ...string) error { return openAs(t, s, Client{}, ids...) }
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
			require.NoError(t, tx.Commit())
		}
	}
	require.ErrorContains(t, err, "max_memory_mib")
	require.LessOrEqual(t, s.Memory(), int64(4096+4096), "exceeded by at most one growth of the list")
	require.Greater(t, sent, 50)
	tx := apply(t, s, batchOf(t, s, "s", ended))
	require.Len(t, offsets(t, tx.Finished[0]), sent-1)
	require.Zero(t, s.Memory())
}

// While a transaction has claimed a stream, other transactions wait until it ends or
// their context is cancelled.
func TestBegin_WaitsForClaimedStream(t *testing.T) {
	s, c := newStore(roomy)
	apply(t, s, batchOf(t, s, "s", started))
	tx := begin(t, s, batchOf(t, s, "s", ended))

	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := s.Begin(ctx, batchOf(t, s, "s", chunks(1)))
	require.ErrorIs(t, err, context.Canceled)
	c.now += time.Hour
	idle := s.Expire(minute, 10)
	require.Empty(t, idle.Finished, "the stream is claimed")
	require.NoError(t, idle.Commit())

	rejected := make(chan int)
	late := batchOf(t, s, "s", chunks(1))
	go func() {
		tx, err := s.Begin(context.Background(), late)
		if err != nil || tx.Commit() != nil {
			rejected <- -1
			return
		}
		rejected <- len(tx.Rejected)
	}()
	require.NoError(t, tx.Commit())
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
				require.NoError(t, tx.Commit())
			}
		})
	}
	wg.Wait()
	tx := s.Expire(Timeouts{}, 100)
	for _, f := range tx.Finished {
		finished[f.ID] += f.Chunks.Len()
	}
	require.NoError(t, tx.Commit())
	total := 0
	for _, n := range finished {
		total += n
	}
	require.Equal(t, committed, total, "each committed chunk is delivered once")
	require.Zero(t, s.Streams())
	require.Zero(t, s.Memory())
}

func TestMemory_ReusedBuffersDoNotCount(t *testing.T) {
	limits := roomy
	limits.MaxChunksPerStream = 200_000
	limits.MaxMemory = 100_000
	s, _ := newStore(limits)
	batch := s.NewBatch()
	part, err := batch.Part([]byte("large"))
	require.NoError(t, err)
	started(t, part)
	for i := range 200_000 {
		if err := part.AddChunk(Chunk{UnixNano: t0 + int64(i)*1e6, Tokens: 1}); err != nil {
			require.NoError(t, err)
		}
	}
	require.NoError(t, part.AddEnd(End{}, nil))
	part.Count(0)
	apply(t, s, batch)
	batch.Reset()
	part, err = batch.Part([]byte("small"))
	require.NoError(t, err)
	started(t, part)
	chunks(1)(t, part)
	part.Count(0)
	apply(t, s, batch)
	require.LessOrEqual(t, s.Memory(), int64(1000))
}

// Another batch opens the stream after the start was added: only Begin detects it.
func TestBegin_RejectsStartThatConflictsMeanwhile(t *testing.T) {
	s, _ := newStore(roomy)
	late := batchOf(t, s, "s", func(t testing.TB, p *Part) {
		require.NoError(t, p.AddStart(Start{UnixNano: t0 + 1}, nil, nil))
	}, chunks(1))
	apply(t, s, batchOf(t, s, "s", started))
	tx := apply(t, s, late)
	require.Zero(t, tx.Units)
	require.ErrorContains(t, tx.Rejected[0].Err, "already open with another start time")
	require.EqualValues(t, 1, s.Streams())
}
