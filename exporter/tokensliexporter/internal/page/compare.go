// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"errors"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/tokenpulse/tokenpulse/internal/canary"
	"github.com/tokenpulse/tokenpulse/internal/compare"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/series"
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
	paramSince                                    = "since"
)

var compareParams = []string{
	paramDimension, paramBaseline, paramCandidate, paramSLO, paramIndicator, paramPercentile, paramVantage,
	paramTolerance, paramAlpha, paramShare, paramSince,
}

func (p *Page) compare(q *query) (any, error) { return p.comparison(q.values, q.now) }

// comparison answers the question of some parameters.
func (p *Page) comparison(values url.Values, now time.Time) (*comparison, error) {
	question, since, err := p.question(values, now)
	if err != nil {
		return nil, err
	}
	reply, err := p.Comparisons.Ask(question, since, now)
	switch {
	case errors.Is(err, compare.ErrFull):
		return nil, p.refuse("configure the pairs that matter under `compare`; a pair that nobody asks for is dropped after a day", "%v", err)
	case errors.Is(err, compare.ErrPast):
		began := "with the candidate's first request"
		if !reply.Since.IsZero() {
			began = "at " + reply.Since.UTC().Format(time.RFC3339)
		}
		return nil, invalid("leave `since` out, or give `now` to begin anew", "`since` is in the past, and the evidence begins %s", began)
	case err != nil:
		return nil, err
	}
	return newComparison(question, &reply), nil
}

// question reads the parameters of a comparison.
func (p *Page) question(values url.Values, now time.Time) (*compare.Question, time.Time, error) {
	q := &compare.Question{Pair: compare.Pair{
		Dimension: values.Get(paramDimension), Baseline: values.Get(paramBaseline), Candidate: values.Get(paramCandidate),
		Vantage: values.Get(paramVantage), SLO: values.Get(paramSLO), Indicator: values.Get(paramIndicator),
	}}
	for name, into := range map[string]*float64{paramPercentile: &q.Percentile, paramTolerance: &q.Tolerance, paramAlpha: &q.Alpha, paramShare: &q.ExpectedShare} {
		if !values.Has(name) {
			continue
		}
		var err error
		if *into, err = strconv.ParseFloat(values.Get(name), 64); err != nil || !(*into > 0) {
			return nil, now, invalid("give a number above 0, or leave it out", "`%s` is %q", name, values.Get(name))
		}
	}
	q.SetDefaults()
	for _, m := range q.Mistakes(p.Dimensions.Names()) {
		return nil, now, invalid(m.Remedy, "`%s` %s", m.Key, m.Message)
	}
	if err := p.checkSLO(q, now); err != nil {
		return nil, now, err
	}
	since, err := parseSince(values.Get(paramSince), now)
	if err == nil && since.After(now.Add(maxAhead)) {
		err = invalid("give `now`, a time that is not in the future, or leave `since` out", "`since` is %q, in the future", values.Get(paramSince))
	}
	return q, since, err
}

// maxAhead is how much the clock of a client may be ahead.
const maxAhead = time.Minute

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
	q := &query{now: now, period: periods[len(periods)-1], filter: filter{vantages: anyVantage, outcomes: anyOutcome}}
	view := p.view(q)
	known := p.sloNames(p.newSelection(q).add(view.Slots(), q.filter.together()))
	for _, component := range p.SLOs.All() {
		for _, d := range component {
			known = append(known, series.CleanLabel(d.Name))
		}
	}
	slices.Sort(known)
	return slices.DeleteFunc(slices.Compact(known), func(name string) bool { return name == names.SLOAll })
}

// parseSince reads the begin of a comparison: whole seconds as the API writes it, a timestamp, or `now`.
func parseSince(text string, now time.Time) (time.Time, error) {
	switch text {
	case "":
		return time.Time{}, nil
	case "now":
		return now, nil
	}
	if unix, err := strconv.ParseFloat(text, 64); err == nil && unix >= 0 && unix < 1e11 {
		return time.UnixMicro(int64(unix * 1e6)), nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return at, invalid("give seconds since 1970 such as 1795233292, a time such as 2026-11-21T08:00:00Z, or `now`", "`since` is %q", text)
	}
	return at, nil
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
