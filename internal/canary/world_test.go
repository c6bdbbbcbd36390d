// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package canary

import (
	"math"
	"math/rand/v2"
	"runtime"
	"sync"
	"time"

	"github.com/tokenpulse/tokenpulse/internal/sketch"
)

// The simulated traffic. Latencies are log-logistic: if the candidate is slower by a factor f, its
// odds of a latency over any threshold are f^(1/latencyShape) times as large. So one model serves
// odds ratios and percentiles.
const (
	requestRate  = 20.0 // per second
	replicaCount = 5
	badShare     = 0.05
	latencyShape = 0.25
)

// sloThreshold is the latency that badShare of the requests exceed without load.
var sloThreshold = math.Pow((1-badShare)/badShare, latencyShape)

// situation is a kind of traffic.
type situation struct {
	name string
	// share is the candidate's share of requests after a part of the run.
	share func(part float64) float64
	// load returns the log odds that all requests of a tick have in common.
	load func(w *world, part float64) float64
	// generation is how many times its latency a request lasts.
	generation float64
	// utilization of the queue that each replica has, 0 without queues.
	utilization float64
}

func constantShare(float64) float64  { return 0.2 }
func noLoad(*world, float64) float64 { return 0 }

// situations are those of docs/canary.md.
var situations = []situation{
	{name: "independent", share: constantShare, load: noLoad, generation: 5},
	{name: "load shared by both arms", share: constantShare, generation: 5, load: func(w *world, _ float64) float64 {
		// Drifts over minutes, and is higher for a minute now and then.
		w.drift = 0.97*w.drift + 0.25*w.random.NormFloat64()
		if w.spike--; w.random.IntN(60) == 0 {
			w.spike = 6
		}
		if w.spike > 0 {
			return w.drift + 2
		}
		return w.drift
	}},
	{
		name: "load and share rise, long requests", generation: 30,
		share: func(part float64) float64 { return 0.05 + 0.45*part },
		load:  func(_ *world, part float64) float64 { return 1.5 * part },
	},
	{name: "a queue per replica, short", share: constantShare, load: noLoad, utilization: 0.3},
	{name: "a queue per replica, long", share: constantShare, load: noLoad, utilization: 0.9},
}

// world is one run of a situation.
type world struct {
	situation
	random *rand.Rand
	// oddsRatio is the candidate's of a bad request, slower the factor of its latencies.
	oddsRatio, slower float64
	drift             float64
	spike             int
	queues            [arms][replicaCount]float64 // when each is empty
	ending            [][]served                  // by the tick in which requests end
}

// served is a request.
type served struct {
	start, end, latency float64
	arm                 Arm
	replica             int
	bad                 bool
}

// request returns a request that starts at a time.
func (w *world) request(start, share, load float64) served {
	r := served{start: start, replica: w.random.IntN(replicaCount)}
	if w.random.Float64() < share {
		r.arm = Candidate
	}
	if w.utilization > 0 {
		w.queue(&r, share)
	} else {
		u := w.random.Float64()
		r.latency = math.Exp(latencyShape * (load + math.Log(u/(1-u))))
		if r.arm == Candidate {
			r.latency *= w.slower * math.Pow(w.oddsRatio, latencyShape)
		}
		r.bad = r.latency > sloThreshold
		r.end = start + r.latency*w.generation
	}
	return r
}

// queue serves a request after those before it in its replica. Latencies are in units of the time
// that an arm's replica needs for a request, so that both arms have the same.
func (w *world) queue(r *served, share float64) {
	service := w.serviceTime(r.arm, share)
	free := &w.queues[r.arm][r.replica]
	*free = max(*free, r.start) + service*w.random.ExpFloat64()
	r.end = *free
	r.latency = (r.end - r.start) / service
	// The time in an M/M/1 queue is exponential.
	r.bad = r.latency > -math.Log(badShare)/(1-w.utilization)
	if r.arm == Candidate {
		r.latency *= w.slower
		worse := badShare * w.oddsRatio / (1 - badShare + badShare*w.oddsRatio)
		r.bad = r.bad || w.random.Float64() < (worse-badShare)/(1-badShare)
	}
}

// serviceTime returns the mean time that a replica needs for a request, so that the replicas of
// both arms are as busy.
func (w *world) serviceTime(arm Arm, share float64) float64 {
	if arm == Baseline {
		share = 1 - share
	}
	return w.utilization * replicaCount / (requestRate * share)
}

// fillQueues lets the run begin with queues as long as they are on average.
func (w *world) fillQueues() {
	for arm := range w.queues {
		for i := range w.queues[arm] {
			if w.random.Float64() < w.utilization {
				w.queues[arm][i] = w.random.ExpFloat64() * w.serviceTime(Arm(arm), w.share(0)) / (1 - w.utilization)
			}
		}
	}
}

