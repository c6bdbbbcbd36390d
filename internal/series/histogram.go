// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package series

import (
	"time"

	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/sketch"
)

// histogram is the distribution of one quantity in one series and outcome.
//
// New values go to the pending sketch only. When a slot closes or a reader needs a
// snapshot, fold moves them on:
//
//	value ──▶ pending ──fold──▶ total      since the series started
//	                      └───▶ windows    the open slot of each
type histogram struct {
	start   time.Time // arrival of the first value
	pending sketch.Sketch
	total   sketch.Sketch
	windows windows // empty if the gauges are off

	// totals is false if only the gauges are on: then nothing but the windows is kept.
	totals bool
	bounds []float64
	// classic counts single values by classic bucket, exactly. It is nil for
	// distributions, which snapshot counts from the total.
	classic []uint64
	// exemplars holds the latest exemplar of each classic bucket.
	exemplars []Exemplar
}

func newHistogram(q numbers.ID, e *Engine, arrival time.Time) *histogram {
	on := e.published[q]
	h := &histogram{start: arrival, bounds: e.bounds[q], totals: on.histogram}
	if on.gauges {
		h.windows = make(windows, len(e.calendar.widths))
	}
	if q < numbers.Singles && on.histogram {
		h.classic = make([]uint64, len(h.bounds)+1)
	}
	return h
}

// add counts a single value.
func (h *histogram) add(v float64, exemplar *Exemplar) {
	h.pending.Add(v, 1)
	if !h.totals {
		return
	}
	bucket := classicIndex(h.bounds, v)
	h.classic[bucket]++
	h.keep(exemplar, bucket, v)
}

// keepLargest keeps the exemplar of a request whose distribution was merged, if its largest
// value is known.
func (h *histogram) keepLargest(largest float64, exemplar *Exemplar) {
	if largest > 0 && h.totals {
		h.keep(exemplar, classicIndex(h.bounds, largest), largest)
	}
}

// keep makes the exemplar that of a bucket.
func (h *histogram) keep(exemplar *Exemplar, bucket int, v float64) {
	if !exemplar.Set() {
		return
	}
	if h.exemplars == nil {
		h.exemplars = make([]Exemplar, len(h.bounds)+1)
	}
	e := &h.exemplars[bucket]
	*e = *exemplar
	e.Value = v
}

// fold moves the pending values to the total and the open slots.
func (h *histogram) fold(open []int64, scratch *sketch.Sketch) {
	if h.pending.Count() == 0 {
		h.pending = sketch.Sketch{} // release the memory of an idle histogram
		return
	}
	if h.totals {
		h.total.Merge(&h.pending)
	}
	h.windows.add(open, &h.pending, scratch)
	h.pending.Reset()
}

// snapshot copies the histogram, which must be folded.
func (h *histogram) snapshot(into *DistributionSnapshot, quantiles []float64, scratch *sketch.Sketch) {
	into.Start = h.start
	into.Sketch.Reset()
	into.Sketch.Merge(&h.total)
	into.Bounds = h.bounds
	into.Exemplars = append(into.Exemplars[:0], h.exemplars...)
	into.Classic = append(into.Classic[:0], h.classic...)
	if h.classic == nil {
		into.Classic = append(into.Classic, make([]uint64, len(h.bounds)+1)...)
		countClassic(into.Classic, h.bounds, &h.total)
	}
	into.Quantiles = into.Quantiles[:0]
	for w := range h.windows {
		h.windows.collect(w, scratch)
		if scratch.Count() == 0 {
			continue
		}
		for i, q := range quantiles {
			into.Quantiles = append(into.Quantiles, Quantile{Window: w, Quantile: i, Value: scratch.Quantile(q)})
		}
	}
}
