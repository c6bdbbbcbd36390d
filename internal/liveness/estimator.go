// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package liveness

import (
	"math"
	"math/bits"
	"time"
)

// sample is what one request teaches about prompts.
type sample struct {
	size     int64         // bytes of the request's body
	uncached float64       // share of the prompt that no prefix cache had; 1 if not reported
	wait     time.Duration // from the request to its first token: an estimator of waits is useless, because of queues
	turn     time.Duration // from the request, or a later first token of one that began earlier, to its first token
	largest  int64         // bytes of the largest open prompt when this first token came
	silence  time.Duration // time without a token of any stream before the first token
}

// estimator learns how long a healthy engine is silent because of a prompt.
type estimator interface {
	silent(now time.Duration, s sample) // at a first token
	served(now time.Duration, s sample) // at the end of a request, with its usage
	// expect returns the expected silence for a prompt of so many bytes, and false while too little is known.
	expect(now time.Duration, size int64) (time.Duration, bool)
	seen() uint64 // first tokens
}

const (
	// classes of prompts, by bytes: under 1 KiB, 1 to 2 KiB, and so on up to 16 MiB and more.
	classes = 16
	// enough samples make a class known.
	enough = 3
	// growth limits what one silence adds to a peak, so that one pause of the engine teaches little.
	growth = 2
	// halfLife of a peak.
	halfLife = 12 * time.Hour
	// spacing of the samples that a known class learns from, so that an hour of queues does not outvote a day.
	spacing = 20 * time.Second
	// highQuantile of turns, which caches and prompts that share a prefill shorten.
	highQuantile = 0.9
	// few samples have no quantile: their largest one holds.
	few = 10
)

// class is what is known about prompts of similar size. Rates are in seconds per byte.
type class struct {
	count   uint64        // first tokens of prompts in the class
	samples uint64        // in turn
	sampled time.Duration // time of the last sample
	turn    percentile    // of turns by uncached bytes
	peak    float64       // largest silence by bytes, which decays
	peakAge time.Duration // time of the peak's last change
}

// percentile follows a quantile of rates. A sample moves it by at most 13%, however far away it is.
type percentile float64

// step of the logarithm to base 2.
const step = 0.2

// add follows the quantile after the first samples, before which samples were added.
func (p *percentile) add(rate, quantile float64, before uint64) {
	switch x := percentile(math.Log2(rate)); {
	case before == 0:
		*p = x
	case before < few:
		*p = max(*p, x)
	case x > *p:
		*p += percentile(step * quantile)
	default:
		*p -= percentile(step * (1 - quantile))
	}
}

func (p percentile) rate() float64 { return math.Exp2(float64(p)) }

// prompts is the estimator. A prompt silences an engine for at most its prefill. Two things show how long that is:
//
//   - A high quantile of turns, which begin when earlier requests have their first token. They also know prompts during
//     whose prefill other streams have tokens, before one silences the engine alone.
//   - The longest silences, which also know prompts that are prefilled together, or again after a preemption.
//
// The larger of these two holds.
type prompts struct {
	classes [classes]class
}

func classOf(size int64) int {
	return min(bits.Len64(uint64(max(size, 0))>>10), classes-1)
}

func (p *prompts) silent(now time.Duration, s sample) {
	c := &p.classes[classOf(s.largest)]
	if s.size == s.largest {
		c.count++
	}
	rate := s.silence.Seconds() / float64(max(s.largest, 1))
	peak := c.decayed(now)
	if rate <= peak {
		return
	}
	if known, ok := p.expect(now, s.largest); ok {
		rate = min(rate, growth*max(known.Seconds()/float64(max(s.largest, 1)), peak))
	}
	c.peak, c.peakAge = rate, now
}

func (p *prompts) served(now time.Duration, s sample) {
	c := &p.classes[classOf(s.size)]
	if s.turn <= 0 || s.uncached < 0.5 || c.samples >= enough && now-c.sampled < spacing {
		return // a mostly cached prompt says nothing about a prefill
	}
	bytes := float64(max(s.size, 1)) * s.uncached
	c.turn.add(s.turn.Seconds()/bytes, highQuantile, c.samples)
	c.samples, c.sampled = c.samples+1, now
}

// expect takes the rate of the prompt's class. For larger prompts than any known class, time grows with the
// square of the size, as attention's does.
func (p *prompts) expect(now time.Duration, size int64) (time.Duration, bool) {
	of := classOf(size)
	bytes := float64(max(size, 1))
	for i := of; i >= 0; i-- {
		c := &p.classes[i]
		if c.samples < enough {
			continue
		}
		rate := c.rate(now)
		if i < of {
			rate *= bytes / float64(int64(1024)<<i)
		}
		return seconds(max(rate*bytes, p.floor(now, i))), true
	}
	for i := of + 1; i < classes; i++ { // nothing smaller is known
		if c := &p.classes[i]; c.samples >= enough {
			return seconds(c.rate(now) * bytes), true
		}
	}
	return 0, false
}

func (p *prompts) seen() (n uint64) {
	for i := range p.classes {
		n += p.classes[i].count
	}
	return n
}

// floor is the time that the largest prompt of the known classes below takes: a larger prompt takes no less.
func (p *prompts) floor(now time.Duration, below int) (most float64) {
	for i := range below {
		if c := &p.classes[i]; c.samples >= enough {
			most = max(most, c.rate(now)*float64(int64(512)<<i))
		}
	}
	return most
}

func (c *class) rate(now time.Duration) float64 {
	return max(c.decayed(now), c.turn.rate())
}

func (c *class) decayed(now time.Duration) float64 {
	return c.peak * math.Exp2(-max(0, (now-c.peakAge).Hours())/halfLife.Hours())
}

// seconds converts a number that may be too large for a Duration.
func seconds(s float64) time.Duration {
	return time.Duration(min(s, 1e9) * 1e9)
}
