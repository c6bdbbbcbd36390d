// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package latency

import (
	"time"

	"github.com/tokenpulse/tokenpulse/internal/sketch"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
)

// gaps holds the inter-token and inter-chunk latencies of one request. Both have the
// same samples until a chunk after the first holds several tokens. Until then only
// interToken is filled, which halves the cost of a token.
type gaps struct {
	interToken, interChunk sketch.Sketch // seconds
	bundled                bool          // a chunk held several tokens: interChunk is filled, too
	total                  float64       // nanoseconds; exact up to a hundred days, and cannot overflow
}

func (g *gaps) reset() {
	g.interToken.Reset()
	g.interChunk.Reset()
	g.bundled, g.total = false, 0
}

// add adds the gap before a chunk.
func (g *gaps) add(gap time.Duration, tokens int64) {
	g.total += float64(gap)
	if tokens > 1 && !g.bundled {
		g.bundled = true
		g.interChunk.Merge(&g.interToken)
	}
	g.interToken.Add(float64(gap)/(nanosPerSecond*float64(tokens)), uint64(tokens))
	if g.bundled {
		g.interChunk.Add(seconds(gap), 1)
	}
}

// addSingles adds the gaps, in ticks, before chunks of one token each. It requires
// that no gap is negative and that bundled is false.
func (g *gaps) addSingles(run []int64) {
	g.total += float64(g.interToken.AddMicroseconds(run)) * float64(timeline.Tick)
}

// betweenChunks returns the inter-chunk latencies.
func (g *gaps) betweenChunks() *sketch.Sketch {
	if g.bundled {
		return &g.interChunk
	}
	return &g.interToken
}

// summarize returns the statistics of one of the sketches.
func (g *gaps) summarize(s *sketch.Sketch, estimated, percentiles bool) Distribution {
	return summarize(s, g.total, estimated, percentiles)
}

// summarize returns the statistics of gaps. total is their sum in nanoseconds.
func summarize(s *sketch.Sketch, total float64, estimated, percentiles bool) (d Distribution) {
	if s.Count() == 0 {
		return d
	}
	known := func(v float64) Measure { return Measure{v, true, estimated} }
	d[Mean], d[Max] = known(total/(nanosPerSecond*float64(s.Count()))), known(s.Max())
	if percentiles {
		quantiles := [...]float64{0.50, 0.95, 0.99}
		s.Quantiles(quantiles[:])
		d[P50], d[P95], d[P99] = known(quantiles[0]), known(quantiles[1]), known(quantiles[2])
	}
	return d
}
