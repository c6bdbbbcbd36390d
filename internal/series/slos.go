package series

import (
	"slices"
	"strings"
	"time"

	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/slo"
)

// slos holds what a series keeps for each objective. The zero value is empty.
type slos struct {
	byName map[string]*sloSeries // at most MaxSLOs, and names.SLOAll
	// budgets hold the histories. They are nil where none of the configuration's
	// objectives applied.
	budgets *budgets
}

// sloSeries counts the requests of one series by the verdict of one objective.
type sloSeries struct {
	start    time.Time
	requests [verdictKinds]uint64
	// objective and history are nil where the configuration has no objective.
	objective *Objective
	history   *slo.History
}

// resume begins with the recent past of an earlier series, if there is one.
func (ss *slos) resume(b *budgets, now time.Time, e *Engine) {
	if b == nil {
		return
	}
	ss.budgets = b
	for name := range b.histories {
		ss.place(name, now, e)
	}
}

// record counts a request. It returns how many of its verdicts were dropped.
func (ss *slos) record(r *Request, e *Engine) (dropped int) {
	vs := &r.Verdicts
	if !vs.apply {
		return vs.dropped
	}
	ss.count(ss.place(names.SLOAll, r.Arrival, e), vs.overall, r.Arrival, e)
	dropped = vs.dropped
	for _, v := range vs.each {
		if s := ss.place(v.slo, r.Arrival, e); s != nil {
			ss.count(s, v.verdict, r.Arrival, e)
		} else {
			dropped++
		}
	}
	return dropped
}

// place returns the counts of an objective, or nil where there are too many.
func (ss *slos) place(name string, now time.Time, e *Engine) *sloSeries {
	if s := ss.byName[name]; s != nil {
		return s
	}
	if len(ss.byName) > MaxSLOs {
		return nil
	}
	if ss.byName == nil {
		ss.byName = map[string]*sloSeries{}
	}
	name = strings.Clone(name) // it is part of a span
	s := &sloSeries{start: now}
	if s.objective = e.objectives[name]; s.objective != nil {
		if ss.budgets == nil {
			ss.budgets = &budgets{}
		}
		s.history = ss.budgets.history(s.objective, name)
	}
	ss.byName[name] = s
	return s
}

func (ss *slos) count(s *sloSeries, v Verdict, now time.Time, e *Engine) {
	s.requests[v]++
	if s.history != nil && v != NotEligible {
		at := e.position(now)
		s.history.Add(at, v == Good)
		ss.budgets.added++
		ss.budgets.latest = max(ss.budgets.latest, at)
	}
}

// snapshot copies the counts as they are at a time, in the order of the names.
func (ss *slos) snapshot(into []SLOSnapshot, now time.Time, e *Engine) []SLOSnapshot {
	for name, s := range ss.byName {
		copied := SLOSnapshot{Name: name, Start: s.start, Requests: s.requests}
		if s.history != nil {
			copied.Objective = s.objective.Objective
			copied.Recent = s.history.Recent(e.position(now))
		}
		into = append(into, copied)
	}
	slices.SortFunc(into, func(a, b SLOSnapshot) int { return strings.Compare(a.Name, b.Name) })
	return into
}
