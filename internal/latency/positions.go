// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package latency

import (
	"math"
	"time"

	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
)

// positions adds up the inter-token latencies by the position of the token in the answer.
type positions struct {
	wanted bool
	bands  [len(numbers.Positions)]waits
}

// waits are the inter-token latencies of a number of tokens.
type waits struct {
	sum    float64 // nanoseconds
	tokens int64
}

// bandOf returns the band of a position, and the first position after it.
func bandOf(position int64) (band int, end int64) {
	for band = range numbers.Positions[1:] {
		if end = numbers.Positions[band+1]; position < end {
			return band, end
		}
	}
	return len(numbers.Positions) - 1, math.MaxInt64
}

// add adds the gaps, in ticks, before successive chunks that hold that many tokens each. at is the position of the first
// token. Gaps outside [0, limit] are left out.
func (p *positions) add(run []int64, tokens, at int64, limit time.Duration) {
	if p.wanted {
		p.addRun(run, tokens, at, limit)
	}
}

func (p *positions) addRun(run []int64, tokens, at int64, limit time.Duration) {
	for len(run) > 0 {
		band, end := bandOf(at)
		if at+tokens > end {
			p.divide(run[0], tokens, at, limit)
			run, at = run[1:], at+tokens
			continue
		}
		whole := min(int64(len(run)), (end-at)/tokens)
		var ticks, chunks int64
		for _, gap := range run[:whole] {
			if plausible(gap, limit) {
				ticks += gap
				chunks++
			}
		}
		p.bands[band].sum += float64(ticks) * float64(timeline.Tick)
		p.bands[band].tokens += chunks * tokens
		run, at = run[whole:], at+whole*tokens
	}
}

// divide adds the gap before a chunk whose tokens are in several bands.
func (p *positions) divide(gap, tokens, at int64, limit time.Duration) {
	if !plausible(gap, limit) {
		return
	}
	perToken := float64(gap) * float64(timeline.Tick) / float64(tokens)
	for last := at + tokens; at < last; {
		band, end := bandOf(at)
		inBand := min(end, last) - at
		p.bands[band].sum += perToken * float64(inBand)
		p.bands[band].tokens += inBand
		at += inBand
	}
}

func plausible(ticks int64, limit time.Duration) bool {
	gap := time.Duration(ticks) * timeline.Tick
	return 0 <= gap && gap <= limit
}

// timePerToken sets the mean inter-token latency of each band. Positions are known if the tokens of all chunks are, and if
// they are of one answer.
func (d *derivation) timePerToken() {
	if !d.chunkTokensKnown() || d.latency.Buffered || d.request.Choices > 1 {
		return
	}
	for i, band := range d.arrivals.positions.bands {
		if band.tokens > 0 {
			mean := band.sum / (nanosPerSecond * float64(band.tokens))
			d.latency.Measures[numbers.TimePerTokenFrom0+numbers.ID(i)] = Measure{Value: mean, Known: true}
		}
	}
}
