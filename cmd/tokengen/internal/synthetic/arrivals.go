// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package synthetic

import (
	"container/heap"
	"math/rand/v2"
	"time"
)

// arrivals plans when requests start, as offsets from Config.Begin.
type arrivals interface {
	next() time.Duration
	// ended reports when the request ends whose start next returned last.
	ended(at time.Duration)
}

func newArrivals(config Config, random *rand.Rand) arrivals {
	if config.Closed() {
		users := make(users, config.Concurrency)
		return &users
	}
	return &poisson{random: random, mean: float64(time.Second) / config.Rate}
}

// poisson plans independent requests: the times between their starts are exponential.
type poisson struct {
	random *rand.Rand
	mean   float64 // nanoseconds
	at     time.Duration
}

func (p *poisson) next() time.Duration {
	at := p.at
	p.at += time.Duration(p.random.ExpFloat64() * p.mean)
	return at
}

func (p *poisson) ended(time.Duration) {}

// users plans one request at a time per user. The slice is a heap of the times at
// which each user's request ends.
type users []time.Duration

func (u *users) next() time.Duration { return (*u)[0] }

func (u *users) ended(at time.Duration) {
	(*u)[0] = at
	heap.Fix(u, 0)
}

func (u users) Len() int           { return len(u) }
func (u users) Less(i, j int) bool { return u[i] < u[j] }
func (u users) Swap(i, j int)      { u[i], u[j] = u[j], u[i] }
func (u *users) Push(x any)        { *u = append(*u, x.(time.Duration)) }
func (u *users) Pop() any          { panic("the number of users is fixed") }
