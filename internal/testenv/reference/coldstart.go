// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package reference

import "time"

// Interval is the time in which a request was open.
type Interval struct{ Start, End time.Time }

// ColdStarts recounts which requests of one replica, in the order of delivery, are cold: each by those that were
// delivered until then. No two of them start at the same time.
func ColdStarts(delivered []Interval, began time.Time, requests int, duration, idle time.Duration) (cold []bool) {
	for i, request := range delivered {
		known, since := delivered[:i+1], request.Start
		for earlier := true; earlier; { // goes back until the replica was idle
			earlier = false
			for _, other := range known {
				if other.Start.Before(since) && since.Sub(other.End) <= idle {
					since, earlier = other.Start, true
				}
			}
		}
		before := 0
		for _, other := range known {
			if !other.Start.Before(since) && other.Start.Before(request.Start) {
				before++
			}
		}
		isFirst := before < requests || request.Start.Sub(since) < duration
		cold = append(cold, isFirst && since.Sub(began) >= idle)
	}
	return cold
}