// run calls each with the requests that end in each tick, for a number of ticks or until it returns
// false.
func (w *world) run(ticks int, each func(now int, ended []served) bool) {
	w.ending = make([][]served, ticks)
	w.fillQueues()
	for i := range ticks {
		part := float64(i) / float64(ticks)
		share, load := w.share(part), w.load(w, part)
		from, to := float64(i*tick), float64((i+1)*tick)
		for at := from + w.random.ExpFloat64()/requestRate; at < to; at += w.random.ExpFloat64() / requestRate {
			r := w.request(at, share, load)
			if end := int(r.end) / tick; end < ticks {
				w.ending[end] = append(w.ending[end], r)
			}
		}
		if !each((i+1)*tick, w.ending[i]) {
			return
		}
		w.ending[i] = nil
	}
}

// experiment says what a number of runs have in common.
type experiment struct {
	situation
	settings          Settings
	question          Question
	oddsRatio, slower float64
	hours             float64
}

// outcome of a run.
type outcome struct {
	// The times of the first fail, of the first pass, and of the first answer that shows that the candidate is worse:
	// a fail before there was a tolerance for it. 0 if there is none.
	failed, passed, shown time.Duration
	failedBy              Reason // of the first fail
	last                  Answer
	pair                  *Pair
}

// enough ends a run before its time.
type enough func(o *outcome) bool

func never(*outcome) bool { return false }

func onceDecided(o *outcome) bool { return o.decided() > 0 }

// decided returns the time of the first pass or fail, 0 if there is none.
func (o *outcome) decided() time.Duration {
	if o.failed == 0 || o.passed == 0 {
		return max(o.failed, o.passed)
	}
	return min(o.failed, o.passed)
}

// run asks after each tick.
func (e *experiment) run(seed uint64, until enough) (o outcome) {
	w := world{situation: e.situation, random: rand.New(rand.NewPCG(seed, 1)), oddsRatio: e.oddsRatio, slower: e.slower}
	p := NewPair(e.settings, epoch)
	o.pair = p
	var values sketch.Sketch
	at := func(seconds float64) time.Time { return epoch.Add(time.Duration(seconds * float64(time.Second))) }
	w.run(int(e.hours*3600/tick), func(now int, ended []served) bool {
		for _, r := range ended {
			c := Counts{Requests: 1, Eligible: 1}
			if r.bad {
				c.Bad = 1
			}
			values.Reset()
			values.Add(r.latency, 1)
			p.Add(at(r.start), at(r.end), tick*time.Second, r.arm, names[r.replica], c, &values)
		}
		p.Advance(at(float64(now)))
		o.last = p.Answer(e.question)
		for _, first := range [...]struct {
			to   *time.Duration
			seen bool
		}{
			{&o.failed, o.last.Verdict == Fail},
			{&o.passed, o.last.Verdict == Pass},
			{&o.shown, (o.last.Verdict != Undecided || o.last.Reason == Difference) && o.last.Ratio.Lower > 1},
		} {
			if *first.to == 0 && first.seen {
				*first.to = time.Duration(now) * time.Second
			}
		}
		if o.last.Verdict == Fail && o.failedBy == "" {
			o.failedBy = o.last.Reason
		}
		return !until(&o)
	})
	return o
}

// repeat runs an experiment with the seeds from 1 on, on all processors.
func (e *experiment) repeat(runs int, until enough) []outcome {
	return inParallel(runs, func(seed uint64) outcome { return e.run(seed, until) })
}

// inParallel returns the results for the seeds from 1 to n.
func inParallel[T any](n int, run func(seed uint64) T) []T {
	results := make([]T, n)
	var wait sync.WaitGroup
	workers := runtime.GOMAXPROCS(0)
	for first := range workers {
		wait.Go(func() {
			for i := first; i < n; i += workers {
				results[i] = run(uint64(i) + 1)
			}
		})
	}
	wait.Wait()
	return results
}

// upperLimit returns the upper limit of a share that was seen k of n times: the exact one of Clopper
// and Pearson, which is too low with a probability of 1%.
func upperLimit(k, n int) float64 {
	if k == n {
		return 1
	}
	atMost := func(p float64) (sum float64) {
		for i := range k + 1 {
			sum += math.Exp(logBinomial(n, i) + float64(i)*math.Log(p) + float64(n-i)*math.Log1p(-p))
		}
		return sum
	}
	low, high := 0.0, 1.0
	for range 50 {
		if middle := (low + high) / 2; atMost(middle) > 0.01 {
			low = middle
		} else {
			high = middle
		}
	}
	return high
}

func logBinomial(n, k int) float64 {
	return -logBeta(float64(k)+1, float64(n-k)+1) - math.Log(float64(n)+1)
}
