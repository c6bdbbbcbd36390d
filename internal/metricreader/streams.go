// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package metricreader

import (
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// streams remembers the last data point of each stream and start time, so that the next
// one adds the difference.
//
// A cumulative stream keeps its start time until its producer restarts. A delta stream has
// a new one with each data point, unless it sends the data of a refused one again, and more.
// So one rule serves both: a data point with a known start time adds the difference to the
// last one, any other adds all of its values.
type streams struct {
	limit int
	// since is the time before which a stream that is unknown may have been known.
	since pcommon.Timestamp
	held  int // periods, and gauges
	// all holds the periods of each stream, the latest last.
	all map[uint64][]period
}

// period is what a stream has counted since a start time.
type period struct {
	start, last pcommon.Timestamp
	seen        time.Time // arrival of the last data point
	delta       bool
	count       float64 // sum, or number of values
	values      []byte  // encoded sketch of a histogram
}

// maxDeltaPeriods limits the periods of a delta stream. Those before the latest recognise
// data points that are sent again.
const maxDeltaPeriods = 8

// forgetAfter is the time after which a period without data points is forgotten.
const forgetAfter = time.Hour

// find returns the period of a stream with a start time, or nil.
func (s *streams) find(id uint64, start pcommon.Timestamp) *period {
	all := s.all[id]
	for i := range slices.Backward(all) {
		if all[i].start == start {
			return &all[i]
		}
	}
	return nil
}

// open adds a period to a stream, unless the limit is reached.
func (s *streams) open(id uint64, p period) (*period, Reason) {
	all := s.all[id]
	if p.delta && len(all) >= maxDeltaPeriods {
		all = slices.Delete(all, 0, 1)
		s.held--
	} else if s.held >= s.limit {
		return nil, Limit
	}
	s.held++
	all = append(all, p)
	s.all[id] = all
	return &all[len(all)-1], accepted
}

// expire forgets periods without data points for long. If their stream goes on after all,
// it counts from its next data point on, and not twice.
func (s *streams) expire(now time.Time) {
	before := now.Add(-forgetAfter)
	latest := pcommon.NewTimestampFromTime(before) // whatever the clocks of the producers say
	for id, all := range s.all {
		kept := slices.DeleteFunc(all, func(p period) bool {
			if !p.seen.Before(before) {
				return false
			}
			if !p.delta {
				s.since = max(s.since, min(p.start+1, latest))
			}
			s.held--
			return true
		})
		if len(kept) == 0 {
			delete(s.all, id)
		} else {
			s.all[id] = kept
		}
	}
}
