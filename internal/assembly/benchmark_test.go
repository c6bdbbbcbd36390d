package assembly

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// BenchmarkPart asks for the parts of fifty streams, an id at a time: once each, as
// requests of whole streams do, and often, as tokens do.
func BenchmarkPart(b *testing.B) {
	const streams, turns = 50, 40
	once := make([][]byte, streams)
	for i := range once {
		once[i] = fmt.Appendf(nil, "benchmark-%04d", i)
	}
	var inTurns, byTime [][]byte
	random := rand.New(rand.NewPCG(1, 2))
	for range turns {
		inTurns = append(inTurns, once...)
		for range streams {
			byTime = append(byTime, once[random.IntN(streams)])
		}
	}
	for name, ids := range map[string][][]byte{"once": once, "in turns": inTurns, "in order of time": byTime} {
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
