// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"slices"

	"github.com/tokenpulse/tokenpulse/internal/history"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/series"
	"github.com/tokenpulse/tokenpulse/internal/sketch"
)

// tally is what worst compares of a group.
type tally struct {
	requests uint64
	speed    [len(slowestOf)]sketch.Sketch
	slos     map[string]*history.Verdicts
}

func (t *tally) add(sum *history.Sum) {
	t.requests += total(sum)
	for i, quantity := range slowestOf {
		t.speed[i].Merge(sum.Parts[0].Of(quantity))
	}
	for name, more := range sum.SLOs {
		history.AddVerdicts(&t.slos, name, more)
	}
}

// tallies holds those of the groups of several dimensions, and that of all selected requests.
type tallies struct {
	filter     *filter
	want       *history.Want
	dimensions []int // their indexes
	groups     []map[string]*tally
	everything *tally
	known      map[history.Key][]*tally
}

// newTallies returns those of the dimensions whose values the sender chose, that which splits the charts first. What the
// outcome or a number of the request decides, such as `error.type` or a band, does not say where a fault is.
func (p *Page) newTallies(q *query) *tallies {
	t := &tallies{
		filter: &q.filter, want: q.filter.together(slowestOf[:]...), everything: new(tally), known: map[history.Key][]*tally{},
	}
	for i, name := range p.dimensions {
		switch d := &p.Dimensions[i]; {
		case len(d.Bands) > 0 || names.IsCategory(d.Attribute):
			continue
		case name == p.groupBy():
			t.dimensions = slices.Insert(t.dimensions, 0, i)
		default:
			t.dimensions = append(t.dimensions, i)
		}
		t.groups = append(t.groups, map[string]*tally{})
	}
	return t
}

func (t *tallies) add(slot *history.Slot) {
	var of []*tally
	selects := func(key history.Key) bool {
		of = t.of(key)
		return of != nil
	}
	for gain := range slot.Each(selects, t.want) {
		for _, one := range of {
			one.add(gain)
		}
	}
}

// of returns the tallies that a series adds to, nil if it is not selected.
func (t *tallies) of(key history.Key) []*tally {
	all, ok := t.known[key]
	if ok {
		return all
	}
	if labels := series.LabelsOf(key.Value()); t.filter.selects(&labels) {
		all = append(all, t.everything)
		for i, index := range t.dimensions {
			value := dimension(&labels, index)
			if t.groups[i][value] == nil {
				t.groups[i][value] = new(tally)
			}
			all = append(all, t.groups[i][value])
		}
	}
	t.known[key] = all
	return all
}
