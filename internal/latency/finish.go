// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package latency

import (
	"math"

	"github.com/tokenpulse/tokenpulse/internal/numbers"
)

// durations has the numbers in seconds.
var durations = func() (all [numbers.Count]bool) {
	for id := range numbers.Count {
		all[id] = id.Row().Unit == numbers.Seconds
	}
	return all
}()

// finish brings the numbers into the form that attributes and series have: without those that are
// omitted, durations in whole nanoseconds, and no zero of what is missing when 0.
func (l *Latency) finish(omitted *[numbers.Count]bool, arrivals *arrivals, audio *audio) {
	gaps := &arrivals.gaps
	if l.Count(numbers.StallCount) == 0 {
		l.Measures[numbers.StallCount], l.Measures[numbers.StallDuration] = Measure{}, Measure{}
	}
	if l.Count(numbers.TokenCountMismatch) == 0 {
		l.Measures[numbers.TokenCountMismatch] = Measure{}
	}
	for id := range l.Measures {
		switch m := &l.Measures[id]; {
		case !m.Known:
		case omitted[id]:
			*m = Measure{}
		case durations[id]:
			m.Value = ToNanosecond(m.Value)
		}
	}
	if !omitted[numbers.InterTokenLatency] && gaps.interToken.Count() > 0 {
		l.TokenGaps = &gaps.interToken
	}
	same := !gaps.bundled && !omitted[numbers.InterTokenLatency]
	if chunks := gaps.betweenChunks(); !omitted[numbers.InterChunkLatency] && !same && chunks.Count() > 0 {
		l.ChunkGaps = chunks
	}
	if !omitted[numbers.InterAudioLatency] && audio.gaps.Count() > 0 {
		l.AudioGaps = &audio.gaps
	}
	if tokens := &arrivals.chunkTokens.tokens; tokens.Count() > 0 {
		l.ChunkTokens = tokens
	}
}

// ToNanosecond rounds seconds, which are not negative, to the nanosecond. Longer fractions are noise of
// the division, and cost up to 20 characters in JSON. It rounds as math.Round does, but math.Trunc is a
// single instruction.
func ToNanosecond(seconds float64) float64 {
	nanos := float64(seconds * 1e9) // rounded: arm64 would fuse it with the subtraction
	whole := math.Trunc(nanos)
	if nanos-whole >= 0.5 {
		whole++
	}
	return whole / 1e9
}
