// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"slices"

	"github.com/tokenpulse/tokenpulse/internal/history"
	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/series"
)

// trended are the quantities that trends have percentiles of.
var trended = []numbers.ID{numbers.TimeToFirstToken, numbers.TimePerOutputToken, numbers.InterTokenLatency, numbers.RequestDuration}

type trends struct {
	scope
	StepSeconds float64  `json:"step_seconds"`
	Times       []number `json:"times"`
	Total       rates    `json:"total"`
	By          string   `json:"by"`
	GroupsTotal int      `json:"groups_total"`
	Groups      []*trend `json:"groups"`
	Others      *trend   `json:"others"`
}

type trend struct {
	Value    string `json:"value"`
	Requests uint64 `json:"requests"`
	rates
	Indicators map[string]*percentiles[[]number] `json:"indicators"`
}

// rates holds a value for each step.
type rates struct {
	RequestsPerSecond     []number `json:"requests_per_second"`
	OutputTokensPerSecond []number `json:"output_tokens_per_second"`
	InFlight              []number `json:"in_flight"`
}

func newRates(axis *timeAxis) rates { return rates{axis.empty(), axis.empty(), axis.empty()} }

// set sets the rates of a step.
func (r *rates) set(step int, of rate) {
	r.RequestsPerSecond[step], r.OutputTokensPerSecond[step], r.InFlight[step] = of.requests, of.tokens, of.inFlight
}

// rate holds the rates of one step.
type rate struct{ requests, tokens, inFlight number }

// rate returns the rates of a step, which follow from what was added up over it.
func (a *timeAxis) rate(step int, requests uint64, tokens number, part *history.Part) rate {
	covered := number(a.covered(step))
	return rate{number(requests) / covered, tokens / covered, number(part.Of(numbers.RequestDuration).Sum()) / covered} // Little's law
}

func (p *Page) trends(q *query) (any, error) {
	axis := q.axis()
	grouping := p.newGrouping(q)
	for slot := range q.view.Slots() {
		slot.AddTo(grouping.of, grouping.want(q.ranked()...))
	}
	groups, others, count := grouping.groups()
	answer := &trends{
		scope: q.scope(), StepSeconds: axis.step.Seconds(), Times: axis.times(), Total: newRates(&axis),
		By: q.by, GroupsTotal: count, Groups: make([]*trend, len(groups)),
	}
	for i := range groups {
		answer.Groups[i] = newTrend(groups[i].value, groups[i].requests(), &axis)
	}
	if rest := requestsOf(others); rest > 0 && others[0].outcome < 0 {
		answer.Others = newTrend("", rest, &axis)
	}
	everything, duration := p.newSelection(q), q.filter.together(numbers.RequestDuration)
	rest := grouping.keep(groups, others)
	axis.each(&q.view, func(step int, slots []history.Slot) {
		sum := everything.add(slices.Values(slots), duration)
		answer.Total.set(step, axis.rate(step, total(sum), number(sum.Counts[series.CountOf(numbers.OutputTokens)]), &sum.Parts[0]))
		grouping.reset()
		for _, slot := range slots {
			slot.AddTo(grouping.of, grouping.want(trended...))
		}
		for i := range groups {
			answer.Groups[i].add(step, &axis, &groups[i])
		}
		if rest != nil {
			answer.Others.add(step, &axis, rest)
		}
	})
	return answer, nil
}

func newTrend(value string, requests uint64, axis *timeAxis) *trend {
	return &trend{Value: value, Requests: requests, rates: newRates(axis), Indicators: map[string]*percentiles[[]number]{}}
}

// add adds what a group adds up to over one step.
func (t *trend) add(step int, axis *timeAxis, g *group) {
	part := g.part()
	t.set(step, axis.rate(step, g.requests(), g.tokens(), part))
	for _, indicator := range indicators {
		if !slices.Contains(trended, indicator.quantity) || part.Of(indicator.quantity).Count() == 0 {
			continue
		}
		into := t.Indicators[indicator.name]
		if into == nil {
			into = &percentiles[[]number]{axis.empty(), axis.empty(), axis.empty()}
			t.Indicators[indicator.name] = into
		}
		at := percentilesOf(part.Of(indicator.quantity))
		into.P50[step], into.P95[step], into.P99[step] = at.P50, at.P95, at.P99
	}
}
