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

// read walks the timeline. Gaps outside [0, limit] are left out and counted in l.
func (a *arrivals) read(walk timeline.Walk, limit, stallThreshold time.Duration, l *Latency) error {
	chunks := int64(walk.Left())
	if !walk.Next() {
		return walk.Err()
	}
	a.begin(&walk, limit)
	previous, tokens := a.first, a.firstTokens
	for walk.Next() {
		offset, n := walk.Offset(), int64(walk.Tokens())
		gap := offset - previous
		previous = offset
		tokens += n
		if !a.firstOutput.Known && walk.Channel().IsOutput() {
			a.firstOutput = Known(offset)
		}
		if !l.accepts(gap, limit) {
			if gap < 0 {
				l.ClockAnomalies++
			}
			continue
		}
		a.gaps.add(gap, n)
		if gap > stallThreshold {
			a.stalls++
			a.stallTime = min(a.stallTime, math.MaxInt64-gap) + gap
		}
		if a.fluidity.started {
			a.fluidity.chunk(gap, n)
		}
	}
	a.chunks, a.tokens, a.last = chunks, tokens, previous
	return walk.Err()
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
	return Distribution{
		Mean:      g.total / (nanosPerSecond * float64(s.Count())),
		P50:       s.Quantile(0.50),
		P95:       s.Quantile(0.95),
		P99:       s.Quantile(0.99),
		Max:       s.Max(),
		Known:     true,
		Estimated: estimated,
	}
}
