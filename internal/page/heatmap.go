// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"math"
	"slices"

	"github.com/tokenpulse/tokenpulse/internal/history"
	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/series"
	"github.com/tokenpulse/tokenpulse/internal/sketch"
)

type heatmap struct {
	scope
	StepSeconds float64    `json:"step_seconds"`
	Times       []number   `json:"times"`
	Indicator   string     `json:"indicator"`
	Bounds      []number   `json:"bounds"`
	Counts      [][]uint64 `json:"counts"`
}

// perDoubling is the number of rows of a heatmap for each doubling.
const perDoubling = 4

// perRow is the number of buckets of a sketch in one row.
const perRow = (1 << sketch.Scale) / perDoubling

func (p *Page) heatmap(q *query) (any, error) {
	var names []string
	for _, i := range indicators {
		names = append(names, i.name)
	}
	chosen, err := q.choice(paramIndicator, names, slices.Index(series.HistoryQuantities[:], numbers.InterTokenLatency))
	if err != nil {
		return nil, err
	}
	quantity := indicators[chosen].quantity
	axis := q.axis()
	rows := make([]map[int]uint64, axis.steps()) // by row, for each step
	lowest, highest := math.MaxInt, math.MinInt
	selection, want := p.newSelection(q), q.filter.together(quantity)
	axis.each(&q.view, func(step int, slots []history.Slot) {
		values := selection.add(slices.Values(slots), want).Parts[0].Of(quantity)
		rows[step] = map[int]uint64{}
		for index, n := range values.Buckets() {
			row := floorDiv(index, perRow)
			rows[step][row] += n
			lowest, highest = min(lowest, row), max(highest, row)
		}
		if zeros := values.Zeros(); zeros > 0 {
			rows[step][zeroRow] = zeros
		}
	})
	answer := &heatmap{
		scope: q.scope(), StepSeconds: axis.step.Seconds(), Times: axis.times(),
		Indicator: indicators[chosen].name, Bounds: []number{}, Counts: make([][]uint64, axis.steps()),
	}
	for row := lowest; row <= highest+1; row++ {
		answer.Bounds = append(answer.Bounds, number(math.Exp2(float64(row)/perDoubling)))
	}
	for step, of := range rows {
		answer.Counts[step] = counts(of, lowest, highest)
	}
	return answer, nil
}

// zeroRow holds the values of zero, which belong to the first row.
const zeroRow = math.MinInt

func counts(rows map[int]uint64, lowest, highest int) []uint64 {
	if len(rows) == 0 || highest < lowest {
		return []uint64{}
	}
	all := make([]uint64, highest-lowest+1)
	for row, n := range rows {
		all[max(lowest, row)-lowest] += n
	}
	return all
}
