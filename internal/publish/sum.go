// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/tokenpulse/tokenpulse/internal/numbers"
)

// sum is a monotonic counter of a batch.
type sum struct {
	*batch
	points pmetric.NumberDataPointSlice
	// whole selects integer data points.
	whole bool
}

func (b *batch) sum(metric numbers.Metric) sum {
	m, added := b.metric(metric)
	if added {
		m.SetEmptySum().SetIsMonotonic(true)
		m.Sum().SetAggregationTemporality(b.temporality())
	}
	return sum{batch: b, points: m.Sum().DataPoints(), whole: true}
}

// add adds the data points of one stream. It returns what the next consumer has of it
// afterwards.
func (s sum) add(before sentSum, total float64, began time.Time, attributes pcommon.Map) sentSum {
	if s.delta {
		if total > before.total {
			s.point(s.since, s.now, total-before.total, attributes)
		}
		return sentSum{total: total}
	}
	start := before.start
	if start == 0 {
		start = s.startOf(began)
		s.point(start, start, 0, attributes)
	}
	s.point(start, s.now, total, attributes)
	return sentSum{start: start}
}

func (s sum) point(start, now pcommon.Timestamp, n float64, attributes pcommon.Map) {
	point := s.points.AppendEmpty()
	point.SetStartTimestamp(start)
	point.SetTimestamp(now)
	attributes.CopyTo(point.Attributes())
	if s.whole {
		point.SetIntValue(int64(n))
	} else {
		point.SetDoubleValue(n)
	}
}
