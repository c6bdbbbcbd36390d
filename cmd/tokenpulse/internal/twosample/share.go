// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package twosample

// weights are the shares of the bands in the mix of prompts that both arms are compared for. They add up to 1.
type weights [bandCount]float64

// share is the share of bad requests of an arm, and how well it is known.
type share struct {
	value float64
	variance
	// effective is the number of independent requests that would know the share as well.
	effective float64
	// blocks is the number of blocks of time.
	blocks int
	// ofRun is by how much the share of one run varies around that of others, more than blocks and replicas explain. Its value
	// is relative to the variance of one request. Its freedom is 0 if the arm has one run.
	ofRun variance
	// borrowed is set if the variance includes that of another arm.
	borrowed bool
}

// variance is an estimate with degrees of freedom, as of a chi-square distribution.
type variance struct{ value, freedom float64 }

// minBlocks is the number of blocks of time from which on their dependence shows.
const minBlocks = 8

// share estimates the share of bad requests.
func (c *clusters) share(w *weights) (s share) {
	l := linear{&c.total, w}
	var independent, size float64
	for b, t := range c.total {
		if w[b] > 0 {
			p := t.bad / t.n
			s.value += w[b] * p
			independent += w[b] * w[b] * p * (1 - p) / t.n
			size += w[b] * w[b] / t.n
		}
	}
	runs := l.among(c.runs)
	s.variance, s.blocks = l.serial(c.blocks)
	if s.freedom == 0 {
		s.freedom = max(runs.freedom, minFreedom)
	}
	s.variance.value = max(s.variance.value, independent)
	s.extend(l.among(c.replicas))
	before := s.variance.value
	s.extend(runs)
	ofRequest := s.value * (1 - s.value)
	s.effective = 1 / size
	if ofRequest > 0 {
		s.effective = ofRequest / s.variance.value
		s.ofRun = variance{max(0, runs.value-before) * float64(len(c.runs)) / ofRequest, runs.freedom}
	}
	return s
}

// extend takes a second estimate of the variance if that is larger: groups of another kind depend on each other more. The degrees of
// freedom are those of a sum of both parts (Satterthwaite).
func (v *variance) extend(larger variance) {
	if excess := larger.value - v.value; excess > 0 && larger.freedom > 0 {
		*v = variance{larger.value, larger.value * larger.value / (v.value*v.value/v.freedom + excess*excess/larger.freedom)}
	}
}

// borrow extends the variance of an arm that has one run by how much the runs of the other arm vary.
func (s *share) borrow(from *share) {
	if s.ofRun.freedom > 0 || from.ofRun.freedom == 0 {
		return
	}
	s.borrowed = true
	ofRequest := s.value * (1 - s.value)
	s.extend(variance{s.variance.value + from.ofRun.value*ofRequest, from.ofRun.freedom})
	if ofRequest > 0 {
		s.effective = ofRequest / s.variance.value
	}
}

// linear is the share of bad requests as a sum over groups.
type linear struct {
	total   *counts
	weights *weights
}

// part is what a group contributes: by how much it moves the share away from its expectation, and its weight among all, bad and good
// requests.
type part struct{ deviation, all, bad, good float64 }

func (l *linear) part(c *counts) (p part) {
	for b, w := range l.weights {
		if w > 0 {
			t := &l.total[b]
			w /= t.n
			p.deviation += w * (c[b].bad - t.bad/t.n*c[b].n)
			p.all += w * c[b].n
			p.bad += w * c[b].bad
			p.good += w * (c[b].n - c[b].bad)
		}
	}
	return p
}

// among returns the variance if requests depend on each other within groups only. Without two groups, its freedom is 0.
func (l *linear) among(groups []counts) variance {
	parts := make([]part, len(groups))
	for i := range groups {
		parts[i] = l.part(&groups[i])
	}
	return varianceOf(parts, 1)
}

// varianceOf returns the variance of a sum of parts, whose deviations are from as many means.
func varianceOf(parts []part, means float64) variance {
	size := effectiveSize(parts, func(p *part) float64 { return p.all })
	if size-means < 0.01 {
		return variance{}
	}
	var squares float64
	for i := range parts {
		squares += parts[i].deviation * parts[i].deviation
	}
	// A share that few groups decide is known no better than by these.
	freedom := min(size, effectiveSize(parts, func(p *part) float64 { return p.bad }),
		effectiveSize(parts, func(p *part) float64 { return p.good }))
	return variance{squares * size / (size - means), max(freedom-means, minFreedom)}
}

// minFreedom is that of a variance of which nearly nothing is known.
const minFreedom = 0.5

// effectiveSize returns as how many groups of the same size the groups count.
func effectiveSize(parts []part, of func(*part) float64) float64 {
	var sum, squares float64
	for i := range parts {
		x := of(&parts[i])
		sum += x
		squares += x * x
	}
	if squares == 0 {
		return float64(len(parts))
	}
	return sum * sum / squares
}

// serial returns the variance within runs if blocks depend on the ones before them: that among the blocks of a run, times the sum of the
// correlations of an autoregressive process of first order. It also returns the number of blocks. Without two blocks in a run, the
// freedom is 0.
func (l *linear) serial(runs [][]counts) (v variance, blocks int) {
	var parts []part
	var products, pairs, squares, means float64
	for _, run := range runs {
		first := len(parts)
		var sum part
		for i := range run {
			if p := l.part(&run[i]); p.all > 0 {
				parts = append(parts, p)
				sum.deviation += p.deviation
				sum.all += p.all
			}
		}
		if first < len(parts) {
			means++
		}
		for i := first; i < len(parts); i++ {
			p := &parts[i]
			p.deviation -= sum.deviation * p.all / sum.all
			squares += p.deviation * p.deviation
			if i > first {
				products += p.deviation * parts[i-1].deviation
				pairs++
			}
		}
	}
	n := float64(len(parts))
	v = varianceOf(parts, means)
	if v.freedom == 0 || pairs == 0 || squares == 0 {
		return v, len(parts)
	}
	correlation := products / pairs / (squares / n)
	if ofRun := n / means; ofRun >= minBlocks {
		correlation = (ofRun*correlation + 1) / (ofRun - 3) // its estimate is low by (1 + 3 correlation) / n
	}
	correlation = min(max(correlation, 0), maxCorrelation)
	factor := (1 + correlation) / (1 - correlation)
	return variance{v.value * factor, max((v.freedom+1)/factor-1, minFreedom)}, len(parts)
}

// maxCorrelation is the largest one that some dozens of blocks show.
const maxCorrelation = 0.9
