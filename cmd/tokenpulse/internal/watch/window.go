// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"cmp"
	"maps"
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

	origins [len(indicators)]origin // of latencies that a scrape has
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

// slot holds the rows of some scrapes.
type slot struct {
	begin, end time.Time
	rows       Totals
}

// Add adds the increase since the last scrape. The first scrape is what the second one
// is compared with. Series that are new or began again, as they do when the Collector
// restarts, count from 0.
func (w *Window) Add(now time.Time, totals Totals) {
	if w.baseline {
		rows := w.current(now).rows
		for key, row := range totals {
			rows.add(key, row.since(w.totals[key]))
		}
	}
	w.totals, w.scraped, w.baseline = totals, now, true
	w.slots = slices.DeleteFunc(w.slots, func(s slot) bool { return s.begin.Before(now.Add(-w.Length)) })
}

// current returns the slot that now belongs to.
func (w *Window) current(now time.Time) *slot {
	if n := len(w.slots); n == 0 || w.scraped.Sub(w.slots[n-1].begin) >= w.Length/slots {
		w.slots = append(w.slots, slot{begin: w.scraped, rows: Totals{}})
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
	sums := Totals{}
	for _, slot := range w.slots {
		for key, row := range slot.rows {
			sums.add(key, row)
		}
	}
	return sums.Rows(), w.slots[len(w.slots)-1].end.Sub(w.slots[0].begin)
}

// add adds the values of a row to that with the key.
func (t Totals) add(key string, row *Row) {
	sum, ok := t[key]
	if !ok {
		sum = &Row{Model: row.Model, Service: row.Service, Vantage: row.Vantage, Requests: map[string]float64{}}
		t[key] = sum
	}
	for outcome, n := range row.Requests {
		sum.Requests[outcome] += n
	}
	for i := range row.Latencies {
		sum.Latencies[i].Merge(&row.Latencies[i])
	}
}

// Rows returns the rows with requests in the order of their visible labels, then of all labels.
func (t Totals) Rows() []Row {
	var out []Row
	for _, key := range slices.Sorted(maps.Keys(t)) {
		if total(t[key].Requests) > 0 {
			out = append(out, *t[key])
		}
	}
	slices.SortStableFunc(out, func(a, b Row) int {
		return cmp.Or(cmp.Compare(a.Model, b.Model), cmp.Compare(a.Service, b.Service), cmp.Compare(a.Vantage, b.Vantage))
	})
	return out
}

// since returns what a series gained since before, which is nil for a new one.
func (r *Row) since(before *Row) *Row {
	if before == nil {
		return r
	}
	gain := &Row{Model: r.Model, Service: r.Service, Vantage: r.Vantage, Requests: maps.Clone(r.Requests)}
	for outcome, previous := range before.Requests {
		if previous <= gain.Requests[outcome] {
			gain.Requests[outcome] -= previous
		}
	}
	for i := range r.Latencies {
		gain.Latencies[i].Merge(&r.Latencies[i])
		if r.origins[i] == before.origins[i] {
			_ = gain.Latencies[i].Subtract(&before.Latencies[i]) // an error means that the histogram began again
		}
	}
	return gain
}
