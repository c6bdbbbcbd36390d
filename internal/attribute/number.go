// Package attribute reads attribute values as what they mean. The same number
// comes as an integer, a double or text, depending on the instrumentation and on
// the encodings its span went through.
package attribute

import (
	"strconv"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// Number reads a number, and reports whether the value is one. It may be infinite
// or not a number, as floats are.
func Number(v pcommon.Value) (float64, bool) {
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
