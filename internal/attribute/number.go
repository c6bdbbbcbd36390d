// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Package attribute reads attributes: numbers from their values, and the name of a span.
// Instrumentations and span encodings write the same number as an integer, a double or a
// string.
package attribute

import (
	"strconv"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// Number returns the value as a float64, which may be infinite or NaN. ok is
// false if the value is not numeric.
func Number(v pcommon.Value) (n float64, ok bool) {
	switch v.Type() {
	case pcommon.ValueTypeDouble:
		return v.Double(), true
	case pcommon.ValueTypeInt:
		return float64(v.Int()), true
	case pcommon.ValueTypeStr:
		n, err := strconv.ParseFloat(v.Str(), 64)
		return n, err == nil
	}
	return 0, false
}
