// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package synthetic

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"time"

	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/stream"
	"github.com/tokenpulse/tokenpulse/internal/batching"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
)

const maxEngines = 1000

// engine returns what serves a model: an engine that decodes 16 answers at a time, and prefills 10,000 tokens per second at speed 1.
func (m Model) engine() *batching.Engine {
	return &batching.Engine{
		Prefill: 100e-6 / m.Speed, Step: 20e-3 / m.Speed, PerStream: 0.4e-3 / m.Speed, PerContext: 0.1e-6 / m.Speed,
		Chunk: 2048, Batch: 16, Memory: 200e3, Queue: 50, Patience: math.Inf(1), Record: true,
	}
}

// replicas serve requests by engines behind a router. Each engine is a resource.
type replicas struct {
	*Generator
	pool      *batching.Pool
	resources []*stream.Resource
	refused   bool      // the last request was
	inFlight  []*flight // by their starts, with those that ended before one of them
}

// flight is a stream that an engine serves.
type flight struct {
	batching.Request
	stream  *stream.Stream
	request request
	plan    channelPlan
	cached  int
}

func newReplicas(g *Generator) *replicas {
	r := &replicas{Generator: g}
	r.pool = batching.NewPool(g.config.Models[0].engine(), g.config.Engines, func(_ *batching.Request, _ float64, served bool) { r.refused = !served })
	for i := range g.config.Engines {
		attributes := maps.Clone(g.resource.Attributes)
		attributes[names.ServiceInstanceID] = fmt.Sprintf("engine-%d", i+1)
		r.resources = append(r.resources, &stream.Resource{Attributes: attributes})
	}
	return r
}

func (r *replicas) streams(yield func(*stream.Stream) bool) {
	for start := range r.starts {
		r.push(r.flight(start))
		if !r.yieldEnded(yield) {
			return
		}
	}
	r.pool.Run(math.Inf(1))
	r.yieldEnded(yield)
}

func (g *Generator) flight(start time.Duration) *flight {
	f := &flight{}
	f.stream, f.request = g.request(start)
	f.stream.Vantage = timeline.VantageEngine
	f.plan, f.cached = g.plan(f.request.output), g.cachedInput(f.request.input)
	f.Request = batching.Request{
		At: start.Seconds(), Context: float64(f.request.input), Prompt: float64(f.request.input - f.cached), Output: float64(f.plan.total()),
	}
	return f
}

func (r *replicas) push(f *flight) {
	r.refused = false
	f.stream.Resource = r.resources[r.pool.Push(&f.Request)]
	if r.refused {
		refuse(f.stream)
	}
	r.inFlight = append(r.inFlight, f)
}

// yieldEnded yields the streams that ended and have no earlier one in flight.
func (r *replicas) yieldEnded(yield func(*stream.Stream) bool) bool {
	for len(r.inFlight) > 0 {
		f := r.inFlight[0]
		switch {
		case f.stream.End != nil: // refused
		case len(f.Tokens) == f.plan.total():
			r.complete(f)
		default:
			return true
		}
		r.inFlight = r.inFlight[1:]
		if !yield(f.stream) {
			return false
		}
	}
	return true
}

// complete adds what the engine did to the stream.
func (r *replicas) complete(f *flight) {
	at := func(seconds float64) int64 { return r.at(time.Duration(math.Round(seconds * 1e9))) }
	f.stream.Scheduled = at(f.ScheduledAt)
	for i, token := range f.Tokens {
		channel, _ := f.plan.at(i)
		f.stream.Chunks = append(f.stream.Chunks, stream.Chunk{Time: at(token), Tokens: 1, Channel: channel, Sequence: uint64(i), Sequenced: true})
	}
	r.finish(f.stream, f.request, f.plan, f.cached)
}

// Limits of the SLO that Limit is about.
const (
	LimitTTFT = time.Second
	LimitTPOT = 40 * time.Millisecond
)

// Limit returns the largest constant load of each of the engines at which a share of the requests has at most LimitTTFT and LimitTPOT, to
// about 3%. It returns false if it is far from what an engine can serve. Equal configs have equal limits, whatever their seed.
func (c Config) Limit(objective float64) (batching.Limit, bool) {
	const requests = 70_000 // more than FindLimit asks for
	c.Rate, c.PeakRate = 1, 0
	g := &Generator{config: c, random: rand.New(rand.NewPCG(1, 1))}
	arrivals := newArrivals(c, g.random)
	all := make([]batching.Request, requests)
	var prompt, output, context float64
	for i := range all {
		q := g.flight(arrivals.next()).Request
		prompt, output, context = prompt+q.Prompt/requests, output+q.Output/requests, context+q.Context/requests
		all[i] = q
	}
	engine := *c.Models[0].engine()
	engine.Record = false
	slo := batching.SLO{TTFT: LimitTTFT.Seconds(), TPOT: LimitTPOT.Seconds(), Objective: objective}
	return batching.FindLimit(&engine, c.Engines, &slo, engine.Throughput(prompt, output, context), func(rate float64) func() *batching.Request {
		i := -1
		return func() *batching.Request {
			if i++; i == len(all) {
				return &batching.Request{At: math.Inf(1)}
			}
			q := all[i]
			q.At /= rate
			return &q
		}
	})
}
