// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package series

import (
	"cmp"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/tokenpulse/tokenpulse/internal/conventions"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/numbers"
)

// Standard aggregates the requests of an engine into the metrics of conventions. It has series of its own,
// one for each set of values of their attributes, with the limits of the engine, except that one value may open all
// of them: no attribute of conventions names the sender. It is safe for concurrent use.
type Standard struct {
	*table
	conventions *conventions.Config
	metrics     []conventions.Published
	// published has the sides with a metric, needsChunks those with one of the gaps between chunks.
	published, needsChunks [conventions.Sides]bool

	overflow atomic.Int64
	callers  callers
	// Since the last call of Faults.
	overflowed, doubled, withoutChunks atomic.Bool
}

// newStandard returns nil if no metric is published.
func newStandard(o *Options) *Standard {
	metrics := o.Conventions.Select(func(name string) bool {
		on, set := o.Metrics[name]
		return on || !set
	})
	if len(metrics) == 0 {
		return nil
	}
	s := &Standard{
		table:       newTable(nil, Config{MaxSeries: o.Config.MaxSeries, SeriesExpiration: o.Config.SeriesExpiration}, o.MaxSeriesPerClient),
		conventions: &o.Conventions, metrics: metrics,
	}
	for _, m := range metrics {
		s.published[m.Side] = true
		s.needsChunks[m.Side] = s.needsChunks[m.Side] || m.Number == numbers.InterChunkLatency
	}
	return s
}

// standardAttributes returns the attributes that conventions.Config.AttributesRead names. labels are those of the
// series. whole means that the call did not ask for a stream.
func (r *Contribution) standardAttributes() (labels []string, errorType string, whole bool) {
	last := len(r.Standard) - 2
	return r.Standard[:last], r.Standard[last], r.Standard[last+1] == "false"
}

// appendStandardKey appends the key of the request's series of a Standard, which have no vantage.
func (r *Contribution) appendStandardKey(key []byte) []byte {
	var of Labels
	of.Dimensions, _, _ = r.standardAttributes()
	return of.AppendKey(key)
}

// record adds a request to its series, if its vantage counts for a metric. The handle may be nil.
func (s *Standard) record(h *Handle, r *Contribution) {
	if s == nil || r.TraceOnly {
		return
	}
	side, ok := s.conventions.Counts(r.Vantage)
	if !ok || !s.published[side] {
		return
	}
	if s.callers.saw(r.Trace, r.Vantage, side) {
		s.doubled.Store(true)
	}
	if _, _, whole := r.standardAttributes(); s.needsChunks[side] && !whole && r.lacksChunks() {
		s.withoutChunks.Store(true)
	}
	var key []byte
	if h != nil {
		h = h.standard
	} else {
		var buffer [512]byte
		key = r.appendStandardKey(buffer[:0])
	}
	if s.add(h, key, r.Client, r.Arrival, func(x *series) Recorded { return s.addTo(x, side, r) }).Overflow {
		s.overflow.Add(1)
		s.overflowed.Store(true)
	}
}

// lacksChunks reports whether the request has gaps between its tokens but not between its chunks.
func (r *Contribution) lacksChunks() bool {
	return !r.Distribution(numbers.InterTokenLatency).empty() && r.Distribution(numbers.InterChunkLatency).empty()
}

// Faults are what happened since the last call of Standard.Faults.
type Faults struct {
	// Overflow means that a request went to the overflow series.
	Overflow bool
	// Doubled means that two vantages of one trace counted for the same side.
	Doubled bool
	// WithoutChunks means that a request has gaps between tokens, and none between chunks though a metric needs them.
	WithoutChunks bool
}

// Faults returns what happened since the last call.
func (s *Standard) Faults() Faults {
	return Faults{s.overflowed.Swap(false), s.doubled.Swap(false), s.withoutChunks.Swap(false)}
}

// Overflow returns the number of requests that went to the overflow series.
func (s *Standard) Overflow() int64 { return s.overflow.Load() }

// standardSeries is a metric of a series for one value of its label.
type standardSeries struct {
	row       int // of Standard.metrics
	label     string
	start     time.Time
	sum       float64
	histogram *histogram // nil for a counter
}

// compare orders the metrics of a series.
func (m *standardSeries) compare(row int, label string) int {
	return cmp.Or(cmp.Compare(m.row, row), strings.Compare(m.label, label))
}

// maxErrorTypes limits the error types of a series. Further ones count as names.Other.
const maxErrorTypes = 32

// addTo adds a request to a series, which is locked.
func (s *Standard) addTo(x *series, side conventions.Side, r *Contribution) Recorded {
	_, errorType, whole := r.standardAttributes()
	exemplar := Exemplar{TraceID: r.TraceID, SpanID: r.SpanID, UnixNano: r.Arrival.UnixNano()}
	failed := r.Outcome == Error || r.Outcome == Incomplete
	for i := range s.metrics {
		m := s.metrics[i].Metric
		if m.Side != side || m.Successful && r.Outcome != Success || m.Streaming && whole {
			continue
		}
		label := m.TokenType
		if m.Label == names.ErrorType && failed {
			label = cmp.Or(errorType, names.Other)
		}
		if m.Number.IsDistribution() {
			if d := r.Distribution(m.Number); !d.empty() {
				h := x.standardAt(i, label, m, r.Arrival).histogram
				if d.mergeInto(&h.pending, &r.Gaps, new(parsed)) {
					h.keepLargest(d.Max, &exemplar)
				}
			}
			continue
		}
		v, ok := r.Value(m.Number)
		if !ok && !m.Zero {
			continue
		}
		if m.Bounds != nil {
			x.standardAt(i, label, m, r.Arrival).histogram.add(v, &exemplar)
		} else {
			x.addTokens(i, m, r, v)
		}
	}
	return Recorded{Overflow: x.key == overflowKey}
}

// addTokens adds tokens to a counter: those of each modality, then those of an unknown one.
func (s *series) addTokens(row int, m *conventions.Metric, r *Contribution, tokens float64) {
	left := tokens
	for id := numbers.TextInputTokens; id <= numbers.AudioCachedInputTokens; id++ {
		n, _ := r.Value(id)
		of := id.Row()
		if n = min(n, left); n > 0 && of.Type == m.Number.Row().Type {
			s.standardAt(row, of.Modality, m, r.Arrival).sum += n
			left -= n
		}
	}
	if left > 0 || tokens == 0 {
		s.standardAt(row, names.ModalityUnknown, m, r.Arrival).sum += left
	}
}

// standardAt returns a metric of the series, and begins it if necessary.
func (s *series) standardAt(row int, label string, m *conventions.Metric, now time.Time) *standardSeries {
	at, found := slices.BinarySearchFunc(s.standard, label, func(x *standardSeries, label string) int { return x.compare(row, label) })
	if found {
		return s.standard[at]
	}
	if m.Label == names.ErrorType && label != names.Other && s.errorTypes(row) >= maxErrorTypes {
		return s.standardAt(row, names.Other, m, now)
	}
	metric := &standardSeries{row: row, label: strings.Clone(label), start: now} // the label is part of a span
	if m.Bounds != nil {
		metric.histogram = &histogram{start: now, bounds: m.Bounds, totals: true}
		if !m.Number.IsDistribution() {
			metric.histogram.classic = make([]uint64, len(m.Bounds)+1)
		}
	}
	s.standard = slices.Insert(s.standard, at, metric)
	return metric
}

func (s *series) errorTypes(row int) (n int) {
	for _, metric := range s.standard {
		if metric.row == row {
			n++
		}
	}
	return n
}
