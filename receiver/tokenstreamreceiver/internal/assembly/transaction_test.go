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
					scripts := []script{started, chunks(random.IntN(100)), ended}
					addPart(t, batch, string(rune('a'+i)), scripts[:2+boolToInt(random.IntN(4) == 0)]...)
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
	batch := batchOf(t, s, "large", started, func(t testing.TB, part *Part) {
		for i := range 200_000 {
			if err := part.AddChunk(Chunk{UnixNano: t0 + int64(i)*1e6, Tokens: 1}); err != nil {
				require.NoError(t, err)
			}
		}
	}, ended)
	apply(t, s, batch)
	batch.Reset()
	addPart(t, batch, "small", started, chunks(1))
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
