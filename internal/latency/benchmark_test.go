// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package latency

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/optional"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
)

const benchmarkTokens = 500

func benchmarkStream(tokensPerChunk uint32) []chunk {
	var chunks []chunk
	for i := range benchmarkTokens / int(tokensPerChunk) {
		jitter := float64(i*7919%11) - 5
		chunks = append(chunks, chunk{300 + 20*float64(i) + jitter, tokensPerChunk, timeline.Content})
	}
	return chunks
}

func TestAnalyze_DoesNotAllocate(t *testing.T) {
	a := NewAnalyzer(Options{StallThreshold: ms, Fluidity: Deadlines{FirstToken: ms, NextToken: ms}})
	request := Observed{Duration: time.Minute, Queue: optional.Of(ms), OutputTokens: optional.Of(int64(490))}
	walk := pack(t, benchmarkStream(2))
	require.Zero(t, testing.AllocsPerRun(100, func() {
		l, err := a.Analyze(request, walk)
		if err != nil || l.Measures[numbers.ChunkCount].Value != benchmarkTokens/2 {
			t.Error("not all chunks were read")
		}
	}))
}

func BenchmarkAnalyze(b *testing.B) {
	benchmarks := map[string]struct {
		tokensPerChunk uint32
		fluidity       Deadlines
		full           bool // with the numbers that are off by default
	}{
		"one token per chunk":                {tokensPerChunk: 1},
		"five tokens per chunk":              {tokensPerChunk: 5},
		"one token per chunk, with fluidity": {tokensPerChunk: 1, fluidity: Deadlines{time.Second, 25 * ms}},
		"one token per chunk, in full":       {tokensPerChunk: 1, full: true},
		"five tokens per chunk, in full":     {tokensPerChunk: 5, full: true},
	}
	for name, benchmark := range benchmarks {
		b.Run(name, func(b *testing.B) {
			options := Options{StallThreshold: 500 * ms, Fluidity: benchmark.fluidity}
			if !benchmark.full {
				for id := range numbers.Count {
					options.Omitted[id] = id == numbers.TokensPerChunk || id.Row().Position != ""
				}
			}
			a := NewAnalyzer(options)
			walk := pack(b, benchmarkStream(benchmark.tokensPerChunk))
			b.ReportAllocs()
			var gaps uint64
			for b.Loop() {
				l, err := a.Analyze(Observed{Duration: time.Minute}, walk)
				if err != nil || !l.Measures[numbers.TimePerOutputToken].Known {
					b.Fatal("time per output token is missing", err)
				}
				gaps += l.TokenGaps.Count()
			}
			require.EqualValues(b, b.N*(benchmarkTokens-int(benchmark.tokensPerChunk)), gaps)
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*benchmarkTokens), "ns/token")
		})
	}
}
