// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package series

import "github.com/tokenpulse/tokenpulse/internal/names"

// Quantity is one of the distributions that each series has for each outcome.
type Quantity uint8

// The quantities of docs/definitions.md that are aggregated over requests. A request
// has at most one value of each. InterTokenLatency and InterChunkLatency are
// exceptions: of these it has a distribution, with one value per token or chunk.
const (
	TimeToFirstToken Quantity = iota
	TimeToFirstOutputToken
	TimePerOutputToken
	RequestDuration
	QueueDuration
	PrefillDuration
	DecodeDuration
	NetworkDuration
	OutputTokenRate
	TimeToAnswer // of a trace
	InterTokenLatency
	InterChunkLatency

	quantities
	singleValues = InterTokenLatency
)

// Metric describes a metric.
type Metric struct{ Name, Unit, Description string }

// Metrics other than Histograms and Counters. Ratios have no unit: Prometheus appends
// `_ratio` to metrics with unit 1 that arrive over OTLP, so that the same alert rules
// could not serve scraped and pushed metrics.
var (
	Requests           = Metric{names.Requests, "{request}", "Finished requests."}
	SLORequests        = Metric{names.SLORequests, "{request}", "Finished requests by SLO and verdict. The SLO `all` combines every SLO that applies and the outcome (goodput)."}
	SLOObjective       = Metric{names.SLOObjective, "", "Share of requests that must be good, as configured."}
	SLOBurnRate        = Metric{names.SLOBurnRate, "", "Speed at which bad requests spend the error budget over a window: 1 spends exactly the budget."}
	SLOBudgetRemaining = Metric{names.SLOBudgetRemaining, "", "Share of the error budget that is left in the objective's window. Negative when more requests were bad than the objective allows."}
)

// Histogram describes the metric that publishes a quantity.
type Histogram struct {
	Quantity Quantity
	Metric
	// Phase is the value of the label `phase` of quantities that share a metric, else
	// empty.
	Phase string
	// ClassicBounds are the default upper bounds of the metric's classic buckets.
	ClassicBounds []float64
}

// Histograms holds the metric of each Quantity.
var Histograms = [quantities]Histogram{
	{TimeToFirstToken, Metric{names.TimeToFirstToken, seconds, "Time from the request's start to its first token, on any channel."}, "", firstTokenBounds},
	{TimeToFirstOutputToken, Metric{names.TimeToFirstOutputToken, seconds, "Time from the request's start to its first token that is not reasoning."}, "", firstTokenBounds},
	{TimePerOutputToken, Metric{names.TimePerOutputToken, seconds, "Mean time per output token of a request, after its first token."}, "", gapBounds},
	{RequestDuration, Metric{names.RequestDuration, seconds, "Time from the request's start to its end."}, "", durationBounds},
	{QueueDuration, Metric{names.PhaseDuration, seconds, phaseDescription}, names.PhaseQueue, phaseBounds},
	{PrefillDuration, Metric{names.PhaseDuration, seconds, phaseDescription}, names.PhasePrefill, phaseBounds},
	{DecodeDuration, Metric{names.PhaseDuration, seconds, phaseDescription}, names.PhaseDecode, phaseBounds},
	{NetworkDuration, Metric{names.PhaseDuration, seconds, phaseDescription}, names.PhaseNetwork, phaseBounds},
	{OutputTokenRate, Metric{names.OutputTokenRate, "{token}/s", "Output tokens per second of a request, after its first token."}, "", rateBounds},
	{TimeToAnswer, Metric{names.TraceTimeToAnswer, seconds, "Time from the start of a trace's root span to the first output token of its last request. Needs `roll_up`."}, "", answerBounds},
	{InterTokenLatency, Metric{names.InterTokenLatency, seconds, "Time between tokens: one value per token, which is the gap before its chunk divided by the tokens of the chunk."}, "", gapBounds},
	{InterChunkLatency, Metric{names.InterChunkLatency, seconds, "Time between chunks that hold tokens: one value per chunk. Needs `detail: full` of token_latency."}, "", gapBounds},
}

const (
	seconds          = "s"
	tokens           = "{token}"
	phaseDescription = "Time that a request spent in a phase: waiting for the engine (queue), until its first token (prefill), from its first to its last token (decode), and between an observer and the engine until the first token (network, needs `join`)."
)

// Count is one of the sums that each series has over all outcomes.
type Count uint8

// The sums.
const (
	InputTokens Count = iota
	OutputTokens
	ReasoningTokens
	CachedInputTokens
	Stalls
	StallSeconds
	unmeasured // the first of those that Unmeasured returns

	counts = unmeasured + Count(len(names.UnmeasuredIndicators)*len(names.UnmeasuredReasons))
)

// Unmeasured returns the count of requests without an indicator for a reason: indices of
// names.UnmeasuredIndicators and names.UnmeasuredReasons.
func Unmeasured(indicator, reason int) Count {
	return unmeasured + Count(indicator*len(names.UnmeasuredReasons)+reason)
}

// Counter describes the metric that publishes a Count.
type Counter struct {
	Count Count
	Metric
	// Type is the value of the label `type`, or empty.
	Type string
	// Indicator and Reason are the values of these labels, or empty.
	Indicator, Reason string
}

// Counters holds the metric of each Count.
var Counters = func() [counts]Counter {
	all := [counts]Counter{
		{Count: InputTokens, Metric: Metric{names.Tokens, tokens, tokensDescription}, Type: names.TokensInput},
		{Count: OutputTokens, Metric: Metric{names.Tokens, tokens, tokensDescription}, Type: names.TokensOutput},
		{Count: ReasoningTokens, Metric: Metric{names.Tokens, tokens, tokensDescription}, Type: names.TokensReasoning},
		{Count: CachedInputTokens, Metric: Metric{names.Tokens, tokens, tokensDescription}, Type: names.TokensCachedInput},
		{Count: Stalls, Metric: Metric{names.Stalls, "{stall}", "Gaps between chunks that exceed the stall threshold."}},
		{Count: StallSeconds, Metric: Metric{names.StallDuration, seconds, "Sum of the gaps that are stalls."}},
	}
	for i, indicator := range names.UnmeasuredIndicators {
		for j, reason := range names.UnmeasuredReasons {
			c := Unmeasured(i, j)
			all[c] = Counter{
				Count: c, Metric: Metric{names.RequestsUnmeasured, "{request}", "Finished requests without an indicator, by the reason for its absence."},
				Indicator: indicator, Reason: reason,
			}
		}
	}
	return all
}()

const tokensDescription = "Tokens. Output includes reasoning, input includes cached input."

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
