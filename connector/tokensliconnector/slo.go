package tokensliconnector

import (
	"github.com/prometheus/common/model"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/series"
	"github.com/tokenpulse/tokenpulse/internal/slo"
)

// slo adds what a series keeps for one service level objective, of which something
// was sent before. It returns what is sent with it.
func (b *batch) slo(before [len(series.VerdictNames)]sentSum, s *series.SLOSnapshot, attributes pcommon.Map) (sending [len(series.VerdictNames)]sentSum) {
	attributes = with(attributes, names.LabelSLO, s.Name)
	m := b.sum(series.SLORequests)
	for verdict, n := range s.Requests {
		attributes := with(attributes, names.LabelVerdict, series.VerdictNames[verdict])
		sending[verdict] = m.add(before[verdict], float64(n), s.Start, attributes)
	}
	if s.Objective == 0 {
		return sending
	}
	b.gauge(series.SLOObjective, s.Objective, attributes)
	for i, counts := range s.Recent.Burn {
		if rate, known := counts.BurnRate(s.Objective); known {
			window := model.Duration(slo.BurnWindows[i]).String()
			b.gauge(series.SLOBurnRate, rate, with(attributes, names.LabelWindow, window))
		}
	}
	if left, known := s.Recent.Budget.BudgetRemaining(s.Objective); known {
		b.gauge(series.SLOBudgetRemaining, left, attributes)
	}
	return sending
}

// gauge adds a point of a metric that can go up and down.
func (b *batch) gauge(metric series.Metric, v float64, attributes pcommon.Map) {
	m, added := b.metric(metric)
	if added {
		m.SetEmptyGauge()
	}
	point := m.Gauge().DataPoints().AppendEmpty()
	point.SetTimestamp(b.now)
	point.SetDoubleValue(v)
	attributes.CopyTo(point.Attributes())
}
