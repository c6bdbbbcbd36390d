// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/tokenpulse/tokenpulse/internal/canary"
	"github.com/tokenpulse/tokenpulse/internal/compare"
	"github.com/tokenpulse/tokenpulse/internal/names"
)

// comparison is the verdict on two values of a dimension.
type comparison struct {
	Verdict   canary.Verdict `json:"verdict"`
	Reason    canary.Reason  `json:"reason"`
	Hint      string         `json:"hint"`
	Baseline  arm            `json:"baseline"`
	Candidate arm            `json:"candidate"`
	Ratio     interval       `json:"ratio"`
	// PercentileRatio is there for a percentile.
	PercentileRatio *interval `json:"percentile_ratio"`
	Alpha           number    `json:"alpha"`
	Tolerance       number    `json:"tolerance"`
	Since           number    `json:"since"`
	Windows         int       `json:"windows"`
	Vantage         *string   `json:"vantage"`
}

type arm struct {
	Requests uint64 `json:"requests"`
	Bad      uint64 `json:"bad"`
	interval
	Replicas int `json:"replicas"`
}

type interval struct {
	Estimate number `json:"estimate"`
	Lower    number `json:"lower"`
	Upper    number `json:"upper"`
}

// Parameters of a comparison, besides paramVantage and paramIndicator.
const (
	paramDimension, paramBaseline, paramCandidate = "dimension", "baseline", "candidate"
	paramSLO, paramPercentile                     = "slo", "percentile"
	paramTolerance, paramAlpha, paramShare        = "tolerance", "alpha", "expected_share"
)

var compareParams = []string{
	paramDimension, paramBaseline, paramCandidate, paramSLO, paramIndicator, paramPercentile, paramVantage,
	paramTolerance, paramAlpha, paramShare,
}

// comparing returns the handler of one method. The parameters of all methods are those of a question. Unlike other
// answers, these are never kept for equal requests: a pair may end between two of them.
func (p *Page) comparing(answer func(*compare.Question, time.Time) (int, *compare.Reply, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		release, err := p.admit(r)
		if err != nil {
			fail(w, err)
			return
		}
		defer release()
		defer p.answers.compute()()
		now := p.Now()
		q, err := p.question(r)
		var status int
		var reply *compare.Reply
		if err == nil {
			status, reply, err = answer(q, now)
		}
		switch {
		case err != nil:
			fail(w, err)
		case reply == nil:
			w.WriteHeader(status)
		default:
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			_ = json.NewEncoder(w).Encode(newComparison(q, reply)) // an error means that the client went away
		}
	}
}

func (p *Page) beginComparison(q *compare.Question, now time.Time) (int, *compare.Reply, error) {
	if err := p.checkSLO(q, now); err != nil {
		return 0, nil, err
	}
	reply, begun, err := p.Comparisons.Begin(q, now)
	switch {
	case err != nil:
		return 0, nil, p.refuse(limitPairs, "end one of those in `meta` with DELETE; a pair that `compare` does not have ends after a day without a request of one arm", "%v", err)
	case begun:
		return http.StatusCreated, &reply, nil
	}
	return http.StatusOK, &reply, nil
}

func (p *Page) readComparison(q *compare.Question, now time.Time) (int, *compare.Reply, error) {
	reply, err := p.Comparisons.Ask(q, now)
	if err != nil {
		return 0, nil, unknownPair(err)
	}
	return http.StatusOK, &reply, nil
}

func (p *Page) endComparison(q *compare.Question, _ time.Time) (int, *compare.Reply, error) {
	if err := p.Comparisons.End(q); err != nil {
		return 0, nil, unknownPair(err)
	}
	return http.StatusNoContent, nil, nil
}

func unknownPair(err error) error {
	return &failure{Status: http.StatusNotFound, Message: err.Error(), Remedy: "begin it with POST and the same parameters, or enter it under `compare` of the configuration"}
}

// question reads the parameters of a comparison.
func (p *Page) question(r *http.Request) (*compare.Question, error) {
	values, err := parameters(r, compareParams)
	if err != nil {
		return nil, err
	}
	q := &compare.Question{Pair: compare.Pair{
		Dimension: values.Get(paramDimension), Baseline: values.Get(paramBaseline), Candidate: values.Get(paramCandidate),
		Vantage: values.Get(paramVantage), SLO: values.Get(paramSLO), Indicator: values.Get(paramIndicator),
	}}
	for name, into := range map[string]*float64{paramPercentile: &q.Percentile, paramTolerance: &q.Tolerance, paramAlpha: &q.Alpha, paramShare: &q.ExpectedShare} {
		if !values.Has(name) {
			continue
		}
		if *into, err = strconv.ParseFloat(values.Get(name), 64); err != nil || !(*into > 0) {
			return nil, invalid("give a number above 0, or leave it out", "`%s` is %q", name, values.Get(name))
		}
	}
	q.SetDefaults()
	for _, m := range q.Mistakes(p.Dimensions.Names()) {
		return nil, invalid(m.Remedy, "`%s` %s", m.Key, m.Message)
	}
	return q, nil
}

// checkSLO checks that a new pair has an SLO that is known. Without any known SLO, it accepts all: they may be those of
// another Collector, whose verdicts have not arrived yet.
func (p *Page) checkSLO(q *compare.Question, now time.Time) error {
	if q.SLO == "" || q.SLO == names.SLOAll || p.Comparisons.Has(q) {
		return nil
	}
	known := p.knownSLOs(now)
	if len(known) == 0 || slices.Contains(known, q.SLO) {
		return nil
	}
	remedy := remedyOf("SLOs that are known", append(known, names.SLOAll)) +
		"; one of another Collector is known from its first verdict on, or by an entry in `objectives`"
	return invalid(remedy, "`slo` is %q, which is unknown", q.SLO)
}

// knownSLOs returns the SLOs of objectives, of the components of this process, and with a verdict in the history.
func (p *Page) knownSLOs(now time.Time) []string {
	p.fold()
	q := &query{now: now, asked: now, filter: filter{vantages: anyVantage, outcomes: anyOutcome}}
	whole := p.viewFrom(q, now.Add(-periods[len(periods)-1].length))
	known := p.sloNames(p.newSelection(q).add(whole.Slots(), q.filter.together()))
	for _, component := range p.SLOs.All() {
		for _, d := range component {
			known = append(known, names.CleanLabel(d.Name))
		}
	}
	slices.Sort(known)
	return slices.DeleteFunc(slices.Compact(known), func(name string) bool { return name == names.SLOAll })
}

func newComparison(q *compare.Question, r *compare.Reply) *comparison {
	c := &comparison{
		Verdict: r.Verdict, Reason: r.Reason, Hint: r.Hint,
		Baseline: newArm(&r.Baseline), Candidate: newArm(&r.Candidate),
		Ratio: newInterval(&r.Ratio),
		Alpha: number(q.Alpha), Tolerance: number(q.Tolerance), Since: missing, Windows: r.Windows, Vantage: known(r.Vantage),
	}
	if q.Percentile > 0 {
		of := newInterval(&r.PercentileRatio)
		c.PercentileRatio = &of
	}
	if !r.Since.IsZero() {
		c.Since = seconds(r.Since)
	}
	return c
}

func newArm(a *canary.ArmAnswer) arm {
	return arm{a.Requests, a.Bad, newInterval(&a.Interval), a.Replicas}
}

func newInterval(i *canary.Interval) interval {
	return interval{number(i.Estimate), number(i.Lower), number(i.Upper)}
}
