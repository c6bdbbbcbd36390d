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

// FindLimit looks by bisection for the largest constant load that meets the SLO, at a tenth to one and a half times of about what the engine can
// serve. It returns false if it is not there. arrivals returns the same requests for each rate.
func FindLimit(e *Engine, slo *SLO, most float64, arrivals func(rate float64) (arrive func() *Request)) (limit Limit, ok bool) {
	meets := func(rate float64, requests int) bool {
		load, met := run(e, slo, arrivals(rate), rate, requests)
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

// run returns the load of a constant rate, and whether it meets the SLO.
func run(e *Engine, slo *SLO, arrive func() *Request, rate float64, requests int) (load Limit, met bool) {
	good, all := 0, 0
	warm := 0.05 * float64(requests) / rate
	var prompt, output float64
	m := New(e, func() *Request {
		q := arrive()
		prompt += q.Prompt
		output += q.Output
		return q
	}, func(q *Request, now float64, served bool) {
		if q.At < warm {
			return
		}
		all++
		if served && slo.Good(q, now) {
			good++
		}
	})
	m.Run(float64(requests) / rate)
	return Limit{rate, output / m.next.At, prompt / m.next.At}, float64(good) >= slo.Objective*float64(all)
}
