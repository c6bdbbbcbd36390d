// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package series

import (
	"iter"
	"sync"
	"time"

	"github.com/tokenpulse/tokenpulse/internal/httpguard"
	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/optional"
	"github.com/tokenpulse/tokenpulse/internal/sketch"
)

// series aggregates the requests with the same labels.
type series struct {
	key    string
	table  *table
	engine *Engine // nil in a series of a Standard
	holder *Handle // guarded by the table's mu
	// client is the sender that opened the series, or nil.
	client *httpguard.Client

	// mu guards everything declared below.
	mu       sync.Mutex
	start    time.Time
	lastSeen time.Time
	// expired is set when the series is removed: later requests belong to its
	// successor.
	expired  bool
	page     page
	outcomes [outcomes]*outcomeSeries
	counts   [counts]optional.Value[float64]
	later    []laterCount // at most one for each count
	verdicts verdictCounters
	reported [counts]float64 // of counts, to the history
	// standard holds the metrics of a series of a Standard, sorted. It uses neither outcomes nor counts.
	standard []*standardSeries
}

// requests returns the requests of all outcomes.
func (s *series) requests() (n uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range s.outcomes {
		if o != nil {
			n += o.requests
		}
	}
	return n
}

// outcomeSeries is the part of a series for one outcome.
type outcomeSeries struct {
	start      time.Time
	requests   uint64
	histograms [numbers.Distributions]*histogram
	// For the history: the requests that it has, and the prompts that it does not have.
	reported uint64
	prompts  []Prompt
}

func newSeries(key string, t *table, now time.Time) *series {
	s := &series{key: key, table: t, engine: t.engine, start: now, lastSeen: now}
	if s.engine != nil {
		s.page = s.engine.calendar.page(now)
	}
	return s
}

// at calls do at an arrival. ok is false if the series has expired.
func (s *series) at(arrival time.Time, do func(*series) Recorded) (result Recorded, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.expired {
		return Recorded{}, false
	}
	s.advance(arrival)
	if arrival.After(s.lastSeen) {
		s.lastSeen = arrival
	}
	return do(s), true
}

// record adds a request, with its verdicts if judged is set. mu is held.
func (s *series) record(r *Contribution, judged bool) (result Recorded) {
	s.count(r)
	o := s.outcomeAt(r.Outcome, r.Arrival)
	if !r.TraceOnly {
		o.requests++
	}
	exemplar := Exemplar{TraceID: r.TraceID, SpanID: r.SpanID, UnixNano: r.Arrival.UnixNano()}
	for q := range numbers.Singles {
		if v, ok := r.Value(q); ok && s.engine.published[q].any() {
			o.histogram(q, s.engine, r.Arrival).add(v, &exemplar)
		}
	}
	if s.engine.history != nil {
		s.addPrompt(o, r)
	}
	result = Recorded{Overflow: s.key == overflowKey, MalformedSketches: o.merge(r, &exemplar, s.engine)}
	if judged && s.engine.verdicts {
		result.DroppedVerdicts = s.judge(r).DroppedVerdicts
	}
	return result
}

// judge adds the verdicts on a request. mu is held.
func (s *series) judge(r *Contribution) Recorded {
	exemplar := Exemplar{TraceID: r.TraceID, SpanID: r.SpanID, UnixNano: r.Arrival.UnixNano()}
	return Recorded{
		Overflow:        s.key == overflowKey,
		DroppedVerdicts: s.verdicts.add(&r.Verdicts, s.engine.objectives, &exemplar, r.Arrival),
	}
}

// merge adds the request's distributions. It returns the number of those that are
// malformed or impossible.
func (o *outcomeSeries) merge(r *Contribution, exemplar *Exemplar, e *Engine) (malformed int) {
	var last parsed
	for q := numbers.Singles; q < numbers.Distributions; q++ {
		d := r.Distribution(q)
		if d.empty() || !e.published[q].any() {
			continue
		}
		h := o.histogram(q, e, r.Arrival)
		if !d.mergeInto(&h.pending, r.limitsOf(q), &last) {
			if !d.shared || malformed == 0 {
				malformed++
			}
			continue
		}
		h.keepLargest(d.Max, exemplar)
	}
	return malformed
}

func (s *series) count(r *Contribution) {
	for c, n := range r.Sums {
		if s.engine.counts[c] {
			s.countTo(c, n, r.Arrival)
		}
	}
}

// countTo adds to a count, which may begin now.
func (s *series) countTo(c Count, n float64, arrival time.Time) {
	if !s.counts[c].Known && arrival.After(s.start) {
		s.later = append(s.later, laterCount{c, arrival})
	}
	s.counts[c] = optional.Of(s.counts[c].Value + n)
}

// laterCount is a count that began after its series.
type laterCount struct {
	Count
	start time.Time
}

func (s *series) outcomeAt(outcome Outcome, arrival time.Time) *outcomeSeries {
	o := s.outcomes[outcome]
	if o == nil {
		o = &outcomeSeries{start: arrival}
		s.outcomes[outcome] = o
	}
	return o
}

func (o *outcomeSeries) histogram(q numbers.ID, e *Engine, arrival time.Time) *histogram {
	if o.histograms[q] == nil {
		o.histograms[q] = newHistogram(q, e, arrival)
	}
	return o.histograms[q]
}

// advance moves the windows to a time. mu is held.
func (s *series) advance(now time.Time) {
	if s.engine == nil || !s.engine.calendar.closed(&s.page, now) {
		return
	}
	s.fold()
	next := s.engine.calendar.page(now)
	for h := range s.histograms() {
		h.windows.move(s.page.slots, next.slots)
	}
	s.page = next
}

// fold moves all pending values to the totals, the windows and the history. mu is held.
func (s *series) fold() {
	if s.engine.history != nil {
		s.reportGain()
	}
	scratch := s.engine.scratch.Get().(*sketch.Sketch)
	defer s.engine.scratch.Put(scratch)
	for h := range s.histograms() {
		h.fold(s.page.slots, scratch)
	}
}

func (s *series) histograms() iter.Seq[*histogram] {
	return func(yield func(*histogram) bool) {
		for _, o := range s.outcomes {
			if o == nil {
				continue
			}
			for _, h := range o.histograms {
				if h != nil && !yield(h) {
					return
				}
			}
		}
	}
}

// expire marks the series as expired if it is idle. Otherwise it releases the slots
// that left their windows.
func (s *series) expire(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expired = s.table.config.isIdle(now.Sub(s.lastSeen))
	if s.expired && s.engine != nil {
		s.fold() // the history outlives the series
	} else {
		s.advance(now)
	}
	return s.expired
}

// snapshot copies the series. It returns false if the series has expired.
func (s *series) snapshot(into *Snapshot, now time.Time, scratch *sketch.Sketch) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.expired {
		return false
	}
	s.advance(now)
	s.fold()
	into.Start, into.counts = s.start, s.counts
	into.later = append(into.later[:0], s.later...)
	into.SLOs = s.verdicts.snapshot(into.SLOs[:0])
	for i, o := range s.outcomes {
		o.snapshot(&into.Outcomes[i], s.engine.quantiles, scratch)
	}
	return true
}

func (o *outcomeSeries) snapshot(into *OutcomeSnapshot, quantiles []float64, scratch *sketch.Sketch) {
	if o == nil {
		into.Start, into.Requests = time.Time{}, 0
		return
	}
	into.Start, into.Requests = o.start, o.requests
	for q, h := range o.histograms {
		if h == nil {
			into.Distributions[q].clear()
			continue
		}
		h.snapshot(&into.Distributions[q], quantiles, scratch)
	}
}
