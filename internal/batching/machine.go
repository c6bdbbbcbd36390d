// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Package batching simulates engines with continuous batching: the time of a step depends on the batch and its contexts, prompts are prefilled in
// chunks between which the answers wait, and requests queue for a place in the batch. Such an engine has a known limit.
package batching

import (
	"container/heap"
	"math"
)

// Engine has the properties of a simulated engine with continuous batching. Times are in seconds.
type Engine struct {
	Prefill    float64 // per token of a prompt
	Quadratic  float64 // additional, per token and token before it
	Step       float64 // of decoding
	PerStream  float64 // of decoding, per stream
	PerContext float64 // of decoding, per token of all contexts
	Chunk      float64 // tokens of prompts that a step prefills, while the streams of the batch wait
	Batch      int
	Memory     float64 // tokens of context
	Queue      int     // requests that wait; further ones are refused
	Patience   float64 // clients give up after this time without a first token
	Record     bool    // note the times of tokens
}

// Request is a simulated request and its end.
type Request struct {
	At             float64
	Prompt, Output float64 // tokens; those of the prompt that were not cached
	Context        float64 // tokens of the prompt
	ScheduledAt    float64
	FirstAt        float64
	Tokens         []float64 // times, if the engine records them
	finish         float64   // value of Machine.steps at the end
}

// Cost is the time to prefill tokens from a position on.
func (e *Engine) Cost(from, n float64) float64 { return n*e.Prefill + e.Quadratic*n*(from+n/2) }

// Throughput is about how many requests per second an engine can serve.
func (e *Engine) Throughput(prompt, output, context float64) float64 {
	streams := min(float64(e.Batch), e.Memory/(context+output))
	step := e.Step + e.PerStream*streams + e.PerContext*streams*(context+output/2)
	return 1 / (e.Cost(0, prompt) + e.Step/math.Max(1, e.Chunk/prompt) + output*step/streams)
}

// Machine runs an engine by its steps.
type Machine struct {
	*Engine
	now      float64
	waiting  []*Request
	left     float64 // of the first one's prompt, or 0 if it has not begun
	decoding byFinish
	steps    float64
	reserved float64 // tokens of context of the batch at its end
	context  float64 // of the batch now
	ended    func(q *Request, now float64, served bool)
}

// NewMachine returns a machine that calls ended with the end of each request, or its refusal.
func NewMachine(e *Engine, ended func(q *Request, now float64, served bool)) *Machine {
	return &Machine{Engine: e, ended: ended}
}

// Run goes on until a time, or the end of the step that passes it.
func (m *Machine) Run(until float64) {
	for m.now < until {
		switch {
		case m.admits():
			m.mixed()
		case len(m.decoding) > 0:
			m.decode(until)
		default:
			m.now = until
		}
	}
}

// Push adds a request. It first runs until the request's time.
func (m *Machine) Push(q *Request) {
	m.Run(q.At)
	if len(m.waiting) >= m.Queue {
		m.ended(q, m.now, false)
		return
	}
	m.waiting = append(m.waiting, q)
}

// Waiting is how many requests have no place in the batch.
func (m *Machine) Waiting() int { return len(m.waiting) }

// InFlight is how many requests have not ended.
func (m *Machine) InFlight() int { return len(m.waiting) + len(m.decoding) }

// admits reports whether the first request that waits is or can be in the batch.
func (m *Machine) admits() bool {
	for len(m.waiting) > 0 {
		q := m.waiting[0]
		switch {
		case m.left > 0:
			return true
		case m.now-q.At > m.Patience:
			m.waiting = m.waiting[1:]
			m.ended(q, m.now, false)
		case len(m.decoding) > 0 && (len(m.decoding) >= m.Batch || m.reserved+q.Context+q.Output > m.Memory):
			return false
		default:
			q.ScheduledAt = m.now
			m.left = max(1, q.Prompt)
			m.reserved += q.Context + q.Output
			return true
		}
	}
	return false
}

// mixed is a step that prefills a chunk, and decodes all streams.
func (m *Machine) mixed() {
	budget, dt := m.Chunk, m.stepTime()
	var first []*Request
	for budget > 0 && m.admits() {
		q := m.waiting[0]
		n := min(budget, m.left)
		dt += m.Cost(q.Context-m.left, n)
		m.left -= n
		budget -= n
		if m.left <= 0 {
			m.left = 0
			m.waiting = m.waiting[1:]
			first = append(first, q)
			m.context += q.Context
			q.finish = m.steps + math.Ceil(q.Output) // its first token is in this step
			heap.Push(&m.decoding, q)
		}
	}
	m.now += dt
	for _, q := range first {
		q.FirstAt = m.now
	}
	if m.Record {
		m.token(m.now)
	}
	m.decoded(1)
}

func (m *Machine) stepTime() float64 {
	return m.Step + m.PerStream*float64(len(m.decoding)) + m.PerContext*m.context
}

// decode is as many steps without prefill as nothing happens.
func (m *Machine) decode(until float64) {
	dt := m.stepTime()
	n := max(1, min(m.decoding[0].finish-m.steps, math.Ceil((until-m.now)/dt)))
	grown := func(steps float64) float64 {
		return steps*dt + m.PerContext*float64(len(m.decoding))*steps*(steps-1)/2
	}
	if m.Record {
		for steps := 1.0; steps <= n; steps++ {
			m.token(m.now + grown(steps))
		}
	}
	m.now += grown(n)
	m.decoded(n)
}

// token notes a token of each stream of the batch.
func (m *Machine) token(at float64) {
	for _, q := range m.decoding {
		q.Tokens = append(q.Tokens, at)
	}
}

func (m *Machine) decoded(n float64) {
	m.steps += n
	m.context += n * float64(len(m.decoding))
	for len(m.decoding) > 0 && m.decoding[0].finish <= m.steps {
		q := heap.Pop(&m.decoding).(*Request)
		m.reserved -= q.Context + q.Output
		m.context = max(0, m.context-q.Context-q.Output)
		m.ended(q, m.now, true)
	}
}

// byFinish is a heap.
type byFinish []*Request

func (h byFinish) Len() int           { return len(h) }
func (h byFinish) Less(i, j int) bool { return h[i].finish < h[j].finish }
func (h byFinish) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *byFinish) Push(x any)        { *h = append(*h, x.(*Request)) }
func (h *byFinish) Pop() any {
	last := len(*h) - 1
	q := (*h)[last]
	*h = (*h)[:last]
	return q
}
