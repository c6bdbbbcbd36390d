// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package twosample

import (
	"fmt"
	"math"
	"slices"

	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/terminal"
)

// subject is a number to compare.
type subject struct {
	as        Row // its name
	tolerance float64
	// views are the number without and with requests that have no value. A verdict needs both. There is none if an arm has too few
	// values.
	views []number
	few   string
}

// subjects returns what the question compares, the outcomes last, and says which latencies it leaves out.
func (c *comparison) subjects(q *Question) (all []subject, left []string) {
	for _, name := range q.SLOs {
		var of [2]counter
		for i, a := range c.arms {
			of[i] = badFor(a.sloNames.find(name))
		}
		s := subject{as: Row{SLO: name, Decides: true}, tolerance: q.OddsTolerance}
		if n, ok := c.odds(of); ok {
			s.views = []number{n}
		} else {
			s.few = "an arm has no request that the SLO judges"
		}
		all = append(all, s)
	}
	for i := range Indicators {
		n, few, decides := [2]uint64{c.totals[baseline].with(i), c.totals[candidate].with(i)}, "", slices.Contains(q.Indicators, i)
		if min(n[0], n[1]) < MinRequests {
			few = fmt.Sprintf("%d and %d requests have one; %d in each arm are needed", n[0], n[1], MinRequests)
		}
		if few != "" && !decides {
			left = append(left, fmt.Sprintf("%s is not compared: %s", i, few))
			continue
		}
		for _, p := range Percentiles {
			s := subject{as: Row{Indicator: i.String(), Percentile: p, Decides: decides}, tolerance: q.Tolerance, few: few}
			for _, missing := range [...]bool{false, true} {
				if few != "" || missing && c.totals[baseline].without(i)+c.totals[candidate].without(i) == 0 {
					continue
				}
				if n, ok := c.percentile(i, p, missing); ok {
					s.views = append(s.views, n)
				} else {
					s.few = "no band of prompt lengths has values in both arms"
				}
			}
			all = append(all, s)
		}
	}
	if n, ok := c.outcomes(); ok {
		all = append(all, subject{as: Row{Decides: true}, tolerance: q.OddsTolerance, views: []number{n}})
	}
	return all, left
}

func badFor(slo int) counter {
	return func(_ int, c *cell) (n count) {
		if slo < len(c.slos) {
			n = count{float64(c.slos[slo].Eligible), float64(c.slos[slo].Bad)}
		}
		return n
	}
}

func unsuccessful(_ int, c *cell) count { return count{float64(c.requests), float64(c.unsuccessful)} }

// with returns how many requests have a value.
func (g *group) with(i Indicator) (n uint64) {
	for _, c := range g {
		if c != nil {
			n += c.measured[i]
		}
	}
	return n
}

// without returns how many requests should have a value, and have none.
func (g *group) without(i Indicator) (n uint64) {
	for _, c := range g {
		if c != nil {
			n += c.missing[i]
		}
	}
	return n
}

// row compares the number. All deciding rows have to be equivalent, so that each of them may be wrong with a probability of alpha / 2.
// One that is worse or better decides alone, so that all of them share the other half.
func (s *subject) row(alpha float64, deciding int) Row {
	r := s.as
	if len(s.views) == 0 {
		r.Ratio = Interval{math.NaN(), 0, math.Inf(1)}
		r.Decision = undecided(TooFew, "%s", s.few)
		return r
	}
	first := &s.views[0]
	r.Baseline = Value{first.values[baseline], first.shares[baseline].effective}
	r.Candidate = Value{first.values[candidate], first.shares[candidate].effective}
	atLeast, atMost, surely := math.Inf(1), math.Inf(-1), math.Inf(-1)
	for i := range s.views {
		_, upper := s.views[i].difference(alpha / 2)
		lower, farther := s.views[i].difference(alpha / 2 / float64(deciding))
		atLeast, atMost, surely = min(atLeast, lower), max(atMost, upper), max(surely, farther)
	}
	r.Ratio = Interval{first.ratio, math.Exp(atLeast), math.Exp(atMost)}
	if r.Ratio.Upper > maxRatio {
		r.Ratio.Upper = math.Inf(1)
	}
	r.Decision = s.decide(&r, alpha, surely < 0)
	return r
}

