// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package slo

import (
	"time"

	"github.com/prometheus/common/model"
)

// BurnWindows are the windows of burn rates: short ones and the long ones that
// multi-window alerts pair them with.
var BurnWindows = [5]time.Duration{5 * time.Minute, 30 * time.Minute, time.Hour, 6 * time.Hour, 3 * 24 * time.Hour}

// BurnWindowLabels holds the label of each of BurnWindows, such as `5m`.
var BurnWindowLabels = func() (all [len(BurnWindows)]string) {
	for i, w := range BurnWindows {
		all[i] = model.Duration(w).String()
	}
	return all
}()

// History counts the requests of one objective over the windows of its burn rates
// and of its error budget. It is not safe for concurrent use.
type History struct {
	budgetLength time.Duration
	burn         [len(BurnWindows)]window
	budget       window
}

// NewHistory returns an empty history. budgetLength is the window of the error
// budget, at least a minute.
func NewHistory(budgetLength time.Duration) *History { return &History{budgetLength: budgetLength} }

// Add counts requests at a position, which is the time since an epoch that all
// calls share. A position before the latest counts as the latest.
func (h *History) Add(position time.Duration, n Counts) {
	h.advance(position)
	for i := range h.burn {
		h.burn[i].add(n)
	}
	h.budget.add(n)
}

// Recent holds the counts of every window at one moment.
type Recent struct {
	Burn   [len(BurnWindows)]Counts
	Budget Counts
}

// Recent returns the counts at a position.
func (h *History) Recent(position time.Duration) (r Recent) {
	h.advance(position)
	for i := range h.burn {
		r.Burn[i] = h.burn[i].sum()
	}
	r.Budget = h.budget.sum()
	return r
}

func (h *History) advance(position time.Duration) {
	for i := range h.burn {
		h.burn[i].advance(position, BurnWindows[i])
	}
	h.budget.advance(position, h.budgetLength)
}
