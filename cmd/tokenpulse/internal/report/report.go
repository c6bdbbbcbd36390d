// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Package report describes the requests of files: by group, their outcomes, latencies and verdicts. A report is written as
// a table or as JSON, from which it can be read again.
package report

import (
	"bytes"
	"time"

	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/arms"
	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/sketch"
)

// Version is that of the JSON. It rises if a reader of the version before would misread it.
const Version = 1

// Report describes the requests of some files.
type Report struct {
	Version int `json:"tokenpulse_report"`
	// Partial means that reading ended before the end of the files.
	Partial bool `json:"partial"`
	// Begin is the start of the earliest request, and End the end of the latest.
	Begin time.Time `json:"begin"`
	End   time.Time `json:"end"`
	Input Input     `json:"input"`
	// By holds the attributes that distinguish groups, besides the vantage.
	By []string `json:"by"`
	// SLOs are those that judged the requests, unless another token_latency processor judged them before.
	SLOs   []SLO   `json:"slos"`
	Groups []Group `json:"groups"`
	// Arms is what `compare` needs of the requests.
	Arms *arms.Arms `json:"arms,omitempty"`
}

// Is reports whether a file that begins with prefix is a report in JSON.
func Is(prefix []byte) bool {
	return bytes.HasPrefix(bytes.TrimSpace(prefix), []byte("{")) && bytes.Contains(prefix, []byte(`"tokenpulse_report"`))
}

// Input counts what was read.
type Input struct {
	Files    int   `json:"files"`
	Requests int64 `json:"requests"`
	// Traces are root spans with the numbers of a whole trace, which are no requests.
	Traces int64 `json:"traces"`
	// Duplicates are requests that were read before.
	Duplicates int64 `json:"duplicates"`
	// Aggregated are requests that their receiver counted before it sampled their spans. Groups do not have them.
	Aggregated int64 `json:"aggregated"`
	// Ignored are spans without a latency.
	Ignored int64 `json:"ignored"`
	// Overflow are requests of groups beyond the limit, which share one group.
	Overflow int64 `json:"overflow"`
	// Rejected are numbers of requests that were left out, because they cannot be true.
	Rejected int64 `json:"rejected"`
	// Forgotten are requests that were forgotten at the limit of deduplication. A repeated one counts again.
	Forgotten int64 `json:"forgotten"`
	// Damaged is the number of messages that could not be read.
	Damaged int64 `json:"damaged"`
	// Notes are what the tools that wrote the files cannot say, a sentence each.
	Notes []string `json:"notes"`
}

// SLO is a service level objective on single requests.
type SLO struct {
	Name      string `json:"name"`
	Indicator string `json:"indicator"`
	// Threshold is the largest good value, in the unit of the indicator. It is 0 for the outcome.
	Threshold float64 `json:"threshold"`
	// Conditions has the other keys of the SLO as JSON, such as match. It is empty if none is set.
	Conditions string `json:"conditions,omitempty"`
	// Objective is the share of requests that must be good, 0 if there is no objective.
	Objective float64 `json:"objective,omitempty"`
}

// Same reports whether another SLO judges requests alike.
func (s *SLO) Same(other *SLO) bool {
	return s.Indicator == other.Indicator && s.Threshold == other.Threshold && s.Conditions == other.Conditions
}

// Group holds the requests with the same attributes.
type Group struct {
	// Labels holds the attributes of Report.By, without those that the requests lack.
	Labels  map[string]string `json:"labels"`
	Vantage string            `json:"vantage"`
	// Overflow marks the group of the requests beyond the limit of groups, which has no labels.
	Overflow bool `json:"overflow,omitempty"`
	// Outcomes holds the requests by outcome.
	Outcomes map[string]Outcome `json:"outcomes"`
	// Failures counts requests that failed, by cause.
	Failures map[string]float64 `json:"failures"`
	// Tokens holds sums of tokens by type.
	Tokens map[string]float64 `json:"tokens"`
	// Totals holds other sums by the name of their metric, without `tokenpulse.`.
	Totals map[string]float64 `json:"totals"`
	// Unmeasured counts requests without an indicator, by indicator and reason.
	Unmeasured map[string]map[string]float64 `json:"unmeasured"`
	// SLOs counts requests by SLO.
	SLOs map[string]Verdicts `json:"slos"`
}

// Outcome holds the requests of a group that ended alike.
type Outcome struct {
	Requests uint64 `json:"requests"`
	// Indicators holds the distribution of each, by its name in the API of the live page.
	Indicators map[string]Histogram `json:"indicators"`
}

// Verdicts counts requests by verdict.
type Verdicts struct {
	Good        uint64 `json:"good"`
	Bad         uint64 `json:"bad"`
	NotEligible uint64 `json:"not_eligible"`
}

// Attainment returns the share of good requests. ok is false without any eligible.
func (v Verdicts) Attainment() (share float64, ok bool) {
	eligible := v.Good + v.Bad
	return float64(v.Good) / float64(eligible), eligible > 0
}

// Requests returns the number of requests with any outcome.
func (g *Group) Requests() (n uint64) {
	for _, o := range g.Outcomes {
		n += o.Requests
	}
	return n
}

// Values returns the distribution of an indicator over all outcomes.
func (g *Group) Values(id numbers.ID) *sketch.Sketch {
	all := &sketch.Sketch{}
	for _, o := range g.Outcomes {
		if h, ok := o.Indicators[id.APIName()]; ok {
			all.Merge(h.values)
		}
	}
	return all
}
