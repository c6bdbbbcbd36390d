// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Package series aggregates finished requests into series: histograms, counters and
// quantiles over sliding windows for each combination of dimension values. The
// number of series limits its memory.
package series

import (
	"slices"
	"sync"
	"time"

	"github.com/tokenpulse/tokenpulse/internal/conventions"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/sketch"
	"github.com/tokenpulse/tokenpulse/internal/slo"
)

// Options configure an Engine.
type Options struct {
	Config Config
	// MaxSeriesPerClient limits the series that one client opens while less than half of
	// Config.MaxSeries is free. 0 means no limit.
	MaxSeriesPerClient int
	// Metrics selects what is recorded. Other metrics take no memory.
	Metrics Selection
	// Windows are the sliding windows of quantiles.
	Windows []time.Duration
	// Quantiles to compute over each window, between 0 and 1.
	Quantiles []float64
	// ClassicBounds replaces the default bounds of a histogram's classic buckets, by
	// metric name.
	ClassicBounds map[string][]float64
	// Objectives are the SLOs that have a counter in each series, however many others
	// there are.
	Objectives slo.Names
	// History receives the increments of the series. It may be nil.
	History History
	// AnyOrder is set if arrivals are in any order, as those of a recording may be. Each request then adds to the slot of
	// the history that its arrival is in, also after a later one. There are no Windows.
	AnyOrder bool
	// Conventions selects the metrics of conventions that requests are recorded into, too.
	Conventions conventions.Config
}

// Engine makes series of requests. It is safe for concurrent use: Record and Collect lock one
// series at a time.
type Engine struct {
	// Standard holds the metrics of conventions, or is nil.
	Standard *Standard

	*table
	quantiles []float64
	published [numbers.Distributions]published
	counts    [counts]bool
	verdicts  bool
	bounds    [numbers.Distributions][]float64
	calendar  *calendar
	scratch   sync.Pool // of *sketch.Sketch
	history   History
	gaining   sync.Mutex // guards gain, which reportGain reuses
	gain      Gain

	objectives slo.Names
	ofOutcome  OutcomeDimensions
}

// published lists the uses of a quantity.
type published struct{ histogram, gauges, history bool }

func (p published) any() bool { return p.histogram || p.gauges || p.history }

// NewEngine returns an engine without series.
func NewEngine(o Options) *Engine {
	e := &Engine{
		Standard: newStandard(&o),

		quantiles: o.Quantiles,
		calendar:  newCalendar(time.Now(), o.Windows, o.History != nil, o.AnyOrder),
		history:   o.History,
		scratch:   sync.Pool{New: func() any { return new(sketch.Sketch) }},

		objectives: o.Objectives,
		ofOutcome:  o.Config.Dimensions.OfOutcome(),
		verdicts:   o.Metrics.Has(SLORequests.Name) || o.History != nil,
	}
	e.table = newTable(e, o.Config, o.MaxSeriesPerClient)
	for _, c := range Counters {
		e.counts[c.Count] = o.Metrics.Has(c.Name) || o.History != nil
	}
	windowed := len(o.Windows) > 0 && len(o.Quantiles) > 0
	for _, id := range numbers.Histograms {
		metric := id.Row().Metric.Name
		e.published[id] = published{
			histogram: o.Metrics.Has(metric),
			gauges:    windowed && o.Metrics.Has(metric+names.SuffixPercentile),
			history:   o.History != nil && slices.Contains(HistoryQuantities[:], id),
		}
		e.bounds[id] = id.Row().Bounds
		if bounds, ok := o.ClassicBounds[metric]; ok {
			e.bounds[id] = bounds
		}
	}
	if !e.published[numbers.TokensPerChunk].any() {
		clear(e.counts[chunks:]) // the reasons for its absence
	}
	return e
}

// Recorded is the result of recording a request.
type Recorded struct {
	// Duplicate is set when the request was recorded before, and is not recorded again.
	Duplicate bool
	// Overflow is set when the request went to the overflow series.
	Overflow bool
	// MalformedSketches is the number of sketches that were dropped, because they do not
	// decode or exceed Contribution.Gaps. The rest of the request counts.
	MalformedSketches int
	// DroppedVerdicts is the number of verdicts that count toward `all` only, because
	// the request or the series has too many SLOs.
	DroppedVerdicts int
}

// Record adds a request to its series.
func (e *Engine) Record(r *Contribution) Recorded { return e.RecordTo(nil, r) }

// Restore opens the series of a key with a verdict counter at zero for each SLO, unless
// the series is idle or the limit is reached. After a restart, Prometheus recognises the
// reset of a counter only if the counter is lower than before: one that first appears at 1
// hides it. Call Restore before the first Record.
func (e *Engine) Restore(key string, slos []string, lastSeen, now time.Time) {
	if e.config.isIdle(now.Sub(lastSeen)) || key != overflowKey && !e.canOpen([]byte(key)) {
		return
	}
	s := e.open([]byte(key), nil, now)
	s.mu.Lock()
	defer s.mu.Unlock()
	if lastSeen.Before(now) { // not so if the clock was ahead at the save
		s.lastSeen = lastSeen
	}
	if !e.verdicts {
		return
	}
	for _, slo := range slos {
		s.verdicts.counter(slo, e.objectives, now)
	}
}

// UnusedDimensions returns the indexes of the dimensions that no series has a value of, and the number
// of requests of all series.
func (e *Engine) UnusedDimensions() (unused []int, requests uint64) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	used := make([]bool, len(e.config.Dimensions))
	for key, s := range e.series {
		for i, value := range LabelsOf(key).Dimensions {
			used[i] = used[i] || value != e.config.Dimensions[i].missing()
		}
		if !slices.Contains(used, false) {
			return nil, 0
		}
		requests += s.requests()
	}
	for i := range used {
		if !used[i] {
			unused = append(unused, i)
		}
	}
	return unused, requests
}

// Collect calls visit with a snapshot of each series, in the order of the keys.
// Requests that arrive during a visit are not in the snapshot.
func (e *Engine) Collect(now time.Time, visit func(*Snapshot)) {
	var snapshot Snapshot
	var scratch sketch.Sketch
	for _, s := range e.sorted() {
		if !s.snapshot(&snapshot, now, &scratch) {
			continue
		}
		snapshot.Key, snapshot.Labels = s.key, LabelsOf(s.key)
		visit(&snapshot)
	}
}

// Fold adds the increments of each series since its last fold to the history.
func (e *Engine) Fold(now time.Time) {
	for _, s := range e.all() {
		s.mu.Lock()
		s.advance(now)
		s.fold()
		s.mu.Unlock()
	}
}

// Expire removes the series without a request for the configured time, and returns
// their number, without those of Standard.
func (e *Engine) Expire(now time.Time) int {
	if e.Standard != nil {
		e.Standard.expire(now)
	}
	return e.expire(now)
}
