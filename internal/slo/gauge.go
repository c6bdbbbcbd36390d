// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package slo

import (
	"time"

	"github.com/tokenpulse/tokenpulse/internal/names"
)

// Gauge is the value of a gauge of one objective of one series.
type Gauge struct {
	GaugeID
	Value float64
}

// GaugeID distinguishes gauges.
type GaugeID struct {
	// Metric is names.SLOObjective, names.SLOBurnRate or names.SLOBudgetRemaining.
	Metric string
	// Key is that of the series.
	Key string
	SLO string
	// Window is one of BurnWindowLabels, of burn rates, or empty.
	Window string
}

// Gauges calls visit with the gauges of each series at a moment, in the order of the keys. Idle
// series have none, like the series that expired with them.
func (t *Tracker) Gauges(now time.Time, visit func(*Gauge)) {
	t.Visit(now, func(b *Budgets) {
		if b.Idle {
			return
		}
		for _, budget := range b.Each {
			budget.gauges(b.Key, visit)
		}
	})
}

func (b *Budget) gauges(key string, visit func(*Gauge)) {
	objective := b.Objective.Objective
	emit := func(metric, window string, v float64) { visit(&Gauge{GaugeID{metric, key, b.SLO, window}, v}) }
	emit(names.SLOObjective, "", objective)
	for w, counts := range b.Recent.Burn {
		if rate, ok := counts.BurnRate(objective); ok {
			emit(names.SLOBurnRate, BurnWindowLabels[w], rate)
		}
	}
	if left, ok := b.Recent.Budget.BudgetRemaining(objective); ok {
		emit(names.SLOBudgetRemaining, "", left)
	}
}
