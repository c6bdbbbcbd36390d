// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"math"
	"slices"
	"time"

	"github.com/tokenpulse/tokenpulse/internal/batching"
)

// rule decides how many replicas a service gets.
type rule int

const (
	byCapacity rule = iota // total load over limit × target, rounded up
	byWaiting              // waiting requests per replica, in the formula of Kubernetes' HPA
	byInFlight             // waiting and running requests per replica, in the same formula
	byP90                  // p90 of latency over threshold, in the same formula
	rules
)

var ruleNames = [...]string{"replicas_needed", "requests waiting", "requests in flight", "p90 over threshold"}

// As of Kubernetes' HPA and of an engine that loads a model.
const (
	decideEvery = 30.0  // seconds
	holdDown    = 300.0 // the largest wish of this time counts
	tolerance   = 0.1
	coldStart   = 120.0
	mostReplica = 20
	reportAfter = 120.0 // seconds after its end, a slot is complete; requests that still run are left out
)

// node is a replica in service.
type node struct {
	*batching.Machine
	replica *sustained
	ready   float64
	slots   map[int]*offer
	fed     int // next slot
}

// cluster is a service whose replicas a rule scales.
type cluster struct {
	w      *world
	rule   rule
	target float64
	limit  *Limit
	nodes  []*node
	gone   []*node // that finish their requests

	good, all float64
	hours     float64
	worst     []float64 // latency over threshold of requests that ended since the last decision but one
	before    []float64
	wishes    []wish
	rate      float64 // arrivals per second, about the last minute
	waiting   float64 // average since the last decision
	inFlight  float64
}

type wish struct{ at, replicas float64 }

func (c *cluster) add(now, ready float64) {
	n := &node{ready: ready, slots: map[int]*offer{}, fed: int(now / slotLength), replica: c.limit.replica()}
	n.Machine = batching.NewMachine(&c.w.engine, func(q *batching.Request, now float64, served bool) {
		good := served && c.w.slo.Good(q, now)
		c.all++
		if good {
			c.good++
		}
		if served {
			c.worst = append(c.worst, max((q.FirstAt-q.At)/c.w.slo.TTFT, (now-q.FirstAt)/max(1, q.Output-1)/c.w.slo.TPOT))
		} else {
			c.worst = append(c.worst, 10)
		}
		i := int(q.At / slotLength)
		if i < n.fed {
			return
		}
		s := n.slots[i]
		if s == nil {
			s = new(offer)
			n.slots[i] = s
		}
		s.add(q, good, served)
	})
	n.Run(now)
	c.nodes = append(c.nodes, n)
}

func (s *offer) add(q *batching.Request, good, served bool) {
	if served {
		s.Prompt += uint64(q.Prompt)
		s.Output += uint64(q.Output)
	} else {
		s.Unsized++
	}
	if good {
		s.Good++
	} else {
		s.Bad++
	}
}

// feed gives the limit the slots that are complete.
func (c *cluster) feed(now float64) {
	for _, n := range slices.Concat(c.nodes, c.gone) {
		for ; float64(n.fed+1)*slotLength+reportAfter <= now; n.fed++ {
			if float64(n.fed)*slotLength < n.ready {
				continue
			}
			s := n.slots[n.fed]
			if s == nil {
				s = new(offer)
			}
			delete(n.slots, n.fed)
			n.replica.add(origin.Add(48*time.Hour+time.Duration(n.fed)*slotLength*time.Second), *s)
		}
	}
}

// decide scales.
func (c *cluster) decide(now float64) {
	n := float64(len(c.nodes))
	want := n
	hpa := func(metric float64) {
		if r := metric / c.target; math.Abs(r-1) > tolerance {
			want = math.Ceil(n*r - 1e-9)
		}
	}
	switch c.rule {
	case byCapacity:
		a := c.limit.Answer(origin.Add(48*time.Hour + time.Duration(now*1e9)))
		if u := a.Utilization(c.limit.Sized(c.rate)); !math.IsNaN(u) {
			want = math.Ceil(u / c.target)
		}
	case byWaiting:
		hpa(c.waiting / n)
	case byInFlight:
		hpa(c.inFlight / n)
	case byP90:
		if all := slices.Concat(c.before, c.worst); len(all) > 0 {
			slices.Sort(all)
			hpa(all[int(0.9*float64(len(all)-1))])
		}
	}
	c.before, c.worst = c.worst, nil
	c.waiting, c.inFlight = 0, 0
	want = max(1, min(mostReplica, want, max(n+4, 2*n)))
	c.wishes = append(c.wishes, wish{now, want})
	for c.wishes[0].at < now-holdDown {
		c.wishes = c.wishes[1:]
	}
	for _, w := range c.wishes {
		want = max(want, min(n, w.replicas))
	}
	for float64(len(c.nodes)) < want {
		c.add(now, now+coldStart)
	}
	for float64(len(c.nodes)) > want {
		last := len(c.nodes) - 1
		c.gone = append(c.gone, c.nodes[last])
		c.nodes = c.nodes[:last]
	}
}

// run serves requests for seconds.
func (c *cluster) run(take func() *batching.Request, until float64, replicas int) {
	for range replicas {
		c.add(0, 0)
	}
	next, decided := take(), 0.0
	for now := 0.0; now < until; now++ {
		for next.At <= now+1 {
			c.send(next)
			next = take()
		}
		c.rate *= math.Exp(-1.0 / 60)
		c.hours += float64(len(c.nodes)) / 3600
		for _, n := range c.nodes {
			n.Run(now + 1)
			c.waiting += float64(n.Waiting()) / decideEvery
			c.inFlight += float64(n.InFlight()) / decideEvery
		}
		c.gone = slices.DeleteFunc(c.gone, func(n *node) bool {
			n.Run(now + 1)
			c.hours += 1.0 / 3600
			return n.InFlight() == 0
		})
		if now-decided >= decideEvery {
			decided = now
			c.feed(now)
			c.decide(now)
		}
	}
}

// send gives a request to the ready replica with the fewest.
func (c *cluster) send(q *batching.Request) {
	c.rate += 1.0 / 60
	var best *node
	for _, n := range c.nodes {
		if n.ready > q.At {
			continue
		}
		n.Run(q.At)
		if best == nil || n.InFlight() < best.InFlight() {
			best = n
		}
	}
	if best == nil {
		c.all++
		return
	}
	best.Push(q)
}
