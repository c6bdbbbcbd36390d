// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package history

import (
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

// Part holds distributions of a Sum.
type Part struct {
	quantities [Quantities]sketch.Sketch
	prompts    [series.PromptClasses]sketch.Sketch
}

// quantityIndex holds the index in series.HistoryQuantities of each quantity.
var quantityIndex = func() (index [numbers.Distributions]int) {
	for i, q := range series.HistoryQuantities {
		index[q] = i
	}
	return index
}()

// Of returns the distribution of one of series.HistoryQuantities.
func (p *Part) Of(q numbers.ID) *sketch.Sketch { return &p.quantities[quantityIndex[q]] }

// Prompts returns the distribution of time to first token of a class of prompts.
func (p *Part) Prompts(c series.PromptClass) *sketch.Sketch { return &p.prompts[c] }

// Reset empties the sum and keeps its allocations.
func (s *Sum) Reset() {
	s.Requests, s.Counts = [Outcomes]uint64{}, [Counts]float64{}
	for _, verdicts := range s.SLOs {
		*verdicts = Verdicts{}
	}
	for i := range s.Parts {
		part := &s.Parts[i]
		for j := range part.quantities {
			resetUsed(&part.quantities[j])
		}
		for j := range part.prompts {
			resetUsed(&part.prompts[j])
		}
	}
}

// resetUsed does not write to an empty sketch: most are, and they are many.
func resetUsed(s *sketch.Sketch) {
	if s.Count() > 0 {
		s.Reset()
	}
}

// Merge adds another sum.
func (s *Sum) Merge(other *Sum) {
	for i := range other.Parts {
		s.Requests[i] += other.Requests[i]
		part, more := &s.Parts[i], &other.Parts[i]
		for j := range more.quantities {
			part.quantities[j].Merge(&more.quantities[j])
		}
		for j := range more.prompts {
			part.prompts[j].Merge(&more.prompts[j])
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
				part.quantities[j].Merge(values)
			}
		}
		for _, p := range outcome.Prompts {
			part.prompts[p.Class].Add(p.TimeToFirstToken, 1)
		}
	}
	for c, n := range g.Counts {
		s.Counts[c] += n
	}
	for _, slo := range g.SLOs {
		AddVerdicts(&s.SLOs, slo.Name, (*Verdicts)(&slo.Requests))
	}
}
