// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"container/heap"
	"math"
	"math/rand/v2"
)

// engine has the properties of a simulated engine with continuous batching. Times are in seconds.
type engine struct {
	prefill    float64 // per token of a prompt
	quadratic  float64 // additional, per token and token before it
	step       float64 // of decoding
	perStream  float64 // of decoding, per stream
	perContext float64 // of decoding, per token of all contexts
	chunk      float64 // tokens of prompts that a step prefills, while the streams of the batch wait
	batch      int
	memory     float64 // tokens of context
	queue      int     // requests that wait; further ones are refused
	patience   float64 // clients give up after this time without a first token
}

// limits of an SLO. An answer that was refused or given up is bad.
type limits struct {
	ttft, tpot float64 // seconds
	objective  float64
}

// request is a simulated request and its end.
type request struct {
	at             float64
	prompt, output float64 // tokens; those of the prompt that were not cached
	context        float64 // tokens of the prompt
	firstAt        float64
	finish         float64 // value of machine.steps at the end
}

func newEngine(r *rand.Rand) engine {
	log := func(from, to float64) float64 { return from * math.Exp(r.Float64()*math.Log(to/from)) }
	e := engine{prefill: log(4e-5, 3e-4), step: log(0.01, 0.04)}
	if r.IntN(3) == 0 {
		e.quadratic = e.prefill / log(20e3, 200e3)
	}
	e.perStream = e.step * log(0.003, 0.03)
	e.perContext = e.step * log(0.1, 1) / 100e3
	e.chunk = []float64{512, 2048, 8192}[r.IntN(3)]
	e.batch = []int{16, 32, 64, 128, 256}[r.IntN(5)]
	e.memory = log(60e3, 800e3)
	e.queue = []int{10, 50, 300, 2000}[r.IntN(4)]
	e.patience = []float64{20, 60, 120, 600}[r.IntN(4)]
	return e
}

func newLimits(r *rand.Rand, e *engine) limits {
	l := limits{objective: []float64{0.9, 0.95, 0.99, 0.99}[r.IntN(4)]}
	// Reachable by the longest prompts of the recordings on an idle engine.
	l.ttft = 1.5*e.cost(0, longestPrompt) + []float64{0.5, 1, 2, 5}[r.IntN(4)]
	l.tpot = math.Inf(1)
	if r.IntN(4) > 0 {
		l.tpot = e.step*(1.5+2.5*r.Float64()) + e.cost(0, e.chunk)*r.Float64()
	}
	return l
}

// good reports whether an answer that ended now is good.
func (l *limits) good(q *request, now float64) bool {
	return q.firstAt-q.at <= l.ttft && (q.output < 2 || (now-q.firstAt)/(q.output-1) <= l.tpot)
}

// cost is the time to prefill tokens from a position on.
func (e *engine) cost(from, n float64) float64 { return n*e.prefill + e.quadratic*n*(from+n/2) }

// capacity is about how many requests per second an engine can serve.
func (e *engine) capacity(prompt, output, context float64) float64 {
	streams := min(float64(e.batch), e.memory/(context+output))
	step := e.step + e.perStream*streams + e.perContext*streams*(context+output/2)
	return 1 / (e.cost(0, prompt) + e.step/math.Max(1, e.chunk/prompt) + output*step/streams)
}

// machine runs an engine by its steps.
type machine struct {
	*engine
	now      float64
	waiting  []*request
	left     float64 // of the first one's prompt, or 0 if it has not begun
	decoding byFinish
	steps    float64
	reserved float64 // tokens of context of the batch at its end
	context  float64 // of the batch now
	arrive   func() *request
	next     *request
	ended    func(q *request, now float64, served bool)
}

func newMachine(e *engine, arrive func() *request, ended func(q *request, now float64, served bool)) *machine {
	return &machine{engine: e, arrive: arrive, ended: ended, next: arrive()}
}

func (m *machine) run(until float64) {
	for m.now < until {
		for m.next.at <= m.now {
			m.accept()
		}
		switch {
		case m.admits():
			m.mixed()
		case len(m.decoding) > 0:
			m.decode(until)
		default:
			m.now = min(until, m.next.at)
		}
	}
}

func (m *machine) accept() {
	q := m.next
	m.next = m.arrive()
	m.push(q)
}

func (m *machine) push(q *request) {
	if len(m.waiting) >= m.queue {
		m.ended(q, m.now, false)
		return
	}
	m.waiting = append(m.waiting, q)
}

// admits reports whether the first request that waits is or can be in the batch.
func (m *machine) admits() bool {
	for len(m.waiting) > 0 {
		q := m.waiting[0]
		switch {
		case m.left > 0:
			return true
		case m.now-q.at > m.patience:
			m.waiting = m.waiting[1:]
			m.ended(q, m.now, false)
		case len(m.decoding) > 0 && (len(m.decoding) >= m.batch || m.reserved+q.context+q.output > m.memory):
			return false
		default:
			m.left = max(1, q.prompt)
			m.reserved += q.context + q.output
			return true
		}
	}
	return false
}

// mixed is a step that prefills a chunk, and decodes all streams.
func (m *machine) mixed() {
	budget, dt := m.chunk, m.stepTime()
	var first []*request
	for budget > 0 && m.admits() {
		q := m.waiting[0]
		n := min(budget, m.left)
		dt += m.cost(q.context-m.left, n)
		m.left -= n
		budget -= n
		if m.left <= 0 {
			m.left = 0
			m.waiting = m.waiting[1:]
			first = append(first, q)
			m.context += q.context
			q.finish = m.steps + math.Ceil(q.output) // its first token is in this step
			heap.Push(&m.decoding, q)
		}
	}
	m.now += dt
	for _, q := range first {
		q.firstAt = m.now
	}
	m.decoded(1)
}

func (m *machine) stepTime() float64 {
	return m.step + m.perStream*float64(len(m.decoding)) + m.perContext*m.context
}

// decode is as many steps without prefill as nothing happens.
func (m *machine) decode(until float64) {
	dt := m.stepTime()
	n := max(1, min(m.decoding[0].finish-m.steps, math.Ceil((min(until, m.next.at)-m.now)/dt)))
	m.now += n*dt + m.perContext*float64(len(m.decoding))*n*(n-1)/2
	m.decoded(n)
}

func (m *machine) decoded(n float64) {
	m.steps += n
	m.context += n * float64(len(m.decoding))
	for len(m.decoding) > 0 && m.decoding[0].finish <= m.steps {
		q := heap.Pop(&m.decoding).(*request)
		m.reserved -= q.context + q.output
		m.context = max(0, m.context-q.context-q.output)
		m.ended(q, m.now, true)
	}
}

// byFinish is a heap.
type byFinish []*request

func (h byFinish) Len() int           { return len(h) }
func (h byFinish) Less(i, j int) bool { return h[i].finish < h[j].finish }
func (h byFinish) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *byFinish) Push(x any)        { *h = append(*h, x.(*request)) }
func (h *byFinish) Pop() any {
	last := len(*h) - 1
	q := (*h)[last]
	*h = (*h)[:last]
	return q
}
