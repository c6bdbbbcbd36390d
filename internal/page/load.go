// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/tokenpulse/tokenpulse/internal/history"
	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/series"
	"github.com/tokenpulse/tokenpulse/internal/slo"
)

type load struct {
	scope
	SlotSeconds           float64   `json:"slot_seconds"`
	InFlight              loadCurve `json:"in_flight"`
	OutputTokensPerSecond loadCurve `json:"output_tokens_per_second"`
	// Capacity is that of the present.
	Capacity []loadCapacity `json:"capacity"`
}

type loadCurve struct {
	Points []loadPoint   `json:"points"`
	SLOs   []largestLoad `json:"slos"`
}

type loadPoint struct {
	Load               number       `json:"load"`
	From               number       `json:"from"`
	To                 number       `json:"to"`
	Slots              int          `json:"slots"`
	Requests           uint64       `json:"requests"`
	TimeToFirstToken   *Summary     `json:"time_to_first_token"`
	TimePerOutputToken *Summary     `json:"time_per_output_token"`
	SLOs               []attainment `json:"slos"`
}

type attainment struct {
	SLO        string `json:"slo"`
	Good       uint64 `json:"good"`
	Bad        uint64 `json:"bad"`
	Attainment number `json:"attainment"`
}

type largestLoad struct {
	SLO         string  `json:"slo"`
	Objective   float64 `json:"objective"`
	LargestLoad number  `json:"largest_load"`
}

// bin takes the slots with a similar load together.
type bin struct {
	slots int
	loads float64 // sum over the slots
	sum   history.Sum
}

// bins are by the logarithm of the load, 4 per doubling.
type bins map[int]*bin

func (b bins) of(load float64) *bin {
	at := int(math.Ceil(math.Log2(max(load, 1.0/64))*perDoubling)) - 1
	if b[at] == nil {
		b[at] = new(bin)
	}
	b[at].slots++
	b[at].loads += load
	return b[at]
}

func (p *Page) load(q *query) (any, error) {
	axis := q.axis()
	inFlight, throughput := bins{}, bins{}
	selection := p.newSelection(q)
	duration, latency := q.filter.together(numbers.RequestDuration), q.filter.together(numbers.TimeToFirstToken, numbers.TimePerOutputToken)
	axis.each(&q.view, func(step int, slots []history.Slot) {
		sum := selection.add(slices.Values(slots), duration)
		if total(sum) == 0 || p.Recording == nil && axis.start(step+1).After(axis.now) { // an open slot has no load yet
			return
		}
		of := axis.rate(step, total(sum), number(sum.Counts[series.CountOf(numbers.OutputTokens)]), &sum.Parts[0])
		for _, bin := range []*bin{inFlight.of(float64(of.inFlight)), throughput.of(float64(of.tokens))} {
			for _, slot := range slots {
				slot.AddTo(selection.into(&bin.sum), latency)
			}
		}
	})
	return &load{
		scope: q.scope(), SlotSeconds: axis.step.Seconds(),
		InFlight: p.curve(inFlight), OutputTokensPerSecond: p.curve(throughput), Capacity: p.loadCapacities(q),
	}, nil
}

func (p *Page) curve(all bins) loadCurve {
	curve := loadCurve{Points: []loadPoint{}, SLOs: []largestLoad{}}
	for _, at := range slices.Sorted(maps.Keys(all)) {
		bin := all[at]
		part := &bin.sum.Parts[0]
		curve.Points = append(curve.Points, loadPoint{
			Load: number(bin.loads / float64(bin.slots)),
			From: number(math.Exp2(float64(at) / perDoubling)), To: number(math.Exp2(float64(at+1) / perDoubling)),
			Slots: bin.slots, Requests: total(&bin.sum),
			TimeToFirstToken:   summarize(part.Of(numbers.TimeToFirstToken)),
			TimePerOutputToken: summarize(part.Of(numbers.TimePerOutputToken)),
			SLOs:               attainments(&bin.sum),
		})
	}
	for i := range p.Objectives {
		objective := &p.Objectives[i]
		curve.SLOs = append(curve.SLOs, largestLoad{objective.SLO, objective.Objective, curve.largest(objective)})
	}
	return curve
}

// largest returns the largest load up to which every load met an objective.
func (c *loadCurve) largest(objective *slo.Objective) number {
	largest := missing
	for i := range c.Points {
		for _, of := range c.Points[i].SLOs {
			if of.SLO != objective.SLO || of.Good+of.Bad == 0 {
				continue
			}
			if float64(of.Attainment) < objective.Objective {
				return largest
			}
			largest = c.Points[i].Load
		}
	}
	return largest
}

// attainments returns the share of good requests of each SLO, in the order of their names.
func attainments(sum *history.Sum) []attainment {
	all := []attainment{}
	for name, verdicts := range sum.SLOs {
		all = append(all, attainment{name, verdicts[slo.Good], verdicts[slo.Bad], share(*verdicts)})
	}
	slices.SortFunc(all, func(a, b attainment) int { return cmp.Compare(a.SLO, b.SLO) })
	return all
}

func share(v history.Verdicts) number {
	return number(v[slo.Good]) / number(v[slo.Good]+v[slo.Bad]) // NaN if none is eligible
}
