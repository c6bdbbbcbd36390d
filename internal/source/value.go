package source

import (
	"math"
	"strconv"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/tokenpulse/tokenpulse/internal/attribute"
	"github.com/tokenpulse/tokenpulse/internal/latency"
)

// Each function here takes a number in all forms it comes in, and counts in
// unusable the value it cannot read.

// integer reads a whole number.
func integer(v pcommon.Value, unusable *int64) latency.Optional[int64] {
	switch v.Type() {
	case pcommon.ValueTypeInt:
		return latency.Known(v.Int())
	case pcommon.ValueTypeStr:
		if n, err := strconv.ParseInt(v.Str(), 10, 64); err == nil {
			return latency.Known(n)
		}
	}
	if f, ok := attribute.Number(v); ok && f == math.Trunc(f) && math.Abs(f) < 1<<63 {
		return latency.Known(int64(f))
	}
	*unusable++
	return latency.Optional[int64]{}
}

// maxCount is far over what can be counted, and far under what adds up to a wrap.
const maxCount = 1 << 53

// count reads how many there were of something. It is 0 when that is unknown.
func count(v pcommon.Value, unusable *int64) int64 {
	n := integer(v, unusable)
	if n.Value < 0 || n.Value > maxCount {
		*unusable++
		return 0
	}
	return n.Value
}

// seconds reads a duration given in seconds.
func seconds(v pcommon.Value, unusable *int64) latency.Optional[time.Duration] {
	if f, ok := attribute.Number(v); ok {
		if nanos := math.Round(f * float64(time.Second)); math.Abs(nanos) < 1<<63 {
			return latency.Known(time.Duration(nanos))
		}
	}
	*unusable++
	return latency.Optional[time.Duration]{}
}
