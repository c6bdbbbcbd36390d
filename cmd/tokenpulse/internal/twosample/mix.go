// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package twosample

import (
	"fmt"
	"strings"

	"gonum.org/v1/gonum/mathext"
)

// Mix is the lengths of prompts in both arms.
type Mix struct {
	// Changed is set if the arms differ in the lengths of their prompts. They are then compared within bands: numbers are those of the
	// baseline's mix.
	Changed bool   `json:"changed"`
	Bands   []Band `json:"bands"`
}

// Band is a range of prompt lengths that an arm has requests of.
type Band struct {
	// Prompts is the range of tokens, such as 257-512, or unknown: successful requests without a reported length.
	Prompts   string `json:"prompts"`
	Baseline  uint64 `json:"baseline"`
	Candidate uint64 `json:"candidate"`
	// Compared is false if an arm has too few requests of a changed mix.
	Compared bool `json:"compared"`

	band int
}

// bandNames are the ranges of the bands.
var bandNames = func() (names [bandCount]string) {
	names[unknownBand] = "unknown"
	from := 1
	for b := unknownBand + 1; b < bandCount-1; b++ {
		to := 1 << (shortestBand + b - 1)
		names[b] = fmt.Sprintf("%d-%d", from, to)
		from = to + 1
	}
	names[bandCount-1] = fmt.Sprintf("%d+", from)
	return names
}()

const (
	// minInBand is the number of requests of each arm that a band of a changed mix needs.
	minInBand = 30
	// minCompared is the share of each arm's requests that must be in such bands.
	minCompared = 0.8
	// mixAlpha is the probability with which the same mix counts as changed. Then it only costs a bit of precision.
	mixAlpha = 0.05
)

// newMix compares the mix of two arms.
func newMix(baseline, candidate *group) (m Mix) {
	var sums [2]float64
	for b := range bandCount {
		n := [2]uint64{baseline.requests(b), candidate.requests(b)}
		if n[0]+n[1] == 0 {
			continue
		}
		m.Bands = append(m.Bands, Band{bandNames[b], n[0], n[1], true, b})
		sums[0] += float64(n[0])
		sums[1] += float64(n[1])
	}
	var chiSquare float64
	for _, b := range m.Bands {
		both := float64(b.Baseline + b.Candidate)
		for arm, n := range [2]uint64{b.Baseline, b.Candidate} {
			expected := both * sums[arm] / (sums[0] + sums[1])
			chiSquare += (float64(n) - expected) * (float64(n) - expected) / expected
		}
	}
	freedom := float64(len(m.Bands) - 1)
	if m.Changed = freedom > 0 && sums[0] > 0 && sums[1] > 0 && mathext.GammaIncRegComp(freedom/2, chiSquare/2) < mixAlpha; m.Changed {
		for i := range m.Bands {
			b := &m.Bands[i]
			b.Compared = min(b.Baseline, b.Candidate) >= minInBand
		}
	}
	return m
}

// requests returns how many requests of a band the mix counts. Failed requests often report no length: a change of their number is none
// of the mix.
func (g *group) requests(band int) uint64 {
	switch c := g[band]; {
	case c == nil:
		return 0
	case band == unknownBand:
		return c.requests - c.unsuccessful
	default:
		return c.requests
	}
}

// withoutLength returns how many unsuccessful requests have a prompt of unknown length.
func (g *group) withoutLength() uint64 {
	if g[unknownBand] == nil {
		return 0
	}
	return g[unknownBand].unsuccessful
}

// compared returns the share of each arm's requests in bands that are compared.
func (m *Mix) compared() (baseline, candidate float64) {
	var all, in [2]float64
	for _, b := range m.Bands {
		for arm, n := range [2]uint64{b.Baseline, b.Candidate} {
			all[arm] += float64(n)
			if b.Compared {
				in[arm] += float64(n)
			}
		}
	}
	return in[0] / all[0], in[1] / all[1]
}

// refuse returns why the arms cannot be compared, or nothing.
func (m *Mix) refuse() (none Decision) {
	b, c := m.compared()
	if !m.Changed || min(b, c) >= minCompared {
		return none
	}
	return undecided(PromptMix, "the lengths of prompts differ too much: %.0f%% of the baseline's requests and %.0f%% of the candidate's are of lengths"+
		" that both have %d times; send the same workload to both", 100*b, 100*c, minInBand)
}

// note says that the mix changed.
func (m *Mix) note() string {
	s := "the lengths of prompts differ: the arms are compared within bands of it, in the baseline's mix"
	if names := m.leftOut(); names != "" {
		s += fmt.Sprintf("; left out, with less than %d requests in an arm: %s", minInBand, names)
	}
	return s
}

// leftOut names the bands that are not compared.
func (m *Mix) leftOut() string {
	var names []string
	for _, b := range m.Bands {
		if !b.Compared {
			names = append(names, b.Prompts)
		}
	}
	return strings.Join(names, ", ")
}

// weights returns the baseline's mix, among bands for which both arms have what is compared. ok is false if there are none.
func (m *Mix) weights(has func(band int) bool) (w weights, ok bool) {
	if !m.Changed {
		w[pooledBand] = 1
		return w, has(pooledBand)
	}
	var sum float64
	for _, b := range m.Bands {
		if b.Compared && has(b.band) {
			w[b.band] = float64(b.Baseline)
			sum += w[b.band]
		}
	}
	for b := range w {
		w[b] /= sum
	}
	return w, sum > 0
}

// pooledBand is the band of all requests of an arm whose bands are merged.
const pooledBand = unknownBand

// pooled returns the arm with its bands merged.
func (a *Arm) pooled() *Arm {
	to := *a
	to.blocks, to.replicas = make(map[blockKey]*group, len(a.blocks)), make([]*group, len(a.replicas))
	for key, g := range a.blocks {
		to.blocks[key] = g.pooled()
	}
	for i, g := range a.replicas {
		to.replicas[i] = g.pooled()
	}
	return &to
}

func (g *group) pooled() *group {
	p := &group{}
	for _, c := range g {
		if c != nil {
			p.band(pooledBand).merge(c, same)
		}
	}
	return p
}
