package attribute

import (
	"math"
	"strconv"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// Integer reads a whole number, and reports whether the value is one.
func Integer(v pcommon.Value) (int64, bool) {
	switch v.Type() {
	case pcommon.ValueTypeInt:
		return v.Int(), true
	case pcommon.ValueTypeStr: // more digits than a float has
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
