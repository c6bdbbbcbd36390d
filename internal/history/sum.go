// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"math"

	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/series"
	"github.com/tokenpulse/tokenpulse/internal/sketch"
	"github.com/tokenpulse/tokenpulse/internal/slo"
)

// Sizes of the arrays of a Sum.
const (
	Outcomes   = len(series.OutcomeNames)
	Quantities = len(series.HistoryQuantities)
	Counts     = len(series.Counters)
)

// Sum adds up the increments of several series and slots. The zero value is empty.
type Sum struct {
	// Requests by outcome.
	Requests [Outcomes]uint64
	// Parts holds the distributions. Want.Part says which outcomes each part has.
	Parts [Outcomes]Part
	// Counts and SLOs are those of all outcomes. After a reset, an SLO may have no verdict.
	Counts [Counts]float64
	SLOs   map[string]*Verdicts
}

// Verdicts counts requests by slo.Verdict.
type Verdicts [slo.Verdicts]uint64

// Part holds distributions of a Sum: those of series.HistoryQuantities, and by the length of the prompt the times to first
// token, of cached prompts apart, and the times per output token, which hardly depend on the cache. It allocates each when
// the first value comes, because most sums have few of them.
type Part [distributions]*sketch.Sketch

// Indexes of a Part.
const (
	firstTTFT     = Quantities
	firstTPOT     = firstTTFT + 2*series.PromptLengths
	distributions = firstTPOT + series.PromptLengths
)

// indexTTFT returns the index of the times to first token of some prompts.
func indexTTFT(l series.PromptLength, cached bool) int {
	index := firstTTFT + 2*int(l)
	if cached {
		index++
	}
	return index
}

// indexTPOT returns the index of the times per output token of some prompts.
func indexTPOT(l series.PromptLength) int { return firstTPOT + int(l) }

// quantityIndex holds the index in series.HistoryQuantities of each quantity.
var quantityIndex = func() (index [numbers.Distributions]int) {
	for i, q := range series.HistoryQuantities {
		index[q] = i
	}
	return index
}()

// Of returns the distribution of one of series.HistoryQuantities, only to read.
func (p *Part) Of(q numbers.ID) *sketch.Sketch { return orEmpty(p[quantityIndex[q]]) }

// TTFTOfPrompts returns the times to first token of prompts, with cached tokens or without any, only to read.
func (p *Part) TTFTOfPrompts(l series.PromptLength, cached bool) *sketch.Sketch {
	return orEmpty(p[indexTTFT(l, cached)])
}

// TPOTOfPrompts returns the times per output token of prompts, only to read.
func (p *Part) TPOTOfPrompts(l series.PromptLength) *sketch.Sketch { return orEmpty(p[indexTPOT(l)]) }

// empty stands for each distribution that has no value.
var empty sketch.Sketch

func orEmpty(s *sketch.Sketch) *sketch.Sketch {
	if s == nil {
		return &empty
	}
	return s
}

// allocated returns a distribution to add to.
func allocated(s **sketch.Sketch) *sketch.Sketch {
	if *s == nil {
		*s = new(sketch.Sketch)
	}
	return *s
}

// Reset empties the sum and keeps its allocations.
func (s *Sum) Reset() {
	s.Requests, s.Counts = [Outcomes]uint64{}, [Counts]float64{}
	for _, verdicts := range s.SLOs {
		*verdicts = Verdicts{}
	}
	for i := range s.Parts {
		for _, values := range s.Parts[i] {
			if values != nil {
				values.Reset()
			}
		}
	}
}

// Merge adds another sum.
func (s *Sum) Merge(other *Sum) {
	for i := range other.Parts {
		s.Requests[i] += other.Requests[i]
		for j, values := range other.Parts[i] {
			if values != nil && values.Count() > 0 {
				allocated(&s.Parts[i][j]).Merge(values)
			}
		}
	}
	for c, n := range other.Counts {
		s.Counts[c] += n
	}
	for name, verdicts := range other.SLOs {
		AddVerdicts(&s.SLOs, name, verdicts)
	}
}

// Verdicts returns those of an SLO, zero if it has none.
func (s *Sum) Verdicts(slo string) (v Verdicts) {
	if held := s.SLOs[slo]; held != nil {
		v = *held
	}
	return v
}

// AddVerdicts adds the requests of an SLO to a map, which may be nil. An SLO that the map has costs no allocation.
func AddVerdicts[Name string | []byte](slos *map[string]*Verdicts, slo Name, more *Verdicts) {
	sum := (*slos)[string(slo)]
	if sum == nil {
		if *slos == nil {
			*slos = map[string]*Verdicts{}
		}
		sum = new(Verdicts)
		(*slos)[string(slo)] = sum
	}
	for verdict, n := range more {
		sum[verdict] += n
	}
}

// addGain adds what a series gained, each outcome to the part of its own.
func (s *Sum) addGain(g *series.Gain) {
	for i := range g.Outcomes {
		outcome, part := &g.Outcomes[i], &s.Parts[i]
		s.Requests[i] += outcome.Requests
		for j, q := range series.HistoryQuantities {
			if values := outcome.Distributions[q]; values != nil {
				allocated(&part[j]).Merge(values)
			}
		}
		for _, p := range outcome.Prompts {
			if !math.IsNaN(p.TimeToFirstToken) {
				allocated(&part[indexTTFT(p.Length, p.Cached)]).Add(p.TimeToFirstToken, 1)
			}
			if !math.IsNaN(p.TimePerOutputToken) {
				allocated(&part[indexTPOT(p.Length)]).Add(p.TimePerOutputToken, 1)
			}
		}
	}
	for c, n := range g.Counts {
		s.Counts[c] += n
	}
	for _, slo := range g.SLOs {
		AddVerdicts(&s.SLOs, slo.Name, (*Verdicts)(&slo.Requests))
	}
}
