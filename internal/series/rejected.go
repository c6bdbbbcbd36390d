// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package series

import (
	"math"

	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/sketch"
)

// Reason is why a value was rejected.
type Reason uint8

// The reasons.
const (
	Accepted Reason = iota
	// WrongType is a value of the wrong type, or a fraction where a count is due.
	WrongType
	// NotFinite is NaN or infinite.
	NotFinite
	// Negative is a value below 0.
	Negative
	// OutOfRange is a value above the largest plausible one.
	OutOfRange
	// MalformedSketch is a distribution that does not decode, or that the request cannot
	// have.
	MalformedSketch
	// MalformedUnmeasured is a list of missing indicators that the processor cannot have written.
	MalformedUnmeasured
	// UnknownOutcome is an outcome that docs/definitions.md does not define.
	UnknownOutcome

	// Reasons is the number of reasons.
	Reasons
)

// ReasonNames holds the value of the self-metric label `reason` of each Reason.
var ReasonNames = [Reasons]string{"", "wrong_type", "not_finite", "negative", "out_of_range", "malformed_sketch", "malformed_unmeasured", "unknown_outcome"}

// Largest limits the seconds, tokens and tokens per second of one request: 34 years,
// or a billion tokens.
const Largest = sketch.MaxValue

// Contributing are the numbers that series are made of: those with a histogram or a sum, and those that
// check or replace them.
var Contributing = func() []numbers.ID {
	all := []numbers.ID{numbers.ChunkCount, numbers.TokenCount, numbers.ClockAnomalies, numbers.CachedInputShare, numbers.InterTokenMax, numbers.InterChunkMax, numbers.InterAudioMax}
	all = append(all, numbers.Usage...)
	all = append(all, numbers.StallCount, numbers.StallDuration, numbers.SpeculativeAcceptedTokens, numbers.SpeculativeDraftTokens)
	for _, id := range numbers.Histograms {
		if id < numbers.Singles {
			all = append(all, id)
		}
	}
	return all
}()

// checkNumber returns whether a number is plausible.
func checkNumber(id numbers.ID, n float64) Reason {
	switch {
	case math.IsNaN(n) || math.IsInf(n, 0):
		return NotFinite
	case n < 0:
		return Negative
	case n > Largest:
		return OutOfRange
	case id.Row().Whole && n != math.Trunc(n):
		return WrongType
	}
	return Accepted
}
