// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"math"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/tokenpulse/tokenpulse/internal/attributes"
	"github.com/tokenpulse/tokenpulse/internal/latency"
	"github.com/tokenpulse/tokenpulse/internal/optional"
)

// The functions of this file read an attribute in every form that instrumentations send. Those with
// a parameter unusable add one to it for a value that they cannot read.

// integer reads a whole number.
func integer(v pcommon.Value, unusable *int64) optional.Value[int64] {
	n, ok := attributes.Integer(v)
	if !ok {
		*unusable++
	}
	return optional.Value[int64]{Value: n, Known: ok}
}

// maxCount is larger than any real count, and small enough that sums of counts do not overflow.
const maxCount = 1 << 53

// count reads a number of things, between 0 and maxCount. It returns 0 for any other value.
func count(v pcommon.Value, unusable *int64) int64 {
	n := integer(v, unusable)
	if n.Value < 0 || n.Value > maxCount {
		*unusable++
		return 0
	}
	return n.Value
}

// durationIn reads a number of units, rounded to the nanosecond.
func durationIn(unit time.Duration, v pcommon.Value, unusable *int64) optional.Value[time.Duration] {
	if f, ok := attributes.Number(v); ok {
		return durationOf(unit, f, unusable)
	}
	*unusable++
	return optional.Value[time.Duration]{}
}

// durationOf converts a number of units, rounded to the nanosecond.
func durationOf(unit time.Duration, f float64, unusable *int64) optional.Value[time.Duration] {
	if nanos := math.Round(f * float64(unit)); math.Abs(nanos) < 1<<63 {
		return optional.Of(time.Duration(nanos))
	}
	*unusable++
	return optional.Value[time.Duration]{}
}

// measure reads a number of units as a statistic in seconds, without rounding.
func measure(unit time.Duration, v pcommon.Value, estimated bool, unusable *int64) latency.Measure {
	d := durationIn(unit, v, unusable)
	if !d.Known {
		return latency.Measure{}
	}
	f, _ := attributes.Number(v)
	return latency.Measure{Value: f * unit.Seconds(), Known: true, Estimated: estimated}
}

// durationText reads a text with a unit, such as 532µs.
func durationText(v pcommon.Value, unusable *int64) optional.Value[time.Duration] {
	if d, err := time.ParseDuration(v.Str()); err == nil {
		return optional.Of(d)
	}
	*unusable++
	return optional.Value[time.Duration]{}
}

// timeLayouts are the forms of ISO 8601 that instrumentations use. A time without a zone is in UTC.
var timeLayouts = [...]string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02 15:04:05.999999999Z07:00", "2006-01-02 15:04:05.999999999"}

// timeText reads a time as Unix time in nanoseconds. The text may be a quoted JSON string.
func timeText(v pcommon.Value, unusable *int64) optional.Value[int64] {
	text := strings.Trim(v.Str(), `"`)
	for _, layout := range timeLayouts {
		if t, err := time.Parse(layout, text); err == nil {
			return optional.Of(t.UnixNano())
		}
	}
	*unusable++
	return optional.Value[int64]{}
}

// boolean reads a boolean, which may be sent as a text. Any other value is unknown.
func boolean(v pcommon.Value) optional.Value[bool] {
	b, err := strconv.ParseBool(v.AsString())
	return optional.Value[bool]{Value: b, Known: err == nil}
}
