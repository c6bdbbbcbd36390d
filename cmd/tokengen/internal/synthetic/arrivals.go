package synthetic

import (
	"container/heap"
	"math/rand/v2"
	"time"
)

// arrivals decides when requests start, counted from the beginning.
type arrivals interface {
	next() time.Duration
	// ended tells when the request that next announced last is over.
	ended(at time.Duration)
}

func newArrivals(config Config, random *rand.Rand) arrivals {
	if config.Concurrency > 0 {
		users := make(users, config.Concurrency)
		return &users
	}
	return &poisson{random: random, mean: float64(time.Second) / config.Rate}
}

// poisson lets requests arrive independently of each other: the times between
// them are exponential.
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

// users send one request each and the next when it has ended. The slice is a
// heap of the times from which they are free.
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
