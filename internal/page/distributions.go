// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"github.com/tokenpulse/tokenpulse/internal/history"
	"github.com/tokenpulse/tokenpulse/internal/series"
)

type distributions struct {
	scope
	By          string         `json:"by"`
	GroupsTotal int            `json:"groups_total"`
	Groups      []distribution `json:"groups"`
	Others      *distribution  `json:"others"`
}

type distribution struct {
	Value        string              `json:"value"`
	Requests     uint64              `json:"requests"`
	OutputTokens number              `json:"output_tokens"`
	Indicators   map[string]*Summary `json:"indicators"`
}

func (p *Page) distributions(q *query) (any, error) {
	withCDF, err := q.choice(paramCDF, []string{"false", "true"}, 0)
	if err != nil {
		return nil, err
	}
	grouping := p.newGrouping(q)
	for slot := range q.view.Slots() {
		slot.AddTo(grouping.of, grouping.want(series.HistoryQuantities[:]...))
	}
	groups, others, count := grouping.groups()
	answer := &distributions{scope: q.scope(), By: q.by, GroupsTotal: count, Groups: []distribution{}}
	for i := range groups {
		answer.Groups = append(answer.Groups, groups[i].distribution(withCDF == 1))
	}
	if len(others) > 0 && others[0].outcome < 0 {
		rest := group{sum: new(history.Sum), outcome: -1}
		for i := range others {
			rest.sum.Merge(others[i].sum)
		}
		of := rest.distribution(withCDF == 1)
		answer.Others = &of
	}
	return answer, nil
}

func (g *group) distribution(withCDF bool) distribution {
	return distribution{g.value, g.requests(), g.tokens(), summaries(g.part(), withCDF)}
}
