// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"math"
	"math/rand/v2"
)

// slotLength is that of the simulated slots, in seconds.
const slotLength = 15

// world is an engine with its SLO and its requests. The seed decides everything.
type world struct {
	services services
	seed     uint64
	engine   engine
	limits   limits
	mix      traffic
	most     float64 // requests per second that the engine can serve, about
	rate     float64 // the true limit: requests per second that just meet the objective
	output   float64 // the same in tokens per second
	prompt   float64
}

func (w *world) rand(stream uint64) *rand.Rand { return rand.New(rand.NewPCG(w.seed, stream)) }

// newWorld makes a world whose engine can meet its objective, and finds the limit.
func newWorld(s services, seed uint64) *world {
	w := &world{services: s, seed: seed}
	r := w.rand(1)
	for {
		w.engine = newEngine(r)
		w.limits = newLimits(r, &w.engine)
		w.mix = newTraffic(r)
		w.most = w.engine.capacity(w.mix.promptMean, w.mix.outputMean, w.mix.ctx)
		if w.most < 0.3 || w.most > 8 {
			continue // few requests, or more than a test has time for
		}
		if w.find(w.most) {
			return w
		}
	}
}

// find looks for the limit by bisection. Each run has the same requests at another rate.
func (w *world) find(most float64) bool {
	low, high := 0.1*most, 1.5*most
	if !w.meets(low, 4000) || w.meets(high, 4000) {
		return false
	}
	for range 5 {
		middle := (low + high) / 2
		if w.meets(middle, 8000) {
			low = middle
		} else {
			high = middle
		}
	}
	low, high = low-(high-low), high+(high-low)
	for range 5 {
		middle := (low + high) / 2
		if w.meets(middle, 60000) {
			low = middle
		} else {
			high = middle
		}
	}
	w.rate = low
	return true
}

// meets reports whether the share of good requests is the objective at a constant rate.
func (w *world) meets(rate float64, requests int) bool {
	good, all := 0, 0
	var prompt, output float64
	warm := 0.05 * float64(requests) / rate
	end := float64(requests) / rate
	l := newLoad(w.services, w.rand(2), w.mix, func(float64) float64 { return rate })
	m := newMachine(&w.engine, func() *request {
		q := l.take()
		prompt += q.prompt
		output += q.output
		return q
	}, func(q *request, now float64, served bool) {
		if q.at < warm {
			return
		}
		all++
		if served && w.limits.good(q, now) {
			good++
		}
	})
	m.run(end)
	ok := float64(good) >= w.limits.objective*float64(all)
	if ok {
		w.prompt, w.output = prompt/m.next.at, output/m.next.at
	}
	return ok
}

// slots runs the world for hours with a load of some shape, and returns what the slots had.
func (w *world) slots(hours float64, shape func(at float64) float64) []Slot {
	all := make([]Slot, int(math.Ceil(hours*3600/slotLength)))
	l := newLoad(w.services, w.rand(3), w.mix, func(at float64) float64 { return w.rate * shape(at) })
	m := newMachine(&w.engine, l.take, func(q *request, now float64, served bool) {
		i := int(q.at / slotLength)
		if i >= len(all) {
			return
		}
		s := &all[i]
		s.add(q, served && w.limits.good(q, now), served)
	})
	m.run(hours*3600 + 300)
	return all
}
