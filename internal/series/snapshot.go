// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package series

import (
	"time"

	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/optional"
	"github.com/tokenpulse/tokenpulse/internal/sketch"
	"github.com/tokenpulse/tokenpulse/internal/slo"
)

// Snapshot is a copy of a series at one moment. It is valid during the visit only.
type Snapshot struct {
	// Key identifies the series: no two have the same key.
	Key string
	Labels
	// Start is the arrival of the series' first request.
	Start time.Time
	// Outcomes holds the histograms by Outcome. Skip an Empty entry: its distributions are
	// those of another series.
	Outcomes [outcomes]OutcomeSnapshot
	// SLOs holds the verdict counters of each SLO and of `all`, in the order of their
	// names.
	SLOs []SLOSnapshot

	counts [counts]optional.Value[float64]
	later  []laterCount
}

// Count returns the sum over all requests. ok is false if no request reported it.
func (s *Snapshot) Count(c Count) (n float64, ok bool) {
	return s.counts[c].Value, s.counts[c].Known
}

// CountStart returns the arrival of the first request that reported a count.
func (s *Snapshot) CountStart(c Count) time.Time {
	for i := range s.later {
		if s.later[i].Count == c {
			return s.later[i].start
		}
	}
	return s.Start
}

// SLOSnapshot holds the verdict counters of one SLO.
type SLOSnapshot struct {
	Name string
	// Start is the arrival of the first request that the SLO applied to.
	Start time.Time
	// Requests counts requests by verdict.
	Requests [slo.Verdicts]uint64
	// Bad is the latest bad request with a trace. It is unset if there was none.
	Bad Exemplar
}

// OutcomeSnapshot holds the histograms of one outcome.
type OutcomeSnapshot struct {
	// Start is the arrival of the first request or trace with this outcome.
	Start time.Time
	// Requests is 0 if only traces had this outcome.
	Requests      uint64
	Distributions [numbers.Distributions]DistributionSnapshot
}

// Empty reports whether neither a request nor a trace had this outcome.
func (o *OutcomeSnapshot) Empty() bool { return o.Start.IsZero() }

// DistributionSnapshot is the distribution of one quantity. Its sketch is empty if no
// request had a value, or if the histogram is off.
type DistributionSnapshot struct {
	// Start is the arrival of the first request with a value.
	Start time.Time
	// Sketch holds all values since the series started.
	Sketch sketch.Sketch
	// Bounds are the upper bounds of the classic buckets.
	Bounds []float64
	// Classic counts the values of each classic bucket, then those above the last
	// bound. The counts are not cumulative.
	Classic []uint64
	// Exemplars holds one exemplar for each classic bucket, unset where the bucket has
	// none. It is empty if no bucket has one.
	Exemplars []Exemplar
	// Quantiles holds the quantiles of each window that is not empty.
	Quantiles []Quantile
}

func (d *DistributionSnapshot) clear() {
	d.Sketch.Reset()
	d.Quantiles = d.Quantiles[:0]
}

// Quantile is a quantile over a window. Window and Quantile index Options.Windows and
// Options.Quantiles.
type Quantile struct {
	Window, Quantile int
	Value            float64
}
