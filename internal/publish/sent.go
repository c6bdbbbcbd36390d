// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/series"
	"github.com/tokenpulse/tokenpulse/internal/slo"
)

// sent is what the next consumer has of each series, by key. A flush builds a new sent
// and leaves the old one unchanged, so that a refused flush has no effect. It has at most
// one entry per series of the engine.
type sent map[string]*sentSeries

// sentSeries is what the next consumer has of one series.
type sentSeries struct {
	// began distinguishes the series from an expired one with the same key.
	began      time.Time
	requests   [len(series.OutcomeNames)]sentSum
	histograms [len(series.OutcomeNames)][numbers.Distributions]sentHistogram
	counts     [len(series.Counters)]sentSum
	slos       map[string][slo.Verdicts]sentSum // by name
}

// sentSum is what the next consumer has of one sum. The zero value means nothing.
type sentSum struct {
	start pcommon.Timestamp // of cumulative points
	total float64           // of delta points
}

// sentHistogram is what the next consumer has of one distribution. The zero value means
// nothing.
type sentHistogram struct {
	start pcommon.Timestamp // of cumulative points
	// For delta points. An encoded sketch takes a tenth of the memory of a sketch.
	count  uint64
	sketch []byte
}

// nothing is what the next consumer has of a new series.
var nothing sentSeries

// of returns what was sent of a series.
func (s sent) of(snapshot *series.Snapshot) *sentSeries {
	if known := s[snapshot.Key]; known != nil && known.began.Equal(snapshot.Start) {
		return known
	}
	return &nothing
}