// maxRatio is the largest upper bound that says more than that there is none.
const maxRatio = 1e6

// decide returns the verdict on a row.
func (s *subject) decide(r *Row, alpha float64, better bool) Decision {
	tolerance := math.Log1p(s.tolerance)
	lower, upper := math.Log(r.Ratio.Lower), math.Log(r.Ratio.Upper)
	found := r.found()
	first := &s.views[0]
	_, measured := first.difference(alpha / 2)
	switch blocks := min(first.shares[baseline].blocks, first.shares[candidate].blocks); {
	case blocks < minBlocks:
		return undecided(Dependence, "the requests of an arm fall into %d blocks of time, and may depend on each other; spread them over at least %d", blocks, minBlocks)
	case r.Indicator != "" && math.IsNaN(r.Ratio.Estimate):
		return undecided(Coverage, "a percentile is 0, which has no ratio; compare another latency")
	case lower > tolerance:
		return Decision{Worse, Difference, found + "; worse by more than the tolerance"}
	case upper <= tolerance && better:
		return Decision{Better, Difference, found + "; better"}
	case upper <= tolerance:
		return Decision{Equivalent, WithinTolerance, found + "; not worse by more than the tolerance"}
	case measured <= tolerance:
		return undecided(Coverage, "%s, if failed and unmeasured requests are the slowest; without them it is within the tolerance; look at their causes,"+
			" or record more requests", found)
	case lower > 0:
		return undecided(Difference, "%s; worse, but maybe within the tolerance; record more requests", found)
	}
	return undecided(TooFew, "%s; that may be within the tolerance or not; record %s", found, s.needed(tolerance, upper))
}

// needed says how many more requests would probably be enough, if the candidate is as good as it seems.
func (s *subject) needed(tolerance, upper float64) string {
	n := &s.views[0]
	d := n.sides[candidate].estimate - n.sides[baseline].estimate
	narrower := (upper - d) / (tolerance - d)
	if times := math.Ceil(narrower * narrower); d < tolerance && times < maxTimes {
		return fmt.Sprintf("about %g times as many requests", max(times, 2))
	}
	return "many more requests, or compare with a larger tolerance"
}

const maxTimes = 1000

// found says what the row found.
func (r *Row) found() string {
	ratio, bounds := "", fmt.Sprintf("%s to %s", orElse(r.Ratio.Lower, "0"), orElse(r.Ratio.Upper, "any"))
	if ratio = orElse(r.Ratio.Estimate, ""); ratio == "" {
		ratio = bounds + " times"
	} else {
		ratio += " times (" + bounds + ")"
	}
	if r.Indicator != "" {
		return fmt.Sprintf("%s is %s the baseline's %s", terminal.Duration(r.Candidate.Value), ratio, terminal.Duration(r.Baseline.Value))
	}
	return fmt.Sprintf("%s are bad, and %s of the baseline: the odds are %s as large", terminal.Percent(r.Candidate.Value), terminal.Percent(r.Baseline.Value), ratio)
}

// orElse writes a ratio, unless it is unknown or open.
func orElse(v float64, open string) string {
	if !(v > 0) || math.IsInf(v, 1) {
		return open
	}
	return fmt.Sprintf("%.3g", v)
}

// name returns what the row compares.
func (r *Row) name() string {
	switch {
	case r.SLO != "":
		return fmt.Sprintf("slo %q", r.SLO)
	case r.Indicator != "":
		return fmt.Sprintf("p%g of %s", 100*r.Percentile, r.Indicator)
	}
	return "unsuccessful requests"
}

func (r *Row) ofOutcomes() bool { return r.SLO == "" && r.Indicator == "" }
