// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"github.com/tokenpulse/tokenpulse/internal/diagnostics"
	"github.com/tokenpulse/tokenpulse/internal/history"
	"github.com/tokenpulse/tokenpulse/internal/series"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
)

// Several vantages may see one request. An answer has the requests of one of them, unless it is asked for the sum.
//
// Requests without a known vantage, such as those beyond `max_series`, are part of every answer that does not ask for
// a vantage: no choice hides them.

// vantageAll is the value of the parameter `vantage` for the sum over all vantages.
const vantageAll = "all"

// vantages is a set of them. VantageUnspecified stands for requests without a known one.
type vantages [timeline.VantageEngine + 1]bool

var anyVantage = vantages{true, true, true, true, true}

func only(some ...timeline.Vantage) (set vantages) {
	for _, v := range some {
		set[v] = true
	}
	return set
}

// vantageOf returns the vantage that a label stands for.
func vantageOf(label string) timeline.Vantage {
	v, _ := timeline.ParseVantage(label)
	return v
}

// vantageNames are the valid values of the parameter `vantage`.
var vantageNames = func() (all []string) {
	for _, v := range timeline.Observers {
		all = append(all, v.String())
	}
	return append(all, vantageAll)
}()

// parseVantage reads the vantage that the question names.
func (q *query) parseVantage() error {
	i, err := q.choice(paramVantage, vantageNames, -1)
	switch {
	case err != nil:
		return err
	case i >= 0 && i < len(timeline.Observers):
		q.filter.vantages = only(timeline.Observers[i])
	}
	return nil
}

// namesVantage reports whether the question says which vantage to show.
func (q *query) namesVantage() bool { return q.values.Has(paramVantage) }

// seen says which vantage an answer shows, and which others there are.
type seen struct {
	// Shown is a vantage, vantageAll, or empty if no request has a known vantage.
	Shown string `json:"shown"`
	// Sum is set if requests that several vantages see count several times.
	Sum bool `json:"sum"`
	// Requests are those of each vantage, of all outcomes. Those without a known vantage are last.
	Requests []seenRequests `json:"requests"`
	Doubts   []doubt        `json:"doubts"`

	sums     [len(anyVantage)]history.Sum
	requests timeline.Requests
	vantages int // that have requests
}

type seenRequests struct {
	Vantage  string `json:"vantage"`
	Requests uint64 `json:"requests"`
}

// chooseVantage counts the selected requests of each vantage. If the question names no vantage, it selects the
// outermost one that has at least half as many requests as the one that has most. A range without requests has the
// vantage of the whole history, whose budgets go on.
func (p *Page) chooseVantage(q *query) {
	q.seen = p.see(q, &q.view)
	q.seen.Shown = q.values.Get(paramVantage)
	switch q.seen.Shown {
	case vantageAll:
		q.seen.Sum = q.seen.vantages > 1
	case "":
		from := q.seen
		if from.vantages == 0 {
			whole := p.viewFrom(q, q.now.Add(-periods[len(periods)-1].length))
			from = p.see(q, &whole)
		}
		shown := from.requests.Shown()
		if shown != timeline.VantageUnspecified {
			q.filter.vantages = only(shown, timeline.VantageUnspecified)
		}
		q.seen.Shown = shown.String()
		q.seen.doubt(q, shown)
	}
}

// see counts the selected requests of each vantage.
func (p *Page) see(q *query, view *history.View) *seen {
	s := &seen{Requests: []seenRequests{}, Doubts: []doubt{}}
	all := filter{dimensions: q.filter.dimensions, vantages: anyVantage, outcomes: anyOutcome}
	known := map[history.Key]*history.Sum{}
	of := func(key history.Key) *history.Sum {
		sum, ok := known[key]
		if !ok {
			if id := series.LabelsOf(key.Value()); all.selects(&id) {
				sum = &s.sums[vantageOf(id.Vantage)]
			}
			known[key] = sum
		}
		return sum
	}
	want := all.together()
	for slot := range view.Slots() {
		slot.AddTo(of, want)
	}
	for _, v := range append(timeline.Observers[:len(timeline.Observers):len(timeline.Observers)], timeline.VantageUnspecified) {
		n := total(&s.sums[v])
		if n == 0 {
			continue
		}
		s.Requests = append(s.Requests, seenRequests{v.String(), n})
		if v != timeline.VantageUnspecified {
			s.vantages++
			s.requests[v] = n
		}
	}
	return s
}

// outermost returns the outermost vantage that has requests and is good enough, or VantageUnspecified.
func (s *seen) outermost(enough func(timeline.Vantage) bool) timeline.Vantage {
	for _, v := range timeline.Observers {
		if total(&s.sums[v]) > 0 && enough(v) {
			return v
		}
	}
	return timeline.VantageUnspecified
}

// doubt adds the reasons to doubt that the chosen vantage has every request once.
func (s *seen) doubt(q *query, shown timeline.Vantage) {
	report := func(m diagnostics.Mistake, seenBy timeline.Vantage) {
		if m.SeenIn(diagnostics.Facts{Cases: int64(total(&s.sums[seenBy]))}) {
			s.Doubts = append(s.Doubts, doubt{m.Message(), seenBy.String(), seconds(q.view.From)})
		}
	}
	for _, v := range timeline.Observers {
		if v < shown {
			report(diagnostics.VantagePassedOver, v)
		}
	}
	if s.vantages > 1 {
		report(diagnostics.VantageUnknown, timeline.VantageUnspecified)
	}
}

// elsewhere returns the sums of all vantages, from which judge chooses.
func (q *query) elsewhere() (sums []*history.Sum) {
	if q.namesVantage() {
		return nil
	}
	for v := range q.seen.sums {
		sums = append(sums, &q.seen.sums[v])
	}
	return sums
}

// judge returns the vantage whose verdicts on an SLO stand in for those of the shown one, which has none: `match` of
// an SLO may select another vantage. It returns VantageUnspecified if the shown one has verdicts, or none has any.
func (q *query) judge(slo string, shown history.Verdicts) timeline.Vantage {
	if q.namesVantage() || shown != (history.Verdicts{}) {
		return timeline.VantageUnspecified
	}
	return q.seen.outermost(func(v timeline.Vantage) bool { return q.seen.sums[v].Verdicts(slo) != history.Verdicts{} })
}
