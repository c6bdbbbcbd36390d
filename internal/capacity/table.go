// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"slices"
	"sync"
	"time"
)

// Objective is what a limit is learned for.
type Objective struct {
	// SLO is the name of an SLO, or `all`.
	SLO string
	// Objective is the share of good requests, such as 0.99.
	Objective float64
	// Forget is how long a limit stays after the last slot that missed the objective at a higher load.
	Forget time.Duration
}

// Verdict is that of an SLO on a request.
type Verdict uint8

// The verdicts.
const (
	Unjudged Verdict = iota // not eligible, or another SLO's
	Good
	Bad
)

// Request is an ended request.
type Request struct {
	// Vantage and Replica say who served it as seen by whom.
	Vantage, Replica string
	Start, End       time.Time
	// Sized is true if the tokens of its answer, and of its prompt without the cached ones, are known.
	Sized          bool
	Output, Prompt uint64
	// Verdicts are those for the objectives, in their order.
	Verdicts [MaxObjectives]Verdict
}

// Limits of a Table.
const (
	// MaxObjectives is that of the objectives.
	MaxObjectives = 10
	// MaxLimits is that of the limits, of up to 10 KiB each.
	MaxLimits = 1000
	// MaxReplicas is that of the replicas, of about 3 KiB each and 1 KiB for each of their limits.
	MaxReplicas = 1000
	// MaxShares is that of the series that one replica serves.
	MaxShares = 32
)

// Dropped are the requests that were left out.
type Dropped struct {
	// Late ones took over 10 minutes, Unnamed ones name no replica. Series and Replicas are those over the limits.
	Late, Unnamed, Series, Replicas int64
}

// Table learns the limits of the replicas of each series for each objective. It is safe for concurrent use.
type Table struct {
	objectives []Objective

	mu sync.Mutex
	// mu guards everything declared below.
	since     time.Time // of the first request
	subjects  map[string]*subject
	instances map[place]*instance
	dropped   Dropped
	swept     time.Time // when the replicas were last looked through
	searched  time.Time // when no idle series was found
}

type place struct{ vantage, name string }

// subject is what was learned about one series.
type subject struct {
	clock
	key    string
	limits []*Limit // by objective
	slots  uint64   // that it has learned from
	last   *instance
}

// NewTable returns an empty table. There may be MaxObjectives objectives.
func NewTable(objectives []Objective) *Table {
	return &Table{objectives: objectives, subjects: map[string]*subject{}, instances: map[place]*instance{}}
}

// Objectives returns what the table learns limits for.
func (t *Table) Objectives() []Objective { return t.objectives }

// Dropped returns how many requests were left out.
func (t *Table) Dropped() Dropped {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.dropped
}

// Record counts a request of a series, such as that of a model. Times after now count as now. The table keeps no reference to the key.
func (t *Table) Record(series []byte, r *Request, now time.Time) {
	r.End = earlier(r.End, now)
	r.Start = earlier(r.Start, r.End)
	t.mu.Lock()
	defer t.mu.Unlock()
	if r.Start.Unix() < 0 { // as of timestamps over 63 bits, which have no slot
		t.dropped.Late++
		return
	}
	if r.Replica == "" {
		t.dropped.Unnamed++
		return
	}
	if t.since.IsZero() {
		t.since = now
	}
	t.sweep(now)
	on := t.instance(r, now)
	if on == nil {
		t.dropped.Replicas++
		return
	}
	of := t.share(on, series, now)
	if of == nil {
		t.dropped.Series++
		return
	}
	if last := of.of.last; on.lasting.all == 0 && last != nil {
		on.lasting = last.lasting // of the first requests, short ones arrive first
	}
	of.of.last = on
	of.of.set(r.End, now)
	if on.add(r, of, now) {
		t.dropped.Late++
	}
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// instance returns the replica of a request, or nil at the limit.
func (t *Table) instance(r *Request, now time.Time) *instance {
	at := place{r.Vantage, r.Replica}
	i := t.instances[at]
	if i != nil && i.setBack(r, now) {
		i = nil
		delete(t.instances, at)
	}
	if i == nil {
		if len(t.instances) >= MaxReplicas {
			return nil
		}
		i = newInstance(r, now.Sub(t.since))
		t.instances[at] = i
	}
	return i
}

// sweep completes the slots of replicas without requests, and removes those whose slots are all complete. It looks through all of them, so once
// a minute is enough, even if each request names another replica.
func (t *Table) sweep(now time.Time) {
	if now.Sub(t.swept) < time.Minute {
		return
	}
	t.swept = now
	for at, i := range t.instances {
		i.complete(slotOf(i.at(now)) - held + 1)
		if now.Sub(i.arrived) > wait {
			delete(t.instances, at)
		}
	}
}

// share returns that of a series on a replica, or nil at a limit.
func (t *Table) share(on *instance, series []byte, now time.Time) *share {
	for _, of := range on.shares {
		if of.of.key == string(series) {
			return of
		}
	}
	if len(on.shares) >= MaxShares {
		return nil
	}
	s := t.subject(series, now)
	if s == nil {
		return nil
	}
	of := newShare(s, on)
	on.shares = append(on.shares, of)
	return of
}

// idle is how long a series has no request before another one may take its place.
const idle = time.Hour

func (t *Table) subject(key []byte, now time.Time) *subject {
	s := t.subjects[string(key)]
	if s != nil {
		return s
	}
	if (len(t.subjects)+1)*len(t.objectives) > MaxLimits && !t.evict(now) {
		return nil
	}
	s = &subject{key: string(key)}
	for i := range t.objectives {
		s.limits = append(s.limits, New(t.objectives[i].Objective, t.objectives[i].Forget))
	}
	t.subjects[s.key] = s
	return s
}

// evict removes the series that was idle for longest, if it was for long enough. After it found none, it waits for a minute: it looks through all.
func (t *Table) evict(now time.Time) bool {
	if now.Sub(t.searched) < time.Minute {
		return false
	}
	var oldest *subject
	for _, s := range t.subjects {
		if oldest == nil || s.arrived.Before(oldest.arrived) {
			oldest = s
		}
	}
	if oldest == nil || now.Sub(oldest.arrived) < idle {
		t.searched = now
		return false
	}
	delete(t.subjects, oldest.key)
	for _, i := range t.instances {
		i.shares = slices.DeleteFunc(i.shares, func(of *share) bool { return of.of == oldest })
	}
	return true
}
