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

// series adds one series.
func (b *batch) series(s *series.Snapshot) {
	before, sending := b.sent.of(s), &sentSeries{began: s.Start}
	b.sending[s.Key] = sending

	attributes := SeriesAttributes(b.dimensions, names.LabelVantage, &s.Identity)
	for i, counter := range series.Counters {
		if n, ok := s.Count(counter.Count); ok {
			m := b.sum(counter.Metric)
			m.whole = counter.Whole
			attributes := with(attributes, names.LabelType, counter.Type)
			attributes = with(with(attributes, names.LabelIndicator, counter.Indicator), names.LabelReason, counter.Reason)
			sending.counts[i] = m.add(before.counts[i], n, s.Start, attributes)
		}
	}
	for i := range s.SLOs {
		o := &s.SLOs[i]
		if sending.slos == nil {
			sending.slos = make(map[string][slo.Verdicts]sentSum, len(s.SLOs))
		}
		sending.slos[o.Name] = b.verdicts(before.slos[o.Name], o, attributes)
	}
	for i := range s.Outcomes {
		o := &s.Outcomes[i]
		if o.Empty() {
			continue
		}
		attributes := with(attributes, names.LabelOutcome, series.OutcomeNames[i])
		if o.Requests > 0 {
			m := b.sum(series.Requests)
			sending.requests[i] = m.add(before.requests[i], float64(o.Requests), o.Start, attributes)
		}
		for _, q := range numbers.Histograms {
			if d := &o.Distributions[q]; d.Sketch.Count() > 0 {
				attributes := with(attributes, names.LabelPhase, q.Row().Phase)
				sending.histograms[i][q] = b.histogram(q).add(before.histograms[i][q], d, o.Start, attributes)
			}
		}
	}
}

// verdicts adds the verdict counters of one SLO. The data point of bad requests has the
// latest as its exemplar, if it came since the last flush. It returns what the next consumer has
// of them afterwards.
func (b *batch) verdicts(before [slo.Verdicts]sentSum, s *series.SLOSnapshot, attributes pcommon.Map) (sending [slo.Verdicts]sentSum) {
	attributes = with(attributes, names.LabelSLO, s.Name)
	m := b.sum(series.SLORequests)
	for v, n := range s.Requests {
		attributes := with(attributes, names.LabelVerdict, slo.Verdict(v).String())
		points := m.points.Len()
		sending[v] = m.add(before[v], float64(n), s.Start, attributes)
		if last := m.points.Len() - 1; slo.Verdict(v) == slo.Bad && last >= points && b.isNew(&s.Bad) {
			putExemplar(m.points.At(last).Exemplars(), &s.Bad).SetIntValue(1)
		}
	}
	return sending
}
