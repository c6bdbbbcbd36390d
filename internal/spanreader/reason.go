// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package spanreader

import (
	"math"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/tokenpulse/tokenpulse/internal/contribution"
	"github.com/tokenpulse/tokenpulse/internal/source"
)

// number reads a quantity.
func number(v pcommon.Value) (float64, contribution.Reason) {
	n, ok := source.Number(v)
	if !ok {
		return 0, contribution.WrongType
	}
	if reason := contribution.Check(n); reason != contribution.Accepted {
		return 0, reason
	}
	return n, contribution.Accepted
}

// wholeNumber reads a count.
func wholeNumber(v pcommon.Value) (float64, contribution.Reason) {
	n, reason := number(v)
	if n != math.Trunc(n) {
		return 0, contribution.WrongType
	}
	return n, reason
}

// largestSketch exceeds the size of every valid sketch, in bytes. Larger values are
// rejected without being copied.
const largestSketch = 64 << 10

func encodedSketch(v pcommon.Value) ([]byte, contribution.Reason) {
	switch {
	case v.Type() != pcommon.ValueTypeBytes:
		return nil, contribution.WrongType
	case v.Bytes().Len() == 0 || v.Bytes().Len() > largestSketch:
		return nil, contribution.MalformedSketch
	}
	return v.Bytes().AsRaw(), contribution.Accepted
}
