package source

import (
	"math"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/tokenpulse/tokenpulse/internal/attribute"
	"github.com/tokenpulse/tokenpulse/internal/latency"
)

// Each function here takes a value in all forms it comes in, and those with an
// unusable count there the value that they cannot read.

// integer reads a whole number.
func integer(v pcommon.Value, unusable *int64) latency.Optional[int64] {
	n, ok := attribute.Integer(v)
	if !ok {
		*unusable++
	}
	return latency.Optional[int64]{Value: n, Known: ok}
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

// durationIn reads a duration given in a unit.
func durationIn(unit time.Duration, v pcommon.Value, unusable *int64) latency.Optional[time.Duration] {
	if f, ok := attribute.Number(v); ok {
		if nanos := math.Round(f * float64(unit)); math.Abs(nanos) < 1<<63 {
			return latency.Known(time.Duration(nanos))
		}
	}
	*unusable++
	return latency.Optional[time.Duration]{}
}

// measure reads a statistic given in a unit.
func measure(unit time.Duration, v pcommon.Value, estimated bool, unusable *int64) latency.Measure {
	d := durationIn(unit, v, unusable)
	if !d.Known {
		return latency.Measure{}
	}
	f, _ := attribute.Number(v)
	return latency.Measure{Value: f * unit.Seconds(), Known: true, Estimated: estimated}
}

// written reads a duration with its unit, such as 532µs.
func written(v pcommon.Value, unusable *int64) latency.Optional[time.Duration] {
	if d, err := time.ParseDuration(v.Str()); err == nil {
		return latency.Known(d)
	}
	*unusable++
	return latency.Optional[time.Duration]{}
}

// moments are the forms of ISO 8601 that instrumentations use. Without a zone a
// time is in UTC.
var moments = [...]string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02 15:04:05.999999999Z07:00", "2006-01-02 15:04:05.999999999"}

// moment reads a time as nanoseconds since 1970. It may be quoted, as JSON has it.
func moment(v pcommon.Value, unusable *int64) latency.Optional[int64] {
	text := strings.Trim(v.Str(), `"`)
	for _, form := range moments {
		if t, err := time.Parse(form, text); err == nil {
			return latency.Known(t.UnixNano())
		}
	}
	*unusable++
	return latency.Optional[int64]{}
}

// answer is yes or no, if that is said.
type answer uint8

const (
	unsaid answer = iota
	yes
	no
)

// truth reads a yes or no.
func truth(v pcommon.Value) answer {
	said, err := strconv.ParseBool(v.AsString())
	switch {
	case err != nil:
		return unsaid
	case said:
		return yes
	default:
		return no
	}
}
