// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/tokenpulse/tokenpulse/internal/sketch"
)

// Row holds what a window added to one series: a model of a service, seen from one
// vantage.
type Row struct {
	Model, Service, Vantage string
	// Requests counts the finished requests by outcome.
	Requests map[string]float64
	// Latencies holds a distribution in seconds for each of indicators, of successful
	// requests.
	Latencies [len(indicators)]sketch.Sketch
}

// slots is how many parts of a window leave it one after the other.
const slots = 30

// Window keeps what the last scrapes added to the series. It holds at most slots + 2
// slots. The zero value with a Length is ready for use.
type Window struct {
	Length time.Duration

	slots    []slot // in the order of time
	totals   Totals // of the last scrape
	scraped  time.Time
	baseline bool // totals are set
}

// slot holds the rows of some scrapes, by key of their series.
type slot struct {
	begin, end time.Time
	rows       map[string]*Row
}

// Add adds the increase since the last scrape. The first scrape is what the second one
// is compared with. Series that are new or began again, as they do when the Collector
// restarts, count from 0.
func (w *Window) Add(now time.Time, totals Totals) {
	if w.baseline {
		rows := w.current(now).rows
		for key, series := range totals {
			before := w.totals[key]
			if before == nil {
				before = noSeries
			}
			row, ok := rows[key]
			if !ok {
				row = series.newRow()
				rows[key] = row
			}
			series.increase(row, before)
		}
	}
	w.totals, w.scraped, w.baseline = totals, now, true
	w.slots = slices.DeleteFunc(w.slots, func(s slot) bool { return s.begin.Before(now.Add(-w.Length)) })
}

// current returns the slot that now belongs to.
func (w *Window) current(now time.Time) *slot {
	if n := len(w.slots); n == 0 || w.scraped.Sub(w.slots[n-1].begin) >= w.Length/slots {
		w.slots = append(w.slots, slot{begin: w.scraped, rows: map[string]*Row{}})
	}
	current := &w.slots[len(w.slots)-1]
	current.end = now
	return current
}

// Rows returns the series with requests in the window, and the time that it covers.
func (w *Window) Rows() (rows []Row, covers time.Duration) {
	if len(w.slots) == 0 {
		return nil, 0
	}
	sums := map[string]*Row{}
	for _, slot := range w.slots {
		for key, row := range slot.rows {
			sum, ok := sums[key]
			if !ok {
				sum = &Row{Model: row.Model, Service: row.Service, Vantage: row.Vantage, Requests: map[string]float64{}}
				sums[key] = sum
			}
			for outcome, n := range row.Requests {
				sum.Requests[outcome] += n
			}
			for i := range row.Latencies {
				sum.Latencies[i].Merge(&row.Latencies[i])
			}
		}
	}
	return sorted(sums), w.slots[len(w.slots)-1].end.Sub(w.slots[0].begin)
}

// Rows returns the series since the Collector started.
func (t Totals) Rows() []Row {
	rows := map[string]*Row{}
	for key, series := range t {
		rows[key] = series.newRow()
		series.increase(rows[key], noSeries)
	}
	return sorted(rows)
}

// sorted returns the rows with requests in the order of their visible labels, then of
// all labels.
func sorted(rows map[string]*Row) []Row {
	var out []Row
	for _, key := range slices.Sorted(maps.Keys(rows)) {
		if total(rows[key].Requests) > 0 {
			out = append(out, *rows[key])
		}
	}
	slices.SortStableFunc(out, func(a, b Row) int {
		return cmp.Or(cmp.Compare(a.Model, b.Model), cmp.Compare(a.Service, b.Service), cmp.Compare(a.Vantage, b.Vantage))
	})
	return out
}

var noSeries = &series{}

func (s *series) newRow() *Row {
	return &Row{Model: s.model, Service: s.service, Vantage: s.vantage, Requests: map[string]float64{}}
}

// increase adds what the series gained since before.
func (s *series) increase(row *Row, before *series) {
	for outcome, n := range s.requests {
		if previous := before.requests[outcome]; previous <= n {
			n -= previous
		}
		row.Requests[outcome] += n
	}
	for i := range s.latencies {
		s.latencies[i].increase(&row.Latencies[i], &before.latencies[i])
	}
}

func (n *native) increase(into *sketch.Sketch, before *native) {
	if n.beganAfter(before) {
		before = &native{}
	}
	into.Add(0, n.zeros-before.zeros)
	for index, count := range n.buckets {
		middle := math.Exp2((float64(index) - 0.5) / math.Exp2(float64(n.schema)))
		into.Add(middle, count-before.buckets[index])
	}
}

// beganAfter reports whether the histogram was reset since before.
func (n *native) beganAfter(before *native) bool {
	if n.created != before.created || n.schema != before.schema || n.zeros < before.zeros {
		return true
	}
	for index, count := range before.buckets {
		if n.buckets[index] < count {
			return true
		}
	}
	return false
}
