// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"cmp"
	"maps"
	"slices"

	"github.com/tokenpulse/tokenpulse/internal/compare"
	"github.com/tokenpulse/tokenpulse/internal/inprocess"
	"github.com/tokenpulse/tokenpulse/internal/series"
)

type meta struct {
	Version    string               `json:"version"`
	Time       number               `json:"time"`
	Dimensions []dimensionValues    `json:"dimensions"`
	Vantages   []string             `json:"vantages"`
	Outcomes   []string             `json:"outcomes"`
	GroupBy    string               `json:"group_by"`
	SplitBy    string               `json:"split_by"`
	SLOs       []sloMeta            `json:"slos"`
	Pairs      []compare.Key        `json:"pairs"`
	Series     seriesCount          `json:"series"`
	History    historyMeta          `json:"history"`
	Timelines  timelinesMeta        `json:"timelines"`
	TraceLink  *string              `json:"trace_link"`
	Endpoints  []inprocess.Endpoint `json:"endpoints"`
	Engines    *int                 `json:"engines_total"`
}

type dimensionValues struct {
	Name   string   `json:"name"`
	Values []string `json:"values"`
	More   int      `json:"more"`
}

type sloMeta struct {
	SLO           string  `json:"slo"`
	Objective     number  `json:"objective"`
	WindowSeconds number  `json:"window_seconds"`
	Indicator     *string `json:"indicator"`
	Threshold     number  `json:"threshold"`
}

type historyMeta struct {
	Since          number `json:"since"`
	MemoryBytes    int    `json:"memory_bytes"`
	MaxMemoryBytes int    `json:"max_memory_bytes"`
	Coarsened      bool   `json:"coarsened"`
}

type timelinesMeta struct {
	Kept    *bool  `json:"kept"`
	Setting string `json:"setting"`
}

// maxEndpoints limits the endpoints of receivers.
const maxEndpoints = 20

// maxDimensionValues limits the values of a dimension to filter by.
const maxDimensionValues = 1000

func (p *Page) meta(q *query) (any, error) {
	if p.Recording == nil {
		q.period = periods[len(periods)-1]
	}
	q.view = p.viewFrom(q, q.since())
	answer := &meta{
		Version: p.Version, Time: seconds(q.now), Outcomes: series.OutcomeNames[:], GroupBy: p.groupBy(), Series: p.seriesCount(),
		History:   historyMeta{Since: missing, Coarsened: p.History.Coarsening() > 0},
		Timelines: timelinesMeta{Setting: "set `timeline: keep` under `token_latency`"},
		TraceLink: known(p.TraceLink), Endpoints: p.endpoints(), Engines: totalOf(p.Engines()), Pairs: p.Comparisons.Pairs(),
	}
	p.chooseVantage(q)
	answer.setValues(p, q.view.Keys(), &q.filter)
	q.filter, _ = p.parseFilter(nil) // the SLOs are those of all requests
	answer.SLOs = []sloMeta{}
	defined := p.definitions()
	for _, name := range p.sloNames(p.newSelection(q).add(q.view.Slots(), q.filter.together())) {
		s := sloMeta{SLO: name, Objective: missing, WindowSeconds: missing}
		s.Indicator, s.Threshold = p.threshold(defined, name)
		if o := p.objective(name); o != nil {
			s.Objective, s.WindowSeconds = number(o.Objective), number(o.Window.Seconds())
		}
		answer.SLOs = append(answer.SLOs, s)
	}
	if !q.view.Since.IsZero() {
		answer.History.Since = seconds(q.view.Since)
	}
	answer.History.MemoryBytes, answer.History.MaxMemoryBytes = p.History.Memory()
	if kept, ok := p.Slowest.TimelinesKept(); ok {
		answer.Timelines.Kept = &kept
	}
	return answer, nil
}

// endpoints returns those of the receivers of this process, sorted.
func (p *Page) endpoints() []inprocess.Endpoint {
	all := append([]inprocess.Endpoint{}, slices.Concat(p.Endpoints.All()...)...)
	slices.SortFunc(all, func(a, b inprocess.Endpoint) int {
		return cmp.Or(cmp.Compare(a.Receiver, b.Receiver), cmp.Compare(a.URL, b.URL))
	})
	return all[:min(len(all), maxEndpoints)]
}

// setValues sets the values that the series of the history have, and what splits those that a filter selects.
func (m *meta) setValues(p *Page, keys []string, shown *filter) {
	values, selected := make([]map[string]bool, len(p.dimensions)), make([]map[string]bool, len(p.dimensions))
	for i := range values {
		values[i], selected[i] = map[string]bool{}, map[string]bool{}
	}
	vantages := map[string]bool{}
	for _, key := range keys {
		id := series.LabelsOf(key)
		vantages[id.Vantage] = true
		shown := shown.selects(&id)
		for i := range values {
			value := dimension(&id, i)
			values[i][value] = true
			if shown {
				selected[i][value] = true
			}
		}
	}
	m.SplitBy = p.splitBy(selected, values)
	m.Dimensions = []dimensionValues{}
	for i, name := range p.dimensions {
		all := slices.Sorted(maps.Keys(values[i]))
		if bands := series.NewBands(p.Dimensions[i].Bands); bands != nil {
			slices.SortFunc(all, func(a, b string) int {
				before, _ := bands.Index(a)
				after, _ := bands.Index(b)
				return before - after
			})
		}
		shown := min(len(all), maxDimensionValues)
		m.Dimensions = append(m.Dimensions, dimensionValues{name, append([]string{}, all[:shown]...), len(all) - shown})
	}
	m.Vantages = append([]string{}, slices.Sorted(maps.Keys(vantages))...)
}

// splitBy returns what the page splits its charts by: the usual grouping, or the first dimension that has several
// values. The values of each dimension are those that the filters select; without several of any, those of all.
func (p *Page) splitBy(selected, all []map[string]bool) string {
	usual := p.groupBy()
	for _, values := range [][]map[string]bool{selected, all} {
		split := ""
		for i, name := range p.dimensions {
			if len(values[i]) > 1 && (split == "" || name == usual) {
				split = name
			}
		}
		if split != "" {
			return split
		}
	}
	return usual
}
