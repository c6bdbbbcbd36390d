// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package synthetic

import (
	"math/rand/v2"
	"slices"
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
		return make(users, config.Concurrency)
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

// users plans one request at a time per user: the times at which each user's request ends, in order.
type users []time.Duration

func (u users) next() time.Duration { return u[0] }

func (u users) ended(at time.Duration) {
	i, _ := slices.BinarySearch(u[1:], at)
	copy(u, u[1:i+1])
	u[i] = at
}
