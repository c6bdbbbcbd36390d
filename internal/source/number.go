// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package source

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
