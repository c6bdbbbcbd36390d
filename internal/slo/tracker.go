// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package slo

import (
	"cmp"
	"container/list"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/tokenpulse/tokenpulse/internal/names"
)

// OverflowKey is the series key of the budgets that take the verdicts of series
// beyond the limit.
const OverflowKey = ""

// TrackerOptions configure a Tracker.
type TrackerOptions struct {
	Objectives []Objective
	// MaxSeries limits the series with budgets, at least 1.
	MaxSeries int
	// IdleAfter is the time without a verdict after which a series is idle. Zero means never.
	// Budgets of idle series stay: their windows can be weeks long.
	IdleAfter time.Duration
}

// Tracker keeps the error budgets of every objective, by series. A series key is
// opaque to it. It is safe for concurrent use.
//
// At the limit, a new series takes the place of the series that has been idle for
// longest. If none is idle, its verdicts go to the overflow budgets.
type Tracker struct {
	objectives map[string]*Objective // by SLO
	maxSeries  int
	idleAfter  time.Duration
	longest    time.Duration // of all windows: budgets without a verdict for that long are empty
	epoch      time.Time

	// mu guards everything declared below.
	mu      sync.Mutex
	budgets map[string]*budgets
	// byAge lists the budgets of budgets, the overflow budgets excepted. Those without
	// a verdict for longest come first.
	byAge     list.List
	evicted   int64
	sightings sightings
}

// NewTracker returns a tracker without budgets, whose clock starts at now.
func NewTracker(o TrackerOptions, now time.Time) *Tracker {
	t := &Tracker{
		objectives: map[string]*Objective{},
		maxSeries:  o.MaxSeries,
		idleAfter:  o.IdleAfter,
		longest:    slices.Max(BurnWindows[:]),
		epoch:      now,
		budgets:    map[string]*budgets{},
		sightings:  newSightings(o.Objectives, now),
	}
	for i := range o.Objectives {
		objective := &o.Objectives[i]
		t.objectives[objective.SLO] = objective
		t.longest = max(t.longest, objective.Window)
	}
	return t
}

// Record counts the verdicts on one request of a series.
func (t *Tracker) Record(key []byte, verdicts *VerdictSet, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sightings.requests++
	var of *budgets
	position := t.position(now)
	for slo, verdict := range verdicts.All {
		t.sightings.add(slo)
		objective := t.objectives[slo]
		if objective == nil {
			continue
		}
		if of == nil {
			of = t.of(key, position)
		}
		of.add(objective, verdict, 1, position)
	}
	if of != nil && verdicts.ending == Failed {
		of.fail(position)
	}
}

// Add counts a verdict of one SLO on requests of a series. Unlike Record it does not know
// which requests have the verdicts of other SLOs, too: those that an SLO judged are those
// with a verdict on names.SLOAll.
func (t *Tracker) Add(key []byte, slo string, verdict Verdict, requests uint64, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sightings.add(slo)
	if slo == names.SLOAll {
		t.sightings.requests += requests
	}
	if objective := t.objectives[slo]; objective != nil {
		position := t.position(now)
		t.of(key, position).add(objective, verdict, requests, position)
	}
}

// of returns the budgets of a series, or the overflow budgets at the limit. mu is held.
func (t *Tracker) of(key []byte, now time.Duration) *budgets {
	b := t.budgets[string(key)]
	switch {
	case b != nil:
		if b.age != nil {
			t.byAge.MoveToBack(b.age)
		}
	case len(key) == 0 || t.makeRoom(now):
		b = t.open(string(key))
	default:
		return t.of(nil, now)
	}
	b.seen = max(b.seen, now)
	return b
}

// makeRoom evicts the series that has been idle for longest if the limit is reached.
// It returns false if no series is idle. mu is held.
func (t *Tracker) makeRoom(now time.Duration) bool {
	if t.byAge.Len() < t.maxSeries {
		return true
	}
	oldest := t.byAge.Front().Value.(*budgets)
	if !t.isIdle(oldest, now) {
		return false
	}
	t.remove(oldest)
	t.evicted++
	return true
}

func (t *Tracker) open(key string) *budgets {
	b := &budgets{key: key}
	t.budgets[key] = b
	if key != OverflowKey {
		b.age = t.byAge.PushBack(b)
	}
	return b
}

func (t *Tracker) remove(b *budgets) {
	delete(t.budgets, b.key)
	if b.age != nil {
		t.byAge.Remove(b.age)
	}
}

func (t *Tracker) isIdle(b *budgets, now time.Duration) bool {
	return t.idleAfter > 0 && now-b.seen > t.idleAfter
}

// position returns a time as windows count it: since the Unix epoch, by a clock
// that does not jump during the tracker's life.
func (t *Tracker) position(now time.Time) time.Duration {
	return time.Duration(t.epoch.UnixNano()) + now.Sub(t.epoch)
}

// Expire removes budgets whose windows are all empty.
func (t *Tracker) Expire(now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	over := t.position(now) - t.longest
	for _, b := range t.budgets {
		if b.seen < over {
			t.remove(b)
		}
	}
}

// Evicted returns the number of series whose budgets were evicted at the limit.
func (t *Tracker) Evicted() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.evicted
}

// Budgets are the budgets of one series at one moment.
type Budgets struct {
	Key string
	// LastSeen is the time of the series' latest verdict.
	LastSeen time.Time
	// Idle is set when that is longer ago than TrackerOptions.IdleAfter.
	Idle bool
	// Failed is the number of requests in the first of BurnWindows that failed, but for client mistakes.
	Failed uint64
	// Each holds one entry for each objective that applied to a request of the
	// series, in the order of the SLO names. It is valid during the visit only.
	Each []Budget
}

// Budget is the recent past of one objective of one series.
type Budget struct {
	*Objective
	Recent Recent
}

// Visit calls visit with the budgets of each series at a moment, in the order of the
// keys. visit may call the tracker.
func (t *Tracker) Visit(now time.Time, visit func(*Budgets)) {
	var b Budgets
	for _, of := range t.all() {
		t.read(&b, of, now)
		visit(&b)
	}
}

// all returns all budgets in the order of their keys.
func (t *Tracker) all() []*budgets {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.SortedFunc(maps.Values(t.budgets), func(a, b *budgets) int { return cmp.Compare(a.key, b.key) })
}

func (t *Tracker) read(into *Budgets, from *budgets, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	position := t.position(now)
	into.Key, into.Idle, into.Each = from.key, t.isIdle(from, position), into.Each[:0]
	into.LastSeen = now.Add(from.seen - position)
	into.Failed = from.recentlyFailed(position)
	for _, h := range from.objectives {
		into.Each = append(into.Each, Budget{h.objective, h.Recent(position)})
	}
}
