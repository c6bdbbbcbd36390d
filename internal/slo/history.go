package slo

import "time"

// BurnWindows are the recent pasts that burn rates are computed over: two short
// ones and their long companions, as multi-window alerts want them.
var BurnWindows = [5]time.Duration{5 * time.Minute, 30 * time.Minute, time.Hour, 6 * time.Hour, 3 * 24 * time.Hour}

// History counts the requests of one objective over the windows of its burn rates
// and of its error budget. It is not safe for concurrent use.
type History struct {
	budgetLength time.Duration
	burn         [len(BurnWindows)]window
	budget       window
}

// NewHistory returns an empty history. BudgetLength is the window of the error
// budget, at least a minute.
func NewHistory(budgetLength time.Duration) *History { return &History{budgetLength: budgetLength} }

// Add counts a request. At is when it came, since an epoch that all calls have in
// common; one that is before the latest counts as that.
func (h *History) Add(at time.Duration, good bool) {
	h.advance(at)
	for i := range h.burn {
		h.burn[i].add(good)
	}
	h.budget.add(good)
}

// Recent are the counts of each window at one moment.
type Recent struct {
	Burn   [len(BurnWindows)]Counts
	Budget Counts
}

// Recent returns the counts as they are at a time, since the epoch.
func (h *History) Recent(at time.Duration) (r Recent) {
	h.advance(at)
	for i := range h.burn {
		r.Burn[i] = h.burn[i].sum()
	}
	r.Budget = h.budget.sum()
	return r
}

func (h *History) advance(at time.Duration) {
	for i := range h.burn {
		h.burn[i].advance(at, BurnWindows[i])
	}
	h.budget.advance(at, h.budgetLength)
}
