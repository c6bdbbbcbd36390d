// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"maps"
	"slices"
	"strings"

	"github.com/tokenpulse/tokenpulse/internal/history"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/series"
)

// grouping adds up the selected series by the value of a dimension, the vantage or the
// outcome.
type grouping struct {
	page   *Page
	query  *query
	filter filter
	by     int // index of the dimension, or byVantage or byOutcome
	known  map[history.Key]*history.Sum
	sums   map[string]*history.Sum // by value; one for all if by is byOutcome
}

const (
	byVantage = -1
	byOutcome = -2
)

// newGrouping returns a grouping by the query's `by`.
func (p *Page) newGrouping(q *query) *grouping {
	g := &grouping{
		page: p, query: q, filter: q.filter, by: slices.Index(p.dimensions, q.by),
		known: map[history.Key]*history.Sum{}, sums: map[string]*history.Sum{},
	}
	if g.by < 0 {
		g.by = byVantage
		if q.by == paramOutcome {
			g.by = byOutcome
		}
	}
	if g.by == byVantage && !q.namesVantage() { // the groups are what the vantages are chosen from
		g.filter.vantages = anyVantage
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
	if !g.filter.selects(&id) {
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
		return g.filter.apart(quantities...)
	}
	return g.filter.together(quantities...)
}

// group is one group of a grouping. Its numbers are those that were added since the last
// reset of the grouping.
type group struct {
	value   string
	sum     *history.Sum
	outcome int // or negative if it has all selected ones
}

// all returns the groups that have requests, in any order.
func (g *grouping) all() (all []group) {
	if g.by == byOutcome {
		for outcome, name := range series.OutcomeNames {
			if sum := g.sums[""]; sum != nil && sum.Requests[outcome] > 0 {
				all = append(all, group{name, sum, outcome})
			}
		}
		return all
	}
	for value, sum := range g.sums {
		if group := (group{value, sum, -1}); group.requests() > 0 {
			all = append(all, group)
		}
	}
	return all
}

// groups returns the groups that the query asks for, those that it leaves out, and how many there
// are. None is left out of a query for values.
func (g *grouping) groups() (chosen, others []group, total int) {
	all := g.all()
	if g.query.wanted != nil {
		for _, value := range g.query.wanted {
			if i := slices.IndexFunc(all, func(g group) bool { return g.value == value }); i >= 0 {
				chosen = append(chosen, all[i])
			}
		}
		return chosen, nil, len(all)
	}
	g.page.rank(all, g.query.rank)
	n := min(len(all), g.query.groupLimit)
	return all[:n], all[n:], len(all)
}

// keep makes the grouping start again from 0, with the chosen groups only. The others become one group, which
// it returns, or nil if there are none.
func (g *grouping) keep(chosen, others []group) (rest *group) {
	into := map[*history.Sum]*history.Sum{}
	for _, c := range chosen {
		into[c.sum] = c.sum
	}
	if len(others) > 0 && g.by != byOutcome { // outcomes share a sum
		rest = &group{sum: new(history.Sum), outcome: -1}
		for _, o := range others {
			into[o.sum] = rest.sum
		}
	}
	maps.DeleteFunc(g.sums, func(_ string, sum *history.Sum) bool { return into[sum] != sum }) // reset would touch them in each step
	if rest != nil {
		g.sums[allOthers] = rest.sum
	}
	for key, sum := range g.known {
		g.known[key] = into[sum]
	}
	g.reset()
	return rest
}

// allOthers is the key of the groups that are left out. No label is as long.
var allOthers = strings.Repeat("x", names.MaxLabelLength+1)

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

// requestsOf returns the requests of several groups.
func requestsOf(groups []group) (requests uint64) {
	for i := range groups {
		requests += groups[i].requests()
	}
	return requests
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
