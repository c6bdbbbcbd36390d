// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/series"
	"github.com/tokenpulse/tokenpulse/internal/slo"
)

// budgets adds the gauges of one series' objectives. Idle series have none, like the
// series that expired with them.
func (b *batch) budgets(of *slo.Budgets) {
	if of.Idle {
		return
	}
	identity := series.IdentityOf(of.Key)
	ofSeries := SeriesAttributes(b.dimensions, names.LabelVantage, &identity)
	for i := range of.Each {
		budget := &of.Each[i]
		attributes := with(ofSeries, names.LabelSLO, budget.SLO)
		b.gauge(series.SLOObjective, budget.Objective.Objective, attributes)
		for w, counts := range budget.Recent.Burn {
			if rate, ok := counts.BurnRate(budget.Objective.Objective); ok {
				b.gauge(series.SLOBurnRate, rate, with(attributes, names.LabelWindow, slo.BurnWindowLabels[w]))
			}
		}
		if left, ok := budget.Recent.Budget.BudgetRemaining(budget.Objective.Objective); ok {
			b.gauge(series.SLOBudgetRemaining, left, attributes)
		}
	}
}

// gauge adds a point of a gauge.
func (b *batch) gauge(metric numbers.Metric, v float64, attributes pcommon.Map) {
	m, added := b.metric(metric)
	if added {
		m.SetEmptyGauge()
	}
	point := m.Gauge().DataPoints().AppendEmpty()
	point.SetTimestamp(b.now)
	point.SetDoubleValue(v)
	attributes.CopyTo(point.Attributes())
}
