// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"github.com/tokenpulse/tokenpulse/internal/history"
	"github.com/tokenpulse/tokenpulse/internal/series"
)

// selection adds up all selected series.
type selection struct {
	filter *filter
	known  map[history.Key]bool
	sum    history.Sum
}

func (p *Page) newSelection(q *query) *selection {
	return &selection{filter: &q.filter, known: map[history.Key]bool{}}
}

// into returns a function that directs the selected series to a sum.
func (s *selection) into(sum *history.Sum) func(history.Key) *history.Sum {
	return func(key history.Key) *history.Sum {
		selected, ok := s.known[key]
		if !ok {
			id := series.IdentityOf(key.Value())
			selected = s.filter.selects(&id)
			s.known[key] = selected
		}
		if !selected {
			return nil
		}
		return sum
	}
}

// add returns the sum over some slots, which is valid until the next call.
func (s *selection) add(slots []history.Slot, quantities ...series.Quantity) *history.Sum {
	s.sum.Reset()
	want := s.filter.together(quantities...)
	for _, slot := range slots {
		slot.AddTo(s.into(&s.sum), want)
	}
	return &s.sum
}

// all returns the sum over a view.
func (s *selection) all(v *history.View, want *history.Want) *history.Sum {
	s.sum.Reset()
	for slot := range v.Slots() {
		slot.AddTo(s.into(&s.sum), want)
	}
	return &s.sum
}
