package latency

import (
	"time"

	"github.com/tokenpulse/tokenpulse/internal/sketch"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
)

// Analyzer derives the latency of one request after the other. It owns scratch
// memory that grows with the range of the gaps it has seen, to a bound of 64 KB,
// and not with the number of tokens. It is not safe for concurrent use.
type Analyzer struct {
	options  Options
	arrivals arrivals
}

// longestRequest is what a sketch can hold, 34 years. A span that lasts longer
// has a time that was never set.
const longestRequest = sketch.MaxValue * time.Second

// NewAnalyzer returns an analyzer with the given options.
func NewAnalyzer(options Options) *Analyzer { return &Analyzer{options: options} }

// Analyze derives the latency of a request from what was observed of it and from
// its timeline, whose offsets count from the request's start. A timeline that
// turns out to be malformed is the only error.
func (a *Analyzer) Analyze(request Request, walk timeline.Walk) (Latency, error) {
	a.arrivals.reset(a.options.Fluidity)
	var latency Latency
	limit := min(request.Duration, longestRequest)
	if err := a.arrivals.read(walk, limit, a.options.StallThreshold, &latency); err != nil {
		return Latency{}, err
	}
	d := derivation{request: &request, limit: limit, arrivals: &a.arrivals, options: &a.options, latency: &latency}
	d.derive()
	return latency, nil
}

// InterTokenSketch returns the inter-token latencies of the request analyzed
// last, in seconds. It is valid until the next call of Analyze.
func (a *Analyzer) InterTokenSketch() *sketch.Sketch { return &a.arrivals.gaps.interToken }

// InterChunkSketch returns the inter-chunk latencies likewise. It is the very
// sketch of InterTokenSketch when the two have the same samples.
func (a *Analyzer) InterChunkSketch() *sketch.Sketch { return a.arrivals.gaps.chunkSketch() }
