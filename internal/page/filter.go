// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"net/url"
	"slices"
	"strings"

	"github.com/tokenpulse/tokenpulse/internal/history"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/series"
)

// filter selects series and outcomes.
type filter struct {
	dimensions [][]string // alternatives for each dimension, nil for any value
	vantages   vantages
	outcomes   [history.Outcomes]bool
}

var anyOutcome = [history.Outcomes]bool{true, true, true, true}

// overflowValue stands for the dimensions of the series beyond the limit.
const overflowValue = names.LabelOverflow

func (p *Page) parseFilter(values url.Values) (f filter, err error) {
	f.dimensions = make([][]string, len(p.dimensions))
	for _, where := range values[paramWhere] {
		name, value, ok := strings.Cut(where, "=")
		if !ok {
			return f, invalid("write DIMENSION=VALUE, such as "+names.GenAIRequestModel+"=llama-3-70b", "`where` is %q", where)
		}
		i := slices.Index(p.dimensions, name)
		if i < 0 {
			return f, invalid(remedyOf("dimensions", p.dimensions), "`where` has the unknown dimension %q", name)
		}
		f.dimensions[i] = append(f.dimensions[i], value)
	}
	f.vantages = anyVantage
	for _, name := range values[paramOutcome] {
		i := slices.Index(series.OutcomeNames[:], name)
		if i < 0 {
			return f, invalid(remedyOf("valid values", series.OutcomeNames[:]), "`outcome` is %q", name)
		}
		f.outcomes[i] = true
	}
	if f.outcomes == [history.Outcomes]bool{} {
		f.outcomes = anyOutcome
	}
	return f, nil
}

// selects reports whether a series is selected.
func (f *filter) selects(id *series.Labels) bool {
	if !f.vantages[vantageOf(id.Vantage)] {
		return false
	}
	for i, alternatives := range f.dimensions {
		if alternatives != nil && !slices.Contains(alternatives, dimension(id, i)) {
			return false
		}
	}
	return true
}

// dimension returns the value of a series' dimension.
func dimension(id *series.Labels, i int) string {
	if id.Overflow {
		return overflowValue
	}
	return id.Dimensions[i]
}

// together reads the selected outcomes into one part.
func (f *filter) together(quantities ...numbers.ID) *history.Want {
	want := &history.Want{Quantities: bits(quantities)}
	for outcome, selected := range f.outcomes {
		if !selected {
			want.Part[outcome] = history.Skip
		}
	}
	return want
}

// apart reads each selected outcome into the part of its own.
func (f *filter) apart(quantities ...numbers.ID) *history.Want {
	want := f.together(quantities...)
	for outcome, selected := range f.outcomes {
		if selected {
			want.Part[outcome] = outcome
		}
	}
	return want
}

func bits(quantities []numbers.ID) (all uint32) {
	for _, q := range quantities {
		all |= 1 << q
	}
	return all
}
