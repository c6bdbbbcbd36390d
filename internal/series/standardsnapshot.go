// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package series

import (
	"slices"
	"time"

	"github.com/tokenpulse/tokenpulse/internal/conventions"
	"github.com/tokenpulse/tokenpulse/internal/sketch"
)

// StandardSnapshot is a copy of a series of the conventions' metrics. It is valid during the visit only.
type StandardSnapshot struct {
	// Key identifies the series, as LabelsOf reads it. There is no vantage.
	Key string
	// Start is the arrival of the series' first request.
	Start time.Time
	// Metrics are in the order of the table, then of their labels.
	Metrics []StandardMetric
}

// StandardMetric is a metric of a series for one value of its label, which may be empty.
type StandardMetric struct {
	conventions.Published
	Value string
	Start time.Time
	// Sum is that of a counter, Distribution that of a histogram.
	Sum          float64
	Distribution DistributionSnapshot
}

// Collect calls visit with a snapshot of each series, in the order of the keys.
func (s *Standard) Collect(visit func(*StandardSnapshot)) {
	if s == nil {
		return
	}
	var snapshot StandardSnapshot
	var scratch sketch.Sketch
	for _, x := range s.sorted() {
		if x.snapshotStandard(&snapshot, s.metrics, &scratch) {
			visit(&snapshot)
		}
	}
}

// snapshotStandard copies the series. It returns false if the series has expired.
func (s *series) snapshotStandard(into *StandardSnapshot, metrics []conventions.Published, scratch *sketch.Sketch) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.expired {
		return false
	}
	into.Key, into.Start, into.Metrics = s.key, s.start, slices.Grow(into.Metrics[:0], len(s.standard))
	for _, metric := range s.standard {
		into.Metrics = into.Metrics[:len(into.Metrics)+1]
		m := &into.Metrics[len(into.Metrics)-1] // with the memory of another
		m.Published, m.Value, m.Start, m.Sum = metrics[metric.row], metric.label, metric.start, metric.sum
		if h := metric.histogram; h != nil {
			h.fold(nil, scratch)
			h.snapshot(&m.Distribution, nil, scratch)
		}
	}
	return true
}
