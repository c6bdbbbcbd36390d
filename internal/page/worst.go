// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"maps"
	"slices"

	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/sketch"
	"github.com/tokenpulse/tokenpulse/internal/slo"
)

type worst struct {
	scope
	Indicators map[string]*slowGroup `json:"indicators"`
	SLOs       map[string]*badGroup  `json:"slos"`
}

// standout is a group of one dimension that has more bad or slow requests than its size explains.
type standout struct {
	By       string `json:"by"`
	Value    string `json:"value"`
	Requests uint64 `json:"requests"`
	// ShareOfBad is the group's share of the bad requests, or of those slower than the p95 of all others.
	ShareOfBad number `json:"share_of_bad"`
	// ShareOfAll is its share of all requests that could be.
	ShareOfAll number `json:"share_of_all"`

	evidence float64
}

type slowGroup struct {
	standout
	P95 number `json:"p95"`
}

type badGroup struct {
	standout
	Attainment number `json:"attainment"`
}

// slowestOf are the indicators of which worst has the slowest group.
var slowestOf = [...]numbers.ID{numbers.TimeToFirstToken, numbers.TimePerOutputToken}

// worst answers with the group that stands out most, over the groups of all dimensions: a slow replica may hide behind a
// fast model. Without one, it names none: the fault is everywhere, or too rare to say where. Of groups that stand out
// alike, that of the dimension which splits the charts wins.
func (p *Page) worst(q *query) (any, error) {
	answer := &worst{scope: q.scope(), Indicators: map[string]*slowGroup{}, SLOs: map[string]*badGroup{}}
	tallies := p.newTallies(q)
	for slot := range q.view.Slots() {
		tallies.add(&slot)
	}
	for i, of := range tallies.dimensions {
		groups := tallies.groups[i]
		for _, value := range slices.Sorted(maps.Keys(groups)) {
			if value == overflowValue { // it holds requests of many groups
				continue
			}
			found := standout{By: p.dimensions[of], Value: value, Requests: groups[value].requests}
			answer.compareSpeed(found, groups[value], tallies.everything)
			answer.compareVerdicts(found, groups[value], tallies.everything)
		}
	}
	return answer, nil
}

// compareSpeed takes a group in for each indicator of which it stands out most so far.
func (w *worst) compareSpeed(g standout, group, everything *tally) {
	for i, quantity := range slowestOf {
		values := &group.speed[i]
		if values.Count() < enough {
			continue
		}
		var rest sketch.Sketch
		rest.Merge(&everything.speed[i])
		if rest.Subtract(values) != nil || rest.Count() == 0 {
			continue
		}
		p95, others := percentilesOf(values).P95, percentilesOf(&rest).P95
		if p95 <= others*(1+alike) {
			continue
		}
		limit := sketch.Index(float64(others))
		c := contrast{bad: above(values, limit), of: values.Count(), restBad: above(&rest, limit), restOf: rest.Count()}
		name := quantity.APIName()
		if held := w.Indicators[name]; g.claim(c) && (held == nil || g.evidence > held.evidence) {
			w.Indicators[name] = &slowGroup{g, p95}
		}
	}
}

// above returns how many values are in buckets above one.
func above(s *sketch.Sketch, bucket int) (n uint64) {
	for index, count := range s.Buckets() {
		if index > bucket {
			n += count
		}
	}
	return n
}

// compareVerdicts takes a group in for each SLO of which it stands out most so far.
func (w *worst) compareVerdicts(g standout, group, everything *tally) {
	for name, all := range everything.slos {
		verdicts := group.slos[name]
		if verdicts == nil {
			continue
		}
		c := contrast{bad: verdicts[slo.Bad], of: verdicts[slo.Bad] + verdicts[slo.Good]}
		c.restBad, c.restOf = all[slo.Bad]-c.bad, all[slo.Bad]+all[slo.Good]-c.of
		if held := w.SLOs[name]; g.claim(c) && (held == nil || g.evidence > held.evidence) {
			w.SLOs[name] = &badGroup{g, share(*verdicts)}
		}
	}
}

// claim reports whether the group stands out, and keeps by how much.
func (g *standout) claim(c contrast) bool {
	if !c.standsOut() {
		return false
	}
	g.evidence = c.evidence()
	g.ShareOfBad, g.ShareOfAll = c.shares()
	return true
}
