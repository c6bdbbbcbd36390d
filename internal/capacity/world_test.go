// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"math"
	"math/rand/v2"

	"github.com/tokenpulse/tokenpulse/internal/batching"
	"github.com/tokenpulse/tokenpulse/internal/testenv/simulated"
)

// slotLength is that of the simulated slots, in seconds.
const slotLength = 15

// world is an engine with its SLO and its requests. The seed decides everything.
type world struct {
	services simulated.Services
	seed     uint64
	engine   batching.Engine
	slo      batching.SLO
	mix      traffic
	most     float64 // requests per second that the engine can serve, about
	rate     float64 // the true limit: requests per second that just meet the objective
	output   float64 // the same in tokens per second
	prompt   float64
}

func (w *world) rand(stream uint64) *rand.Rand { return rand.New(rand.NewPCG(w.seed, stream)) }

func newEngine(r *rand.Rand) batching.Engine {
	log := func(from, to float64) float64 { return from * math.Exp(r.Float64()*math.Log(to/from)) }
	e := batching.Engine{Prefill: log(4e-5, 3e-4), Step: log(0.01, 0.04)}
	if r.IntN(3) == 0 {
		e.Quadratic = e.Prefill / log(20e3, 200e3)
	}
	e.PerStream = e.Step * log(0.003, 0.03)
	e.PerContext = e.Step * log(0.1, 1) / 100e3
	e.Chunk = []float64{512, 2048, 8192}[r.IntN(3)]
	e.Batch = []int{16, 32, 64, 128, 256}[r.IntN(5)]
	e.Memory = log(60e3, 800e3)
	e.Queue = []int{10, 50, 300, 2000}[r.IntN(4)]
	e.Patience = []float64{20, 60, 120, 600}[r.IntN(4)]
	return e
}

func newSLO(r *rand.Rand, e *batching.Engine) batching.SLO {
	slo := batching.SLO{Objective: []float64{0.9, 0.95, 0.99, 0.99}[r.IntN(4)]}
	// Reachable by the longest prompts of the recordings on an idle engine.
	slo.TTFT = 1.5*e.Cost(0, longestPrompt) + []float64{0.5, 1, 2, 5}[r.IntN(4)]
	slo.TPOT = math.Inf(1)
	if r.IntN(4) > 0 {
		slo.TPOT = e.Step*(1.5+2.5*r.Float64()) + e.Cost(0, e.Chunk)*r.Float64()
	}
	return slo
}

// newWorld makes a world whose engine can meet its objective, and finds the limit.
func newWorld(s simulated.Services, seed uint64) *world {
	w := &world{services: s, seed: seed}
	r := w.rand(1)
	for {
		w.engine = newEngine(r)
		w.slo = newSLO(r, &w.engine)
		w.mix = newTraffic(r)
		w.most = w.engine.Throughput(w.mix.promptMean, w.mix.outputMean, w.mix.ctx)
		if w.most < 0.3 || w.most > 8 {
			continue // few requests, or more than a test has time for
		}
		if w.find(w.most) {
			return w
		}
	}
}

// find looks for the limit. Each rate has the same requests.
func (w *world) find(most float64) bool {
	limit, ok := batching.FindLimit(&w.engine, 1, &w.slo, most, func(rate float64) func() *batching.Request {
		return newLoad(w.services, w.rand(2), w.mix, func(float64) float64 { return rate }).take
	})
	w.rate, w.output, w.prompt = limit.Requests, limit.Output, limit.Prompt
	return ok
}

// slots runs the world for hours with a load of some shape, and returns what the slots had.
func (w *world) slots(hours float64, shape func(at float64) float64) []offer {
	all := make([]offer, int(math.Ceil(hours*3600/slotLength)))
	l := newLoad(w.services, w.rand(3), w.mix, func(at float64) float64 { return w.rate * shape(at) })
	m := batching.NewMachine(&w.engine, func(q *batching.Request, now float64, served bool) {
		i := int(q.At / slotLength)
		if i >= len(all) {
			return
		}
		s := &all[i]
		s.add(q, served && w.slo.Good(q, now), served)
	})
	end := hours*3600 + 300
	for q := l.take(); q.At < end; q = l.take() {
		m.Push(q)
	}
	m.Run(end)
	return all
}
