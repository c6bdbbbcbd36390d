// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package attributes

import (
	"math"
	"strconv"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/tokenpulse/tokenpulse/internal/names"
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

// Status returns the HTTP status of an answer: http.response.status_code, or else an error.type that is a
// number. It is 0 if the span has neither.
func Status(attributes pcommon.Map) int {
	for _, name := range [...]string{names.HTTPResponseStatusCode, names.ErrorType} {
		if v, ok := attributes.Get(name); ok {
			if n, ok := Number(v); ok && n >= 100 && n < 1000 && n == math.Trunc(n) {
				return int(n)
			}
		}
	}
	return 0
}
