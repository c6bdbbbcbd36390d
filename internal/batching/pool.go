// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package batching

// Pool is engines behind a router: a request goes to one of those with the fewest in flight, in turn.
type Pool struct {
	machines []*Machine
	turn     int
}

// NewPool returns a pool of n engines that calls ended with the end of each request, or its refusal.
func NewPool(e *Engine, n int, ended func(q *Request, now float64, served bool)) *Pool {
	p := &Pool{}
	for range n {
		p.machines = append(p.machines, NewMachine(e, ended))
	}
	return p
}

// Push adds a request, at its time, and returns which engine got it.
func (p *Pool) Push(q *Request) int {
	p.Run(q.At)
	best := p.turn
	for i := range p.machines {
		if other := (p.turn + i) % len(p.machines); p.machines[other].InFlight() < p.machines[best].InFlight() {
			best = other
		}
	}
	p.turn = (p.turn + 1) % len(p.machines)
	p.machines[best].Push(q)
	return best
}

// Run goes on until a time, or the end of the steps that pass it.
func (p *Pool) Run(until float64) {
	for _, m := range p.machines {
		m.Run(until)
	}
}
