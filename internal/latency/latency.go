// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package latency

import (
	"time"

	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/optional"
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

// Latency is the result of analyzing one request.
type Latency struct {
	// Outcome is one of names.Outcome*.
	Outcome string
	// Measures holds the numbers that have no field below. Use Number to read any of them.
	Measures [numbers.Count]Measure
	// InterToken has one sample for each token after the first chunk, InterChunk one
	// for each chunk after the first.
	InterToken, InterChunk Distribution
	// StallCount is known and estimated whenever the measure StallDuration is.
	StallCount int64
	// StalledAtEnd means that the client cancelled the request during a stall: the wait
	// since the last token is longer than the stall threshold. StallCount includes it.
	StalledAtEnd bool
	// ChunkCount is the number of chunks that carried a token, dropped ones included.
	// It is unknown if chunks were not observed.
	ChunkCount optional.Value[int64]
	// TokenCount is the number of output tokens in the chunks, with at least one for
	// each dropped chunk. It is unknown without chunks, and if the sender reported the
	// number of output tokens.
	TokenCount optional.Value[int64]
	// TokenCountMismatch is the reported minus the counted number of output tokens, or
	// 0 if either is missing.
	TokenCountMismatch int64
	// ClockAnomalies counts how often time goes back between start, first chunk, ...,
	// last chunk and end.
	ClockAnomalies int64
	// Buffered means that something between the engine and the observer held the stream back, so
	// that the times between its tokens are missing.
	Buffered bool
	// Absences holds the reason for each of numbers.Indicators that is missing.
	Absences [len(numbers.Indicators)]Absence
	// Rejected counts values outside [0, request duration], by reason.
	Rejected [NumReasons]int64
}

// Number returns one of the numbers of the request.
func (l *Latency) Number(id numbers.ID) Measure {
	count := func(n int64, known bool) Measure { return Measure{Value: float64(n), Known: known} }
	switch {
	case id == numbers.StallCount:
		stalls := l.Measures[numbers.StallDuration]
		return Measure{float64(l.StallCount), stalls.Known, stalls.Estimated}
	case id == numbers.ChunkCount:
		return count(l.ChunkCount.Value, l.ChunkCount.Known)
	case id == numbers.TokenCount:
		return count(l.TokenCount.Value, l.TokenCount.Known)
	case id == numbers.TokenCountMismatch:
		return count(l.TokenCountMismatch, true)
	case id == numbers.ClockAnomalies:
		return count(l.ClockAnomalies, true)
	case numbers.InterTokenMean <= id && id <= numbers.InterTokenMax:
		return l.InterToken[id-numbers.InterTokenMean]
	case numbers.InterChunkMean <= id && id <= numbers.InterChunkMax:
		return l.InterChunk[id-numbers.InterChunkMean]
	default:
		return l.Measures[id]
	}
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
