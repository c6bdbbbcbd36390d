// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package assembly

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// BenchmarkPart requests the parts of fifty streams: once each, as for whole streams,
// and repeatedly, as for single tokens.
func BenchmarkPart(b *testing.B) {
	const streams, turns = 50, 40
	once := make([][]byte, streams)
	for i := range once {
		once[i] = fmt.Appendf(nil, "benchmark-%04d", i)
	}
	var inTurns, interleaved [][]byte
	random := rand.New(rand.NewPCG(1, 2))
	for range turns {
		inTurns = append(inTurns, once...)
		for range streams {
			interleaved = append(interleaved, once[random.IntN(streams)])
		}
	}
	for name, ids := range map[string][][]byte{"once": once, "in turns": inTurns, "interleaved": interleaved} {
		b.Run(name, func(b *testing.B) {
			limits := Limits{MaxStreams: streams, MaxChunksPerStream: 1, MaxStreamBytes: 1 << 10, MaxMemory: 1 << 20}
			batch := NewStore(limits, func() time.Duration { return 0 }).NewBatch()
			b.ReportAllocs()
			for b.Loop() {
				batch.Reset()
				for _, id := range ids {
					if _, err := batch.Part(id); err != nil {
						b.Fatal(err)
					}
				}
			}
			require.LessOrEqual(b, batch.used, streams)
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(ids)), "ns/token")
		})
	}
}

// BenchmarkTransaction applies the events of fifty streams in ten batches: their start
// with the same resource, chunks, and their end.
func BenchmarkTransaction(b *testing.B) {
	const streams, batches, chunks = 50, 10, 50
	limits := Limits{MaxStreams: streams, MaxChunksPerStream: batches * chunks, MaxStreamBytes: 1 << 10, MaxMemory: 1 << 30}
	store := NewStore(limits, func() time.Duration { return 0 })
	ids := make([][]byte, streams)
	for i := range ids {
		ids[i] = fmt.Appendf(nil, "benchmark-%04d", i)
	}
	resource := make([]byte, 200)
	times := make([]int64, chunks)
	batch := store.NewBatch()
	b.ReportAllocs()
	for b.Loop() {
		for turn := range batches {
			batch.Reset()
			for i := range times {
				times[i] = t0 + int64(turn*chunks+i)*int64(time.Millisecond)
			}
			for _, id := range ids {
				part, err := batch.Part(id)
				require.NoError(b, err)
				if turn == 0 {
					require.NoError(b, part.AddStart(Start{UnixNano: t0}, nil, resource))
				}
				for _, at := range times {
					require.NoError(b, part.AddChunk(Chunk{UnixNano: at, Tokens: 1}))
				}
				if turn == batches-1 {
					require.NoError(b, part.AddEnd(End{}, nil))
				}
				part.Count(0)
			}
			apply(b, store, batch)
		}
	}
	require.Zero(b, store.Streams())
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*streams*batches*chunks), "ns/token")
}
