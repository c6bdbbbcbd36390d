// Package series adds finished requests up to series: distributions, counters and
// quantiles over recent windows, for each combination of dimensions. Its memory
// is bounded by the number of series. It knows nothing of who reads it.
package series

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tokenpulse/tokenpulse/internal/sketch"
	"github.com/tokenpulse/tokenpulse/internal/slo"
)

// Options says what an Engine keeps.
type Options struct {
	Series SeriesConfig
	// Windows are the recent pasts that quantiles are computed over.
	Windows []time.Duration
	// Quantiles are those computed over each window, between 0 and 1.
	Quantiles []float64
	// ClassicBounds replaces the default bounds of a histogram's classic buckets,
	// by the metric's name.
	ClassicBounds map[string][]float64
	// Objectives are those that burn rates and error budgets are computed for.
	Objectives []Objective
}

// Engine holds the series. It is safe for concurrent use: a request locks its own
// series only, and so does a reader, one series after the other.
type Engine struct {
	dimensions int // how many
	maxSeries  int
	expiration time.Duration
	quantiles  []float64
	bounds     [quantities][]float64
	calendar   *calendar
	objectives map[string]*Objective // by the cleaned name
	// longest of the windows of all objectives
	longest time.Duration
	scratch sync.Pool // of *sketch.Sketch

	// mu guards everything declared below. Nothing is done under it but to find,
	// place and remove series.
	mu     sync.RWMutex
	series map[string]*series
	// held is how many series there are, the overflow series not counted.
	held       int
	remembered remembered
}

// overflowKey is the overflow series' place among the others: no request has an
// empty key.
const overflowKey = ""

// NewEngine returns an engine without series.
func NewEngine(o Options) *Engine {
	e := &Engine{
		dimensions: len(o.Series.Dimensions),
		maxSeries:  o.Series.MaxSeries,
		expiration: o.Series.SeriesExpiration,
		quantiles:  o.Quantiles,
		calendar:   newCalendar(time.Now(), o.Windows),
		scratch:    sync.Pool{New: func() any { return new(sketch.Sketch) }},
		series:     map[string]*series{},
		objectives: map[string]*Objective{},
		longest:    slices.Max(slo.BurnWindows[:]),
		remembered: remembered{most: o.Series.MaxSeries, by: map[string]*budgets{}},
	}
	for i := range o.Objectives {
		e.objectives[clean(o.Objectives[i].SLO)] = &o.Objectives[i]
		e.longest = max(e.longest, o.Objectives[i].Window)
	}
	for q, h := range Histograms {
		e.bounds[q] = h.ClassicBounds
		if bounds, given := o.ClassicBounds[h.Name]; given {
			e.bounds[q] = bounds
		}
	}
	return e
}

// Bounds returns the upper bounds of a quantity's classic buckets.
func (e *Engine) Bounds(q Quantity) []float64 { return e.bounds[q] }

// Recorded tells what became of a request.
type Recorded struct {
	// Overflow is set when the request went to the overflow series.
	Overflow bool
	// MalformedSketches were left out. The rest of the request counts.
	MalformedSketches int
	// DroppedVerdicts have no count of their own: there were too many objectives.
	DroppedVerdicts int
}

// Record adds a request to its series.
func (e *Engine) Record(r *Request) Recorded {
	var buffer [512]byte
	key := appendKey(buffer[:0], r)
	for {
		s := e.find(key)
		if s == nil {
			s = e.place(key, r.Arrival)
		}
		if became, recorded := s.record(r); recorded {
			return became
		}
		e.remove(s) // it expired after we found it: begin its successor
	}
}

// find returns the series of a key, or nil where one must be made.
func (e *Engine) find(key []byte) *series {
	e.mu.RLock()
	defer e.mu.RUnlock()
	if s := e.series[string(key)]; s != nil || e.held < e.maxSeries {
		return s
	}
	return e.series[overflowKey]
}

// place makes the series of a key, or the overflow series at the limit.
func (e *Engine) place(key []byte, now time.Time) *series {
	e.mu.Lock()
	defer e.mu.Unlock()
	place := string(key)
	if e.series[place] == nil && e.held >= e.maxSeries {
		place = overflowKey
	}
	if s := e.series[place]; s != nil {
		return s
	}
	return e.begin(place, now)
}

// begin makes a series, with the budgets that are remembered of it. mu is held.
func (e *Engine) begin(key string, now time.Time) *series {
	s := newSeries(key, e, now, e.remembered.take(key))
	e.series[key] = s
	if key != overflowKey {
		e.held++
	}
	return s
}

// remove takes a series away that has expired, and remembers its budgets.
func (e *Engine) remove(s *series) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.series[s.key] != s {
		return
	}
	delete(e.series, s.key)
	if s.key != overflowKey {
		e.held--
	}
	e.remembered.keep(s.key, s.slos.budgets)
}

// all returns the series there are.
func (e *Engine) all() []*series {
	e.mu.RLock()
	defer e.mu.RUnlock()
	all := make([]*series, 0, len(e.series))
	for _, s := range e.series {
		all = append(all, s)
	}
	return all
}

// Held returns how many series there are, the overflow series not counted.
func (e *Engine) Held() int {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return e.held
}

// Collect visits each series as it is now, in an order that stays the same. A
// series takes requests while it is visited; they are not in the snapshot.
func (e *Engine) Collect(now time.Time, visit func(*Snapshot)) {
	all := e.all()
	slices.SortFunc(all, func(a, b *series) int { return strings.Compare(a.key, b.key) })
	var snapshot Snapshot
	var scratch sketch.Sketch
	for _, s := range all {
		if !s.snapshot(&snapshot, now, &scratch) {
			continue
		}
		snapshot.Key, snapshot.Identity = s.key, IdentityOf(s.key)
		visit(&snapshot)
	}
}

// Expire takes away the series that had no request for as long as the
// configuration says, and returns how many these were. Their error budgets are
// remembered until their windows are over, those of as many series as there may
// be. Forgotten ones were too many.
func (e *Engine) Expire(now time.Time) (expired, forgotten int) {
	for _, s := range e.all() {
		if s.expire(now) {
			e.remove(s)
			expired++
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.remembered.forgetBefore(e.position(now) - e.longest)
	return expired, e.remembered.trim()
}

// isQuiet tells whether a series that had no request for so long expires.
func (e *Engine) isQuiet(d time.Duration) bool { return e.expiration > 0 && d > e.expiration }

// position returns a time as the histories of objectives count it: since the Unix
// epoch, by a clock that does not jump while the engine lives.
func (e *Engine) position(now time.Time) time.Duration {
	return time.Duration(e.calendar.epoch.UnixNano()) + e.calendar.since(now)
}
