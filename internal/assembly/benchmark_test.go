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
