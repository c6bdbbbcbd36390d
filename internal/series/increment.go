// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package series

import (
	"math"
	"time"

	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/sketch"
	"github.com/tokenpulse/tokenpulse/internal/slo"
)

// Increment is what requests that another engine aggregated add to one metric of a series.
// The engine keeps no reference to its memory.
type Increment struct {
	// Dimensions and Vantage are those of a Contribution.
	Dimensions []string
	Vantage    string
	// Overflow is set for requests beyond the limit of the other engine, whose dimensions
	// are unknown.
	Overflow bool
	// Arrival is the time at which the Collector received the increment. Windows follow it.
	Arrival time.Time
	// Time is that of the data point.
	Time time.Time
	// Replica is the `service.instance.id` of the data point or its resource, or empty.
	Replica string

	// Part says which of the fields below are set.
	Part Part
	// Outcome is that of Requests and Values.
	Outcome Outcome
	// Requests is a number of requests: of PartRequests, or with a Verdict.
	Requests uint64
	// Quantity is that of Values, which are not empty.
	Quantity numbers.ID
	Values   *sketch.Sketch
	// Count is increased by Sum, which may be 0.
	Count Count
	Sum   float64
	// SLO, a clean label value, judged requests with a Verdict.
	SLO     string
	Verdict slo.Verdict
	// Exemplars are some of the requests, each with its value. Those without a trace are
	// unset.
	Exemplars []Exemplar
}

// Part is a part of a series that an Increment adds to.
type Part uint8

// The parts.
const (
	PartRequests Part = iota
	PartValues
	PartCount
	PartVerdicts
)

// AppendKey appends the key of the increment's series.
func (i *Increment) AppendKey(key []byte) []byte {
	of := Labels{i.Dimensions, i.Vantage, i.Overflow}
	return of.AppendKey(key)
}

// Increase adds an increment to its series. Of the result, MalformedSketches is not used.
func (e *Engine) Increase(i *Increment) Recorded {
	var buffer [512]byte
	key := e.ofOutcome.AppendKeyOf(buffer[:0], i)
	return e.add(nil, key, nil, i.Arrival, func(s *series) Recorded { return s.increase(i) })
}

// increase adds an increment. mu is held.
func (s *series) increase(i *Increment) (result Recorded) {
	result.Overflow = s.key == overflowKey
	switch i.Part {
	case PartRequests:
		s.outcomeAt(i.Outcome, i.Arrival).requests += i.Requests
	case PartValues:
		if s.engine.published[i.Quantity].any() {
			s.outcomeAt(i.Outcome, i.Arrival).histogram(i.Quantity, s.engine, i.Arrival).increase(i)
		}
	case PartCount:
		if s.engine.counts[i.Count] {
			s.countTo(i.Count, i.Sum, i.Arrival)
		}
	case PartVerdicts:
		if s.engine.verdicts && !s.verdicts.increase(i, s.engine.objectives) {
			result.DroppedVerdicts = int(min(i.Requests, math.MaxInt32))
		}
	}
	return result
}

// increase counts the values of many requests.
func (h *histogram) increase(i *Increment) {
	h.pending.Merge(i.Values)
	if !h.totals {
		return
	}
	if h.classic != nil {
		countClassic(h.classic, h.bounds, i.Values)
	}
	for n := range i.Exemplars {
		e := &i.Exemplars[n]
		if bucket := classicIndex(h.bounds, e.Value); h.exemplars == nil || h.exemplars[bucket].UnixNano <= e.UnixNano {
			h.keep(e, bucket, e.Value)
		}
	}
}

// increase counts the verdicts on many requests. It returns false at the limit.
func (c *verdictCounters) increase(i *Increment, objectives slo.Names) bool {
	counter := c.counter(i.SLO, objectives, i.Arrival)
	if counter == nil {
		return false
	}
	counter.requests[i.Verdict] += i.Requests
	for n := range i.Exemplars {
		if e := &i.Exemplars[n]; i.Verdict == slo.Bad && e.Set() && counter.bad.UnixNano <= e.UnixNano {
			counter.bad = *e
			counter.bad.Value = 1 // what one request adds to the counter
		}
	}
	return true
}
