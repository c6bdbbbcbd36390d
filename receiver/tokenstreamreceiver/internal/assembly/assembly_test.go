// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package assembly

import (
	"context"
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

// minute is a timeout of one minute for all streams.
var minute = Timeouts{Idle: time.Minute, FirstToken: time.Minute}

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
	addPart(t, batch, id, scripts...)
	return batch
}

// addPart adds one unit of a stream to a batch.
func addPart(t testing.TB, batch *Batch, id string, scripts ...script) {
	part, err := batch.Part([]byte(id))
	require.NoError(t, err)
	for _, f := range scripts {
		f(t, part)
	}
	part.Count(1)
}

func begin(t testing.TB, s *Store, batch *Batch) *Transaction {
	tx, err := s.Begin(context.Background(), batch)
	require.NoError(t, err)
	return tx
}

func apply(t testing.TB, s *Store, batch *Batch) *Transaction {
	tx := begin(t, s, batch)
	require.NoError(t, tx.Commit())
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

func TestOpen_SizeIsBounded(t *testing.T) {
	require.LessOrEqual(t, unsafe.Sizeof(open{}), uintptr(392))
}
