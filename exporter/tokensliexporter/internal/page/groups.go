// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"cmp"
	"slices"

	"github.com/tokenpulse/tokenpulse/exporter/tokensliexporter/internal/history"
	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/series"
)

// grouping adds up the selected series by the value of a dimension, the vantage or the
// outcome.
type grouping struct {
	page  *Page
	query *query
	by    int // index of the dimension, or byVantage or byOutcome
	known map[history.Key]*history.Sum
	sums  map[string]*history.Sum // by value; one for all if by is byOutcome
}

const (
	byVantage = -1
	byOutcome = -2
)

// newGrouping returns a grouping by the query's `by`.
func (p *Page) newGrouping(q *query) *grouping {
	g := &grouping{page: p, query: q, by: slices.Index(p.Dimensions, q.by), known: map[history.Key]*history.Sum{}, sums: map[string]*history.Sum{}}
	if g.by < 0 {
		g.by = byVantage
		if q.by == paramOutcome {
			g.by = byOutcome
		}
	}
	return g
}

// of returns the sum of a series' group, or nil if the series is not selected.
func (g *grouping) of(key history.Key) *history.Sum {
	if sum, ok := g.known[key]; ok {
		return sum
	}
	sum := g.find(key)
	g.known[key] = sum
	return sum
}

func (g *grouping) find(key history.Key) *history.Sum {
	id := series.LabelsOf(key.Value())
	if !g.query.filter.selects(&id) {
		return nil
	}
	value := ""
	switch g.by {
	case byOutcome:
	case byVantage:
		value = id.Vantage
	default:
		value = dimension(&id, g.by)
	}
	if g.sums[value] == nil {
		g.sums[value] = new(history.Sum)
	}
	return g.sums[value]
}

// want selects what the grouping needs to read for distributions of some quantities.
func (g *grouping) want(quantities ...numbers.ID) *history.Want {
	if g.by == byOutcome {
		return g.query.filter.apart(quantities...)
	}
	return g.query.filter.together(quantities...)
}

// group is one group of a grouping. Its numbers are those that were added since the last
// reset of the grouping.
type group struct {
	value   string
	sum     *history.Sum
	outcome int // or negative if it has all selected ones
}

// groups returns the groups that the query asks for, and how many there are.
func (g *grouping) groups() (chosen []group, total int) {
	var all []group
	if g.by == byOutcome {
		for outcome, name := range series.OutcomeNames {
			if sum := g.sums[""]; sum != nil && sum.Requests[outcome] > 0 {
				all = append(all, group{name, sum, outcome})
			}
		}
	} else {
		for value, sum := range g.sums {
			if group := (group{value, sum, -1}); group.requests() > 0 {
				all = append(all, group)
			}
		}
	}
	if g.query.wanted != nil {
		for _, value := range g.query.wanted {
			if i := slices.IndexFunc(all, func(g group) bool { return g.value == value }); i >= 0 {
				chosen = append(chosen, all[i])
			}
		}
		return chosen, len(all)
	}
	slices.SortFunc(all, func(a, b group) int {
		return cmp.Or(cmp.Compare(b.requests(), a.requests()), cmp.Compare(a.value, b.value))
	})
	return all[:min(len(all), g.query.groupLimit)], len(all)
}

// keep makes the grouping add up only these groups from now on, starting empty.
func (g *grouping) keep(chosen []group) {
	kept := map[*history.Sum]bool{}
	for _, c := range chosen {
		kept[c.sum] = true
	}
	for key, sum := range g.known {
		if !kept[sum] {
			g.known[key] = nil
		}
	}
	g.reset()
}

func (g *grouping) reset() {
	for _, sum := range g.sums {
		sum.Reset()
	}
}

func (g *group) part() *history.Part { return &g.sum.Parts[max(g.outcome, 0)] }

func (g *group) requests() uint64 {
	if g.outcome >= 0 {
		return g.sum.Requests[g.outcome]
	}
	return total(g.sum)
}

// tokens returns the output tokens, which are missing by outcome.
func (g *group) tokens() number {
	if g.outcome >= 0 {
		return missing
	}
	return number(g.sum.Counts[series.CountOf(numbers.OutputTokens)])
}

func total(sum *history.Sum) (requests uint64) {
	for _, n := range sum.Requests {
		requests += n
	}
	return requests
}
