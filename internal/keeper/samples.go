// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package keeper

import (
	"time"

	"github.com/tokenpulse/tokenpulse/internal/diagnostics"
	"github.com/tokenpulse/tokenpulse/internal/liveness"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/openstreams"
	"github.com/tokenpulse/tokenpulse/internal/series"
	"github.com/tokenpulse/tokenpulse/internal/slo"
)

// Sink receives the samples of all metrics that are on. L holds the labels of a sample.
type Sink[L any] interface {
	// Series returns the labels of the series of a key, and of the gauges of its objectives. began
	// distinguishes a series from an expired one with the same key. It is zero for gauges.
	Series(key string, began time.Time) L
	// Standard is Series for a series of the metrics of conventions.
	Standard(key string, began time.Time) L
	// NoSeries returns no labels, for what is of no series.
	NoSeries() L
	// With returns the labels plus one, unless its value is empty.
	With(labels L, name, value string) L
	Counter(labels L, c *Counter)
	// Histogram receives a distribution, and its quantiles over windows.
	Histogram(labels L, h *Histogram)
	Gauge(labels L, metric *numbers.Metric, v float64)
}

// Counter is a sample of a counter.
type Counter struct {
	Metric *numbers.Metric
	// Whole means that the value is a whole number.
	Whole bool
	Value float64
	// Began is the arrival of the first request of its series or outcome, First that of the first request
	// that it counts.
	Began, First time.Time
	// Exemplar is the latest request that was counted, unset if it is unknown.
	Exemplar series.Exemplar
}

// Histogram is a sample of a histogram.
type Histogram struct {
	Metric *numbers.Metric
	*series.DistributionSnapshot
	// Began is the arrival of the first request of its outcome. That of the first value is Start.
	Began time.Time
	// Explicit means that other systems expect the classic buckets.
	Explicit bool
}

// Collect passes the current samples to a sink: those of series in the order of their keys, those of
// conventions likewise, then the gauges of objectives: its own, or those of the producers of its metrics.
// Last come the open streams and the engines.
func Collect[L any](k *Keeper, now time.Time, sink Sink[L]) {
	c := collector[L]{sink, k.settings.Config.Selection()}
	k.Engine.Collect(now, c.series)
	k.Engine.Standard.Collect(c.standard)
	k.Tracker.Gauges(now, c.gauge)
	if k.points != nil {
		k.points.Gauges(now, c.gauge)
	}
	if k.open != nil && k.open.Collect(now, c.streams) {
		k.doubts.Report(diagnostics.SeriesOverflow, diagnostics.Facts{Cases: 1}, "")
	}
	if k.statuses != nil {
		for _, s := range k.statuses() {
			c.engine(&s)
		}
	}
}

// collector walks through the series for a sink.
type collector[L any] struct {
	sink      Sink[L]
	selection series.Selection
}

func (c *collector[L]) series(s *series.Snapshot) {
	labels := c.sink.Series(s.Key, s.Start)
	for i := range series.Counters {
		counter := &series.Counters[i]
		if n, ok := s.Count(counter.Count); ok {
			labels := c.sink.With(labels, names.LabelType, counter.Type)
			labels = c.sink.With(c.sink.With(labels, names.LabelIndicator, counter.Indicator), names.LabelReason, counter.Reason)
			labels = c.sink.With(labels, names.LabelCause, counter.Cause)
			c.counter(labels, &Counter{Metric: &counter.Metric, Whole: counter.Whole, Value: n, Began: s.Start, First: s.CountStart(counter.Count)})
		}
	}
	for i := range s.SLOs {
		c.verdicts(c.sink.With(labels, names.LabelSLO, s.SLOs[i].Name), &s.SLOs[i])
	}
	for i := range s.Outcomes {
		if o := &s.Outcomes[i]; !o.Empty() {
			c.outcome(c.sink.With(labels, names.LabelOutcome, series.OutcomeNames[i]), o)
		}
	}
}

func (c *collector[L]) counter(labels L, counter *Counter) {
	if c.selection.Has(counter.Metric.Name) {
		c.sink.Counter(labels, counter)
	}
}

// verdicts passes the verdict counters of one SLO on. All verdicts appear with the first request: a
// counter that appears later would hide its first increase. The counter of bad requests has the
// latest as its exemplar.
func (c *collector[L]) verdicts(labels L, s *series.SLOSnapshot) {
	for v, n := range s.Requests {
		counter := Counter{Metric: &series.SLORequests, Whole: true, Value: float64(n), Began: s.Start, First: s.Start}
		if slo.Verdict(v) == slo.Bad {
			counter.Exemplar = s.Bad
		}
		c.counter(c.sink.With(labels, names.LabelVerdict, slo.Verdict(v).String()), &counter)
	}
}

func (c *collector[L]) outcome(labels L, o *series.OutcomeSnapshot) {
	if o.Requests > 0 {
		c.counter(labels, &Counter{Metric: &series.Requests, Whole: true, Value: float64(o.Requests), Began: o.Start, First: o.Start})
	}
	for _, id := range numbers.Histograms {
		if d := &o.Distributions[id]; d.Sketch.Count() > 0 || len(d.Quantiles) > 0 {
			name, value := id.Row().Label()
			c.sink.Histogram(c.sink.With(labels, name, value), &Histogram{Metric: &id.Row().Metric, DistributionSnapshot: d, Began: o.Start})
		}
	}
}

func (c *collector[L]) standard(s *series.StandardSnapshot) {
	of := c.sink.Standard(s.Key, s.Start)
	for i := range s.Metrics {
		m := &s.Metrics[i]
		labels := c.sink.With(of, m.Label, m.Value)
		for name := range m.As {
			if m.Bounds == nil {
				c.sink.Counter(labels, &Counter{Metric: &m.As[name], Whole: true, Value: m.Sum, Began: m.Start, First: m.Start})
			} else {
				c.sink.Histogram(labels, &Histogram{Metric: &m.As[name], DistributionSnapshot: &m.Distribution, Began: m.Start, Explicit: true})
			}
		}
	}
}

func (c *collector[L]) gauge(g *slo.Gauge) {
	for i := range series.Gauges {
		if metric := &series.Gauges[i]; metric.Name == g.Metric && c.selection.Has(g.Metric) {
			labels := c.sink.With(c.sink.Series(g.Key, time.Time{}), names.LabelSLO, g.SLO)
			c.sink.Gauge(c.sink.With(labels, names.LabelWindow, g.Window), metric, g.Value)
		}
	}
}

func (c *collector[L]) streams(s *openstreams.Sample) {
	labels := c.sink.With(c.sink.Series(s.Key, time.Time{}), names.LabelPhase, s.Phase)
	c.sink.Gauge(c.sink.With(labels, names.LabelSilent, s.Silent), &series.StreamsOpen, float64(s.Streams))
}

// engine passes on all states of an engine, so that a state that ended does not linger where samples are pushed.
func (c *collector[L]) engine(s *liveness.Status) {
	labels := c.sink.With(c.sink.NoSeries(), names.LabelEngine, s.Engine)
	if c.selection.Has(names.EngineState) {
		for state := range liveness.States {
			value := 0.0
			if state == s.State {
				value = 1
			}
			c.sink.Gauge(c.sink.With(labels, names.LabelState, state.String()), &series.EngineState, value)
		}
	}
	if c.selection.Has(names.EngineSilence) {
		c.sink.Gauge(labels, &series.EngineSilence, s.Silence.Seconds())
	}
}
