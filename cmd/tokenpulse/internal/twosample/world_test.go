// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package twosample

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/tokenpulse/tokenpulse/internal/batching"
	"github.com/tokenpulse/tokenpulse/internal/sketch"
	"github.com/tokenpulse/tokenpulse/internal/testenv/simulated"
)

// served is a simulated request.
type served struct {
	at           float64 // seconds
	run, replica int
	prompt       float64 // tokens
	latencies    [Indicators]float64
	gaps         []float64
	unsuccessful bool
}

// world makes the requests of an arm that is as good as the baseline.
type world struct {
	name string
	// arm returns n requests of a fleet of its own, at a time of its own.
	arm func(r *rand.Rand, n int) []served
	// candidate returns those of the candidate, if they are of another kind.
	candidate func(r *rand.Rand, n int) []served
	// unresolvable worlds have an error that no method can limit.
	unresolvable bool
}

// traffic is requests whose latencies depend on the load that they share.
type traffic struct {
	replicas int
	runs     int
	// tail is the distribution of the logarithm of a latency.
	tail func(*rand.Rand) float64
	// common is load of all replicas, of one that of each replica: its standard deviation and how many seconds it lasts.
	common, of process
	// spikes are minutes in which all is twice as slow.
	spikes bool
	// replica and run are the standard deviations of what a replica or run keeps.
	replica, run float64
	// long is the share of requests with prompts of four times the length.
	long float64
}

type process struct{ deviation, seconds float64 }

// next returns the value after some seconds (Ornstein and Uhlenbeck).
func (p process) next(r *rand.Rand, value, seconds float64) float64 {
	if p.deviation == 0 {
		return 0
	}
	kept := math.Exp(-seconds / p.seconds)
	return kept*value + math.Sqrt(1-kept*kept)*p.deviation*r.NormFloat64()
}

// logLogistic has a p95 of twice the median.
func logLogistic(r *rand.Rand) float64 {
	u := r.Float64()
	return 0.25 * math.Log(u/(1-u))
}

// heavy has a tenth of the values from a Pareto distribution without a variance.
func heavy(r *rand.Rand) float64 {
	if r.IntN(10) == 0 {
		return 0.5 + r.ExpFloat64()/1.2
	}
	return logLogistic(r)
}

// seconds is how long a run of n requests lasts.
func seconds(n int) float64 { return 300 * math.Pow(float64(n)/200, 0.5) }

func (t traffic) arm(r *rand.Rand, n int) (all []served) {
	runs, replicas := max(t.runs, 1), max(t.replicas, 1)
	kept := make([]float64, replicas)
	for i := range kept {
		kept[i] = t.replica * r.NormFloat64()
	}
	for run := range runs {
		all = append(all, t.serve(r, n/runs, run, kept)...)
	}
	return all
}

func (t *traffic) serve(r *rand.Rand, n, run int, kept []float64) (all []served) {
	starts := make([]float64, n)
	for i := range starts {
		starts[i] = r.Float64() * seconds(n)
	}
	slices.Sort(starts)
	shift, common, of := t.run*r.NormFloat64(), t.common.deviation*r.NormFloat64(), make([]float64, len(kept))
	for i := range of {
		of[i] = t.of.deviation * r.NormFloat64()
	}
	spike, calm, last := 0.0, r.ExpFloat64()*90, 0.0
	for _, at := range starts {
		common = t.common.next(r, common, at-last)
		for i := range of {
			of[i] = t.of.next(r, of[i], at-last)
		}
		last = at
		for t.spikes && at > calm {
			spike = calm + 10 + 10*r.ExpFloat64()
			calm = spike + 90*r.ExpFloat64()
		}
		replica, prompt := r.IntN(len(kept)), 500*math.Exp(0.5*r.NormFloat64())
		load := shift + common + of[replica] + kept[replica]
		if at < spike {
			load += math.Ln2
		}
		if r.Float64() < t.long {
			prompt *= 4
		}
		tokens := 1 + r.ExpFloat64()*100
		s := served{at: at + float64(run)*86400, run: run, replica: replica, prompt: math.Ceil(prompt)}
		s.latencies[TimeToFirstToken] = 0.3 * math.Sqrt(prompt/500) * math.Exp(load+t.tail(r))
		s.latencies[TimePerOutputToken] = 0.02 * math.Exp(load+0.3*t.tail(r))
		for range 3 {
			s.gaps = append(s.gaps, s.latencies[TimePerOutputToken]*math.Exp(t.tail(r)))
		}
		s.latencies[RequestDuration] = s.latencies[TimeToFirstToken] + tokens*s.latencies[TimePerOutputToken]
		all = append(all, s)
	}
	return all
}

