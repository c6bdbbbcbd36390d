// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Package metricreader reads metrics that package publish sends into increments for a
// series.Engine. It adds up all producers: resource, attributes and start time identify a
// stream of data points.
//
// The difference to the last data point of a stream goes through the same engine and tracker as
// a request, so that windows, expiry, limits, dimensions and budgets work alike. A cumulative
// stream that is older than the reader does not count in full: one that moves between two
// gateways would count in both. The price is that what it counts while no reader runs is lost.
package metricreader

import (
	"hash/maphash"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/series"
	"github.com/tokenpulse/tokenpulse/internal/sketch"
	"github.com/tokenpulse/tokenpulse/internal/spanreader"
)

// Options of a Reader.
type Options struct {
	// Dimensions are the attributes that distinguish series, of the data point or else its
	// resource, by their names on metrics.
	Dimensions series.Dimensions
	// OwnObjectives is set if the component has objectives: the reader then ignores the gauges of
	// the producers' objectives.
	OwnObjectives bool
	// MaxStreams limits the streams of data points, and gauges, that are remembered.
	MaxStreams int
}

// Tally counts the data points of one batch by result.
type Tally struct {
	// Points is the number of data points that were read, whether or not their value changed.
	Points int64
	// Ignored is the number of ignored data points, by reason.
	Ignored [Reasons]int64
	// Overflow is the number of requests that went to the overflow series.
	Overflow int64
	// DroppedVerdicts count toward `all` only.
	DroppedVerdicts int64
}

// Reader reads metrics. It is safe for concurrent use.
type Reader struct {
	options    Options
	dimensions spanreader.Dimensions

	// mu guards everything declared below.
	mu      sync.Mutex
	streams streams
	gauges  map[uint64]*gauge
	hash    maphash.Hash

	add       func(*series.Increment) series.Recorded
	increment series.Increment // of the data point that is read
	resource  []string         // values of the dimensions
	replica   string
	id        uint64 // of its resource
	tally     Tally

	current, before sketch.Sketch
}

// New returns a reader that knows no producer. Cumulative streams that began before now
// count from their second data point on.
func New(o Options, now time.Time) *Reader {
	labels := slices.Clone(o.Dimensions)
	for i := range labels {
		labels[i].Attribute = labels[i].Name()
	}
	return &Reader{
		options: o, dimensions: spanreader.NewDimensions(labels),
		streams:   streams{since: pcommon.NewTimestampFromTime(now), limit: o.MaxStreams, all: map[uint64][]period{}},
		gauges:    map[uint64]*gauge{},
		increment: series.Increment{Dimensions: make([]string, len(o.Dimensions))},
		resource:  make([]string, len(o.Dimensions)),
	}
}

// Read calls add with the increment of each data point to its series. The increment is valid
// during the call only. Arrival is set to now.
func (r *Reader) Read(metrics pmetric.Metrics, now time.Time, add func(*series.Increment) series.Recorded) Tally {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.add, r.tally, r.increment.Arrival = add, Tally{}, now
	for _, resource := range metrics.ResourceMetrics().All() {
		r.dimensions.Clear(r.resource)
		r.id, r.replica = 0, ""
		for key, v := range resource.Resource().Attributes().All() {
			r.id += r.hashOf(key, v)
			r.dimensions.Read(r.resource, key, v)
			if key == names.ServiceInstanceID {
				r.replica = names.CleanLabel(v.Str())
			}
		}
		for _, scope := range resource.ScopeMetrics().All() {
			for _, m := range scope.Metrics().All() {
				r.metric(m)
			}
		}
	}
	return r.tally
}

// metric reads the data points of a metric. Part is that of its increments.
func (r *Reader) metric(m pmetric.Metric) {
	name := m.Name()
	known, ours := metrics[name]
	switch {
	case !ours:
		r.ignore(Foreign, pointsOf(m))
	case m.Type() != known.kind || known.kind == pmetric.MetricTypeSum && !m.Sum().IsMonotonic():
		r.ignore(WrongType, pointsOf(m))
	case known.kind == pmetric.MetricTypeGauge:
		for _, p := range m.Gauge().DataPoints().All() {
			r.count(r.gauge(name, p))
		}
	case known.kind == pmetric.MetricTypeSum:
		r.increment.Part = known.part
		for _, p := range m.Sum().DataPoints().All() {
			r.count(r.number(name, m.Sum().AggregationTemporality(), p))
		}
	default:
		r.increment.Part = known.part
		for _, p := range m.ExponentialHistogram().DataPoints().All() {
			r.count(r.histogram(name, m.ExponentialHistogram().AggregationTemporality(), p))
		}
	}
}

func (r *Reader) count(reason Reason) {
	if reason == accepted {
		r.tally.Points++
	} else {
		r.ignore(reason, 1)
	}
}

func (r *Reader) ignore(reason Reason, points int) { r.tally.Ignored[reason] += int64(points) }

// emit adds the increment to its series.
func (r *Reader) emit() {
	recorded := r.add(&r.increment)
	if recorded.Overflow && r.increment.Part == series.PartRequests {
		r.tally.Overflow += int64(r.increment.Requests)
	}
	r.tally.DroppedVerdicts += int64(recorded.DroppedVerdicts)
}

// hashOf returns the hash of an attribute. The sum over a map does not depend on its order.
func (r *Reader) hashOf(key string, v pcommon.Value) uint64 {
	r.hash.Reset()
	_, _ = r.hash.WriteString(key)
	_, _ = r.hash.Write([]byte{0, byte(v.Type())})
	if v.Type() == pcommon.ValueTypeStr {
		_, _ = r.hash.WriteString(v.Str())
	} else {
		_, _ = r.hash.WriteString(v.AsString())
	}
	return r.hash.Sum64()
}

// knownMetric is a metric that package publish sends.
type knownMetric struct {
	kind pmetric.MetricType
	part series.Part
}

var metrics = func() map[string]knownMetric {
	all := map[string]knownMetric{
		names.Requests:           {pmetric.MetricTypeSum, series.PartRequests},
		names.SLORequests:        {pmetric.MetricTypeSum, series.PartVerdicts},
		names.SLOObjective:       {kind: pmetric.MetricTypeGauge},
		names.SLOBurnRate:        {kind: pmetric.MetricTypeGauge},
		names.SLOBudgetRemaining: {kind: pmetric.MetricTypeGauge},
	}
	for _, id := range numbers.Histograms {
		all[id.Row().Metric.Name] = knownMetric{pmetric.MetricTypeExponentialHistogram, series.PartValues}
	}
	for _, c := range series.Counters {
		all[c.Name] = knownMetric{pmetric.MetricTypeSum, series.PartCount}
	}
	return all
}()

func pointsOf(m pmetric.Metric) int {
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		return m.Gauge().DataPoints().Len()
	case pmetric.MetricTypeSum:
		return m.Sum().DataPoints().Len()
	case pmetric.MetricTypeHistogram:
		return m.Histogram().DataPoints().Len()
	case pmetric.MetricTypeExponentialHistogram:
		return m.ExponentialHistogram().DataPoints().Len()
	case pmetric.MetricTypeSummary:
		return m.Summary().DataPoints().Len()
	default:
		return 0
	}
}
