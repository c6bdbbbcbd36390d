// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package synthetic

import (
	"math"
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
	return &poisson{random: random, config: config}
}

// poisson plans independent requests: with a constant rate, the times between their starts are exponential.
type poisson struct {
	random *rand.Rand
	config Config
	at     time.Duration
}

func (p *poisson) next() time.Duration {
	at := p.at
	highest := max(p.config.Rate, p.config.PeakRate)
	mean := float64(time.Second) / highest
	for {
		p.at += time.Duration(p.random.ExpFloat64() * mean)
		// Of requests at the highest rate, some are left out.
		if p.config.PeakRate == 0 || p.random.Float64()*highest < p.config.rate(p.at) {
			return at
		}
	}
}

// rate is the rate at an offset from Begin: a sine with the period between Rate and PeakRate, beginning at Rate.
func (c *Config) rate(at time.Duration) float64 {
	return c.Rate + (c.PeakRate-c.Rate)*(1-math.Cos(2*math.Pi*float64(at)/float64(c.Period)))/2
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
