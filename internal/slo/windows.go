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

// Windows counts the requests of one objective over the windows of its burn rates
// and of its error budget. It is not safe for concurrent use.
type Windows struct {
	budgetLength time.Duration
	windows      [len(BurnWindows) + 1]window // the last one is that of the budget
}

// NewWindows returns empty windows. budgetLength is the window of the error
// budget, at least a minute.
func NewWindows(budgetLength time.Duration) *Windows { return &Windows{budgetLength: budgetLength} }

// length returns the length of a window.
func (h *Windows) length(window int) time.Duration {
	if window < len(BurnWindows) {
		return BurnWindows[window]
	}
	return h.budgetLength
}

// Add counts requests at a position, which is the time since an epoch that all
// calls share. A position before the latest counts as the latest.
func (h *Windows) Add(position time.Duration, n Counts) {
	for i := range h.windows {
		h.windows[i].advance(position, h.length(i))
		h.windows[i].add(n)
	}
}

// Recent holds the counts of every window at one moment.
type Recent struct {
	Burn   [len(BurnWindows)]Counts
	Budget Counts
}

// Recent returns the counts at a position.
func (h *Windows) Recent(position time.Duration) (r Recent) {
	var sums [len(h.windows)]Counts
	for i := range h.windows {
		h.windows[i].advance(position, h.length(i))
		sums[i] = h.windows[i].sum()
	}
	return Recent{Burn: [len(r.Burn)]Counts(sums[:]), Budget: sums[len(r.Burn)]}
}
