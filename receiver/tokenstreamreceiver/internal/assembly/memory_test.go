// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package assembly

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestReserve_SharesMaxMemoryWithStreams(t *testing.T) {
	limits := roomy
	limits.MaxMemory = 64 << 10
	s, _ := newStore(limits)
	require.NoError(t, s.Reserve(0, 40<<10))
	require.EqualValues(t, 40<<10, s.Memory())
	require.ErrorContains(t, s.Reserve(40<<10, 25<<10), "the request needs more memory than max_memory_mib")
	err := s.Reserve(0, 25<<10)
	require.Equal(t, &FullError{Setting: SettingMaxMemory}, err)
	require.EqualValues(t, 40<<10, s.Memory(), "nothing was reserved")

	// Streams have the rest.
	opened := fillWithStreams(t, s)
	require.LessOrEqual(t, s.Memory(), int64(64<<10))
	require.Greater(t, s.Memory(), int64(62<<10))

	// Requests have an eighth when streams have used up their part.
	s.Release(40 << 10)
	more := fillWithStreams(t, s)
	require.Greater(t, more, opened)
	require.InDelta(t, 56<<10, s.Memory(), 1<<10)
	require.NoError(t, s.Reserve(0, 7<<10))
	apply(t, s, batchOf(t, s, "0", ended))
	s.Release(7 << 10)
	tx := s.Expire(Timeouts{}, 1000)
	require.NoError(t, tx.Commit())
	require.Zero(t, s.Memory())
}

var fillCount int

// fillWithStreams opens streams up to the limit and returns their number.
func fillWithStreams(t *testing.T, s *Store) int {
	t.Helper()
	for n := 0; ; n++ {
		tx, err := s.Begin(context.Background(), batchOf(t, s, strconv.Itoa(fillCount), started))
		if err != nil {
			require.Equal(t, &FullError{Setting: SettingMaxMemory}, err)
			return n
		}
		require.NoError(t, tx.Commit())
		fillCount++
	}
}

func TestReserve_ConcurrentlyNeverExceedsLimit(t *testing.T) {
	limits := roomy
	limits.MaxMemory = 64 << 10
	s, _ := newStore(limits)
	var wg sync.WaitGroup
	for worker := range 8 {
		wg.Go(func() {
			for i := range 500 {
				if worker%2 == 0 {
					if s.Reserve(0, 10<<10) == nil {
						s.Release(10 << 10)
					}
					continue
				}
				tx, err := s.Begin(context.Background(), batchOf(t, s, strconv.Itoa(worker*1000+i), started))
				if err == nil {
					require.NoError(t, tx.Commit())
				}
			}
		})
	}
	wg.Wait()
	require.Zero(t, s.requests.Load())
	require.LessOrEqual(t, s.Memory(), int64(56<<10))
}

func TestLimitMemory_RefusesBatch(t *testing.T) {
	tests := map[string]func(b *Batch) error{
		"many streams": func(b *Batch) error {
			for i := range 100 {
				part, err := b.Part([]byte(strconv.Itoa(i)))
				if err != nil {
					return err
				}
				part.Count(0)
			}
			return nil
		},
		"many chunks out of order": func(b *Batch) error {
			part, err := b.Part([]byte("s"))
			if err != nil {
				return err
			}
			for i := range int64(10_000) {
				if err := part.AddChunk(Chunk{UnixNano: t0 - i*1e6, Tokens: 1}); err != nil {
					return err
				}
			}
			return nil
		},
	}
	for name, fill := range tests {
		t.Run(name, func(t *testing.T) {
			limits := roomy
			limits.MaxChunksPerStream = 100_000
			limits.MaxMemory = 100_000
			s, _ := newStore(limits)
			batch := s.NewBatch()
			var held int64
			batch.LimitMemory(func(bytes int64) error {
				err := s.Reserve(held, bytes)
				if err == nil {
					held += bytes
				}
				return err
			})
			err := fill(batch)
			require.ErrorContains(t, err, "max_memory_mib")
			require.LessOrEqual(t, s.Memory(), int64(100_000))
			require.Greater(t, s.Memory(), int64(90_000))
			_, again := batch.Part([]byte(strings.Repeat("x", 10)))
			require.Equal(t, err, again)
			_, begun := s.Begin(context.Background(), batch)
			require.Equal(t, err, begun)
			require.Zero(t, s.Streams())

			s.Release(held)
			held = 0
			batch.Reset()
			_, err = batch.Part([]byte("s"))
			require.NoError(t, err, "the next batch has memory again")
		})
	}
}
