package latency

import (
	"math"
	"time"

	"github.com/tokenpulse/tokenpulse/internal/sketch"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
)

// arrivals is what one walk over a timeline leaves behind.
type arrivals struct {
	chunks, tokens int64
	first, last    time.Duration // of the chunks
	firstTokens    int64         // tokens in the first chunk
	firstOutput    Optional[time.Duration]

	gaps      gaps
	stalls    int64
	stallTime time.Duration
	fluidity  fluidity
}

func (a *arrivals) reset(deadlines Deadlines) {
	a.gaps.reset()
	*a = arrivals{gaps: a.gaps, fluidity: fluidity{deadlines: deadlines}}
}

// runLength is how many gaps are taken at a time: few enough that they stay in
// the processor's cache.
const runLength = 128

// read walks the timeline. Gaps outside [0, limit] are left out and counted in l.
func (a *arrivals) read(walk timeline.Walk, limit, stallThreshold time.Duration, l *Latency) error {
	chunks := int64(walk.Left())
	if !walk.Next() {
		return walk.Err()
	}
	a.begin(&walk, limit)
	a.tokens, a.last = a.firstTokens, a.first
	var run [runLength]int64 // ticks
	gapLimit := limit
	if limit >= 0 { // gaps are whole ticks, of which the request's ends may cut a part
		gapLimit += timeline.Tick - 1
	}
	for n, first, all := walk.NextRun(run[:]); n > 0; n, first, all = walk.NextRun(run[:]) {
		tokens := int64(walk.Tokens())
		a.tokens += tokens * int64(n)
		if !a.firstOutput.Known && walk.Channel().IsOutput() {
			a.firstOutput = Known(first)
		}
		a.last = walk.Offset()
		// None is negative or longer than all of their bits together.
		ordinary := 0 <= all && time.Duration(all) <= min(gapLimit, stallThreshold)/timeline.Tick
		if ordinary && tokens == 1 && !a.gaps.differ && !a.fluidity.started {
			a.gaps.addEach(run[:n]) // as with nearly all runs of nearly all streams
		} else {
			a.take(run[:n], tokens, gapLimit, stallThreshold, l)
		}
	}
	a.chunks = chunks
	return walk.Err()
}

// take takes the gaps, in ticks, before chunks of so many tokens each.
func (a *arrivals) take(run []int64, tokens int64, limit, stallThreshold time.Duration, l *Latency) {
	for _, ticks := range run {
		gap := time.Duration(ticks) * timeline.Tick
		if !l.accepts(gap, limit) {
			if gap < 0 {
				l.ClockAnomalies++
			}
			continue
		}
		a.gaps.add(gap, tokens)
		if gap > stallThreshold {
			a.stalls++
			a.stallTime = min(a.stallTime, math.MaxInt64-gap) + gap
		}
		if a.fluidity.started {
			a.fluidity.chunk(gap, tokens)
		}
	}
}

func (a *arrivals) begin(walk *timeline.Walk, limit time.Duration) {
	a.first = walk.Offset()
	a.firstTokens = int64(walk.Tokens())
	if walk.Channel().IsOutput() {
		a.firstOutput = Known(a.first)
	}
	if a.fluidity.deadlines.on() && 0 <= a.first && a.first <= limit {
		a.fluidity.start(a.first, a.firstTokens)
	}
}

// gaps holds the inter-token and inter-chunk latencies of one request. They are
// the same samples until a chunk holds more than one token; until then only the
// inter-token sketch is filled, which halves the cost of a token.
type gaps struct {
	interToken, interChunk sketch.Sketch // seconds
	differ                 bool
	total                  float64 // nanoseconds; whole and exact up to a hundred days, and cannot overflow
}

func (g *gaps) reset() {
	g.interToken.Reset()
	g.interChunk.Reset()
	g.differ, g.total = false, 0
}

func (g *gaps) add(gap time.Duration, tokens int64) {
	g.total += float64(gap)
	if tokens > 1 && !g.differ {
		g.differ = true
		g.interChunk.Merge(&g.interToken)
	}
	g.interToken.Add(float64(gap)/(nanosPerSecond*float64(tokens)), uint64(tokens))
	if g.differ {
		g.interChunk.Add(seconds(gap), 1)
	}
}

// addEach adds the gaps, in ticks, before chunks of one token, while no other had
// more. None is negative.
func (g *gaps) addEach(run []int64) {
	g.total += float64(g.interToken.AddMicroseconds(run)) * float64(timeline.Tick)
}

// chunkSketch returns the sketch that holds the inter-chunk latencies.
func (g *gaps) chunkSketch() *sketch.Sketch {
	if g.differ {
		return &g.interChunk
	}
	return &g.interToken
}

func (g *gaps) sumUp(s *sketch.Sketch, estimated bool) Distribution {
	if s.Count() == 0 {
		return Distribution{}
	}
	percentiles := [...]float64{0.50, 0.95, 0.99}
	s.Quantiles(percentiles[:])
	known := func(v float64) Measure { return Measure{v, true, estimated} }
	return Distribution{
		Mean: known(g.total / (nanosPerSecond * float64(s.Count()))),
		P50:  known(percentiles[0]),
		P95:  known(percentiles[1]),
		P99:  known(percentiles[2]),
		Max:  known(s.Max()),
	}
}
