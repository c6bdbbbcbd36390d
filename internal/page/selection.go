// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"iter"

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
			id := series.LabelsOf(key.Value())
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
func (s *selection) add(slots iter.Seq[history.Slot], want *history.Want) *history.Sum {
	s.sum.Reset()
	into := s.into(&s.sum)
	for slot := range slots {
		slot.AddTo(into, want)
	}
	return &s.sum
}
