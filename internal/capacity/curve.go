// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package capacity

import "math"

const (
	perDoubling = 16
	binCount    = 96 // 6 doublings below the highest load
	// alpha is the probability that a load is certified which misses the objective.
	alpha = 0.05
	// neededMissed slots show a knee.
	neededMissed = 20
)

// bin has the slots of a narrow range of loads.
type bin struct {
	Slots    float64 // with requests
	Requests float64
	Bad      float64 // bad requests
	Missed   float64 // slots that missed the objective
	MissedAt int64   // start of the last one, Unix time
}

// curve counts slots by their index. Bin i has those of edge(bottom + i) to edge(bottom + i + 1); the first bin also has those below.
type curve struct {
	bottom int
	bins   [binCount]bin
}

func edge(i int) float64 { return math.Exp2(float64(i) / perDoubling) }

// at returns the bin of an index.
func (c *curve) at(x float64) *bin {
	i := int(math.Floor(math.Log2(max(x, 1e-9)) * perDoubling))
	if *c == (curve{}) {
		c.bottom = i - binCount*3/4
	}
	for i-c.bottom >= binCount {
		c.raise()
	}
	return &c.bins[max(0, i-c.bottom)]
}

// bad returns the share of bad requests, times slots.
func (b *bin) bad() float64 {
	if b.Requests == 0 {
		return 0
	}
	return b.Bad / b.Requests * b.Slots
}

// raise makes room for a higher bin: the lowest two become one.
func (c *curve) raise() {
	low, next := c.bins[0], &c.bins[1]
	next.Slots += low.Slots
	next.Requests += low.Requests
	next.Bad += low.Bad
	next.Missed += low.Missed
	next.MissedAt = max(next.MissedAt, low.MissedAt)
	copy(c.bins[:], c.bins[1:])
	c.bins[binCount-1] = bin{}
	c.bottom++
}

// add counts a slot. Beyond most slots, each makes older ones of its bin count less.
func (b *bin) add(s *offer, missed bool, at, most float64) {
	if b.Slots >= most {
		keep := (most - 1) / b.Slots
		b.Slots *= keep
		b.Requests *= keep
		b.Bad *= keep
		b.Missed *= keep
	}
	b.Slots++
	b.Requests += float64(s.Good + s.Bad)
	b.Bad += float64(s.Bad)
	if missed {
		b.Missed++
		b.MissedAt = max(b.MissedAt, int64(at))
	}
}

// met returns the index of the highest bin that is certified to meet the objective, up to a highest one, or -1.
//
// If bin i missed the objective, then so did all above it. So the slots of bin i and those above, in the order of their load, are evidence.
func (c *curve) met(objective float64, highest int) int {
	for i := highest; i > 0; i-- { // the first one has no lower edge
		if c.bins[i].Slots > 0 && c.certified(i, objective) {
			return i
		}
	}
	return -1
}

func (c *curve) certified(i int, objective float64) bool {
	var all Evidence
	for _, b := range c.bins[i:] {
		if b.Slots == 0 {
			continue
		}
		all.Add(Evidence{Slots: b.Slots, Bad: b.bad()})
		if all.Meets(objective, alpha) {
			return true
		}
	}
	return false
}

// knee returns the highest bin from which on the objective was missed, in enough slots, or -1.
func (c *curve) knee(objective float64) int {
	var slots, bad, missed float64
	for i := binCount - 1; i >= 0; i-- {
		b := &c.bins[i]
		slots += b.Slots
		bad += b.bad()
		missed += b.Missed
		if b.Slots > 0 && missed >= neededMissed && bad > slots*(1-objective) {
			return i
		}
	}
	return -1
}

// missedAt returns when a slot at the load of a bin or above last missed the objective.
func (c *curve) missedAt(i int) (at int64) {
	for _, b := range c.bins[i:] {
		at = max(at, b.MissedAt)
	}
	return at
}
