// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package twosample

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
)

// Question says what is compared.
type Question struct {
	// Indicators are those whose percentiles decide. Others are compared for information.
	Indicators []Indicator
	// SLOs are compared by the odds of a bad request. All decide. Their names are those of Request.Verdicts.
	SLOs []string
	// Tolerance is how much larger a percentile of the candidate may be: 0.1 is 1.1 times. OddsTolerance is how much larger
	// the odds of a bad request may be, of an SLO.
	Tolerance, OddsTolerance float64
	// Alpha limits the probability of a wrong verdict, whatever the number of SLOs and percentiles.
	Alpha float64
}

// Defaults of a Question.
const (
	DefaultTolerance     = 0.1
	DefaultOddsTolerance = 0.5
	DefaultAlpha         = 0.05
)

// Percentiles of each indicator that are compared.
var Percentiles = [...]float64{0.5, 0.95}

// Limits of a Question. A bucket of the histograms is 1.1% wide.
const (
	minTolerance, maxTolerance = 0.02, 10
	minAlpha, maxAlpha         = 1e-6, 0.5
)

// MinRequests is how many requests each arm needs, and how many of them with a value of an indicator.
const MinRequests = 200

// check returns an error that names the first value out of range.
func (q *Question) check(arms [2]*Arm) error {
	for _, of := range [...]struct {
		name               string
		value, least, most float64
	}{
		{"tolerance", q.Tolerance, minTolerance, maxTolerance},
		{"odds tolerance", q.OddsTolerance, minTolerance, maxTolerance},
		{"alpha", q.Alpha, minAlpha, maxAlpha},
	} {
		if !(of.value >= of.least && of.value <= of.most) {
			return fmt.Errorf("%s is %v; use a value from %v to %v", of.name, of.value, of.least, of.most)
		}
	}
	if len(q.SLOs)+len(q.Indicators) == 0 {
		return errors.New("nothing is asked; name an indicator or an slo")
	}
	for _, name := range q.SLOs {
		for i, a := range arms {
			if a.sloNames.find(name) < 0 {
				return fmt.Errorf("the %s has no verdicts of the slo %q, but of: %s; give the definition of the slo, or see whether its match selects requests",
					armNames[i], name, listed(a.SLOs()))
			}
		}
	}
	return nil
}

func listed(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// Verdict answers whether the candidate is as good as the baseline.
type Verdict string

// The verdicts.
const (
	// Equivalent: nothing that is compared is worse by more than the tolerance. It may be better.
	Equivalent Verdict = "equivalent"
	// Better is Equivalent, and something is better.
	Better Verdict = "better"
	// Worse: something is worse by more than the tolerance.
	Worse Verdict = "worse"
	// Undecided: the requests show neither.
	Undecided Verdict = "undecided"
)

// Reason says why a verdict is what it is. docs/offline.md says what to do about each.
type Reason string

// The reasons.
const (
	WithinTolerance Reason = "within_tolerance"
	Difference      Reason = "difference"
	TooFew          Reason = "too_few"
	SameRequests    Reason = "same_requests"
	PromptMix       Reason = "prompt_mix"
	Load            Reason = "load"
	Outcomes        Reason = "outcomes"
	Coverage        Reason = "coverage"
	Dependence      Reason = "dependence"
)

// Decision is a verdict with its reason, and a sentence that says what was found and what to do.
type Decision struct {
	Verdict Verdict `json:"verdict"`
	Reason  Reason  `json:"reason"`
	Hint    string  `json:"hint"`
}

// Result is what a comparison found.
type Result struct {
	Decision
	Baseline  Summary `json:"baseline"`
	Candidate Summary `json:"candidate"`
	Mix       Mix     `json:"mix"`
	// Rows are what was compared. There are none if the arms cannot be compared.
	Rows []Row `json:"rows"`
	// Warnings say what limits the verdict.
	Warnings []string `json:"warnings"`
}

// Row compares a number of both arms.
type Row struct {
	Decision
	// Indicator and Percentile, such as 0.95, are set of a latency, SLO of an SLO. Neither is set of the outcomes.
	Indicator  string  `json:"indicator,omitempty"`
	Percentile float64 `json:"percentile,omitempty"`
	SLO        string  `json:"slo,omitempty"`
	// Decides is false of a row for information.
	Decides   bool  `json:"decides"`
	Baseline  Value `json:"baseline"`
	Candidate Value `json:"candidate"`
	// Ratio is the candidate's percentile over the baseline's, or the odds ratio of bad requests. Its bounds are those of the verdict:
	// the lower one is above 1 + tolerance if the row is Worse, the upper one is not if it is Equivalent.
	Ratio Interval `json:"ratio"`
}

// Value is a number of an arm.
type Value struct {
	// Value is a percentile in seconds, or the share of bad requests.
	Value float64 `json:"value"`
	// Independent is as how many independent requests the arm's requests count.
	Independent float64 `json:"independent"`
}

// Summary is what an arm is.
type Summary struct {
	Requests uint64 `json:"requests"`
	// Unsuccessful requests have the outcome error, incomplete or cancelled.
	Unsuccessful uint64 `json:"unsuccessful"`
	Runs         int    `json:"runs"`
	Replicas     int    `json:"replicas"`
	// RequestRate is per second, and InFlight the mean number of requests at a time. Both are 0 if the starts are unknown.
	RequestRate float64 `json:"request_rate"`
	InFlight    float64 `json:"in_flight"`
}

func (a *Arm) summary() Summary {
	s := Summary{Requests: a.requests, Runs: len(a.runs), Replicas: len(a.replicas)}
	for _, g := range a.blocks {
		for _, c := range g {
			if c != nil {
				s.Unsuccessful += c.unsuccessful
			}
		}
	}
	var seconds, busy float64
	for _, r := range a.runs {
		seconds += r.last.Sub(r.first).Seconds()
		busy += r.busy
	}
	if seconds > 0 {
		s.RequestRate, s.InFlight = float64(a.requests)/seconds, busy/seconds
	}
	return s
}

// MarshalJSON writes null for what is unknown or open.
func (i Interval) MarshalJSON() ([]byte, error) {
	var all [3]*float64
	for n, v := range [...]float64{i.Estimate, i.Lower, i.Upper} {
		if !math.IsNaN(v) && !math.IsInf(v, 0) && v > 0 {
			all[n] = &v
		}
	}
	return json.Marshal(struct {
		Estimate *float64 `json:"estimate"`
		Lower    *float64 `json:"lower"`
		Upper    *float64 `json:"upper"`
	}{all[0], all[1], all[2]})
}

// ExitCode is that of the command: 0 for Equivalent and Better, 1 for Worse, 2 for Undecided.
func (v Verdict) ExitCode() int {
	return max(0, slices.Index([]Verdict{Better, Worse, Undecided}, v))
}
