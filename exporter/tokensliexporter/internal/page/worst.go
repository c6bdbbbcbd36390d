// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"cmp"
	"slices"

	"github.com/tokenpulse/tokenpulse/exporter/tokensliexporter/internal/compare"
	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/slo"
)

type worst struct {
	Range      string                `json:"range"`
	Seen       *seen                 `json:"vantage"`
	Indicators map[string]*slowGroup `json:"indicators"`
	SLOs       map[string]*badGroup  `json:"slos"`
}

// groupRef names a group of one dimension.
type groupRef struct {
	By       string `json:"by"`
	Value    string `json:"value"`
	Requests uint64 `json:"requests"`
}

type slowGroup struct {
	groupRef
	P95 number `json:"p95"`
}

type badGroup struct {
	groupRef
	Attainment number `json:"attainment"`
}

// slowestOf are the indicators of which worst has the slowest group.
var slowestOf = []numbers.ID{numbers.TimeToFirstToken, numbers.TimePerOutputToken}

// worst answers with the group that is worst, over the groups of all dimensions: a slow replica may hide
// behind a fast model. Dimensions with one group say nothing. Of equal groups, that of the dimension that
// splits the charts wins.
func (p *Page) worst(q *query) (any, error) {
	view := p.view(q)
	answer := &worst{Range: q.period.name, Seen: q.seen, Indicators: map[string]*slowGroup{}, SLOs: map[string]*badGroup{}}
	dimensions := append([]string{p.groupBy()}, p.dimensions...)
	for i, by := range dimensions {
		if i > 0 && by == dimensions[0] || by == paramVantage { // vantages see the same requests
			continue
		}
		split := *q
		split.by = by
		grouping := p.newGrouping(&split)
		for slot := range view.Slots() {
			slot.AddTo(grouping.of, grouping.want(slowestOf...))
		}
		groups := grouping.all()
		if len(groups) < 2 {
			continue
		}
		slices.SortFunc(groups, func(a, b group) int { return cmp.Compare(a.value, b.value) })
		for i := range groups {
			answer.add(groupRef{by, groups[i].value, groups[i].requests()}, &groups[i])
		}
	}
	return answer, nil
}

// add takes a group in for each number of which it is the worst so far.
func (w *worst) add(ref groupRef, g *group) {
	for _, quantity := range slowestOf {
		name, p95 := compare.NameOf(quantity), percentilesOf(g.part().Of(quantity)).P95
		if held := w.Indicators[name]; g.part().Of(quantity).Count() > 0 && (held == nil || p95 > held.P95) {
			w.Indicators[name] = &slowGroup{ref, p95}
		}
	}
	for name, verdicts := range g.sum.SLOs {
		attainment := share(verdicts)
		if held := w.SLOs[name]; verdicts[slo.Bad] > 0 && (held == nil || attainment < held.Attainment) {
			w.SLOs[name] = &badGroup{ref, attainment}
		}
	}
}
