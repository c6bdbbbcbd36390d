// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package spanreader

import (
	"math"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/tokenpulse/tokenpulse/internal/source"
)

// number reads a quantity.
func number(v pcommon.Value) (float64, Reason) {
	n, ok := source.Number(v)
	if !ok {
		return 0, WrongType
	}
	if reason := Check(n); reason != Accepted {
		return 0, reason
	}
	return n, Accepted
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
	return v.Bytes().AsRaw(), Accepted
}
