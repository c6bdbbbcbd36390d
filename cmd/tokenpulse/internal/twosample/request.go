// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package twosample

import (
	"iter"
	"math"
	"time"

	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/sketch"
)

// Indicator is a latency that arms are compared by.
type Indicator uint8

// The indicators.
const (
	TimeToFirstToken Indicator = iota
	TimePerOutputToken
	InterTokenLatency
	RequestDuration
	Indicators // number of indicators
)

var numberOf = [Indicators]numbers.ID{
	numbers.TimeToFirstToken, numbers.TimePerOutputToken, numbers.InterTokenLatency, numbers.RequestDuration,
}

// String returns the name of the indicator in SLOs, such as time_to_first_token.
func (i Indicator) String() string { return numberOf[i].APIName() }

// Request is a request of an arm.
type Request struct {
	// Run names the run that the request belongs to, such as the file of a benchmark's results. Requests of one run
	// share what differs between runs: the machine, its neighbours, a warm cache.
	Run string
	// Replica names the replica that served the request. It is empty if unknown.
	Replica string
	// Start is when the request began. If it is zero, the place of the request in its run stands in for it.
	Start time.Time
	// PromptTokens is the length of the prompt, 0 if it is unknown.
	PromptTokens uint64
	// Unsuccessful is set for the outcomes error, incomplete and cancelled. The latencies of such a request are not compared:
	// it counts as slower than all others.
	Unsuccessful bool
	// Values are the latencies in seconds: NaN if the request has none, such as a one-token answer no time per output token,
	// and +Inf if it has one that is unmeasured. Of InterTokenLatency, only +Inf is read.
	Values [Indicators]float64
	// TokenGaps has one inter-token latency for each token after the first. It may be nil.
	TokenGaps *sketch.Sketch
	// Verdicts yields the SLOs that the request is eligible for, and whether it is bad for them. It may be nil.
	Verdicts iter.Seq2[string, bool]
}

// Bands of prompt lengths: 0 is unknown, then up to 128 tokens, up to each power of two, and over 131072 tokens.
const (
	unknownBand  = 0
	bandCount    = 13
	shortestBand = 7 // 2^7 = 128 tokens
)

// bandOf returns the band of a prompt.
func bandOf(tokens uint64) int {
	if tokens == 0 {
		return unknownBand
	}
	band := 1
	for band < bandCount-1 && tokens > 1<<(shortestBand+band-1) {
		band++
	}
	return band
}

// cell sums up requests with prompts of one band.
type cell struct {
	requests, unsuccessful uint64
	values                 [Indicators]sketch.Sketch
	// measured are the requests with a value, missing those that should have one.
	measured, missing [Indicators]uint64
	slos              []trials // by the arm's number of the SLO
}

// trials are requests that are eligible for an SLO.
type trials struct {
	Eligible uint64 `json:"eligible"`
	Bad      uint64 `json:"bad"`
}

func (c *cell) add(r *Request, slo func(string) int) {
	c.requests++
	if r.Unsuccessful {
		c.unsuccessful++
	}
	for i, v := range r.Values {
		gaps := Indicator(i) == InterTokenLatency
		switch {
		case r.Unsuccessful || math.IsInf(v, 1):
			c.missing[i]++
		case gaps && r.TokenGaps != nil && r.TokenGaps.Count() > 0:
			c.measured[i]++
			c.values[i].Merge(r.TokenGaps)
		case !gaps && v >= 0:
			c.measured[i]++
			c.values[i].Add(v, 1)
		}
	}
	if r.Verdicts == nil {
		return
	}
	for name, bad := range r.Verdicts {
		if i := slo(name); i >= 0 {
			t := c.slo(i)
			t.Eligible++
			if bad {
				t.Bad++
			}
		}
	}
}

func (c *cell) slo(i int) *trials {
	for len(c.slos) <= i {
		c.slos = append(c.slos, trials{})
	}
	return &c.slos[i]
}

// merge adds another cell, whose SLOs have other numbers.
func (c *cell) merge(from *cell, slo func(int) int) {
	c.requests += from.requests
	c.unsuccessful += from.unsuccessful
	for i := range c.values {
		c.values[i].Merge(&from.values[i])
		c.measured[i] += from.measured[i]
		c.missing[i] += from.missing[i]
	}
	for i, t := range from.slos {
		if n := slo(i); n >= 0 {
			to := c.slo(n)
			to.Eligible += t.Eligible
			to.Bad += t.Bad
		}
	}
}

// has reports whether there is a value.
func (c *cell) has(i Indicator) bool { return c != nil && c.measured[i] > 0 }

// group is requests that may depend on each other: those of a block of time, or of a replica.
type group [bandCount]*cell

func (g *group) band(i int) *cell {
	if g[i] == nil {
		g[i] = &cell{}
	}
	return g[i]
}

func (g *group) merge(from *group, slo func(int) int) {
	for i, c := range from {
		if c != nil {
			g.band(i).merge(c, slo)
		}
	}
}
