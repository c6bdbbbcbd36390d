// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package latency

import (
	"time"

	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/optional"
	"github.com/tokenpulse/tokenpulse/internal/sketch"
)

// Measure is the value of a number. It is absent unless Known: an absent value is
// not 0. Estimated marks an estimate or a bound.
type Measure struct {
	Value            float64
	Known, Estimated bool
}

// Statistic is one number that summarizes the gaps of a request.
type Statistic uint8

// The statistics of a request's gaps.
const (
	Mean Statistic = iota
	P50
	P95
	P99
	Max
	NumStatistics // number of statistics
)

// Distribution summarizes the gaps of one request, in seconds. If they come from a
// timeline, Mean and Max are exact, and the percentiles are within 0.55%.
type Distribution [NumStatistics]Measure

// Reason classifies why a value was rejected.
type Reason uint8

// The reasons. A value out of range is rejected, never clamped.
const (
	Negative Reason = iota
	LongerThanRequest
	NumReasons // number of reasons
)

func (r Reason) String() string {
	return [NumReasons]string{"negative", "longer_than_request"}[r]
}

// Latency is a finished request with its numbers: derived by an Analyzer, or read from the
// attributes of a span that token_latency annotated. Attributes are written from it, SLOs judge it,
// and series are made of it.
type Latency struct {
	// Outcome is one of names.Outcome*, and ErrorType the error.type of an error if it is known.
	Outcome, ErrorType string
	// Measures holds the numbers as attributes and series have them: durations in whole
	// nanoseconds, and no zero of what is missing when 0.
	Measures [numbers.Count]Measure
	// TokenGaps has one sample for each token after the first chunk, ChunkGaps one for each chunk
	// after the first, in seconds. ChunkGaps is nil if TokenGaps has the same samples, and either is nil
	// without samples. An Analyzer's are valid until it analyzes the next request.
	TokenGaps, ChunkGaps *sketch.Sketch
	// AudioGaps has one sample for each chunk of audio after the first, in seconds. It is nil without samples, and as long valid.
	AudioGaps *sketch.Sketch
	// ChunkTokens has the tokens of each chunk. It is nil if they are unknown, and as long valid.
	ChunkTokens *sketch.Sketch
	// StalledAtEnd means that the client cancelled the request during a stall: the wait
	// since the last token is longer than the stall threshold. StallCount includes it.
	StalledAtEnd bool
	// Buffered means that something between the engine and the observer held the stream back, so
	// that the times between its tokens are missing.
	Buffered bool
	// Absences holds the reason for each of numbers.Indicators that is missing.
	Absences [len(numbers.Indicators)]Absence
	// StreamStopped means that the request asked for a stream, and the answer came in one piece.
	StreamStopped bool
	// Moments are filled with Options.Moments.
	Moments Moments
	// Rejected counts values outside [0, request duration], by reason.
	Rejected [NumReasons]int64
}

// Gaps returns the statistics of the gaps, whose mean is a number: InterTokenMean or InterChunkMean.
func (l *Latency) Gaps(mean numbers.ID) Distribution {
	return Distribution(l.Measures[mean : mean+numbers.ID(NumStatistics)])
}

// Count returns a number that is an integer, or 0 if it is unknown.
func (l *Latency) Count(id numbers.ID) int64 { return int64(l.Measures[id].Value) }

// Report sets a number of tokens that the service reports.
func (l *Latency) Report(id numbers.ID, tokens optional.Value[int64]) {
	if tokens.Known {
		l.setCount(id, tokens.Value)
	}
}

func (l *Latency) setGaps(mean numbers.ID, d Distribution) { copy(l.Measures[mean:], d[:]) }

func (l *Latency) setCount(id numbers.ID, n int64) {
	l.Measures[id] = Measure{Value: float64(n), Known: true}
}

// addClockAnomaly counts a step back in time between start, first chunk, ..., last chunk and end.
func (l *Latency) addClockAnomaly() {
	l.setCount(numbers.ClockAnomalies, l.Count(numbers.ClockAnomalies)+1)
}

// accepts reports whether a duration is inside [0, limit]. It counts a rejected one.
func (l *Latency) accepts(v, limit time.Duration) bool {
	switch {
	case v < 0:
		l.Rejected[Negative]++
	case v > limit:
		l.Rejected[LongerThanRequest]++
	default:
		return true
	}
	return false
}

const nanosPerSecond = 1e9

// seconds converts with a single rounding: 20 ms becomes the float64 nearest to 0.02.
func seconds(d time.Duration) float64 { return float64(d) / nanosPerSecond }
