// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package batching

// SLO is what requests should be like. An answer that was refused or given up is bad.
type SLO struct {
	TTFT, TPOT float64 // seconds
	Objective  float64 // share of good requests
}

// Good reports whether an answer that ended now is good.
func (s *SLO) Good(q *Request, now float64) bool {
	return q.FirstAt-q.At <= s.TTFT && (q.Output < 2 || (now-q.FirstAt)/(q.Output-1) <= s.TPOT)
}

// Limit is a load of one engine, per second.
type Limit struct{ Requests, Output, Prompt float64 }

// FindLimit looks by bisection for the largest constant load of each of n engines in a pool that meets the SLO, at a tenth to one and a half
// times of about what an engine can serve. It returns false if it is not there. arrivals returns the same requests for each rate of the pool.
func FindLimit(e *Engine, n int, slo *SLO, most float64, arrivals func(rate float64) (arrive func() *Request)) (limit Limit, ok bool) {
	meets := func(rate float64, requests int) bool {
		load, met := run(e, n, slo, arrivals(rate*float64(n)), float64(requests)/(rate*float64(n)))
		if met {
			limit = load
		}
		return met
	}
	low, high := 0.1*most, 1.5*most
	if !meets(low, 4000) || meets(high, 4000) {
		return limit, false
	}
	for range 5 {
		middle := (low + high) / 2
		if meets(middle, 8000) {
			low = middle
		} else {
			high = middle
		}
	}
	low, high = low-(high-low), high+(high-low)
	for range 5 {
		middle := (low + high) / 2
		if meets(middle, 60000) {
			low = middle
		} else {
			high = middle
		}
	}
	limit.Requests = low
	return limit, true
}

// run returns the load of an engine, and whether its answers meet the SLO.
func run(e *Engine, n int, slo *SLO, arrive func() *Request, seconds float64) (load Limit, met bool) {
	good, all := 0, 0
	pool := NewPool(e, n, func(q *Request, now float64, served bool) {
		if q.At < 0.05*seconds {
			return // begun with an idle engine
		}
		all++
		if served && slo.Good(q, now) {
			good++
		}
	})
	per := 1 / (seconds * float64(n))
	for q := arrive(); q.At < seconds; q = arrive() {
		load.Output += q.Output * per
		load.Prompt += q.Prompt * per
		pool.Push(q)
	}
	pool.Run(seconds)
	return load, float64(good) >= slo.Objective*float64(all)
}
