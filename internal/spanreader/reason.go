// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package spanreader

import (
	"math"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/tokenpulse/tokenpulse/internal/attribute"
	"github.com/tokenpulse/tokenpulse/internal/sketch"
)

// Reason is why an attribute was rejected.
type Reason uint8

// The reasons.
const (
	accepted Reason = iota
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

// largest limits the seconds, tokens and tokens per second of one request: 34 years,
// or a billion tokens.
const largest = sketch.MaxValue

// number reads a quantity.
func number(v pcommon.Value) (float64, Reason) {
	n, ok := attribute.Number(v)
	switch {
	case !ok:
		return 0, WrongType
	case math.IsNaN(n) || math.IsInf(n, 0):
		return 0, NotFinite
	case n < 0:
		return 0, Negative
	case n > largest:
		return 0, OutOfRange
	}
	return n, accepted
}

// wholeNumber reads a count.
func wholeNumber(v pcommon.Value) (float64, Reason) {
	n, reason := number(v)
	if n != math.Trunc(n) {
		return 0, WrongType
	}
	return n, reason
}

// largestSketch exceeds the size of every valid sketch, in bytes. Larger values are
// rejected without being copied.
const largestSketch = 64 << 10

func encodedSketch(v pcommon.Value) ([]byte, Reason) {
	switch {
	case v.Type() != pcommon.ValueTypeBytes:
		return nil, WrongType
	case v.Bytes().Len() == 0 || v.Bytes().Len() > largestSketch:
		return nil, MalformedSketch
	}
	return v.Bytes().AsRaw(), accepted
}
