// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package attributes

import (
	"math"
	"strconv"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// Integer returns the value as an int64. ok is false if the value is not a whole
// number or does not fit.
func Integer(v pcommon.Value) (n int64, ok bool) {
	switch v.Type() {
	case pcommon.ValueTypeInt:
		return v.Int(), true
	case pcommon.ValueTypeStr: // a string can hold more digits than a float64
		if n, err := strconv.ParseInt(v.Str(), 10, 64); err == nil {
			return n, true
		}
	}
	f, ok := Number(v)
	if !ok || f != math.Trunc(f) || math.Abs(f) >= 1<<63 {
		return 0, false
	}
	return int64(f), true
}
