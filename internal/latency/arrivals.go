// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package latency

import (
	"math"
	"time"

	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/optional"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
)

// arrivals is the result of one walk over a timeline.
type arrivals struct {
	gaps        gaps        // reuses memory
	longest     longest     // likewise
	chunkTokens chunkTokens // likewise
	positions   positions
	speech      timeline.Speech // audio between the chunks
	totals
}

// totals are the arrivals without the gaps.
type totals struct {
	chunks, tokens int64
	first, last    time.Duration // times of the first and last chunk
	firstTokens    int64         // tokens in the first chunk
	firstOutput    optional.Value[time.Duration]

	stalls    int64
	stallTime time.Duration
	fluidity  fluidity
}

func (a *arrivals) reset(options *Options) {
	a.gaps.reset()
	a.longest.reset(options.Moments)
	a.chunkTokens.reset(!options.Omitted[numbers.TokensPerChunk])
	a.positions = positions{wanted: options.positions()}
	a.totals = totals{fluidity: fluidity{deadlines: options.Fluidity}}
}

// runLength is the number of gaps read at a time. They fit into the CPU's L1 cache.
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
	if limit >= 0 { // a gap is rounded to ticks, so it can exceed the request by part of one
		gapLimit += timeline.Tick - 1
	}
	for n, first, all := walk.NextRun(run[:]); n > 0; n, first, all = walk.NextRun(run[:]) {
		tokens := int64(walk.Tokens())
		if !a.firstOutput.Known && walk.Channel().IsOutput() {
			a.firstOutput = optional.Of(first)
		}
		a.last = walk.Offset()
		// all is the bitwise OR of the gaps, so no gap is negative or larger than it.
		ordinary := 0 <= all && time.Duration(all) <= min(gapLimit, stallThreshold)/timeline.Tick
		if ordinary && tokens == 1 && !a.gaps.bundled && !a.fluidity.started {
			a.gaps.addSingles(run[:n]) // fast path, taken by nearly all runs
		} else {
			a.addGaps(first, run[:n], tokens, gapLimit, stallThreshold, l)
		}
		a.chunkTokens.add(tokens, n)
		a.positions.add(run[:n], tokens, a.tokens, gapLimit)
		a.tokens += tokens * int64(n)
	}
	a.chunks = chunks
	return walk.Err()
}

// addGaps adds the gaps, in ticks, before chunks that hold that many tokens each. first is the offset of the
// first of these chunks.
func (a *arrivals) addGaps(first time.Duration, run []int64, tokens int64, limit, stallThreshold time.Duration, l *Latency) {
	at := first - time.Duration(run[0])*timeline.Tick
	for i, ticks := range run {
		gap, before := time.Duration(ticks)*timeline.Tick, at
		at += gap
		if !l.accepts(gap, limit) {
			if gap < 0 {
				l.addClockAnomaly()
			}
			continue
		}
		a.gaps.add(gap, tokens)
		if gap > stallThreshold && !a.speech.Between(before, at) {
			a.stalls++
			a.longest.add(Stall{before, gap, a.tokens + tokens*int64(i)})
			a.stallTime = min(a.stallTime, math.MaxInt64-gap) + gap
		}
		if a.fluidity.started {
			a.fluidity.addChunk(gap, tokens)
		}
	}
}

// begin records the first chunk.
func (a *arrivals) begin(walk *timeline.Walk, limit time.Duration) {
	a.first = walk.Offset()
	a.firstTokens = int64(walk.Tokens())
	a.chunkTokens.add(a.firstTokens, 1)
	if walk.Channel().IsOutput() {
		a.firstOutput = optional.Of(a.first)
	}
	if a.fluidity.deadlines.enabled() && 0 <= a.first && a.first <= limit {
		a.fluidity.start(a.first, a.firstTokens)
	}
}
