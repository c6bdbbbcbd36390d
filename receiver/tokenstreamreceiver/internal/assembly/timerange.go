// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package assembly

import (
	"fmt"
	"time"
)

// MaxDuration bounds the time between a stream's start and any of its events.
const MaxDuration = 24 * time.Hour

// Bounds for the times of a stream whose start is unknown: the years 2000 to 2199.
// Seconds and milliseconds, mistaken for nanoseconds, are far outside.
const (
	earliestTime = 946_684_800_000_000_000
	latestTime   = 7_258_118_400_000_000_000 - 1
)

// timeRange holds the Unix times in nanoseconds that are accepted of a stream, bounds
// included.
type timeRange struct {
	earliest, latest int64
	anchored         bool // the stream's start is known, and the range is around it
}

// rangeAround returns the range for a stream's start, which is 0 if unknown.
func rangeAround(start int64) timeRange {
	if start == 0 {
		return timeRange{earliest: earliestTime, latest: latestTime}
	}
	return timeRange{start - int64(MaxDuration), start + int64(MaxDuration), true}
}

// check returns an error for a time outside the range.
func (r *timeRange) check(unixNano int64, id string) error {
	switch {
	case !r.anchored || unixNano <= 0:
		return checkPlausible(unixNano)
	case unixNano > r.latest:
		return tooFar(time.Duration(unixNano-r.latest)+MaxDuration, "after", id)
	case unixNano < r.earliest:
		return tooFar(time.Duration(r.earliest-unixNano)+MaxDuration, "before", id)
	default:
		return nil
	}
}

// checkPlausible checks a time without knowing the stream's start.
func checkPlausible(unixNano int64) error {
	switch {
	case unixNano <= 0:
		return Errorf(Invalid, "the time is %d; send time_unix_nano in nanoseconds since 1970", unixNano)
	case unixNano < earliestTime || unixNano > latestTime:
		return Errorf(Invalid, "the time is %s, outside the years 2000 to 2199; send time_unix_nano in nanoseconds since 1970, not seconds or milliseconds",
			time.Unix(0, unixNano).UTC().Format(time.RFC3339))
	default:
		return nil
	}
}

func tooFar(gap time.Duration, side, id string) *EventError {
	return Errorf(Invalid, "the time is %s %s the start of stream %s, at most 24 hours are allowed; check that all times are nanoseconds since 1970",
		inWords(gap), side, quoteID(id))
}

func inWords(d time.Duration) string {
	const day = 24 * time.Hour
	if d >= 730*day {
		return fmt.Sprintf("%d years", d/(365*day))
	}
	return fmt.Sprintf("%d hours", d/time.Hour)
}
