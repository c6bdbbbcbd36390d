package spanreader

import (
	"math"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/tokenpulse/tokenpulse/internal/attribute"
	"github.com/tokenpulse/tokenpulse/internal/sketch"
)

// Reason tells why an attribute was left out.
type Reason uint8

// Why an attribute is left out.
const (
	accepted Reason = iota
	// WrongType: text where a number belongs, part of a token, and the like.
	WrongType
	// NotFinite: not a number, or infinite.
	NotFinite
	// Negative: no quantity is.
	Negative
	// OutOfRange: more than any request takes or holds.
	OutOfRange
	// MalformedSketch: a distribution that does not decode.
	MalformedSketch
	// UnknownOutcome: none of the outcomes there are.
	UnknownOutcome

	// Reasons is how many there are.
	Reasons
)

// ReasonNames holds the name of each Reason, as self-telemetry shows it.
var ReasonNames = [Reasons]string{"", "wrong_type", "not_finite", "negative", "out_of_range", "malformed_sketch", "unknown_outcome"}

// largest is the most seconds, tokens or tokens per second of one request: 34
// years, or a billion tokens.
const largest = sketch.MaxValue

// number reads an attribute that is a quantity.
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

// wholeNumber reads an attribute that counts something.
func wholeNumber(v pcommon.Value) (float64, Reason) {
	n, reason := number(v)
	if n != math.Trunc(n) {
		return 0, WrongType
	}
	return n, reason
}

// largestSketch is more than any sketch takes up: one that is larger is not
// copied to find out.
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
