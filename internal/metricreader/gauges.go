// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package metricreader

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/slo"
)

// gauge is the latest value that one producer sent.
type gauge struct {
	slo.Gauge
	time pcommon.Timestamp
	seen time.Time
}

// staleAfter is the time after which a gauge without a new value is gone, as in Prometheus.
const staleAfter = 5 * time.Minute

// gauge reads a data point of a gauge.
func (r *Reader) gauge(name string, p pmetric.NumberDataPoint) Reason {
	v := p.DoubleValue()
	switch {
	case r.options.OwnObjectives:
		return OwnObjectives
	case p.Flags().NoRecordedValue():
		return NoValue
	case p.ValueType() != pmetric.NumberDataPointValueTypeDouble || math.IsNaN(v) || math.IsInf(v, 0):
		return Malformed
	}
	id, l := r.read(name, p.Attributes())
	window := ""
	if at := slices.Index(slo.BurnWindowLabels[:], l.window); name == names.SLOBurnRate && at >= 0 {
		window = slo.BurnWindowLabels[at] // l.window is part of the message
	}
	if l.slo == "" || name == names.SLOBurnRate && window == "" {
		return UnknownLabel
	}
	g := r.gauges[id]
	switch {
	case g == nil && r.streams.held >= r.streams.limit:
		return Limit
	case g == nil:
		r.streams.held++
		g = &gauge{Gauge: slo.Gauge{GaugeID: slo.GaugeID{Metric: name, Key: string(r.increment.AppendKey(nil)), SLO: l.slo, Window: window}}}
		r.gauges[id] = g
	case p.Timestamp() <= g.time:
		return Repeated
	}
	g.Value, g.time, g.seen = v, p.Timestamp(), r.increment.Arrival
	return accepted
}

// Gauges calls visit with the gauges of the producers' objectives. Of several producers
// with the same gauge, it takes the worst value: the highest burn rate, and the smallest
// rest of a budget. Budgets cannot be added up without the requests that they are of.
func (r *Reader) Gauges(now time.Time, visit func(*slo.Gauge)) {
	r.mu.Lock()
	worst := map[slo.GaugeID]float64{}
	for _, g := range r.gauges {
		known, ok := worst[g.GaugeID]
		switch {
		case now.Sub(g.seen) > staleAfter:
		case !ok:
			worst[g.GaugeID] = g.Value
		case g.Metric == names.SLOBudgetRemaining:
			worst[g.GaugeID] = min(known, g.Value)
		default:
			worst[g.GaugeID] = max(known, g.Value)
		}
	}
	r.mu.Unlock()
	for _, id := range slices.SortedFunc(maps.Keys(worst), compare) {
		visit(&slo.Gauge{GaugeID: id, Value: worst[id]})
	}
}

func compare(a, b slo.GaugeID) int {
	return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.SLO, b.SLO), cmp.Compare(a.Metric, b.Metric), cmp.Compare(a.Window, b.Window))
}

// Held returns the number of streams and gauges that are remembered.
func (r *Reader) Held() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.streams.held
}

// Expire forgets streams without data points for an hour, and stale gauges.
func (r *Reader) Expire(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.streams.expire(now)
	for id, g := range r.gauges {
		if now.Sub(g.seen) > staleAfter {
			delete(r.gauges, id)
			r.streams.held--
		}
	}
}
