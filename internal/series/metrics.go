// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package series

import (
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/slo"
)

// Metrics other than those of numbers and Counters. Ratios have no unit: Prometheus appends
// `_ratio` to metrics with unit 1 that arrive over OTLP, so that the same alert rules
// could not serve scraped and pushed metrics.
var (
	Requests    = numbers.Metric{Name: names.Requests, Unit: "{request}", Description: "Finished requests."}
	SLORequests = numbers.Metric{Name: names.SLORequests, Unit: "{request}", Description: "Finished requests by SLO and verdict. The SLO `all` combines every SLO that applies and the outcome (goodput)."}
	StreamsOpen = numbers.Metric{Name: names.StreamsOpen, Unit: "{stream}", Description: "Open streams of the receivers in the same Collector, by phase and by the time without a token: `silent` is the upper bound of a band."}
	// EngineState and EngineSilence have no labels of series.
	EngineState   = numbers.Metric{Name: names.EngineState, Unit: "", Description: "State of each engine that a receiver in the same Collector watches: 1 for the state that holds, 0 for the others."}
	EngineSilence = numbers.Metric{Name: names.EngineSilence, Unit: numbers.Seconds, Description: "How long each engine has sent no token although open requests should get some. It is 0 if no such request is open."}
	// Gauges are those of SLO objectives.
	Gauges = [...]numbers.Metric{
		{Name: names.SLOObjective, Unit: "", Description: "Share of requests that must be good, as configured."},
		{Name: names.SLOBurnRate, Unit: "", Description: "Speed at which bad requests spend the error budget over a window: 1 spends exactly the budget."},
		{Name: names.SLOBudgetRemaining, Unit: "", Description: "Share of the error budget that is left in the objective's window. Negative when more requests were bad than the objective allows."},
	}
)

// Count is one of the sums that each series has over all outcomes: first those of numbers.Sums, then those
// that Unmeasured returns of latencies, those that Failed returns, and those that Unmeasured returns of TokensPerChunk. Stored histories have them in this order: whoever changes
// it changes the version of storageclient, too.
type Count uint8

const (
	unmeasured = Count(len(numbers.Sums))
	failed     = unmeasured + latencies*reasons
	chunks     = failed + Count(len(names.FailureCauses))
	counts     = chunks + reasons

	latencies = Count(len(names.UnmeasuredIndicators) - 1) // the last indicator came later
	reasons   = Count(len(names.UnmeasuredReasons))
)

// CountOf returns the sum of one of numbers.Sums.
func CountOf(id numbers.ID) Count { return countOf[id] }

var countOf = func() (index [numbers.Count]Count) {
	for i, id := range numbers.Sums {
		index[id] = Count(i)
	}
	return index
}()

// Unmeasured returns the count of requests without an indicator for a reason: indices of
// names.UnmeasuredIndicators and names.UnmeasuredReasons.
func Unmeasured(indicator, reason int) Count {
	if numbers.Indicators[indicator] == numbers.TokensPerChunk {
		return chunks + Count(reason)
	}
	return unmeasured + Count(indicator)*reasons + Count(reason)
}

// Failed returns the count of failed requests with a cause.
func Failed(cause slo.Cause) Count { return failed + Count(cause) }

// Counter describes the metric that publishes a Count.
type Counter struct {
	Count Count
	numbers.Metric
	// Type is the value of the label `type`, or empty.
	Type string
	// Indicator and Reason are the values of these labels, or empty.
	Indicator, Reason string
	// Cause is the value of the label `cause`, or empty.
	Cause string
	// Whole means that the sum is a whole number, and Off that the metric is off by default.
	Whole, Off bool
}

// Counters holds the metric of each Count.
var Counters = func() (all [counts]Counter) {
	for _, id := range numbers.Sums {
		row, c := id.Row(), countOf[id]
		all[c] = Counter{Count: c, Metric: row.Metric, Type: row.Type, Whole: row.Whole, Off: row.Off}
	}
	for i, indicator := range names.UnmeasuredIndicators {
		for j, reason := range names.UnmeasuredReasons {
			c := Unmeasured(i, j)
			all[c] = Counter{
				Count: c, Metric: numbers.Metric{
					Name: names.RequestsUnmeasured, Unit: "{request}", Description: "Finished requests without an indicator, by the reason for its absence.",
				},
				Indicator: indicator, Reason: reason, Whole: true,
			}
		}
	}
	for cause, name := range names.FailureCauses {
		c := Failed(slo.Cause(cause))
		all[c] = Counter{
			Count: c, Metric: numbers.Metric{
				Name: names.RequestsFailed, Unit: "{request}", Description: "Finished requests with the outcome `error` or `incomplete`, by cause.",
			},
			Cause: name, Whole: true,
		}
	}
	return all
}()

// Outcome is how a request ended.
type Outcome uint8

// The outcomes of docs/definitions.md.
const (
	Success Outcome = iota
	Error
	Cancelled
	Incomplete

	outcomes
)

// OutcomeNames holds the label value of each Outcome.
var OutcomeNames = [outcomes]string{names.OutcomeSuccess, names.OutcomeError, names.OutcomeCancelled, names.OutcomeIncomplete}
