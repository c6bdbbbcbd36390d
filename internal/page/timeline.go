// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"time"

	"github.com/tokenpulse/tokenpulse/internal/history"
)

// timeAxis divides a range into steps of equal length.
type timeAxis struct {
	now, since time.Time // since is the start of the first step
	known      time.Time // nothing is known before it
	step       time.Duration
}

// axis returns the steps of the range. They are as wide as its widest slot, so that no slot
// spans two.
func (q *query) axis() timeAxis {
	step := max(q.period.step, q.view.Step)
	return timeAxis{now: q.view.Until, since: aligned(q.view.From, step), known: q.view.Since, step: step}
}

// steps returns the number of steps.
func (a *timeAxis) steps() int { return int(a.now.Sub(a.since)/a.step) + 1 }

// at returns the step of a time.
func (a *timeAxis) at(t time.Time) int { return min(max(0, int(t.Sub(a.since)/a.step)), a.steps()-1) }

// times returns the start of each step.
func (a *timeAxis) times() []number {
	all := make([]number, a.steps())
	for i := range all {
		all[i] = seconds(a.start(i))
	}
	return all
}

func (a *timeAxis) start(step int) time.Time { return a.since.Add(time.Duration(step) * a.step) }

// covered returns how many seconds of a step are over and have history.
func (a *timeAxis) covered(step int) float64 {
	from, to := a.start(step), a.start(step+1)
	if a.known.After(from) {
		from = a.known
	}
	if a.now.Before(to) {
		to = a.now
	}
	return max(to.Sub(from).Seconds(), 1)
}

func seconds(t time.Time) number { return number(float64(t.UnixMilli()) / 1e3) }

// each calls visit with each step that has slots, and these.
func (a *timeAxis) each(v *history.View, visit func(step int, slots []history.Slot)) {
	var slots []history.Slot
	current := 0
	for slot := range v.Slots() {
		if step := a.at(slot.Start); step != current || len(slots) == 0 {
			if len(slots) > 0 {
				visit(current, slots)
			}
			current, slots = step, slots[:0]
		}
		slots = append(slots, slot)
	}
	if len(slots) > 0 {
		visit(current, slots)
	}
}

// empty returns a value for each step, all missing.
func (a *timeAxis) empty() []number {
	all := make([]number, a.steps())
	for i := range all {
		all[i] = missing
	}
	return all
}