// queues are replicas that serve one request after the other.
type queues struct {
	replicas    int
	utilization float64
}

func (q queues) arm(r *rand.Rand, n int) (all []served) {
	rate := float64(n) / seconds(n)
	service := q.utilization * float64(q.replicas) / rate
	free := make([]float64, q.replicas)
	for i := range free {
		if r.Float64() < q.utilization {
			free[i] = r.ExpFloat64() * service / (1 - q.utilization)
		}
	}
	for at := 0.0; len(all) < n; at += r.ExpFloat64() / rate {
		i := r.IntN(q.replicas)
		began := max(free[i], at)
		free[i] = began + service*r.ExpFloat64()
		s := served{at: at, replica: i, prompt: 500}
		s.latencies[TimeToFirstToken] = (began - at) + 0.2*service
		s.latencies[TimePerOutputToken] = math.NaN()
		s.latencies[RequestDuration] = free[i] - at
		all = append(all, s)
	}
	return all
}

// maxGaps limits the simulated gaps of a request.
const maxGaps = 10

// engines are replicas with continuous batching behind a router, with the lengths of a recorded service.
type engines struct {
	recorded    []simulated.Request
	replicas    int
	utilization float64
	// bursts are phases of about 20 s with 0.6 or 2.2 times the load.
	bursts bool
}

func (e engines) arm(r *rand.Rand, n int) (all []served) {
	engine := batching.Engine{
		Prefill: 1e-4, Step: 0.02, PerStream: 2e-4, PerContext: 5e-8, Chunk: 2048, Batch: 64, Memory: 4e5, Queue: 2000, Patience: 600, Record: true,
	}
	rate := e.utilization * engine.Throughput(1155, 211, 1155) * float64(e.replicas)
	on := map[*batching.Request]int{}
	pool := batching.NewPool(&engine, e.replicas, func(q *batching.Request, now float64, ok bool) {
		s := served{at: q.At, replica: on[q], prompt: q.Context, unsuccessful: !ok}
		delete(on, q)
		s.latencies = [Indicators]float64{q.FirstAt - q.At, (now - q.FirstAt) / (q.Output - 1), 0, now - q.At}
		if q.Output < 2 {
			s.latencies[TimePerOutputToken] = math.NaN()
		}
		for i := 1; i < min(len(q.Tokens), maxGaps); i++ {
			s.gaps = append(s.gaps, q.Tokens[i]-q.Tokens[i-1])
		}
		all = append(all, s)
	})
	phase, until := 1.0, 0.0
	for at := 0.0; n > 0; n-- {
		for e.bursts && at >= until {
			until += 20 * r.ExpFloat64()
			if phase = 0.6; r.IntN(4) == 0 {
				phase = 2.2
			}
		}
		at += r.ExpFloat64() / rate / phase
		lengths := e.recorded[r.IntN(len(e.recorded))]
		q := &batching.Request{At: at, Prompt: lengths.Prompt, Context: lengths.Prompt, Output: max(1, lengths.Output)}
		on[q] = 0
		on[q] = pool.Push(q)
	}
	pool.Run(math.MaxFloat64 / 2)
	slices.SortFunc(all, func(a, b served) int { return cmp.Compare(a.at, b.at) })
	return all
}

// effect is how much worse a candidate is.
type effect struct {
	slower [Indicators]float64 // factors, 0 for none
}

// slower returns the effect of a candidate whose latencies are larger.
func slower(by float64, which ...Indicator) (e effect) {
	for _, i := range which {
		e.slower[i] = 1 + by
	}
	return e
}

// record returns an arm with the requests. Those with a longer time to first token than the threshold are bad for the SLO.
func record(all []served, e effect, threshold float64) *Arm {
	a := &Arm{}
	for _, s := range all {
		q := Request{
			Run: strconv.Itoa(s.run), Replica: fmt.Sprintf("r%d", s.replica), Start: epoch.Add(time.Duration(s.at * 1e9)), PromptTokens: uint64(s.prompt),
			Unsuccessful: s.unsuccessful, Values: s.latencies, TokenGaps: &sketch.Sketch{},
		}
		for i, f := range e.slower {
			if f > 0 {
				q.Values[i] *= f
			}
		}
		bad := s.unsuccessful || q.Values[TimeToFirstToken] > threshold
		q.Verdicts = func(yield func(string, bool) bool) { yield("all", bad) }
		for _, gap := range s.gaps {
			if f := e.slower[InterTokenLatency]; f > 0 {
				gap *= f
			}
			q.TokenGaps.Add(gap, 1)
		}
		a.Add(&q)
	}
	return a
}
