// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"maps"
	"slices"
	"time"

	"github.com/tokenpulse/tokenpulse/internal/history"
	"github.com/tokenpulse/tokenpulse/internal/series"
	"github.com/tokenpulse/tokenpulse/internal/slo"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
)

type sloNow struct {
	SLO                 string     `json:"slo"`
	Vantage             string     `json:"vantage"`
	Objective           number     `json:"objective"`
	Indicator           *string    `json:"indicator"`
	Threshold           number     `json:"threshold"`
	Good                uint64     `json:"good"`
	Bad                 uint64     `json:"bad"`
	NotEligible         uint64     `json:"not_eligible"`
	Judged              number     `json:"judged"`
	Attainment          number     `json:"attainment"`
	BurnRates           []burnRate `json:"burn_rates"`
	BudgetRemaining     number     `json:"budget_remaining"`
	BudgetWindowSeconds number     `json:"budget_window_seconds"`
}

type burnRate struct {
	WindowSeconds float64 `json:"window_seconds"`
	Rate          number  `json:"rate"`
}

// sloNames returns the SLOs that have an objective, or a verdict in one of the sums, sorted.
func (p *Page) sloNames(sums ...*history.Sum) (names []string) {
	for _, sum := range sums {
		names = slices.AppendSeq(names, maps.Keys(sum.SLOs))
	}
	for i := range p.Objectives {
		names = append(names, p.Objectives[i].SLO)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// slosNow returns the SLOs that have an objective or a verdict, in the order of their names.
// requests is the number of requests of all outcomes, as verdicts have no outcome.
func (p *Page) slosNow(q *query, sum *history.Sum, requests uint64) []sloNow {
	recent, defined := p.recent(q.now, &q.filter), p.definitions()
	all := []sloNow{}
	for _, name := range p.sloNames(append(q.elsewhere(), sum)...) {
		vantage, verdicts, requests, budgets := q.seen.Shown, sum.Verdicts(name), requests, recent
		if v := q.judge(name, verdicts); v != timeline.VantageUnspecified {
			of := &q.seen.sums[v]
			vantage, verdicts, requests = v.String(), of.Verdicts(name), total(of)
			budgets = p.recent(q.now, &filter{dimensions: q.filter.dimensions, vantages: only(v)})
		}
		s := sloNow{
			SLO: name, Vantage: vantage, Objective: missing, BudgetRemaining: missing, BudgetWindowSeconds: missing,
			Good: verdicts[slo.Good], Bad: verdicts[slo.Bad], NotEligible: verdicts[slo.NotEligible],
			Judged:     min(1, number(verdicts[slo.Good]+verdicts[slo.Bad])/number(requests)), // an SLO of traces may judge more
			Attainment: share(verdicts), BurnRates: []burnRate{},
		}
		s.Indicator, s.Threshold = p.threshold(defined, name)
		if o := p.objective(name); o != nil {
			s.Objective, s.BudgetWindowSeconds = number(o.Objective), number(o.Window.Seconds())
			if !q.ended { // the tracker knows the present only
				s.setBudget(o, budgets[name])
			}
		}
		all = append(all, s)
	}
	return all
}

func (p *Page) objective(name string) *slo.Objective {
	for i := range p.Objectives {
		if p.Objectives[i].SLO == name {
			return &p.Objectives[i]
		}
	}
	return nil
}

// recent returns the budgets of the selected series together, by SLO.
func (p *Page) recent(now time.Time, selected *filter) map[string]slo.Recent {
	all := map[string]slo.Recent{}
	p.Tracker.Visit(now, func(b *slo.Budgets) {
		if id := series.LabelsOf(b.Key); !selected.selects(&id) {
			return
		}
		for i := range b.Each {
			sum, more := all[b.Each[i].SLO], &b.Each[i].Recent
			for w := range sum.Burn {
				sum.Burn[w].Good += more.Burn[w].Good
				sum.Burn[w].Bad += more.Burn[w].Bad
			}
			sum.Budget.Good += more.Budget.Good
			sum.Budget.Bad += more.Budget.Bad
			all[b.Each[i].SLO] = sum
		}
	})
	return all
}

func (s *sloNow) setBudget(o *slo.Objective, recent slo.Recent) {
	for w, window := range slo.BurnWindows {
		rate := burnRate{window.Seconds(), missing}
		if r, ok := recent.Burn[w].BurnRate(o.Objective); ok {
			rate.Rate = number(r)
		}
		s.BurnRates = append(s.BurnRates, rate)
	}
	if remaining, ok := recent.Budget.BudgetRemaining(o.Objective); ok {
		s.BudgetRemaining = number(remaining)
	}
}
