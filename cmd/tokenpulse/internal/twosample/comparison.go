// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package twosample

import "math"

// comparison is two arms whose bands are merged, unless the mix of prompts changed.
type comparison struct {
	arms   [2]*Arm
	totals [2]group
	mix    Mix
}

// The arms of a comparison.
const (
	baseline = iota
	candidate
)

func newComparison(of [2]*Arm) *comparison {
	c := &comparison{arms: of}
	c.totals = [2]group{of[baseline].total(), of[candidate].total()}
	if c.mix = newMix(&c.totals[baseline], &c.totals[candidate]); !c.mix.Changed {
		c.pool()
	}
	return c
}

// pool merges the bands of both arms.
func (c *comparison) pool() {
	for i, a := range c.arms {
		c.arms[i] = a.pooled()
		c.totals[i] = c.arms[i].total()
	}
}

// total sums up an arm.
func (a *Arm) total() (all group) {
	for _, g := range a.blocks {
		all.merge(g, same)
	}
	return all
}

// number is what is compared, of both arms.
type number struct {
	// values are in its own unit: a share, or seconds.
	values [2]float64
	shares [2]share
	sides  [2]side
	// ratio is that of the values, or of their odds. It is NaN if an arm has nothing to divide by, or no bad request.
	ratio float64
}

// difference returns limits of the logarithm of the ratio.
func (n *number) difference(alpha float64) (lower, upper float64) {
	return difference(&n.sides[baseline], &n.sides[candidate], alpha)
}

func ratio(of, by float64) float64 {
	if !(of > 0 && by > 0) || math.IsInf(of+by, 1) {
		return math.NaN()
	}
	return of / by
}

// shares estimates a share of both arms.
func (c *comparison) shares(w *weights, of [2]counter) (s [2]share) {
	for i, a := range c.arms {
		clusters := a.clusters(of[i])
		s[i] = clusters.share(w)
	}
	before := s
	for i := range s {
		s[i].borrow(&before[1-i])
	}
	return s
}

// odds compares the odds of bad requests. ok is false if an arm has no request that can be bad.
func (c *comparison) odds(of [2]counter) (o number, ok bool) {
	w, ok := c.mix.weights(func(band int) bool {
		has := func(arm int) bool { return c.totals[arm][band] != nil && of[arm](band, c.totals[arm][band]).n > 0 }
		return has(baseline) && has(candidate)
	})
	if !ok {
		return o, false
	}
	o.shares = c.shares(&w, of)
	for i, s := range o.shares {
		o.values[i] = s.value
		o.sides[i] = side{
			// Half a bad request keeps the odds finite.
			estimate:  logit((s.value*s.effective + 0.5) / (s.effective + 1)),
			effective: s.effective, freedom: s.freedom, borrowed: s.borrowed,
			limits: func(n, alpha float64) (lower, upper float64) {
				lower, upper = shareLimits(s.value, n, alpha)
				return logit(lower), logit(upper)
			},
		}
	}
	odds := func(p float64) float64 { return p / (1 - p) }
	o.ratio = ratio(odds(o.values[candidate]), odds(o.values[baseline]))
	return o, true
}

// withoutLength returns how many unsuccessful requests of each arm no band holds. There are none if the mix is the same.
func (c *comparison) withoutLength() (n [2]uint64) {
	if c.mix.Changed {
		n = [2]uint64{c.totals[baseline].withoutLength(), c.totals[candidate].withoutLength()}
	}
	return n
}

// outcomes compares the odds of unsuccessful requests. If some of them have no length, it compares those of all lengths: no band shows
// how many more there are.
func (c *comparison) outcomes() (o number, ok bool) {
	of := [2]counter{unsuccessful, unsuccessful}
	if c.withoutLength() == [2]uint64{} {
		return c.odds(of)
	}
	all := comparison{arms: c.arms}
	all.pool()
	return all.odds(of)
}

func logit(p float64) float64 { return math.Log(p / (1 - p)) }

// percentile compares a percentile of an indicator, among requests with a value. With all set, requests without one are the slowest,
// and the percentile of both arms is the time in which the same share of all requests is done. ok is false if an arm has no value.
func (c *comparison) percentile(i Indicator, q float64, all bool) (p number, ok bool) {
	w, ok := c.mix.weights(func(band int) bool { return c.totals[baseline][band].has(i) && c.totals[candidate][band].has(i) })
	if !ok {
		return p, false
	}
	var distributions [2]*distribution
	var counters [2]counter
	for arm := range c.arms {
		measured := w
		if all {
			measured = c.totals[arm].measured(i, &w)
			if arm == baseline {
				q *= measured.sum()
			}
		}
		d := newDistribution(&c.totals[arm], i, &measured)
		distributions[arm], counters[arm] = d, c.totals[arm].slower(i, d.threshold(q), all)
	}
	p.shares = c.shares(&w, counters)
	for arm, s := range p.shares {
		d := distributions[arm]
		p.values[arm] = d.quantile(q)
		p.sides[arm] = side{
			estimate: math.Log(p.values[arm]), effective: s.effective, freedom: s.freedom, borrowed: s.borrowed,
			limits: func(n, alpha float64) (lower, upper float64) {
				below, upTo := rankLimits(q, n, alpha)
				lower, upper = math.Inf(-1), math.Inf(1)
				if below > 0 {
					lower = math.Log(d.quantile(below))
				}
				if upTo < 1 {
					upper = math.Log(d.quantile(upTo))
				}
				return lower, upper
			},
		}
	}
	p.ratio = ratio(p.values[candidate], p.values[baseline])
	return p, true
}

// measured returns the shares of requests that have a value, by band.
func (g *group) measured(i Indicator, w *weights) (shares weights) {
	for b, weight := range w {
		if weight > 0 {
			shares[b] = weight * float64(g[b].measured[i]) / float64(g[b].measured[i]+g[b].missing[i])
		}
	}
	return shares
}

func (w *weights) sum() (sum float64) {
	for _, share := range w {
		sum += share
	}
	return sum
}

// slower counts the values above a bucket. With all set, it counts the requests without a value, too: each with as many values as others
// of its band have.
func (g *group) slower(i Indicator, bucket int, all bool) counter {
	return func(band int, c *cell) count {
		s := &c.values[i]
		n := count{float64(s.Count()), float64(above(s, bucket))}
		if total := g[band]; all && c.missing[i] > 0 && total.measured[i] > 0 {
			missing := float64(c.missing[i]) * float64(total.values[i].Count()) / float64(total.measured[i])
			n.add(count{missing, missing})
		}
		return n
	}
}
